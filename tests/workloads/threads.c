/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Three named threads, each in a function of its own: alpha, bravo and charlie in alpha_spin(),
 * bravo_spin() and charlie_spin(). The main thread waits.
 *
 * A profiler must see: each thread's name with its own function only, and stacks that end at the
 * thread's root, not at main. With --rest N they sleep between turns, as that of busy.c. Prints the
 * CPU time of each function as `name nanoseconds`.
 */
#include "workload.h"

#include <pthread.h>

struct spinner {
    const char *thread;
    const char *function;
    void (*spin)(struct spinner *spinner);
    uint64_t deadline_ns;
    unsigned rest;
    uint64_t cpu_ns;
    pthread_t id;
};

#define SPIN_UNTIL_DEADLINE(spinner)                                                               \
    while (!workload_time_is_up((spinner)->deadline_ns)) {                                         \
        uint64_t began_ns = workload_cpu_ns();                                                     \
        (void)workload_spin(1000000);                                                              \
        workload_rest((spinner)->rest, workload_cpu_ns() - began_ns);                              \
    }                                                                                              \
    (spinner)->cpu_ns = workload_cpu_ns()

static WORKLOAD_NOINLINE void alpha_spin(struct spinner *spinner)
{
    SPIN_UNTIL_DEADLINE(spinner);
}

static WORKLOAD_NOINLINE void bravo_spin(struct spinner *spinner)
{
    SPIN_UNTIL_DEADLINE(spinner);
}

static WORKLOAD_NOINLINE void charlie_spin(struct spinner *spinner)
{
    SPIN_UNTIL_DEADLINE(spinner);
}

/* A thread names itself before it spins, so no sample of its function, not even of the first
 * instruction, bears another name. */
static void *start(void *userdata)
{
    struct spinner *spinner = userdata;
    (void)pthread_setname_np(pthread_self(), spinner->thread);
    spinner->spin(spinner);
    __asm__ volatile(""); /* no tail call */
    return NULL;
}

int main(int argc, char **argv)
{
    struct workload_options options = workload_options(argc, argv, 2);
    struct spinner spinners[] = {
        {.thread = "alpha", .function = "alpha_spin", .spin = alpha_spin},
        {.thread = "bravo", .function = "bravo_spin", .spin = bravo_spin},
        {.thread = "charlie", .function = "charlie_spin", .spin = charlie_spin},
    };
    size_t count = sizeof spinners / sizeof spinners[0];

    for (size_t i = 0; i < count; i++) {
        spinners[i].deadline_ns = workload_deadline_ns(options.seconds);
        spinners[i].rest = options.rest;
        if (pthread_create(&spinners[i].id, NULL, start, &spinners[i]) != 0) {
            perror("cannot start a thread");
            return 1;
        }
    }
    for (size_t i = 0; i < count; i++) {
        (void)pthread_join(spinners[i].id, NULL);
        workload_tell(spinners[i].function, spinners[i].cpu_ns);
    }
    return 0;
}
