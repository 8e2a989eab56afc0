/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Leaves in assembly, most without call-frame information, below callers that keep data in rbp.
 * TRUTH_LEAF selects the case; the function is always called asm_leaf.
 */
#include "step.h"

uint64_t asm_leaf(uint64_t count);
TRUTH_FUNCTION uint64_t callback(uint64_t count);
TRUTH_FUNCTION uint64_t callback(uint64_t count)
{
    return truth_spin(count);
}

#define BEGIN(name) ".text\n.globl " #name "\n.type " #name ", @function\n" #name ":\n"
#define END(name)   ".size " #name ", . - " #name "\n"
#define SPIN        "1: dec %rdi\n jnz 1b\n"

#define PLAIN     1  /* nothing but a loop */
#define CFI       2  /* the same, with call-frame information */
#define PUSHES    3  /* pushes, room, a loop, and everything back */
#define ALIGNED   4  /* aligns its stack, and calls C from there */
#define FRAME     5  /* rbp is a frame pointer, with pushes before it */
#define INNER     6  /* calls another of its kind, which pushes too */
#define TAIL      7  /* goes over to C by a jump */
#define PIC       8  /* learns its address by a call of the next instruction */
#define STALE     9  /* rbp holds the frame of a function further out */
#define SAVED_SP  10 /* keeps the old stack pointer in memory, as ciphers do */
#define BRANCHES  11 /* two ways with different depths, a ret in the middle */
#define RED_ZONE  12 /* keeps data below the stack pointer */
#define SWITCHED  13 /* calls C on a stack of its own */
#define INDIRECT  14 /* calls through a register and through memory */
#define ENTER     15 /* enter and leave, whose instructions move two registers */
#define PUSH_RET  16 /* goes over to C by push and ret */
#define LOOP_PUSH 17 /* pushes in a loop: how far the stack has gone no instruction tells */
#define RET_N     18 /* its callee takes the arguments off the stack */
#define DATA      19 /* bytes among the code that are no instructions */
#define SHARED    20 /* ends by a jump into the middle of another function */
#define CONFLICT  21 /* one instruction that is met at two depths */
#define GROWS     22 /* its callee returns with less stack */
#define NORETURN  23 /* a call that does not return, and code behind it at another depth */
#define TABLE     24 /* a table of jumps to places with different depths */
#define SWAPPED   25 /* the stack pointer is in another register for a while */
#define COUNTED   26 /* room of a size that a register has */
#define KEPT      27 /* the old stack pointer is in rax, which its callee leaves alone */
#define KEPT_BARE 28 /* the same, with a callee without call-frame information */
#define KEPT_NOT  29 /* its callee has an address of another frame in rax meanwhile, */
#define KEPT_DEEP 30 /* or C that it calls has */

#if TRUTH_LEAF == PLAIN
__asm__(BEGIN(asm_leaf) SPIN "xor %eax, %eax\n ret\n" END(asm_leaf));
#elif TRUTH_LEAF == CFI
__asm__(BEGIN(asm_leaf) ".cfi_startproc\n" SPIN
                        "xor %eax, %eax\n ret\n .cfi_endproc\n" END(asm_leaf));
#elif TRUTH_LEAF == PUSHES
__asm__(BEGIN(asm_leaf) "push %rbx\n push %rbp\n push %r12\n sub $40, %rsp\n mov $7, %ebp\n"
                        "mov %rdi, (%rsp)\n" SPIN "add $40, %rsp\n pop %r12\n pop %rbp\n"
                        "pop %rbx\n ret\n" END(asm_leaf));
#elif TRUTH_LEAF == ALIGNED
__asm__(BEGIN(asm_leaf) "push %rbx\n push %rbp\n mov %rsp, %rbx\n sub $100, %rsp\n and $-32, %rsp\n"
                        "mov %rdi, (%rsp)\n call callback\n mov (%rsp), %rdi\n" SPIN
                        "mov %rbx, %rsp\n pop %rbp\n pop %rbx\n ret\n" END(asm_leaf));
