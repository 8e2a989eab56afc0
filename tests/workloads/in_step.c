/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Work in step with a tick: `in_step TICK_US [--seconds S] [--cpu N]` is busy all the time. In each
 * tick, whose starts are the multiples of TICK_US of CLOCK_MONOTONIC as the kernel's are, the first
 * 2.6 % belong to handler_of_the_tick(), the rest to rest_of_the_tick().
 *
 * A profiler must find both with the share that they had, whatever its rate: one that samples in
 * step finds the handler never, or too often. At the end the CPU time of both is told, as it was
 * measured where they take turns. Both wait for a time by the time stamp counter, which takes no
 * call, so that all samples are in one of the two.
 */
#include "workload.h"

#include <x86intrin.h>

#define HANDLER_PERMILLE  26
#define CALIBRATION_NS    UINT64_C(200000000)
#define SPIN_TURNS        20
#define TICK_US_MAX       1000000
#define ARGUMENTS_SKIPPED 1

struct counter {
    uint64_t base_ns; /* CLOCK_MONOTONIC, and the time stamp counter at the same moment */
    uint64_t base_tsc;
    double tsc_per_ns;
};

static WORKLOAD_NOINLINE void handler_of_the_tick(uint64_t until_tsc)
{
    while (__rdtsc() < until_tsc) {
        (void)workload_spin(SPIN_TURNS);
    }
}

static WORKLOAD_NOINLINE void rest_of_the_tick(uint64_t until_tsc)
{
    while (__rdtsc() < until_tsc) {
        (void)workload_spin(SPIN_TURNS);
    }
}

static struct counter calibrate(void)
{
    struct counter counter = {.base_tsc = __rdtsc(), .base_ns = workload_clock_ns(CLOCK_MONOTONIC)};
    uint64_t now_ns = counter.base_ns;
    while (now_ns < counter.base_ns + CALIBRATION_NS) {
        now_ns = workload_clock_ns(CLOCK_MONOTONIC);
    }
    counter.tsc_per_ns =
        (double)(__rdtsc() - counter.base_tsc) / (double)(now_ns - counter.base_ns);
    return counter;
}

/* The base is moved to now each time, so that an error of the rate is that of one tick. */
static uint64_t tsc_at(struct counter *counter, uint64_t time_ns)
{
    counter->base_tsc = __rdtsc();
    counter->base_ns = workload_clock_ns(CLOCK_MONOTONIC);
    uint64_t left_ns = time_ns > counter->base_ns ? time_ns - counter->base_ns : 0;
    return counter->base_tsc + (uint64_t)((double)left_ns * counter->tsc_per_ns);
}

/* The CPU time of one call, without that of the clocks that are read in between. */
static uint64_t spend(void (*work)(uint64_t), uint64_t until_tsc)
{
    uint64_t before_ns = workload_cpu_ns();
    work(until_tsc);
    return workload_cpu_ns() - before_ns;
}

int main(int argc, char **argv)
{
    uint64_t tick_ns = argc < 2 ? 0 : strtoull(argv[1], NULL, 10) * 1000;
    if (tick_ns == 0 || tick_ns > TICK_US_MAX * UINT64_C(1000)) {
        (void)fprintf(stderr, "usage: %s TICK_US [--seconds S] [--cpu N]\n", argv[0]);
        return 2;
    }
    struct workload_options options =
        workload_options(argc - ARGUMENTS_SKIPPED, argv + ARGUMENTS_SKIPPED, 2);
    struct counter counter = calibrate();
    uint64_t deadline_ns = workload_deadline_ns(options.seconds);
    uint64_t handler_ns = 0;
    uint64_t rest_ns = 0;
    uint64_t start_ns = (workload_clock_ns(CLOCK_MONOTONIC) / tick_ns + 1) * tick_ns;
    rest_of_the_tick(tsc_at(&counter, start_ns));
    while (start_ns < deadline_ns) {
        handler_ns += spend(handler_of_the_tick,
                            tsc_at(&counter, start_ns + tick_ns / 1000 * HANDLER_PERMILLE));
        /* A tick that passed while something else ran is left out. */
        start_ns = (workload_clock_ns(CLOCK_MONOTONIC) / tick_ns + 1) * tick_ns;
        rest_ns += spend(rest_of_the_tick, tsc_at(&counter, start_ns));
    }
    workload_tell("handler_of_the_tick", handler_ns);
    workload_tell("rest_of_the_tick", rest_ns);
    return 0;
}
