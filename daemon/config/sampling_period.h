/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Turns a rate into a sampling period that does not run in step with the machine's ticks. Pure, and
 * the same on every machine.
 *
 * Kernels tick every 1, 4 or 10 ms (CONFIG_HZ 1000, 250, 100), and much work begins at a tick or at
 * a timer of such a period. Samples that are one period apart meet a tick of length T at the phases
 * 0, p, 2p, ... modulo T. A period that divides T meets a few phases only, the same for a whole
 * run. A period sweeps T when its samples of one second come near every phase: no two neighbouring
 * phases are more than SAMPLING_GAP_MAX times as far apart as the same number of samples would be
 * if they were spread evenly (T/N).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SAMPLING_PERIOD_MIN_NS UINT64_C(10000) /* the kernel's timer takes no shorter one */
#define SAMPLING_PERIOD_MAX_NS UINT64_C(1000000000)
#define SAMPLING_TOLERANCE     1000 /* of a rate: one part in so many */
#define SAMPLING_GAP_MAX       3
#define SAMPLING_TICK_COUNT    3
#define SAMPLING_SECONDS_MAX   10 /* in which every period that is chosen here sweeps every tick */
#define SAMPLING_TEXT_BYTES    200

extern const uint64_t sampling_tick_ns[SAMPLING_TICK_COUNT]; /* 1, 4 and 10 ms */

/*
 * The period for a rate of 1 to 100,000 Hz. Its own rate is within 0.1 % of `frequency_hz`. It
 * sweeps every tick within a second where a period within 0.1 % does, else within
 * SAMPLING_SECONDS_MAX: at 100 Hz, 0.1 % is 1 ms a second, a tenth of a tick of 10 ms.
 */
uint64_t sampling_period_ns(uint32_t frequency_hz);

/* 1 s / frequency_hz to the nearest nanosecond. */
uint64_t sampling_period_exact_ns(uint32_t frequency_hz);

/*
 * The longest stretch of a tick in which no sample falls, of those that `period_ns` takes in
 * `seconds` (not 0); `tick_ns` when there is one sample or all fall on one phase.
 */
uint64_t sampling_gap_ns(uint64_t period_ns, uint64_t tick_ns, uint64_t seconds);

/* True when `period_ns` sweeps that tick within `seconds`. */
bool sampling_sweeps(uint64_t period_ns, uint64_t tick_ns, uint64_t seconds);

/*
 * Says in one sentence, in at most SAMPLING_TEXT_BYTES with its end, which tick `period_ns` is in
 * step with, and what to ask for instead. Returns false and leaves `text` alone when it sweeps all
 * of them, or leaves less than a five-hundredth of them out. `frequency_hz` is what was asked for,
 * 0 when that was the period itself.
 */
bool sampling_period_warn(uint64_t period_ns, uint32_t frequency_hz,
                          char text[SAMPLING_TEXT_BYTES]);
