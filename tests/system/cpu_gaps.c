/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Tells when a CPU runs nothing that it should: `cpu_gaps MS` has a thread of the highest priority
 * wake on each CPU every 2 ms until SIGTERM, and prints a line for each time that one was at least
 * so late. Then the machine stood still, or its kernel did not give the CPU away, as while it
 * copies 60,000 mappings for a fork where it is built without preemption. A profiler's thread of a
 * lower priority cannot have run there either. Exit status 1: this may not be asked here.
 */
#include "clock.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SLEEP_NS ((uint64_t)2 * NS_PER_MS)

static uint64_t late_ns;

static void *watch(void *userdata)
{
    uintptr_t cpu = (uintptr_t)userdata;
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(cpu, &only);
    const struct sched_param highest = {.sched_priority = sched_get_priority_max(SCHED_FIFO)};
    if (sched_setaffinity(0, sizeof only, &only) < 0 ||
        sched_setscheduler(0, SCHED_FIFO, &highest) < 0) {
        perror("a thread of the highest priority on each CPU");
        exit(1);
    }
    uint64_t before_ns = clock_ns(CLOCK_MONOTONIC);
    for (;;) {
        const struct timespec pause_time = clock_timespec(SLEEP_NS);
        (void)nanosleep(&pause_time, NULL);
        uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
        if (now_ns - before_ns >= SLEEP_NS + late_ns) {
            (void)printf("cpu %zu: %.0f ms late\n", (size_t)cpu,
                         (double)(now_ns - before_ns - SLEEP_NS) / NS_PER_MS);
        }
        before_ns = now_ns;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    cpu_set_t allowed;
    late_ns = argc == 2 ? strtoull(argv[1], NULL, 10) * NS_PER_MS : 0;
    if (late_ns == 0 || sched_getaffinity(0, sizeof allowed, &allowed) < 0) {
        (void)fprintf(stderr, "usage: cpu_gaps MS\n");
        return 2;
    }
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    for (uintptr_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        pthread_t thread;
        if (CPU_ISSET(cpu, &allowed) && pthread_create(&thread, NULL, watch, (void *)cpu) != 0) {
            return 1;
        }
    }
    (void)pause();
    return 0;
}
