/* SPDX-License-Identifier: Apache-2.0 */

/*
 * More code that misleads a reader that does not run it, by its number TRUTH_CASE, below
 * callers in C, as in misled.c. stale() leaves a return address of its own 16 bytes below the place
 * of asm_leaf's; 16 bytes above that place is the one of enter().
 */
#include "step.h"

#define BEGIN(name) ".text\n.globl " #name "\n.type " #name ", @function\n" #name ":\n"
#define LABEL(name) #name ":\n"
#define END(name)   ".size " #name ", . - " #name "\n"
#define SPIN        "1: dec %rdi\n jnz 1b\n"
#define TABLE(...)                                                                                 \
    ".section .data.rel.ro, \"aw\"\n .balign 8\nasm_table: .quad " __VA_ARGS__ "\n .text\n"
#define FAR_AWAY(name)                                                                             \
    BEGIN(name) ".cfi_startproc\n .skip 4096, 0x90\n ret\n .cfi_endproc\n" END(name)

uint64_t asm_leaf(uint64_t count, void *frame);
uint64_t far_leaf(uint64_t count, void *frame);
TRUTH_FUNCTION uint64_t callback(uint64_t count);
TRUTH_FUNCTION uint64_t callback(uint64_t count)
{
    return truth_spin(count);
}

#define CALLEE_POPS   1  /* its callee takes arguments off, and a call follows */
#define OVER_DATA     2  /* calls over data, and takes both return addresses off */
#define PHANTOM       3  /* data that decodes as a call of the middle of a function */
#define LANDING       4  /* a sized function symbol behind a call, as for a return point */
#define OPS_CFI       5  /* an interpreter with call frames, its operations without */
#define OPS_ALIGNED   6  /* an interpreter that aligns its stack before it dispatches */
#define DISPATCH      7  /* operations that go on by a jump to a function that dispatches */
#define TAIL_TABLE    8  /* a jump through a table before there is a frame, into the function */
#define TWO_DOUBTS    9  /* between two calls that do not return both looks agree, and err */
#define LABEL_RET     10 /* a label whose error way seems to reach a return */
#define FAR_MIDDLE    11 /* a direct jump from another region to the middle at another depth */
#define CALLEE_PUSHES 12 /* its callee leaves more on the stack, and a call follows */
#define IMMEDIATE     13 /* the address of a label is a constant, jumped to without a frame */
#define FAR_COLD      14 /* two parts of one cold function, far away, at different depths */
#define SWALLOWED     15 /* data swallows the first instructions of a function without a name */
#define TRAMPOLINE    16 /* a call that does not return in front of a signal trampoline */
#define THUNKED       17 /* a jump through a table by a retpoline */
#define TRUNCATED     18 /* another comparison stands nearer to the jump than the index's */
#define HUGE          19 /* a function of more than 256 KiB */
#define SHARED_CALL   20 /* functions that share a tail with a call, jumped to from far away */
#define FALLS_IN      21 /* a function that falls into the next one, which is never called else */
#define BEHIND_NONE   22 /* returns to where no call stands before, but an end of a larger frame */
#define OPS_LEA       23 /* as OPS_CFI, but its instructions compute where an operation is */
#define TWO_FAR       24 /* as TWO_DOUBTS, 4 KiB away from the jump that leads between the calls */
#define CUT_CALL      25 /* data that points to the last byte of a call */
#define KEPT_MOVED    26 /* rbp is kept in another register while a jump leads to a label */
#define KEPT_VECTOR   27 /* the same, in a vector register and with two labels */
#define TO_SYSCALL    28 /* what looks like a signal trampoline, entered at its system call */
#define COMPENSATED   29 /* entered with two words more, which its callee takes off */
#define SAVES         30 /* one callee leaves a saved register on the stack, another takes it off */
#define SAVES_FRAME   31 /* the same of a frame pointer and its frame, with jumps for returns */
#define POPS_LOOP     32 /* its callee takes arguments off, and nothing returns behind it */

#if TRUTH_CASE == CALLEE_POPS
__asm__(BEGIN(asm_leaf) "push %rdi\n push %rdi\n push %rdi\n call asm_inner\n mov (%rsp), %rdi\n"
                        "call callback\n pop %rdi\n ret\n" END(asm_leaf)
                            BEGIN(asm_inner) "nop\n ret $16\n" END(asm_inner));
#elif TRUTH_CASE == CALLEE_PUSHES
__asm__(BEGIN(asm_leaf) "call asm_inner\n call callback\n add $16, %rsp\n ret\n" END(asm_leaf)
            BEGIN(asm_inner) "pop %rax\n sub $16, %rsp\n jmp *%rax\n" END(asm_inner));
