/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The accounting of ticks. Per CPU:
 *     expected = received + lost + throttled + missed + idle + unexplained
 *     received = kept + filtered + dropped
 * Every term is measured; only `unexplained` is a remainder, signed and always shown. docs/books.md
 * says how, and what each cannot know. Pure.
 */

#include "counters.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct books_cpu {
    uint32_t cpu;
    bool is_known;       /* it was online at some time; else it is in no books */
    uint64_t running_ns; /* of the sampling event, as the kernel counted it */
    uint64_t received;
    uint64_t lost;
    uint64_t throttled;
    uint64_t missed;
    uint64_t crowded; /* of the missed: between samples that follow each other at once */
    uint64_t idle;
    uint64_t held; /* samples that wait for tables: left out of the expected ones */
    uint64_t kept;
    uint64_t filtered;
    uint64_t dropped;
    uint64_t steal_ns;
    uint64_t offline_ns;
    const char *idle_source; /* "switches", "cpuidle", "proc_stat", or the first and another */
};

struct books {
    uint64_t period_ns;
    struct books_cpu *cpus; /* owned by the maker of the books */
    size_t cpu_count;
    bool totals_only; /* prints the sums alone, for machines with very many CPUs */
    struct counters counters;
};

/* running_ns / period_ns, rounded to the nearest tick, less `held`. */
uint64_t books_expected(const struct books *books, const struct books_cpu *cpu);
int64_t books_unexplained(const struct books *books, const struct books_cpu *cpu);

/* The JSON object of docs/trace-format.md, one line. Returned: free(). NULL when there is no
 * memory. */
char *books_print(const struct books *books);
