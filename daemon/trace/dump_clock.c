/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The two clocks run alike but while the machine is suspended, so of looks that agree the most
 * exact one counts.
 */
#include "dump_clock.h"

#include "clock.h"

#include <string.h>

#define STEP_NS       ((int64_t)NS_PER_MS) /* no suspend is shorter, and no look this wrong */
#define LOOK_LIMIT_NS (NS_PER_MS / 10)

void dump_clock_look(struct dump_clock *clock)
{
    uint64_t before_ns = clock_ns(CLOCK_BOOTTIME);
    uint64_t monotonic_ns = clock_ns(CLOCK_MONOTONIC);
    uint64_t after_ns = clock_ns(CLOCK_BOOTTIME);
    if (after_ns - before_ns <= LOOK_LIMIT_NS) {
        dump_clock_note(clock, before_ns + (after_ns - before_ns) / 2, monotonic_ns,
                        after_ns - before_ns);
    }
}

void dump_clock_note(struct dump_clock *clock, uint64_t boot_ns, uint64_t monotonic_ns,
                     uint64_t error_ns)
{
    int64_t offset_ns = (int64_t)(boot_ns - monotonic_ns);
    struct dump_clock_step *last =
        clock->step_count == 0 ? NULL : &clock->steps[clock->step_count - 1];
    if (last != NULL && offset_ns + STEP_NS >= last->offset_ns &&
        offset_ns <= last->offset_ns + STEP_NS) {
        if (error_ns < last->error_ns) {
            last->offset_ns = offset_ns;
            last->error_ns = error_ns;
        }
        clock->looked_ns = boot_ns;
        return;
    }
    if (clock->step_count == DUMP_CLOCK_STEPS_MAX) {
        clock->step_count--;
        memmove(clock->steps, clock->steps + 1, clock->step_count * sizeof *clock->steps);
    }
    clock->steps[clock->step_count++] = (struct dump_clock_step){
        .before_ns = last == NULL ? 0 : clock->looked_ns,
        .since_ns = last == NULL ? 0 : boot_ns,
        .offset_ns = offset_ns,
        .error_ns = error_ns,
    };
    clock->looked_ns = boot_ns;
}

bool dump_clock_monotonic(const struct dump_clock *clock, uint64_t boot_ns, uint64_t *ret_ns)
{
    for (size_t i = clock->step_count; i > 0; i--) {
        const struct dump_clock_step *step = &clock->steps[i - 1];
        if (boot_ns >= step->since_ns) {
            return !__builtin_sub_overflow(boot_ns, step->offset_ns, ret_ns);
        }
        if (boot_ns > step->before_ns) {
            return false;
        }
    }
    return false;
}

uint64_t dump_clock_boot(const struct dump_clock *clock, uint64_t monotonic_ns)
{
    uint64_t boot_ns = monotonic_ns;
    for (size_t i = clock->step_count; i > 0; i--) {
        const struct dump_clock_step *step = &clock->steps[i - 1];
        if (__builtin_add_overflow(monotonic_ns, step->offset_ns, &boot_ns)) {
            return UINT64_MAX;
        }
        if (boot_ns >= step->since_ns) {
            break;
        }
    }
    for (size_t i = 0; i < clock->step_count; i++) {
        const struct dump_clock_step *step = &clock->steps[i];
        if (boot_ns > step->before_ns && boot_ns < step->since_ns) {
            return step->since_ns;
        }
    }
    return boot_ns;
}
