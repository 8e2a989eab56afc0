/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A known split of time. spin_three_fifths() and spin_two_fifths() take turns with 3 and 2 parts of
 * the same loop, so 60 % and 40 % of the time are theirs by construction. The size of a turn varies
 * (0.1 to 2 ms, same for both), so that no sampling rate can fall into step with it.
 *
 * A profiler must see: main -> alternate -> the two functions, 3 : 2, nearly nothing elsewhere. (A
 * leaf has no frame of its own, so a frame-pointer chain misses alternate; call-frame information
 * has it.)
 * With --rest N it sleeps after each turn, N times as long as that took: what is to be there to be
 * recorded, and need not take a whole CPU.
 * Prints at its end the CPU time that it measured in each, as `name nanoseconds`.
 */
#include "workload.h"

static WORKLOAD_NOINLINE uint64_t spin_three_fifths(uint64_t part_iterations)
{
    return workload_spin(3 * part_iterations);
}

static WORKLOAD_NOINLINE uint64_t spin_two_fifths(uint64_t part_iterations)
{
    return workload_spin(2 * part_iterations);
}

/* Adds up the CPU time of both, in the order of their definition. */
static WORKLOAD_NOINLINE void alternate(uint64_t deadline_ns, unsigned rest, uint64_t ret_cpu_ns[2])
{
    uint32_t random = 1;
    while (!workload_time_is_up(deadline_ns)) {
        random = random * 1664525U + 1013904223U;
        uint64_t part_iterations = 20000 + (random >> 8) % 200000;

        uint64_t began_ns = workload_cpu_ns();
        (void)spin_three_fifths(part_iterations);
        uint64_t between_ns = workload_cpu_ns();
        (void)spin_two_fifths(part_iterations);
        uint64_t ended_ns = workload_cpu_ns();
        ret_cpu_ns[0] += between_ns - began_ns;
        ret_cpu_ns[1] += ended_ns - between_ns;
        workload_rest(rest, ended_ns - began_ns);
    }
}

int main(int argc, char **argv)
{
    struct workload_options options = workload_options(argc, argv, 5);
    uint64_t cpu_ns[2] = {0, 0};
    alternate(workload_deadline_ns(options.seconds), options.rest, cpu_ns);
    workload_tell("spin_three_fifths", cpu_ns[0]);
    workload_tell("spin_two_fifths", cpu_ns[1]);
    return 0;
}