#elif TRUTH_CASE == OVER_DATA
__asm__(BEGIN(asm_leaf) "call 2f\n .asciz \"text\"\n2: call 3f\n .asciz \"text\"\n"
                        "3: pop %rsi\n pop %rsi\n sub $24, %rsp\n call callback\n add $24, %rsp\n"
                        "ret\n" END(asm_leaf));
#elif TRUTH_CASE == PHANTOM
__asm__(BEGIN(asm_leaf) "push %rdi\n push %rdi\n mov stale_return(%rip), %rax\n mov %rax, (%rsp)\n"
                        "mov $100, %edi\n call callback\n3: mov 8(%rsp), %rdi\n call callback\n"
                        "add $16, %rsp\n ret\n .balign 16\n .byte 0xe8\n .long 3b - . - 4\n"
                        ".skip 128, 0x90\n" END(asm_leaf));
#elif TRUTH_CASE == LANDING
__asm__(BEGIN(asm_leaf) "push %rdi\n push %rdi\n mov stale_return(%rip), %rax\n mov %rax, (%rsp)\n"
                        "mov $100, %edi\n call callback\n" END(asm_leaf)
                            BEGIN(landing) "mov 8(%rsp), %rdi\n call callback\n"
                                           "add $16, %rsp\n ret\n" END(landing));
#elif TRUTH_CASE == OPS_CFI || TRUTH_CASE == OPS_ALIGNED
__asm__(
#if TRUTH_CASE == OPS_CFI
    BEGIN(asm_leaf) ".cfi_startproc\n sub $16, %rsp\n .cfi_adjust_cfa_offset 16\n"
#define LEAVE "add $16, %rsp\n"
#else
    BEGIN(asm_leaf) "push %rbp\n mov %rsp, %rbp\n sub $8, %rsp\n and $-8, %rsp\n"
#define LEAVE "leave\n"
#endif
                    "lea asm_table(%rip), %r10\n xor %r11d, %r11d\n jmp *(%r10,%r11,8)\n"
#if TRUTH_CASE == OPS_CFI
                    ".cfi_endproc\n"
#endif
    END(asm_leaf) BEGIN(asm_spin) SPIN "inc %r11\n jmp *(%r10,%r11,8)\n" END(asm_spin)
        BEGIN(asm_end) LEAVE "ret\n" END(asm_end) TABLE("asm_spin, asm_end"));
#elif TRUTH_CASE == DISPATCH
__asm__(BEGIN(asm_leaf) "sub $16, %rsp\n lea asm_table(%rip), %r10\n xor %r11d, %r11d\n"
                        "jmp dispatch\n" LABEL(asm_spin) SPIN
        "inc %r11\n jmp dispatch\n" LABEL(asm_end) "add $16, %rsp\n ret\n" END(asm_leaf)
            BEGIN(dispatch) "jmp *(%r10,%r11,8)\n" END(dispatch) TABLE("asm_spin, asm_end"));
#elif TRUTH_CASE == TAIL_TABLE
__asm__(BEGIN(asm_leaf) "lea asm_table(%rip), %rcx\n test %rdi, %rdi\n sete %al\n"
                        "movzbl %al, %eax\n test %rdi, %rdi\n jz 2f\n jmp *(%rcx,%rax,8)\n"
                        "2: sub $16, %rsp\n call abort@plt\n3: call callback\n ret\n" END(asm_leaf)
                            TABLE("3b, 2b"));
#elif TRUTH_CASE == TWO_DOUBTS
__asm__(BEGIN(
    asm_leaf) "push %rbx\n lea asm_table(%rip), %rcx\n test %rdi, %rdi\n sete %al\n"
              "movzbl %al, %eax\n test %rdi, %rdi\n jz 2f\n jmp *(%rcx,%rax,8)\n"
              "2: sub $16, %rsp\n test %rsi, %rsi\n jz 4f\n call abort@plt\n"
              "3: call callback\n call asm_inner\n4: add $16, %rsp\n pop %rbx\n ret\n" END(asm_leaf)
                  BEGIN(asm_inner) "pop %rcx\n pop %rbx\n ret\n" END(asm_inner) TABLE("3b, 2b"));
#elif TRUTH_CASE == LABEL_RET
__asm__(BEGIN(asm_leaf) "sub $16, %rsp\n lea asm_table(%rip), %r10\n xor %r11d, %r11d\n"
                        "jmp *(%r10,%r11,8)\n" LABEL(asm_spin) SPIN
        "test %rsi, %rsi\n jz 9f\n"
        "inc %r11\n jmp *(%r10,%r11,8)\n9: call abort@plt\n"
        "helper: mov $1, %eax\n ret\n" LABEL(asm_end) "add $16, %rsp\n ret\n" END(asm_leaf)
            TABLE("asm_spin, asm_end"));