#elif TRUTH_LEAF == FRAME
__asm__(BEGIN(asm_leaf) "push %rbx\n push %r12\n push %rbp\n mov %rsp, %rbp\n sub $64, %rsp\n"
                        "mov %rdi, -8(%rbp)\n call callback\n mov -8(%rbp), %rdi\n" SPIN
                        "mov %rbp, %rsp\n pop %rbp\n pop %r12\n pop %rbx\n ret\n" END(asm_leaf));
#elif TRUTH_LEAF == INNER
__asm__(
    BEGIN(asm_leaf) "push %rdi\n push %rbp\n mov $99, %ebp\n call asm_inner\n pop %rbp\n pop %rdi\n"
                    "ret\n" END(asm_leaf)
                        BEGIN(asm_inner) "push %rbx\n sub $24, %rsp\n" SPIN
                                         "add $24, %rsp\n pop %rbx\n ret\n" END(asm_inner));
#elif TRUTH_LEAF == TAIL
__asm__(
    BEGIN(asm_leaf) "push %rdi\n sub $16, %rsp\n nop\n add $16, %rsp\n pop %rdi\n jmp callback\n" END(
        asm_leaf));
#elif TRUTH_LEAF == PIC
__asm__(BEGIN(asm_leaf) "call 2f\n2: pop %rax\n push %rdi\n" SPIN "pop %rdi\n ret\n" END(asm_leaf));
#elif TRUTH_LEAF == STALE
__asm__(BEGIN(asm_leaf) SPIN "xor %eax, %eax\n ret\n" END(asm_leaf));
#elif TRUTH_LEAF == SAVED_SP
__asm__(BEGIN(
    asm_leaf) "mov %rsp, %rax\n push %rbx\n push %rbp\n sub $256, %rsp\n and $-64, %rsp\n"
              "mov %rax, 152(%rsp)\n xor %eax, %eax\n mov $3, %ebp\n" SPIN
              "mov 152(%rsp), %rsi\n mov -16(%rsi), %rbp\n mov -8(%rsi), %rbx\n lea (%rsi), %rsp\n ret\n" END(
                  asm_leaf));
#elif TRUTH_LEAF == BRANCHES
__asm__(BEGIN(asm_leaf) "test $1, %dil\n jnz 3f\n push %rbx\n push %rbp\n xor %ebp, %ebp\n jmp 4f\n"
                        "3: sub $8, %rsp\n5: dec %rdi\n jnz 5b\n add $8, %rsp\n ret\n"
                        "4: dec %rdi\n jnz 4b\n pop %rbp\n pop %rbx\n ret\n" END(asm_leaf));
#elif TRUTH_LEAF == RED_ZONE
__asm__(BEGIN(asm_leaf) "mov %rbp, -8(%rsp)\n mov %rbx, -16(%rsp)\n lea -24(%rsp), %rbp\n" SPIN
                        "mov -8(%rsp), %rbp\n mov -16(%rsp), %rbx\n ret\n" END(asm_leaf));
#elif TRUTH_LEAF == SWITCHED
static uint64_t other_stack[4096] __attribute__((used, aligned(64)));
__asm__(BEGIN(
    asm_leaf) "push %rbx\n mov %rsp, %rbx\n lea other_stack+32768(%rip), %rsp\n push %rbx\n sub $8, %rsp\n"
              "call callback\n mov %rbx, %rsp\n pop %rbx\n ret\n" END(asm_leaf));
#elif TRUTH_LEAF == INDIRECT
uint64_t (*volatile callback_pointer)(uint64_t) __attribute__((used)) = callback;
__asm__(BEGIN(
    asm_leaf) "push %rbp\n push %rdi\n sub $8, %rsp\n mov callback_pointer(%rip), %rax\n xor %ebp, %ebp\n"
              "call *%rax\n mov 8(%rsp), %rdi\n call *callback_pointer(%rip)\n add $8, %rsp\n"
              "pop %rdi\n pop %rbp\n ret\n" END(asm_leaf));
#elif TRUTH_LEAF == ENTER
__asm__(BEGIN(asm_leaf) "enter $32, $0\n mov %rdi, -8(%rbp)\n" SPIN "leave\n ret\n" END(asm_leaf));
#elif TRUTH_LEAF == PUSH_RET
__asm__(BEGIN(asm_leaf) "lea callback(%rip), %rax\n push %rax\n ret\n" END(asm_leaf));
#elif TRUTH_LEAF == LOOP_PUSH
__asm__(BEGIN(
    asm_leaf) "push %rbp\n mov %rsp, %r8\n mov $5, %ecx\n2: push %rcx\n dec %ecx\n jnz 2b\n xor %ebp, %ebp\n" SPIN
              "mov %r8, %rsp\n pop %rbp\n ret\n" END(asm_leaf));
