/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The kernel's time running and CLOCK_MONOTONIC run at slightly different rates. So readings are
 * frequent, and only the short time since the last one is measured by the time running. Two kinds
 * of readings are ignored: one that took long, since its moment is not known, and one since which
 * the event ran for too little, since the CPU may be offline already. Invariant: no time is counted
 * twice, since each time offline ends once.
 */
#include "cpu_presence.h"

#define READING_NS_MAX NS_PER_MS

/* The clocks differ by less than one part in this many: 500 ppm, by which NTP may steer one of
 * them, and as much again. */
#define RATE_DIVISOR 1000

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static void note(struct cpu_presence *presence, struct clock_moment now, uint64_t running_ns)
{
    presence->seen = now;
    presence->seen_running_ns = running_ns;
}

void cpu_presence_start(struct cpu_presence *presence, struct clock_moment now, uint64_t running_ns,
                        bool absent)
{
    presence->sampling = true;
    presence->ticking = !absent;
    presence->off_since_ns = now.monotonic_ns;
    note(presence, now, running_ns);
}

void cpu_presence_stop(struct cpu_presence *presence, struct clock_moment now)
{
    presence->offline_ns = cpu_presence_offline_ns(presence, now.monotonic_ns);
    presence->sampling = false;
}

void cpu_presence_see(struct cpu_presence *presence, struct clock_moment before,
                      struct clock_moment after, uint64_t running_ns)
{
    uint64_t took_ns = less(after.monotonic_ns, before.monotonic_ns);
    uint64_t since_ns = less(after.monotonic_ns, presence->seen.monotonic_ns);
    uint64_t ran_ns = less(running_ns, presence->seen_running_ns);
    bool ran = ran_ns + READING_NS_MAX + since_ns / RATE_DIVISOR >= since_ns;
    if (presence->ticking && ran && took_ns <= READING_NS_MAX) {
        note(presence, after, running_ns);
    }
}

uint64_t cpu_presence_lose(struct cpu_presence *presence, struct clock_moment now,
                           uint64_t running_ns)
{
    uint64_t ran_ns = less(running_ns, presence->seen_running_ns);
    uint64_t since_ns = less(now.monotonic_ns, presence->seen.monotonic_ns);
    ran_ns = ran_ns < since_ns ? ran_ns : since_ns;
    if (presence->sampling && presence->ticking) {
        presence->ticking = false;
        presence->off_since_ns = presence->seen.monotonic_ns + ran_ns;
    }
    return presence->seen.boottime_ns + ran_ns;
}

void cpu_presence_return(struct cpu_presence *presence, struct clock_moment now,
                         uint64_t running_ns)
{
    presence->offline_ns = cpu_presence_offline_ns(presence, now.monotonic_ns);
    presence->ticking = true;
    note(presence, now, running_ns);
}

uint64_t cpu_presence_offline_ns(const struct cpu_presence *presence, uint64_t now_ns)
{
    uint64_t open_ns = 0;
    if (presence->sampling && !presence->ticking) {
        open_ns = less(now_ns, presence->off_since_ns);
    }
    return presence->offline_ns + open_ns;
}
