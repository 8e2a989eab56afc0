/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How many of a CPU's switches are sampled, so that it costs no more than it may: one in so many,
 * the period of the event. Pure.
 */

#include <stdbool.h>
#include <stdint.h>

/* What the kernel takes for a sample with its stack; what a switch's two records cost, and how much
 * of that is the collector's (bench/switches.sh, scripts/proof-waits.sh). */
#define WAIT_RATE_SAMPLE_NS     UINT64_C(10000)
#define WAIT_RATE_SWITCH_NS     UINT64_C(2200)
#define WAIT_RATE_SWITCH_OWN_NS UINT64_C(500)
#define WAIT_RATE_SPAN_NS       UINT64_C(200000000) /* a rate is measured over this time */
#define WAIT_RATE_DRAW_NS       UINT64_C(50000000)  /* and a period is kept for this time */
#define WAIT_RATE_PERIOD_MAX    4095                /* the longest period */

/* A wait that is longer than this, divided by the period, would decide about the sum, and stands
 * for itself alone. */
#define WAIT_RATE_LONG_NS UINT64_C(1000000000)

struct wait_rate {
    uint32_t cost_percent;  /* of the CPU */
    uint32_t sample_max_hz; /* 0: any */
    uint32_t period_least;  /* that costs no more than it may */
    uint32_t period;        /* up to half as long again */
    uint32_t period_before; /* the kernel exchanged it for the other one */
    uint64_t changing_ns;   /* after this time and */
    uint64_t changed_ns;    /* before this one */
    bool is_early_due;      /* the change makes a sample of its own */
    bool is_alone;          /* the next switch has a sample that stands for no others */
    uint64_t since_ns;      /* switches are counted; 0: not yet */
    uint64_t drawn_ns;      /* the period was */
    uint64_t sample_ns;     /* what a sample costs, with the kernel's part */
    uint64_t switch_count;
    uint64_t long_count;    /* of waits that were written without a sample, as they were long */
    unsigned calm_spans;    /* spans in a row with few */
    uint64_t long_least_ns; /* shorter ones are not: there would be too many; 0: any may be */
    uint64_t gap_count; /* switches since the last sample that stands for some, with its own, and
                         * without those of samples that stand for themselves alone */
    uint64_t draw_count;
};

void wait_rate_init(struct wait_rate *rate, uint32_t cost_percent, uint32_t sample_max_hz);
/* Its event is a new one. */
void wait_rate_renew(struct wait_rate *rate);

/* The kernel took the period between these times: what is older was sampled by the one before. */
static inline void wait_rate_changed(struct wait_rate *rate, uint64_t from_ns, uint64_t to_ns)
{
    rate->changing_ns = from_ns;
    rate->changed_ns = to_ns;
    rate->is_early_due = true;
}

static inline uint32_t wait_rate_period_at(const struct wait_rate *rate, uint64_t time_ns)
{
    return time_ns < rate->changed_ns ? rate->period_before : rate->period;
}

static inline uint32_t wait_rate_period(const struct wait_rate *rate)
{
    return rate->period;
}

/* Of a switch: from which length on its wait stands for itself alone, in ns; 0: always. */
uint64_t wait_rate_long_ns(const struct wait_rate *rate, uint64_t time_ns);

static inline void wait_rate_count(struct wait_rate *rate)
{
    rate->switch_count++;
    rate->gap_count += rate->is_alone ? 0 : 1;
    rate->is_alone = false;
}

/*
 * How many switches a sample stands for: those that were counted since the one before, of which its
 * own comes next. 1 is for itself alone, where it is no choice among switches that are alike:
 *   the first after a change, which the kernel (Linux 6.18) makes whatever the period is, and
 *     always of a switch of the same kind, behind the interruption that brought the change;
 *   one that has woken the reader of its ring, which comes in between when the CPU is free, so that
 *     such a wait is longer than those without a sample. Where each sample does that, every second
 *     one stands for others all the same.
 */
uint32_t wait_rate_weigh(struct wait_rate *rate, uint64_t time_ns, bool woke_reader);

/* `own_ns` is what `sample_count` samples have cost of the collector's time, without what records
 * did. Returns whether the period is another one now. */
bool wait_rate_adapt(struct wait_rate *rate, uint64_t time_ns, uint64_t own_ns,
                     uint64_t sample_count);

/* There are no records from `time_ns` on, and no samples: what was counted so far decides about the
 * period until the next span. */
void wait_rate_pause(struct wait_rate *rate, uint64_t time_ns);

/* Switches a second up to which their records leave enough for samples. */
uint64_t wait_rate_switches_max(uint32_t cost_percent);