#elif TRUTH_LEAF == RET_N
__asm__(
    BEGIN(asm_leaf) "push %rbp\n push %rdi\n push %rdi\n push %rdi\n call asm_inner\n pop %rdi\n pop %rbp\n ret\n" END(
        asm_leaf) BEGIN(asm_inner) "mov 8(%rsp), %rdi\n mov $9, %ebp\n" SPIN
                                   "ret $16\n" END(asm_inner));
#elif TRUTH_LEAF == DATA
__asm__(BEGIN(
    asm_leaf) "push %rbp\n push %rbx\n jmp 2f\n .byte 0x48, 0x81, 0xec, 0x00\n2: xor %ebp, %ebp\n" SPIN
              "pop %rbx\n jmp 3f\n .byte 0x50, 0x50, 0xc3, 0x48\n3: pop %rbp\n ret\n .byte 0x0f\n" END(
                  asm_leaf));
#elif TRUTH_LEAF == SHARED
__asm__(BEGIN(
    asm_leaf) "push %rbp\n push %rbx\n xor %ebp, %ebp\n" SPIN
              "mov $1000, %edi\n jmp shared_end\n" END(asm_leaf) BEGIN(
                  asm_inner) "push %rbp\n push %rbx\n sub $32, %rsp\n add $32, %rsp\nshared_end: nop\n"
                             "4: dec %rdi\n jnz 4b\n pop %rbx\n pop %rbp\n ret\n" END(asm_inner));
#elif TRUTH_LEAF == CONFLICT
__asm__(BEGIN(
    asm_leaf) "mov %rsp, %r8\n mov %rbp, %r9\n test $1, %dil\n jz 2f\n push %rbx\n push %rbx\n"
              "2: mov $3, %ebp\n" SPIN "mov %r8, %rsp\n mov %r9, %rbp\n ret\n" END(asm_leaf));
#elif TRUTH_LEAF == GROWS
__asm__(BEGIN(
    asm_leaf) "push %rbp\n push %rdi\n call asm_inner\n" SPIN
              "add $64, %rsp\n pop %rdi\n pop %rbp\n ret\n" END(asm_leaf)
                  BEGIN(asm_inner) "pop %rax\n sub $64, %rsp\n mov $77, %ebp\n jmp *%rax\n" END(
                      asm_inner));
#elif TRUTH_LEAF == NORETURN
__asm__(BEGIN(
    asm_leaf) "test %rdi, %rdi\n jnz 2f\n push %rbx\n push %rbp\n sub $48, %rsp\n call abort@plt\n"
              "2: push %rbp\n mov $6, %ebp\n" SPIN "pop %rbp\n ret\n" END(asm_leaf));
#elif TRUTH_LEAF == TABLE
__asm__(BEGIN(
    asm_leaf) "push %rbp\n mov %edi, %eax\n and $1, %eax\n lea 5f(%rip), %rcx\n movslq (%rcx,%rax,4), %rax\n"
              "add %rcx, %rax\n mov $6, %ebp\n jmp *%rax\n"
              "2: push %rbx\n jmp 4f\n3: sub $24, %rsp\n6: dec %rdi\n jnz 6b\n add $24, %rsp\n pop %rbp\n ret\n"
              "4: dec %rdi\n jnz 4b\n pop %rbx\n pop %rbp\n ret\n"
              ".section .rodata\n .balign 4\n5: .long 2b - 5b\n .long 3b - 5b\n.text\n" END(
                  asm_leaf));
#elif TRUTH_LEAF == SWAPPED
static uint64_t swapped_room[8192] __attribute__((used));
__asm__(BEGIN(
    asm_leaf) "push %rbp\n lea swapped_room+65536(%rip), %rbp\n xchg %rsp, %rbp\n push %rdi\n" SPIN
              "pop %rdi\n xchg %rsp, %rbp\n pop %rbp\n ret\n" END(asm_leaf));
