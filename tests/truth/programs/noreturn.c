/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The call of a function that does not return is the caller's last instruction: the return address
 * is the first of the function behind it, which is called `behind` and has another frame.
 * TRUTH_ASM: the caller has no call-frame information.
 */
#include "step.h"

static void *back[5];

/* In the order of the file, with nothing between them. */
#define PACKED                                                                                     \
    __attribute__((noinline, used, optimize("no-reorder-functions", "align-functions=1")))

void caller(uint64_t count);
void behind(void);

PACKED __attribute__((noreturn)) static void ends(uint64_t count)
{
    (void)truth_spin(count);
    __builtin_longjmp(back, 1);
}

void (*volatile ends_pointer)(uint64_t) __attribute__((used)) = ends;

__asm__(".text\n"
        ".globl caller\n.type caller, @function\n"
        "caller:\n"
#ifdef TRUTH_ASM
        "    push %rbx\n"
        "    push %rbp\n"
        "    mov $12345, %ebp\n"
        "    call ends\n"
#else
        "    .cfi_startproc\n"
        "    push %rbx\n"
        "    .cfi_def_cfa_offset 16\n"
        "    .cfi_offset %rbx, -16\n"
        "    push %rbp\n"
        "    .cfi_def_cfa_offset 24\n"
        "    .cfi_offset %rbp, -24\n"
        "    mov $12345, %ebp\n"
        "    call ends\n"
        "    .cfi_endproc\n"
#endif
        ".size caller, . - caller\n"
        ".globl behind\n.type behind, @function\n"
        "behind:\n"
        "    .cfi_startproc\n"
        "    sub $200, %rsp\n"
        "    .cfi_def_cfa_offset 208\n"
        "    add $200, %rsp\n"
        "    .cfi_def_cfa_offset 8\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size behind, . - behind\n");

TRUTH_FUNCTION void turn(uint64_t count);
TRUTH_FUNCTION void turn(uint64_t count)
{
    if (__builtin_setjmp(back) == 0) {
        caller(count);
    }
    behind();
}

int main(void)
{
    truth_step_prepare();
    truth_begin();
    truth_step();
    for (;;) {
        turn(TRUTH_COUNT(100000));
        TRUTH_STAY();
    }
}
