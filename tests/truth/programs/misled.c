/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Code that misleads a reader that does not run it, by its number TRUTH_CASE, below callers
 * in C. The running function is asm_leaf, or what it calls. stale() leaves a return address of its
 * own 16 bytes below the place of asm_leaf's: a row that takes the stack pointer behind
 * `sub $16, %rsp` for that of the function's start finds it, and invents a call from stale().
 */
#include "step.h"

#define BEGIN(name) ".text\n.globl " #name "\n.type " #name ", @function\n" #name ":\n"
#define LABEL(name) #name ":\n" /* a label of assembly: no type, no size */
#define END(name)   ".size " #name ", . - " #name "\n"
#define SPIN        "1: dec %rdi\n jnz 1b\n"

uint64_t asm_leaf(uint64_t count, void *frame);
TRUTH_FUNCTION uint64_t callback(uint64_t count);
TRUTH_FUNCTION uint64_t callback(uint64_t count)
{
    return truth_spin(count);
}

#define RET_N     1 /* its callee takes the arguments off; it leaves by pop and jmp */
#define LABELS    2 /* a threaded interpreter, whose operations are labels in the symbol table */
#define OPERATORS 3 /* the same, and they are functions with sizes */
#define EPILOGUE  4 /* code that is reached by a pointer, and ends in a shared epilogue */
#define ENTRIES   5 /* one function falls into the second entry with another depth */
#define ZERO      6 /* a system call that returns 0 (munlockall), then rbp is set to 0 */
#define RED_ZONE  7 /* with right CFI: rbp is saved in the red zone, and points to another frame */
#define POP_MEM   8 /* its return address is overwritten by pop to memory */
#define INDEXED   9 /* or by a store with an index */
#define NO_RETURN                                                                                  \
    10               /* a call that does not return, at another depth than what stands behind it   \
                      */
#define EXITS     11 /* the same with the system call exit */
#define MIDDLE    12 /* called in the middle of an instruction */
#define SIGRETURN 13 /* one of the numbers of a system call's instruction is that of sigreturn */
#define FAR       14 /* another function, elsewhere in the file, jumps into it at another depth */
#define NAMES     15 /* a C function with the name of one of Go's */
#define SWITCHED  16 /* own coroutines: code switches stacks and back by one instruction, xchg */
#define RETPOLINE 17 /* a retpoline with a loop in it */
#define TWO_SLOTS                                                                                  \
    18 /* the saved rbp is overwritten by an indexed store, and restored from elsewhere */
#define PASSED     19 /* OPERATORS, reached by direct jumps only, which pass the stack on */
#define PUSHED     20 /* OPERATORS, reached by returns to what was pushed */
#define DATA_CALLS 21 /* data that decodes as a call of a place within a function */

#if TRUTH_CASE == RET_N
__asm__(
    BEGIN(asm_leaf) "push %rdi\n push %rdi\n push %rdi\n call asm_inner\n mov (%rsp), %rdi\n" SPIN
                    "pop %rdi\n pop %rcx\n jmp *%rcx\n" END(asm_leaf) BEGIN(asm_inner) SPIN
    "ret $16\n" END(asm_inner));
#elif TRUTH_CASE == LABELS || TRUTH_CASE == OPERATORS
#if TRUTH_CASE == LABELS
#define OPERATION(name) LABEL(name)
#define OPERATION_END(name)
#else
#define OPERATION(name)     END(asm_leaf) BEGIN(name)
#define OPERATION_END(name) END(name)
#endif
__asm__(BEGIN(asm_leaf) "sub $16, %rsp\n lea asm_table(%rip), %r10\n xor %r11d, %r11d\n"
                        "jmp *(%r10,%r11,8)\n" OPERATION(asm_spin) SPIN
        "inc %r11\n jmp *(%r10,%r11,8)\n" OPERATION_END(asm_spin)
            OPERATION(asm_end) "add $16, %rsp\n ret\n"
#if TRUTH_CASE == LABELS
        END(asm_leaf)
#else
        END(asm_end)
#endif
            ".section .data.rel.ro, \"aw\"\n .balign 8\n"
            "asm_table: .quad asm_spin, asm_end\n .text\n");
#elif TRUTH_CASE == EPILOGUE
__asm__(BEGIN(asm_leaf) "sub $16, %rsp\n lea 5f(%rip), %rax\n jmp *%rax\n5:\n" SPIN
                        "jmp asm_end\n" END(asm_leaf)
                            BEGIN(asm_end) "add $16, %rsp\n ret\n" END(asm_end));
#elif TRUTH_CASE == ENTRIES
__asm__(BEGIN(asm_leaf) "mov %rsp, %r10\n sub $16, %rsp\n" END(asm_leaf) BEGIN(asm_inner) SPIN
        "mov %r10, %rsp\n ret\n" END(asm_inner));
