/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the workloads share: their options, one loop, one clock. A workload is the profiled, not the
 * tested: it is built with -O1 and frame pointers, without sanitizers and without inlining, and its
 * function names are what a profile of it must show.
 */

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef __clang__
#define WORKLOAD_NOINLINE __attribute__((noinline))
#else
#define WORKLOAD_NOINLINE __attribute__((noinline, noclone))
#endif

struct workload_options {
    double seconds;
    int cpu; /* -1: any */
    unsigned rest;
};

/* Takes --seconds S, --cpu N, and --rest N of a program that calls workload_rest(); pins the
 * process, and ends the program on anything else. */
static inline struct workload_options workload_options(int argc, char **argv, double seconds)
{
    struct workload_options options = {.seconds = seconds, .cpu = -1};
    for (int i = 1; i < argc; i += 2) {
        char *end = NULL;
        if (i + 1 < argc && strcmp(argv[i], "--seconds") == 0) {
            options.seconds = strtod(argv[i + 1], &end);
        } else if (i + 1 < argc && strcmp(argv[i], "--cpu") == 0) {
            options.cpu = (int)strtol(argv[i + 1], &end, 10);
        } else if (i + 1 < argc && strcmp(argv[i], "--rest") == 0) {
            options.rest = (unsigned)strtoul(argv[i + 1], &end, 10);
        }
        if (end == NULL || end == argv[i + 1] || *end != '\0') {
            (void)fprintf(stderr, "usage: %s [--seconds S] [--cpu N] [--rest N]\n", argv[0]);
            exit(2);
        }
    }
    if (options.cpu >= 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET((size_t)options.cpu, &set);
        if (sched_setaffinity(0, sizeof set, &set) != 0) {
            perror("cannot pin");
            exit(1);
        }
    }
    return options;
}

static inline uint64_t workload_clock_ns(clockid_t clock)
{
    struct timespec now;
    (void)clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* CPU time of the calling thread: what sampling must find. */
static inline uint64_t workload_cpu_ns(void)
{
    return workload_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static inline uint64_t workload_deadline_ns(double seconds)
{
    return workload_clock_ns(CLOCK_MONOTONIC) + (uint64_t)(seconds * 1e9);
}

static inline bool workload_time_is_up(uint64_t deadline_ns)
{
    return workload_clock_ns(CLOCK_MONOTONIC) >= deadline_ns;
}

/* After so much work a program sleeps `rest` times as long, so that it leaves its CPU to others. */
static inline void workload_rest(unsigned rest, uint64_t worked_ns)
{
    uint64_t sleep_ns = rest * worked_ns;
    struct timespec sleep = {
        .tv_sec = (time_t)(sleep_ns / 1000000000),
        .tv_nsec = (long)(sleep_ns % 1000000000),
    };
    if (rest > 0) {
        (void)nanosleep(&sleep, NULL);
    }
}

/*
 * The loop of every spinning function: a chain of multiplications which no compiler can shorten and
 * no CPU can overlap, so that its time is its iterations. Inlined, so that it bears the name of the
 * function that it stands in.
 */
__attribute__((always_inline)) static inline uint64_t workload_spin(uint64_t iterations)
{
    uint64_t value = 1;
    for (uint64_t i = 0; i < iterations; i++) {
        value = value * 6364136223846793005U + 1442695040888963407U;
        __asm__ volatile("" : "+r"(value));
    }
    return value;
}

/* One line of the truth that a test compares a profile with. */
static inline void workload_tell(const char *function, uint64_t cpu_ns)
{
    printf("%s %llu\n", function, (unsigned long long)cpu_ns);
}
