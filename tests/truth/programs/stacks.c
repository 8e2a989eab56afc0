/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Code without call frames that changes its stack for another one that the copy has as well, and
 * processes and stacks that begin elsewhere than it seems, by the number TRUTH_CASE.
 */
#include "truth.h"

#include <stdlib.h>

#define BEGIN(name) ".text\n.globl " #name "\n.type " #name ", @function\n" #name ":\n"
#define END(name)   ".size " #name ", . - " #name "\n"

#define SWITCH_MOVE 1 /* a coroutine goes back to the stack above it: mov %rsi, %rsp */
#define SWITCH_LOAD 2 /* the same: mov (%rsi), %rsp */
#define RAISE       3 /* an exception as OCaml raises it: the handler's frame is in r14 */
#define ENTRY       4 /* a coroutine begins at a symbol, with its function on top of the stack */

TRUTH_FUNCTION void turn(void);
#define COUNT 300000

#if TRUTH_CASE == SWITCH_MOVE || TRUTH_CASE == SWITCH_LOAD || TRUTH_CASE == ENTRY
static void *fiber_sp, *main_sp;
void change(void **from, void *to);
void change_back(void **from, void *to, uint64_t count);
void fiber_begin(void);
void co_entry(void);
__asm__(BEGIN(
    change) ".cfi_startproc\n"
            "    push %rbp\n    .cfi_def_cfa_offset 16\n    .cfi_offset %rbp, -16\n"
            "    push %rbx\n    .cfi_def_cfa_offset 24\n    .cfi_offset %rbx, -24\n"
            "    mov %rsp, (%rdi)\n    mov %rsi, %rsp\n"
            "    pop %rbx\n    .cfi_def_cfa_offset 16\n    .cfi_restore %rbx\n"
            "    pop %rbp\n    .cfi_def_cfa_offset 8\n    .cfi_restore %rbp\n"
            "    ret\n    .cfi_endproc\n" END(change) BEGIN(
                fiber_begin) ".cfi_startproc\n    .cfi_undefined %rip\n    call fiber\n    ud2\n"
                             "    .cfi_endproc\n" END(fiber_begin) ".skip 64, 0x90\n" BEGIN(
                                 change_back) "push %rbp\n push %rbx\n mov %rsp, (%rdi)\n1: dec %rdx\n jnz 1b\n"
                                              "jmp finish\n" END(change_back) BEGIN(finish)
#if TRUTH_CASE == SWITCH_LOAD
                                                  "mov (%rsi), %rsp\n"
#else
                                                  "mov %rsi, %rsp\n"
#endif
                                                  "pop %rbx\n pop %rbp\n ret\n" END(finish)
                                                      BEGIN(co_entry) "call *(%rsp)\n ud2\n" END(
                                                          co_entry));

TRUTH_FUNCTION uint64_t spin(uint64_t count);
TRUTH_FUNCTION uint64_t spin(uint64_t count)
{
    return truth_spin(count);
}
TRUTH_FUNCTION void before_fiber(void);
TRUTH_FUNCTION void before_fiber(void)
{
    (void)spin(3);
    abort();
}
static void *upper_sp;
TRUTH_FUNCTION void fiber(void);
TRUTH_FUNCTION void fiber(void)
{
    for (;;) {
#if TRUTH_CASE == ENTRY
        (void)spin(COUNT);
        change(&fiber_sp, main_sp);
#elif TRUTH_CASE == SWITCH_LOAD
        change_back(&fiber_sp, &upper_sp, COUNT);
#else
        change_back(&fiber_sp, upper_sp, COUNT);
#endif
    }
}
/* A coroutine whose stack is right above the other's. */
TRUTH_FUNCTION void upper(void);
TRUTH_FUNCTION void upper(void)
{
    for (;;) {
        change(&upper_sp, fiber_sp);
    }
}
void upper_begin(void);
__asm__(BEGIN(upper_begin) ".cfi_startproc\n    .cfi_undefined %rip\n    call upper\n    ud2\n"
                           "    .cfi_endproc\n" END(upper_begin));
static void *stacks[2][128] __attribute__((aligned(16)));
TRUTH_FUNCTION void turn(void)
{
    fiber_sp = &stacks[0][100];
    upper_sp = &stacks[1][100];
    stacks[1][102] = (void *)upper_begin;
    stacks[0][102] = TRUTH_CASE == ENTRY ? (void *)co_entry : (void *)fiber_begin;
    stacks[0][103] = (void *)fiber;
    change(&main_sp, fiber_sp);
    TRUTH_STAY();
}
#elif TRUTH_CASE == RAISE
/* guarded(function): calls it; returns also when raise() is called below. */
void guarded(void (*function)(void));
void raise_it(uint64_t count);
__asm__(BEGIN(
    guarded) "push %rbx\n push %r14\n sub $16, %rsp\n mov %rsp, %r14\n"
             "lea 8(%rsp), %rax\n mov %rax, (%r14)\n lea 3f(%rip), %rax\n mov %rax, 8(%rsp)\n call *%rdi\n"
             "add $16, %rsp\n 3: pop %r14\n pop %rbx\n ret\n" END(guarded) ".skip 64, 0x90\n" BEGIN(
                 raise_it) "1: dec %rdi\n jnz 1b\n mov (%r14), %rsp\n ret\n" END(raise_it));
__asm__(".data\nraise_dummy: .quad 0\n.text\n");
TRUTH_FUNCTION void deeper(void);
TRUTH_FUNCTION void deeper(void)
{
    raise_it(COUNT);
    TRUTH_STAY();
}
TRUTH_FUNCTION void deep(void);
TRUTH_FUNCTION void deep(void)
{
    deeper();
    TRUTH_STAY();
}
TRUTH_FUNCTION void turn(void)
{
    guarded(deep);
    TRUTH_STAY();
}
#endif

int main(void)
{
    truth_begin();
    for (;;) {
        turn();
        TRUTH_STAY();
    }
}
