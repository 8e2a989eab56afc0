/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Leaves in assembly, most without call-frame information, below callers that keep data in rbp.
 * Which of them is built says TRUTH_LEAF; it is in the stack under the name asm_leaf.
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

#define PLAIN    1  /* nothing but a loop */
#define CFI      2  /* the same, with call-frame information */
#define PUSHES   3  /* pushes, room, a loop, and everything back */
#define ALIGNED  4  /* aligns its stack, and calls C from there */
#define FRAME    5  /* rbp is a frame pointer, with pushes before it */
#define INNER    6  /* calls another of its kind, which pushes too */
#define TAIL     7  /* goes over to C by a jump */
#define PIC      8  /* learns its address by a call of the next instruction */
#define STALE    9  /* rbp holds the frame of a function further out */
#define SAVED_SP 10 /* keeps the old stack pointer in memory, as ciphers do */
#define BRANCHES 11 /* two ways with different depths, a ret in the middle */
#define RED_ZONE 12 /* keeps data below the stack pointer */
#define SWITCHED 13 /* calls C on a stack of its own */
#define INDIRECT 14 /* calls through a register and through memory */
#define ENTER    15 /* enter and leave, whose instructions move two registers */
#define PUSH_RET 16 /* goes over to C by push and ret */

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
#endif

#if TRUTH_LEAF == STALE
/* rbp is that of outer(): what it points to looks like a frame, and is one, but not of this caller.
 */
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