#elif TRUTH_LEAF == COUNTED
__asm__(BEGIN(
    asm_leaf) "push %rbp\n mov %edi, %eax\n and $1, %eax\n shl $7, %eax\n add $16, %eax\n sub %rax, %rsp\n"
              "mov $6, %ebp\n" SPIN "add %rax, %rsp\n pop %rbp\n ret\n" END(asm_leaf));
#elif TRUTH_LEAF >= KEPT
/* The size of the room is a matter of the alignment, so that the CFA rests on rax alone. */
__asm__(BEGIN(asm_leaf) ".cfi_startproc\n mov %rsp, %rax\n .cfi_def_cfa_register %rax\n"
                        "push %rbx\n .cfi_offset %rbx, -16\n push %rbp\n .cfi_offset %rbp, -24\n"
                        "sub $96, %rsp\n and $-64, %rsp\n mov $5, %ebp\n call asm_inner\n"
                        "mov -8(%rax), %rbx\n .cfi_restore %rbx\n mov -16(%rax), %rbp\n"
                        ".cfi_restore %rbp\n lea (%rax), %rsp\n .cfi_def_cfa_register %rsp\n"
                        "xor %eax, %eax\n ret\n .cfi_endproc\n" END(asm_leaf));
#if TRUTH_LEAF == KEPT
__asm__(BEGIN(
    asm_inner) ".cfi_startproc\n push %rdi\n .cfi_adjust_cfa_offset 8\n test $1, %dil\n jz 2f\n" SPIN
               "2: pop %rdi\n .cfi_adjust_cfa_offset -8\n" SPIN
               "ret\n .cfi_endproc\n" END(asm_inner));
#elif TRUTH_LEAF == KEPT_BARE
__asm__(BEGIN(asm_inner) "push %rdi\n push %rdi\n" SPIN
                         "pop %rdi\n pop %rdi\n ret\n" END(asm_inner));
#elif TRUTH_LEAF == KEPT_NOT
__asm__(BEGIN(
    asm_inner) ".cfi_startproc\n push %rax\n .cfi_adjust_cfa_offset 8\n lea 8(%rsp), %rax\n" SPIN
               "pop %rax\n .cfi_adjust_cfa_offset -8\n ret\n .cfi_endproc\n" END(asm_inner));
#else
__asm__(
    BEGIN(asm_inner) ".cfi_startproc\n push %rax\n .cfi_adjust_cfa_offset 8\n call callback\n"
                     "pop %rax\n .cfi_adjust_cfa_offset -8\n ret\n .cfi_endproc\n" END(asm_inner));
#endif
#endif

#if TRUTH_LEAF == STALE
/* rbp points to the frame of outer(): a frame indeed, but not of this caller. */
uint64_t with_rbp(uint64_t count, void *frame);
__asm__(BEGIN(
    with_rbp) ".cfi_startproc\n push %rbp\n .cfi_def_cfa_offset 16\n .cfi_offset %rbp, -16\n"
              "mov %rsi, %rbp\n call asm_leaf\n pop %rbp\n .cfi_def_cfa_offset 8\n ret\n .cfi_endproc\n" END(
                  with_rbp));

static void *frame_of_outer;
static uint64_t enter_asm(uint64_t count)
{
    return with_rbp(count, frame_of_outer);
}
TRUTH_LADDER(enter_asm)

__attribute__((optimize("no-omit-frame-pointer"))) TRUTH_FUNCTION uint64_t outer(uint64_t count);
__attribute__((optimize("no-omit-frame-pointer"))) TRUTH_FUNCTION uint64_t outer(uint64_t count)
{
    frame_of_outer = __builtin_frame_address(0);
    uint64_t result = f1(count);
    TRUTH_STAY();
    return result;
}
#define FIRST outer
#else
TRUTH_LADDER(asm_leaf)
#define FIRST f1
#endif

#ifdef TRUTH_MAIN_FP
__attribute__((optimize("no-omit-frame-pointer")))
#endif
int main(void)
{
    uint64_t count = TRUTH_COUNT(100000);
    truth_step_prepare();
    truth_begin();
    truth_step();
    for (;; count ^= 1) {
        (void)FIRST(count + 2);
    }
}
