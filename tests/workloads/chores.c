/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Work in units, for a comparison of two runs: each unit is a turn of all four chores, which take
 * 1, 2, 3 and 4 parts of its time. Units are of 0.5 to 20 ms, so that the samples of a turn are
 * much alike. With a percentage behind the options, chore_three() takes that much longer. The
 * seconds are of its own CPU time, so what other programs do makes the samples no fewer.
 *
 * A profiler must see: main -> do_unit -> the four functions, 1 : 2 : 3 : 4. Prints at its end how
 * many parts of 1000 iterations were done, whatever they took, as `parts number`, and the CPU time
 * of the three chores whose length never changes, as `others_ns number`.
 */
#include "workload.h"

#define PART_ITERATIONS UINT64_C(1000)

static WORKLOAD_NOINLINE uint64_t chore_one(uint64_t parts)
{
    return workload_spin(1 * parts * PART_ITERATIONS);
}

static WORKLOAD_NOINLINE uint64_t chore_two(uint64_t parts)
{
    return workload_spin(2 * parts * PART_ITERATIONS);
}

static WORKLOAD_NOINLINE uint64_t chore_three(uint64_t parts, double slower_percent)
{
    double iterations = (double)(3 * parts * PART_ITERATIONS) * (1 + slower_percent / 100);
    return workload_spin((uint64_t)iterations);
}

static WORKLOAD_NOINLINE uint64_t chore_four(uint64_t parts)
{
    return workload_spin(4 * parts * PART_ITERATIONS);
}

/* Returns the CPU time of all but chore_three(). */
static WORKLOAD_NOINLINE uint64_t do_unit(uint64_t parts, double slower_percent)
{
    uint64_t began_ns = workload_cpu_ns();
    (void)chore_one(parts);
    (void)chore_two(parts);
    uint64_t before_ns = workload_cpu_ns();
    (void)chore_three(parts, slower_percent);
    uint64_t after_ns = workload_cpu_ns();
    (void)chore_four(parts);
    return before_ns - began_ns + workload_cpu_ns() - after_ns;
}

int main(int argc, char **argv)
{
    double slower_percent = argc % 2 == 0 ? strtod(argv[argc - 1], NULL) : 0;
    struct workload_options options = workload_options(argc - (argc % 2 == 0), argv, 5);
    uint64_t end_ns = (uint64_t)(options.seconds * 1e9);
    uint64_t done = 0;
    uint64_t others_ns = 0;
    uint32_t random = (uint32_t)workload_clock_ns(CLOCK_MONOTONIC);
    while (workload_cpu_ns() < end_ns) {
        random = random * 1664525U + 1013904223U;
        uint64_t parts = 30 + (random >> 8) % 1200;
        others_ns += do_unit(parts, slower_percent);
        done += parts;
    }
    printf("parts %llu\nothers_ns %llu\n", (unsigned long long)done, (unsigned long long)others_ns);
    return 0;
}
