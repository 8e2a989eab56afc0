/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * From the clock of jitdumps (CLOCK_MONOTONIC) to that of samples (CLOCK_BOOTTIME) and back. They
 * differ by the time that the machine was suspended, so what they differed by is kept with when
 * that was seen. Between two looks with a suspend in between, nothing is known.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DUMP_CLOCK_STEPS_MAX 16

struct dump_clock {
    struct dump_clock_step {
        uint64_t before_ns; /* the last look before it, */
        uint64_t since_ns;  /* and the first with it */
        int64_t offset_ns;  /* boot time less monotonic time; below 0 by an error only */
        uint64_t error_ns;
    } steps[DUMP_CLOCK_STEPS_MAX]; /* the newest is the last */
    size_t step_count;
    uint64_t looked_ns; /* boot time */
};

/* Looks at both clocks; to be called about once a second. */
void dump_clock_look(struct dump_clock *clock);
/* What a look has found: pure. `boot_ns` is exact to `error_ns`. */
void dump_clock_note(struct dump_clock *clock, uint64_t boot_ns, uint64_t monotonic_ns,
                     uint64_t error_ns);

/* The monotonic time of a boot time; false: not known. */
bool dump_clock_monotonic(const struct dump_clock *clock, uint64_t boot_ns, uint64_t *ret_ns);
/* The boot time of a monotonic one; of an unknown one, the first that is known to be later. */
uint64_t dump_clock_boot(const struct dump_clock *clock, uint64_t monotonic_ns);