#elif TRUTH_CASE == FAR_MIDDLE
__asm__(BEGIN(far_leaf) "push %rbx\n mov %rsp, %rbx\n sub $16, %rsp\n jmp asm_middle\n" END(
    far_leaf) FAR_AWAY(between)
            BEGIN(asm_leaf) "push %rbx\n mov %rsp, %rbx\n"
                            ".hidden asm_middle\n.globl asm_middle\n asm_middle: call callback\n"
                            "mov %rbx, %rsp\n pop %rbx\n ret\n" END(asm_leaf));
#elif TRUTH_CASE == IMMEDIATE
__asm__(BEGIN(asm_leaf) "mov $3f, %eax\n test %rdi, %rdi\n jz 2f\n jmp *%rax\n"
                        "2: sub $16, %rsp\n call abort\n3: call callback\n ret\n" END(asm_leaf));
#elif TRUTH_CASE == FAR_COLD
/* As a compiler splits a function: part 1 needs no frame, part 2 the frame of the body. */
__asm__(".section .text.cold\n.type asm_leaf.cold, @function\nasm_leaf.cold:\n"
        "push %rax\n call abort@plt\n cold2: call callback\n jmp warm\n"
        ".size asm_leaf.cold, . - asm_leaf.cold\n .skip 64, 0xcc\n"
        ".section .text.cold2\n"
        "cold_fill: .cfi_startproc\n .skip 4096, 0x90\n ret\n .cfi_endproc\n" BEGIN(
            asm_leaf) "test %rdi, %rdi\n jz asm_leaf.cold\n push %rbx\n sub $16, %rsp\n"
                      "mov stale_return(%rip), %rax\n mov %rax, (%rsp)\n jmp cold2\n"
                      "warm: add $16, %rsp\n pop %rbx\n ret\n" END(asm_leaf));
#elif TRUTH_CASE == SWALLOWED
__asm__(BEGIN(asm_leaf) ".cfi_startproc\n push %rdi\n .cfi_adjust_cfa_offset 8\n push %rdi\n"
                        ".cfi_adjust_cfa_offset 8\n mov stale_return(%rip), %rax\n"
                        "mov %rax, (%rsp)\n call *asm_table(%rip)\n add $16, %rsp\n"
                        ".cfi_adjust_cfa_offset -16\n ret\n .cfi_endproc\n" END(
                            asm_leaf) ".skip 64, 0x90\n .balign 16\n"
                                      ".byte 0x48, 0xb8\n8:" SPIN "push %rax\n nop\n nop\n"
                                      "mov $1, %eax\n pop %rcx\n ret\n" TABLE("8b"));
#elif TRUTH_CASE == TRAMPOLINE
__asm__(BEGIN(asm_leaf) ".cfi_startproc\n call asm_inner\n ret\n .cfi_endproc\n" END(asm_leaf) ".skip 32, 0x90\n" BEGIN(
    asm_inner) "push %rbx\n sub $512, %rsp\n mov stale_return(%rip), %rax\n"
               "mov %rax, 168(%rsp)\n lea 600(%rsp), %rax\n mov %rax, 160(%rsp)\n"
               "call asm_back\n" END(asm_inner)
                   LABEL(restorer) "mov $15, %eax\n syscall\n .skip 16, 0x90\n" BEGIN(
                       asm_back) "push %rdi\n call callback\n pop %rdi\n add $520, %rsp\n pop %rbx\n ret\n" END(asm_back));
#elif TRUTH_CASE == THUNKED
__asm__(BEGIN(
    asm_leaf) "push %rbx\n lea asm_table(%rip), %rcx\n test %rdi, %rdi\n sete %al\n"
              "movzbl %al, %eax\n mov (%rcx,%rax,8), %rax\n test %rdi, %rdi\n jz 2f\n jmp thunk\n"
              "2: sub $16, %rsp\n call abort@plt\n3: call callback\n pop %rbx\n ret\n" END(asm_leaf)
                  BEGIN(thunk) "call 5f\n4: pause\n lfence\n jmp 4b\n5: mov %rax, (%rsp)\n ret\n" END(
                      thunk) TABLE("3b, 2b"));
