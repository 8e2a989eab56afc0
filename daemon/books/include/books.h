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

#define BOOKS_EVENTS_MAX 9 /* beside the clock; with two of waits */

/* What was counted of an event beside the clock, on one CPU:
 *     counted = (weight + lost) x period + unexplained
 *     received = kept + filtered + dropped
 * with less than a period of `unexplained` at the end of each run. An event that has a rate has
 * a period of 1: a sample weighs what was counted since the one before it, lost ones too. So does
 * that of a follower, by the samples of its leader. */
struct books_event {
    uint64_t counted;     /* by the kernel, in the event's unit */
    uint64_t weight;      /* of the received samples together: how many periods they stand for */
    uint64_t held_weight; /* of samples that wait for tables: left out of what was counted */
    uint64_t received;    /* samples, as the next are */
    uint64_t lost;
    uint64_t kept;
    uint64_t filtered;
    uint64_t dropped;
    uint64_t throttled;    /* times that the kernel stopped it for samples that came too fast, */
    uint64_t throttled_ns; /* for so long together: what happened then is not counted */
    uint64_t held_back_ns; /* the same by the daemon, for more samples than a session may have */
    uint64_t enabled_ns;
    uint64_t running_ns; /* less than enabled_ns where it shares its counter with others */
    /* Of waits, whose unit is ns: counted = weight + lost_weight + short_weight + unexplained. */
    uint64_t lost_weight; /* `lost` is how many waits were not certain */
    uint64_t short_count; /* waits that are summed alone */
    uint64_t short_weight;
    uint64_t bare;           /* received without a sample of their beginning */
    uint64_t unread_count;   /* samples of a beginning that did not fit in the ring */
    uint64_t thinned_count;  /* that others stand for: `weight` is an estimate, and `unexplained`
                              * what it is off by */
    double variance;         /* of the estimate, by what it was made of */
    uint64_t largest_weight; /* the most that one of them stands for, if it is sampled */
};

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
    struct books_event events[BOOKS_EVENTS_MAX];
};

/* An event beside the clock. */
struct books_event_name {
    const char *name; /* borrowed, with the next */
    const char *unit;
    uint64_t period;    /* 0: it has a rate */
    bool is_wait;       /* it is off-cpu or preempted */
    const char *leader; /* of a follower: the event with whose samples it is counted; borrowed;
                         * NULL: it is none */
};

struct books {
    uint64_t period_ns;
    struct books_cpu *cpus; /* owned by the maker of the books */
    size_t cpu_count;
    struct books_event_name events[BOOKS_EVENTS_MAX];
    size_t event_count;
    bool totals_only; /* prints the sums alone, for machines with very many CPUs */
    struct counters counters;
};

/* running_ns / period_ns, rounded to the nearest tick, less `held`. */
uint64_t books_expected(const struct books *books, const struct books_cpu *cpu);
int64_t books_unexplained(const struct books *books, const struct books_cpu *cpu);

/* By how much 19 of 20 estimates of `weight` are off at the most. Two standard errors are that
 * where many waits are alike. Where one rare wait decides, which is sampled or is not, the estimate
 * is off by nearly all that it would stand for: half of that more is enough, whatever the lengths
 * and however many there are of each. */
double books_error_95(const struct books_event *line);

/* The JSON object of docs/trace-format.md, one line. Returned: free(). NULL when there is no
 * memory. */
char *books_print(const struct books *books);
