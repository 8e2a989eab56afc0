/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Stacks of the odd kinds, one after the other: recursion, calls by pointer, callbacks from libc,
 * frames of variable size, frames that are aligned, calls through the dynamic linker, signal
 * handlers, on the same stack and on one of their own, and coroutines. Built with and without frame
 * pointers.
 */
#include <signal.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <ucontext.h>

#define NOINLINE         __attribute__((noinline))
#define STACK_BYTES      65536
#define SORTED_COUNT     512
#define RECURSION_DEPTH  60
#define SIGNAL_PERIOD_US 3000

static volatile uint64_t sink;
static ucontext_t main_context, coroutine_context;
static char coroutine_stack[STACK_BYTES], signal_stack[STACK_BYTES];

static NOINLINE uint64_t spin(uint64_t count)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < count; i++) {
        sum = sum * 31 + (i ^ sink);
    }
    sink = sum;
    return sum;
}

static NOINLINE uint64_t recurse(unsigned int depth)
{
    uint64_t below = depth == 0 ? spin(20000) : recurse(depth - 1);
    return below + spin(200);
}

static NOINLINE uint64_t use_room(uint64_t bytes)
{
    volatile char *room = __builtin_alloca(bytes);
    memset((char *)room, 1, bytes);
    return spin(5000) + (uint64_t)room[bytes / 2];
}

static NOINLINE uint64_t use_alignment(uint64_t value)
{
    alignas(64) volatile uint64_t words[16];
    words[value % 16] = value;
    return spin(5000) + use_room(100 + value % 1000) + words[value % 16];
}

static NOINLINE int compare(const void *a, const void *b)
{
    uint64_t first = *(const uint64_t *)a ^ spin(20);
    uint64_t second = *(const uint64_t *)b ^ sink;
    return first < second ? -1 : first > second;
}

/* With LD_BIND_NOT each call goes through the dynamic linker. */
static NOINLINE void call_libc(void)
{
    for (int i = 0; i < 500; i++) {
        sink += (uint64_t)rand();
    }
}

static NOINLINE void sort_numbers(void)
{
    uint64_t numbers[SORTED_COUNT];
    for (size_t i = 0; i < SORTED_COUNT; i++) {
        numbers[i] = i * UINT64_C(0x9e3779b97f4a7c15);
    }
    qsort(numbers, SORTED_COUNT, sizeof *numbers, compare);
}

static void on_signal(int number)
{
    (void)number;
    (void)spin(300000);
}

static void run_coroutine(void)
{
    for (;;) {
        (void)recurse(10);
        (void)swapcontext(&coroutine_context, &main_context);
    }
}

static void start_signals(void)
{
    const stack_t stack = {.ss_sp = signal_stack, .ss_size = sizeof signal_stack};
    struct sigaction plain = {.sa_handler = on_signal};
    struct sigaction apart = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    const struct itimerval timer = {{0, SIGNAL_PERIOD_US}, {0, SIGNAL_PERIOD_US}};
    (void)sigaltstack(&stack, NULL);
    (void)sigaction(SIGALRM, &plain, NULL);
    (void)sigaction(SIGVTALRM, &apart, NULL);
    (void)setitimer(ITIMER_REAL, &timer, NULL);
    (void)setitimer(ITIMER_VIRTUAL, &timer, NULL);
}

int main(void)
{
    uint64_t (*volatile by_pointer)(uint64_t) = use_alignment;
    start_signals();
    (void)getcontext(&coroutine_context);
    coroutine_context.uc_stack.ss_sp = coroutine_stack;
    coroutine_context.uc_stack.ss_size = sizeof coroutine_stack;
    makecontext(&coroutine_context, run_coroutine, 0);
    for (uint64_t i = 0;; i++) {
        (void)recurse(RECURSION_DEPTH);
        (void)by_pointer(i);
        sort_numbers();
        call_libc();
        (void)swapcontext(&main_context, &coroutine_context);
    }
}