#elif TRUTH_CASE == ZERO
__asm__(BEGIN(asm_leaf) "push %rbp\n mov $152, %eax\n syscall\n test %eax, %eax\n jz 2f\n ud2\n"
                        "2: xor %ebp, %ebp\n" SPIN "pop %rbp\n ret\n" END(asm_leaf));
#elif TRUTH_CASE == RED_ZONE
__asm__(BEGIN(asm_leaf) ".cfi_startproc\n mov %rbp, -16(%rsp)\n .cfi_offset %rbp, -24\n"
                        "mov %rsi, %rbp\n" SPIN "mov -16(%rsp), %rbp\n .cfi_restore %rbp\n ret\n"
                        ".cfi_endproc\n" END(asm_leaf));
#elif TRUTH_CASE == POP_MEM || TRUTH_CASE == INDEXED
#if TRUTH_CASE == POP_MEM
#define OVERWRITE "push %rax\n popq (%rsp)\n"
#else
#define OVERWRITE "xor %ecx, %ecx\n mov %rax, (%rsp,%rcx,8)\n"
#endif
/* hop calls asm_inner, which returns to `landing` instead. decoy is never executed. */
__asm__(
    BEGIN(asm_leaf) ".cfi_startproc\n call asm_inner\n ud2\n .cfi_endproc\n" END(asm_leaf)
        BEGIN(asm_inner) "lea landing(%rip), %rax\n" OVERWRITE SPIN "ret\n" END(asm_inner) BEGIN(
            decoy) ".cfi_startproc\n sub $24, %rsp\n .cfi_adjust_cfa_offset 24\n"
                   "add $24, %rsp\n .cfi_adjust_cfa_offset -24\n ret\n .cfi_endproc\n" END(decoy)
                       BEGIN(landing) ".cfi_startproc\n ret\n .cfi_endproc\n" END(landing));
#elif TRUTH_CASE == NO_RETURN
__asm__(BEGIN(asm_leaf) "push %rbx\n test %rdi, %rdi\n jz 2f\n lea 3f(%rip), %rax\n jmp *%rax\n"
                        "2: sub $16, %rsp\n call abort@plt\n"
                        "3: call callback\n pop %rbx\n ret\n" END(asm_leaf));
#elif TRUTH_CASE == EXITS
__asm__(BEGIN(asm_leaf) "push %rbx\n test %rdi, %rdi\n jz 2f\n lea 3f(%rip), %rax\n jmp *%rax\n"
                        "2: sub $16, %rsp\n mov $231, %eax\n syscall\n"
                        "3: call callback\n pop %rbx\n ret\n" END(asm_leaf));
#elif TRUTH_CASE == MIDDLE
/* movabs: its constant is push %rbx; dec %rdi; jnz; pop %rbx; ret. rbx holds a return address. */
uint64_t saved_rbx __attribute__((used));
__asm__(BEGIN(
    asm_leaf) "mov stale_return(%rip), %rdx\n mov %rbx, saved_rbx(%rip)\n mov %rdx, %rbx\n"
              "lea 3f+2(%rip), %rax\n call *%rax\n mov saved_rbx(%rip), %rbx\n ret\n" END(asm_leaf)
                  BEGIN(asm_inner) "3: movabs $0xc35bfb75cfff4853, %rax\n ret\n" END(asm_inner));
#elif TRUTH_CASE == SIGRETURN
/* A copy of a context lies on the stack; then the instruction is used for getppid. */
__asm__(BEGIN(
    asm_leaf) "push %rdi\n sub $1024, %rsp\n lea context(%rip), %rsi\n mov %rsp, %rdi\n"
              "mov $120, %ecx\n rep movsq\n 4: mov $110, %eax\n cmpl $0, resumes(%rip)\n je 3f\n"
              "mov $15, %eax\n3: syscall\n decq 1024(%rsp)\n jnz 4b\n add $1032, %rsp\n ret\n" END(
                  asm_leaf));
#include <ucontext.h>
ucontext_t context __attribute__((used));
int resumes __attribute__((used));
#elif TRUTH_CASE == FAR
__asm__(BEGIN(far_leaf) "mov %rsp, %r10\n sub $16, %rsp\n jmp asm_middle\n" END(far_leaf)
            BEGIN(between) ".cfi_startproc\n .skip 4096, 0x90\n ret\n .cfi_endproc\n" END(between)
                BEGIN(asm_leaf) "mov %rsp, %r10\n nop\n"
                                ".hidden asm_middle\n.globl asm_middle\n asm_middle:\n" SPIN
                                "mov %r10, %rsp\n ret\n" END(asm_leaf));
