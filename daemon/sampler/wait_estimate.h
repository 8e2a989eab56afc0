/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the sampled waits of a thread stand for. One in so many switches is sampled, and the length
 * of every wait is known: so what the samples stand for follows what the waits without a sample
 * took. By lengths alone it would be off: a sample makes the wait that begins with it longer, by
 * more than the time that it takes itself, and threads that answer each other at once go on
 * differently after one, so that a later sample meets other switches than chance would have it.
 *
 * Waits are told apart by their length, in powers of four: so a rare long one that is sampled does
 * not change what the next short ones stand for. Where a power ends is drawn for each wait: else
 * waits just below an end would be in another class whenever a sample makes them longer.
 *
 * A sample comes at any moment, so a class that is sampled again and again owes 0 on average. A
 * class is corrected from its 16th sample on: a thread with one sample stands for threads
 * that have none, so its weight must not be corrected to its own waits. Until then it counts among
 * the waits of all such threads together, which are corrected as those of one thread.
 *
 * Some waits hardly ever have a sample: those of a thread that gives way to what a sample wakes,
 * and short ones that a sample makes long. What a class with fewer samples took, and what is more
 * than the samples of a class can stand for, is the rest. All samples of the thread make up for the
 * rest, from its 16th on. Pure.
 */

#include "extremes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WAIT_ESTIMATE_CLASSES  8
#define WAIT_ESTIMATE_FIRST_NS UINT64_C(4096) /* at least, the end of the first class */
#define WAIT_ESTIMATE_SAMPLES  16             /* from which on a class is corrected */
#define WAIT_ESTIMATE_SPREAD   8              /* samples over which a difference is made up for */
/* So many times what a sample stands for by its length it may stand for more: for its class, and
 * with the rest. */
#define WAIT_ESTIMATE_CLASS_RISE 3
#define WAIT_ESTIMATE_RISE       15

struct wait_owed {
    int64_t ns;            /* what waits without a sample took, less what samples have stood for */
    uint32_t sample_count; /* up to WAIT_ESTIMATE_SAMPLES, and until then nothing is owed */
};

struct wait_estimate {
    struct wait_owed classes[WAIT_ESTIMATE_CLASSES];
    struct wait_owed rest; /* of classes with fewer samples; its own are those of the thread */
    uint64_t draw;
};

static inline struct wait_owed *wait_estimate_class(struct wait_estimate *estimate,
                                                    uint64_t length_ns)
{
    unsigned class = 0;
    estimate->draw += UINT64_C(0x9e3779b97f4a7c15); /* the golden ratio: a sequence without gaps */
    const uint64_t more_ns = 3 * WAIT_ESTIMATE_FIRST_NS * (estimate->draw >> 48) >> 16;
    uint64_t end_ns = WAIT_ESTIMATE_FIRST_NS + more_ns;
    while (length_ns >= end_ns && class < WAIT_ESTIMATE_CLASSES - 1) {
        end_ns *= 4;
        class ++;
    }
    return &estimate->classes[class];
}

static inline bool wait_estimate_follows(const struct wait_owed *owed)
{
    return owed->sample_count >= WAIT_ESTIMATE_SAMPLES;
}

/* Notes a wait without a sample. False: the thread has too few samples for that. */
static inline bool wait_estimate_skip(struct wait_estimate *estimate, uint64_t length_ns)
{
    struct wait_owed *class = wait_estimate_class(estimate, length_ns);
    struct wait_owed *owed = wait_estimate_follows(class) ? class : &estimate->rest;
    const bool follows = wait_estimate_follows(owed);
    owed->ns += follows ? (int64_t)length_ns : 0;
    return follows;
}

/* A part of what is owed, as far as it is between two bounds. What is beyond them for a long time
 * is left to `beyond`, unless that is NULL. */
static inline int64_t wait_estimate_part(struct wait_owed *owed, int64_t least_ns, int64_t most_ns,
                                         struct wait_owed *beyond)
{
    const int64_t part_ns = owed->ns / WAIT_ESTIMATE_SPREAD;
    const int64_t more_ns = part_ns < least_ns ? least_ns : part_ns > most_ns ? most_ns : part_ns;
    if (beyond != NULL && more_ns != part_ns) {
        const int64_t kept_ns = more_ns * WAIT_ESTIMATE_SPREAD;
        beyond->ns += owed->ns - kept_ns;
        owed->ns = kept_ns;
    }
    return more_ns;
}

/* What a sampled wait stands for beside itself: `other_count` waits as long as this one without its
 * sample, corrected by what is known of the thread or, while that is too little, of `all` such
 * threads (NULL: it is that of all). */
static inline uint64_t wait_estimate_add(struct wait_estimate *estimate, struct wait_estimate *all,
                                         uint64_t length_ns, uint32_t other_count)
{
    if (other_count == 0) {
        return 0;
    }
    struct wait_owed *class = wait_estimate_class(estimate, length_ns);
    struct wait_owed *rest = &estimate->rest;
    const int64_t raw_ns = (int64_t)(length_ns * other_count);
    const bool follows = wait_estimate_follows(class);
    const bool has_rest = wait_estimate_follows(rest);
    class->sample_count += follows ? 0 : 1;
    rest->sample_count += has_rest ? 0 : 1;
    int64_t sum_ns = raw_ns;
    if (!follows && !has_rest && all != NULL) {
        /* Whatever others do, they change it by half at the most. */
        const uint64_t half_ns = (uint64_t)raw_ns / 2;
        const uint64_t common_ns = wait_estimate_add(all, NULL, length_ns, other_count);
        return min_u64(max_u64(common_ns, half_ns), 3 * half_ns);
    }
    if (follows) {
        const int64_t more_ns =
            wait_estimate_part(class, -raw_ns, raw_ns * WAIT_ESTIMATE_CLASS_RISE, rest);
        class->ns -= raw_ns + more_ns;
        sum_ns += more_ns;
    } else if (has_rest) {
        rest->ns -= raw_ns;
    }
    if (has_rest) {
        const int64_t more_ns =
            wait_estimate_part(rest, -sum_ns, raw_ns * (1 + WAIT_ESTIMATE_RISE) - sum_ns, NULL);
        rest->ns -= more_ns;
        sum_ns += more_ns;
    }
    return (uint64_t)sum_ns;
}
