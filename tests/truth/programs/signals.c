/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Signal handlers above the code that they interrupted, by the number TRUTH_SIGNAL.
 */
#include "truth.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <ucontext.h>

#define TIMER    1 /* anywhere in a loop of tiny functions */
#define NESTED   2 /* a handler that is interrupted at its own trap, twice */
#define ALTSTACK 3 /* on a stack of its own */
#define FIRST    4 /* at a function's first instruction, right behind another function */
#define JUMPED   5 /* a call through a null pointer: there is no code where it was interrupted */
#define BOTH     6 /* on a stack of its own, and interrupted there */

#define SPIN 30000

#ifdef __i386__
#define PC_REGISTER    REG_EIP
#define STACK_REGISTER REG_ESP
#define STACK          "%esp"
#define CFA_OFFSET     "28"
#else
#define PC_REGISTER    REG_RIP
#define STACK_REGISTER REG_RSP
#define STACK          "%rsp"
#define CFA_OFFSET     "32"
#endif

TRUTH_FUNCTION void spin(void);
TRUTH_FUNCTION void spin(void)
{
    (void)truth_spin(SPIN);
}

TRUTH_FUNCTION uint64_t tiny(uint64_t a);
TRUTH_FUNCTION uint64_t tiny(uint64_t a)
{
    volatile uint64_t room[4];
    room[a % 4] = a;
    return room[a % 4] + 1;
}

TRUTH_CALLER(pushing, tiny)

/* Traps at its first instruction; the handler goes on behind it. */
void trapped(void);
__asm__(".text\n"
        ".type before_trapped, @function\n"
        "before_trapped:\n .cfi_startproc\n sub $24, " STACK "\n .cfi_def_cfa_offset " CFA_OFFSET
        "\n"
        " add $24, " STACK "\n ret\n"
        " .cfi_endproc\n.size before_trapped, . - before_trapped\n"
        ".globl trapped\n.type trapped, @function\n"
        "trapped:\n .cfi_startproc\n ud2\n ret\n .cfi_endproc\n.size trapped, . - trapped\n");

static void skip(void *context, long long bytes)
{
    ((ucontext_t *)context)->uc_mcontext.gregs[PC_REGISTER] += (greg_t)bytes;
}

static void handle(int number, void (*handler)(int, siginfo_t *, void *), int flags)
{
    const struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};
    (void)sigaction(number, &action, NULL);
}

/* SIGILL: the trap of trapped(). */
TRUTH_FUNCTION void on_trap(int number, siginfo_t *info, void *context);
TRUTH_FUNCTION void on_trap(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    spin();
    skip(context, 2);
}

/* An int3, which goes on behind itself. */
TRUTH_FUNCTION void on_breakpoint(int number, siginfo_t *info, void *context);
TRUTH_FUNCTION void on_breakpoint(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    (void)context;
    trapped();
    TRUTH_STAY();
}

TRUTH_FUNCTION void breaks(void);
TRUTH_FUNCTION void breaks(void)
{
    __asm__ volatile("int3");
    spin();
    TRUTH_STAY();
}

TRUTH_FUNCTION void on_tick(int number, siginfo_t *info, void *context);
TRUTH_FUNCTION void on_tick(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    (void)context;
    spin();
    TRUTH_STAY();
}

/* The call pushed a return address, and nothing else happened. */
TRUTH_FUNCTION void on_null(int number, siginfo_t *info, void *context);
TRUTH_FUNCTION void on_null(int number, siginfo_t *info, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    (void)number;
    (void)info;
    spin();
    registers[PC_REGISTER] = *(greg_t *)(uintptr_t)registers[STACK_REGISTER];
    registers[STACK_REGISTER] += (greg_t)sizeof(greg_t);
}

static void (*volatile nowhere)(void);

TRUTH_FUNCTION void turn(void);
TRUTH_FUNCTION void turn(void)
{
#if TRUTH_SIGNAL == TIMER
    for (uint64_t i = 0; i < 10000; i++) {
        truth_values[0] = pushing(tiny(i));
    }
#elif TRUTH_SIGNAL == JUMPED
    nowhere();
#elif TRUTH_SIGNAL == FIRST
    trapped();
#else
    breaks();
#endif
    TRUTH_STAY();
}

int main(void)
{
#if TRUTH_SIGNAL == ALTSTACK || TRUTH_SIGNAL == BOTH
    const int flags = SA_ONSTACK;
    const stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
    (void)sigaltstack(&stack, NULL);
#else
    const int flags = 0;
#endif
    handle(SIGILL, on_trap, TRUTH_SIGNAL == BOTH ? 0 : flags);
    handle(SIGTRAP, TRUTH_SIGNAL == ALTSTACK ? on_tick : on_breakpoint, flags);
    handle(SIGALRM, on_tick, flags);
    handle(SIGSEGV, on_null, flags);
    truth_begin();
#if TRUTH_SIGNAL == TIMER
    const struct itimerval often = {{0, 300}, {0, 300}};
    (void)setitimer(ITIMER_REAL, &often, NULL);
#endif
    for (;;) {
        turn();
        TRUTH_STAY();
    }
}