uint64_t far_leaf(uint64_t count, void *frame);
#elif TRUTH_CASE == NAMES
uint64_t mcall(uint64_t count) __asm__("runtime.mcall");
TRUTH_FUNCTION uint64_t mcall(uint64_t count)
{
    uint64_t result = callback(count);
    TRUTH_STAY();
    return result;
}
TRUTH_FUNCTION uint64_t asm_leaf(uint64_t count, void *frame)
{
    (void)frame;
    uint64_t result = mcall(count);
    TRUTH_STAY();
    return result;
}
#elif TRUTH_CASE == SWITCHED
static uint64_t other_stack[4096] __attribute__((used, aligned(64)));
__asm__(BEGIN(asm_leaf) "lea other_stack+32768(%rip), %rdx\n xchg %rsp, %rdx\n push %rdx\n"
                        "push %rdx\n" SPIN "pop %rdx\n pop %rsp\n ret\n" END(asm_leaf));
#elif TRUTH_CASE == RETPOLINE
__asm__(BEGIN(asm_leaf) "lea callback(%rip), %rax\n call 2f\n3: pause\n lfence\n jmp 3b\n"
                        "2: mov %rax, (%rsp)\n" SPIN "mov $1000, %edi\n ret\n" END(asm_leaf));
#elif TRUTH_CASE == TWO_SLOTS
/* rbp is saved twice; the first place gets a pointer to outer()'s frame by an indexed store. */
__asm__(BEGIN(asm_leaf) "push %rbp\n push %rbp\n mov $1, %ecx\n mov %rsi, (%rsp,%rcx,8)\n"
                        "mov $6, %ebp\n" SPIN "pop %rbp\n pop %rcx\n ret\n" END(asm_leaf));
#elif TRUTH_CASE == PASSED || TRUTH_CASE == PUSHED
#if TRUTH_CASE == PASSED
#define DISPATCH "jmp asm_first\n"
#else
#define DISPATCH "pushq (%r10,%r11,8)\n ret\n"
#endif
__asm__(BEGIN(asm_leaf) "sub $16, %rsp\n lea asm_table(%rip), %r10\n xor %r11d, %r11d\n" DISPATCH
            END(asm_leaf) BEGIN(asm_first) "jmp *(%r10,%r11,8)\n" END(asm_first) BEGIN(asm_spin)
                SPIN "inc %r11\n" DISPATCH END(asm_spin) BEGIN(asm_end) "add $16, %rsp\n ret\n" END(
                    asm_end) ".section .data.rel.ro, \"aw\"\n .balign 8\n"
                             "asm_table: .quad asm_spin, asm_end\n .text\n");
#elif TRUTH_CASE == DATA_CALLS
__asm__(BEGIN(asm_leaf) "sub $16, %rsp\n jmp 5f\n .byte 0xe8\n .long 5f - . - 4\n nop\n"
                        "5: dec %rdi\n jmp 5b\n" END(asm_leaf));
#endif

uint64_t stale_return __attribute__((used));

TRUTH_FUNCTION void stale_leaf(void);
TRUTH_FUNCTION void stale_leaf(void)
{
    stale_return = (uint64_t)(uintptr_t)__builtin_return_address(0);
}

/* Its frame has 8 bytes. */
TRUTH_FUNCTION void stale(void);
TRUTH_FUNCTION void stale(void)
{
    stale_leaf();
    TRUTH_STAY();
}

static void *outer_frame;

TRUTH_FUNCTION uint64_t enter(uint64_t count);
TRUTH_FUNCTION uint64_t enter(uint64_t count)
{
    stale();
#if TRUTH_CASE == FAR
    static int turn;
    turn = !turn;
    uint64_t result = turn ? asm_leaf(count, outer_frame) : far_leaf(count, outer_frame);
#elif TRUTH_CASE == SIGRETURN
    uint64_t result = asm_leaf(count % 1000 + 1000, outer_frame);
#else
    uint64_t result = asm_leaf(count, outer_frame);
#endif
    TRUTH_STAY();
    return result;
}

TRUTH_LADDER(enter)

TRUTH_FUNCTION uint64_t outer(uint64_t count);
__attribute__((optimize("no-omit-frame-pointer"))) TRUTH_FUNCTION uint64_t outer(uint64_t count)
{
    outer_frame = __builtin_frame_address(0);
#if TRUTH_CASE == SIGRETURN
    (void)getcontext(&context);
#endif
    uint64_t result = f1(count);
    TRUTH_STAY();
    return result;
}

int main(void)
{
    uint64_t count = TRUTH_COUNT(100000);
    truth_begin();
    for (;; count ^= 1) {
        (void)outer(count + 2);
        TRUTH_STAY();
    }
}
