/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the sampled waits of a thread stand for. One in so many switches is sampled, and the length
 * of every wait is known: so what the samples stand for is held against what the waits without a
 * sample took. A sample makes the wait that begins with it longer, by more than the time that it
 * takes: it drives what the next thread needs out of the CPU's caches. That is in the ratio of the
 * two, and chance is. Pure.
 */

#include "extremes.h"

#include <stdint.h>

#define WAIT_ESTIMATE_SAMPLES 16 /* from which on the ratio is known */

struct wait_estimate {
    uint64_t unsampled_ns; /* of waits without a sample */
    uint64_t raw_ns;       /* what the samples would stand for, beside themselves */
    uint64_t sample_count; /* that stand for others */
};

static inline void wait_estimate_skip(struct wait_estimate *estimate, uint64_t length_ns)
{
    estimate->unsampled_ns += length_ns;
}

/* What a sampled wait stands for beside itself: `other_count` waits, each as long as this one
 * without its sample, at a ratio of a half to one and a half. */
static inline uint64_t wait_estimate_add(struct wait_estimate *estimate, uint64_t length_ns,
                                         uint32_t other_count)
{
    uint64_t others_ns = length_ns * other_count;
    if (other_count == 0) {
        return 0;
    }
    estimate->raw_ns += others_ns;
    estimate->sample_count++;
    if (estimate->sample_count >= WAIT_ESTIMATE_SAMPLES && estimate->raw_ns > 0) {
        const double ratio = (double)estimate->unsampled_ns / (double)estimate->raw_ns;
        others_ns = (uint64_t)((double)others_ns * (ratio < 0.5 ? 0.5 : ratio > 1.5 ? 1.5 : ratio));
    }
    return others_ns;
}