#elif TRUTH_CASE == TRUNCATED
__asm__(BEGIN(
    asm_leaf) "push %rbx\n mov %rsi, %rbx\n and $1, %esi\n add $2, %esi\n"
              "cmp $3, %esi\n ja 5f\n"
              "lea asm_words(%rip), %rdx\n cmp $1, %rdi\n je 6f\n"
              "6: movslq (%rdx,%rsi,4), %rax\n add %rdx, %rax\n jmp *%rax\n"
              "7: pop %rbx\n ret\n5: sub $16, %rsp\n call abort@plt\n"
              "3: call callback\n pop %rbx\n ret\n" END(
                  asm_leaf) ".section .rodata\n .balign 4\nasm_words: .long 7b - asm_words, 7b - asm_words\n"
                            ".long 3b - asm_words, 3b - asm_words\n .text\n");
#elif TRUTH_CASE == HUGE
__asm__(BEGIN(asm_leaf) "push %rbx\n lea asm_table(%rip), %rcx\n test %rdi, %rdi\n sete %al\n"
                        "movzbl %al, %eax\n jmp *(%rcx,%rax,8)\n .skip 262144, 0x90\n"
                        "4: test %rax, %rax\n jz 5f\n add $16, %rsp\n pop %rbx\n ret\n"
                        "5: call abort@plt\n3: call callback\n pop %rbx\n ret\n" END(asm_leaf)
                            TABLE("3b, 4b"));
#elif TRUTH_CASE == SHARED_CALL
__asm__(BEGIN(
    far_leaf) "push %rbx\n push %rdi\n push %rdi\n mov stale_return(%rip), %rax\n"
              "mov %rax, 8(%rsp)\n lea 16(%rsp), %rbx\n jmp asm_tail\n" END(far_leaf) FAR_AWAY(
                  between)
                  BEGIN(asm_leaf) "push %rbx\n mov %rsp, %rbx\n jmp asm_tail\n" END(
                      asm_leaf) ".type asm_tail, @function\n" LABEL(asm_tail) "call callback\n"
                                                                              "mov %rbx, %rsp\n pop %rbx\n ret\n" END(
                                                                                  asm_tail));
#elif TRUTH_CASE == FALLS_IN
__asm__(BEGIN(
    asm_leaf) "push %rdi\n push %rdi\n mov stale_return(%rip), %rax\n mov %rax, (%rsp)\n"
              "mov 8(%rsp), %rdi\n" LABEL(
                  asm_end) "call callback\n call callback\n add $16, %rsp\n ret\n" END(asm_leaf));
#elif TRUTH_CASE == BEHIND_NONE
__asm__(BEGIN(asm_leaf) "sub $24, %rsp\n lea 3f(%rip), %rax\n push %rax\n jmp asm_inner\n"
                        "add $16, %rsp\n 3: add $24, %rsp\n ret\n" END(asm_leaf) BEGIN(asm_inner)
                            SPIN "ret\n" END(asm_inner));
#elif TRUTH_CASE == OPS_LEA
__asm__(BEGIN(asm_leaf) ".cfi_startproc\n sub $16, %rsp\n .cfi_adjust_cfa_offset 16\n"
                        "lea asm_spin(%rip), %r10\n lea asm_end(%rip), %r11\n jmp *%r10\n"
                        ".cfi_endproc\n" END(asm_leaf) BEGIN(asm_spin) SPIN
        "jmp *%r11\n" END(asm_spin) BEGIN(asm_end) "add $16, %rsp\n ret\n" END(asm_end));
#elif TRUTH_CASE == TWO_FAR
__asm__(BEGIN(
    asm_leaf) "push %rbx\n lea asm_table(%rip), %rcx\n test %rdi, %rdi\n sete %al\n"
              "movzbl %al, %eax\n test %rdi, %rdi\n jz 2f\n jmp *(%rcx,%rax,8)\n .skip 4200, 0x90\n"
              "2: sub $16, %rsp\n test %rsi, %rsi\n jz 4f\n call abort@plt\n"
              "3: call callback\n call asm_inner\n4: add $16, %rsp\n pop %rbx\n ret\n" END(asm_leaf)
                  BEGIN(asm_inner) "pop %rcx\n pop %rbx\n ret\n" END(asm_inner) TABLE("3b, 2b"));
#elif TRUTH_CASE == CUT_CALL
__asm__(BEGIN(asm_inner) SPIN "ret\n" END(asm_inner) BEGIN(
    asm_leaf) "lea other(%rip), %rax\n push %rax\n call asm_inner\n3: pop %r9\n ret\n" END(asm_leaf)
            BEGIN(framed) ".cfi_startproc\n nop\n nop\nother: ret\n .cfi_endproc\n" END(framed)
                TABLE("3b - 1"));
