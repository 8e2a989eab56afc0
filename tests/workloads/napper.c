/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Leaves its CPU idle by turns: napper RUN_US SLEEP_US [--seconds S] [--cpu N] spins for RUN_US and
 * sleeps for SLEEP_US, again and again.
 *
 * The books must see: the ticks of the sleep as idle, each of them. Prints `nap_spin nanoseconds`,
 * its CPU time, and `nap_sleep nanoseconds`, the rest.
 */
#include "workload.h"

#include <sys/prctl.h>

static WORKLOAD_NOINLINE void nap_spin(uint64_t until_ns)
{
    while (workload_clock_ns(CLOCK_MONOTONIC) < until_ns) {
        (void)workload_spin(500);
    }
}

static WORKLOAD_NOINLINE void nap_sleep(uint64_t until_ns)
{
    struct timespec until = {
        .tv_sec = (time_t)(until_ns / 1000000000),
        .tv_nsec = (long)(until_ns % 1000000000),
    };
    (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        (void)fprintf(stderr, "usage: %s RUN_US SLEEP_US [--seconds S] [--cpu N]\n", argv[0]);
        return 2;
    }
    uint64_t run_ns = strtoull(argv[1], NULL, 10) * 1000;
    uint64_t sleep_ns = strtoull(argv[2], NULL, 10) * 1000;
    struct workload_options options = workload_options(argc - 2, argv + 2, 1);
    uint64_t began_ns = workload_clock_ns(CLOCK_MONOTONIC);
    uint64_t deadline_ns = workload_deadline_ns(options.seconds);
    (void)prctl(PR_SET_TIMERSLACK, 1UL);
    while (!workload_time_is_up(deadline_ns)) {
        nap_spin(workload_clock_ns(CLOCK_MONOTONIC) + run_ns);
        nap_sleep(workload_clock_ns(CLOCK_MONOTONIC) + sleep_ns);
    }
    workload_tell("nap_spin", workload_cpu_ns());
    workload_tell("nap_sleep", workload_clock_ns(CLOCK_MONOTONIC) - began_ns - workload_cpu_ns());
    return 0;
}