#elif TRUTH_CASE == KEPT_MOVED
__asm__(BEGIN(asm_leaf) "mov %rbp, %r11\n mov (%rbp), %rbp\n lea asm_table(%rip), %rcx\n"
                        "mov (%rcx), %rcx\n jmp *%rcx\n"
                        "2: " SPIN "mov %r11, %rbp\n ret\n" END(asm_leaf) TABLE("2b"));
#elif TRUTH_CASE == KEPT_VECTOR
__asm__(BEGIN(asm_leaf) "movq %rbp, %xmm1\n mov (%rbp), %rbp\n xor %eax, %eax\n"
                        "lea asm_table(%rip), %rcx\n jmp *(%rcx,%rax,8)\n2: " SPIN
                        "movq %xmm1, %rbp\n ret\n3: movq %xmm1, %rbp\n ret\n" END(asm_leaf)
                            TABLE("2b, 3b"));
#elif TRUTH_CASE == TO_SYSCALL
__asm__(BEGIN(
    asm_leaf) "push %rbx\n sub $512, %rsp\n mov stale_return(%rip), %rax\n mov %rax, 168(%rsp)\n"
              "lea 552(%rsp), %rax\n mov %rax, 160(%rsp)\n 9: mov $39, %eax\n"
              "jmp *asm_table(%rip)\n nop\n .balign 16\n nop\n mov $15, %eax\n8: syscall\n"
              "dec %rdi\n jnz 9b\n add $512, %rsp\n pop %rbx\n ret\n" END(asm_leaf) TABLE("8b"));
#elif TRUTH_CASE == COMPENSATED
__asm__(BEGIN(asm_leaf) "push %rbx\n push %rbx\n mov stale_return(%rip), %rax\n mov %rax, (%rsp)\n"
                        "jmp *asm_table(%rip)\n" END(asm_leaf)
                            BEGIN(asm_tail) "3: " SPIN "call asm_inner\n ret\n" END(asm_tail)
                                BEGIN(asm_inner) "pop %rcx\n pop %rax\n pop %rbx\n jmp *%rcx\n" END(
                                    asm_inner) TABLE("3b"));
#elif TRUTH_CASE == SAVES
__asm__(
    BEGIN(asm_leaf) "mov stale_return(%rip), %rcx\n call asm_middle\n ret\n" END(asm_leaf)
        BEGIN(asm_middle) "call asm_inner\n call callback\n call asm_back\n ret\n" END(asm_middle)
            BEGIN(asm_inner) "pop %rax\n push %rcx\n push %rax\n ret\n" END(asm_inner)
                BEGIN(asm_back) "pop %rax\n pop %rcx\n push %rax\n ret\n" END(asm_back));
#elif TRUTH_CASE == SAVES_FRAME
__asm__(
    BEGIN(asm_leaf) "mov stale_return(%rip), %rcx\n call asm_middle\n ret\n" END(asm_leaf) BEGIN(
        asm_middle) "call asm_inner\n call callback\n call asm_back\n ret\n" END(asm_middle)
        BEGIN(
            asm_inner) "pop %rax\n push %rbp\n mov %rsp, %rbp\n sub $16, %rsp\n"
                       "mov %rcx, (%rsp)\n jmp *%rax\n" END(asm_inner)
                           BEGIN(asm_back) "pop %rax\n mov %rbp, %rsp\n pop %rbp\n jmp *%rax\n" END(
                               asm_back));
#elif TRUTH_CASE == POPS_LOOP
__asm__(BEGIN(asm_leaf) "push %rcx\n push %rcx\n call asm_inner\n"
                        "3: mov $100000, %edi\n call callback\n jmp 3b\n" END(asm_leaf)
                            BEGIN(asm_inner) SPIN "ret $16\n" END(asm_inner));
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
#if TRUTH_CASE == FAR_MIDDLE || TRUTH_CASE == SHARED_CALL
    static int turn;
    turn = !turn;
    uint64_t result = turn ? asm_leaf(count, outer_frame) : far_leaf(count, outer_frame);
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
    uint64_t result = f1(count);
    TRUTH_STAY();
    return result;
}

TRUTH_FUNCTION uint64_t around(uint64_t count);
__attribute__((optimize("no-omit-frame-pointer"))) TRUTH_FUNCTION uint64_t around(uint64_t count)
{
    uint64_t result = outer(count);
    TRUTH_STAY();
    return result;
}

int main(void)
{
    uint64_t count = TRUTH_COUNT(100000);
    truth_begin();
    for (;; count ^= 1) {
        (void)around(count + 2);
        TRUTH_STAY();
    }
}
