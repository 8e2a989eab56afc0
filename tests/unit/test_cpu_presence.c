/* SPDX-License-Identifier: Apache-2.0 */

/* When a CPU went, and for how long it was away, by made-up clocks. */
#include "cpu_presence.h"
#include "unit_test.h"

#define MS     UINT64_C(1000000)
#define AHEAD  (UINT64_C(500000) * MS) /* that the machine was suspended for before */
#define START  (UINT64_C(1000) * MS)
#define PERIOD (100 * MS)

static struct clock_moment at(uint64_t monotonic_ns)
{
    return (struct clock_moment){.boottime_ns = monotonic_ns + AHEAD, .monotonic_ns = monotonic_ns};
}

static struct cpu_presence begin(bool absent)
{
    struct cpu_presence presence = {0};
    cpu_presence_start(&presence, at(START), 0, absent);
    return presence;
}

/* Readings every 100 ms, up to `to_ns`, of an event that stopped at `gone_ns`, if it comes to that,
 * and whose clock is `ppm` slow. */
static uint64_t read_until(struct cpu_presence *presence, uint64_t to_ns, uint64_t gone_ns,
                           uint64_t ppm)
{
    uint64_t running_ns = 0;
    for (uint64_t now_ns = START + PERIOD; now_ns <= to_ns; now_ns += PERIOD) {
        uint64_t ran_ns = (now_ns < gone_ns ? now_ns : gone_ns) - START;
        running_ns = ran_ns - ran_ns / 1000000 * ppm;
        cpu_presence_see(presence, at(now_ns - 5000), at(now_ns), running_ns);
    }
    return running_ns;
}

TEST(nothing_is_offline_where_nothing_goes)
{
    struct cpu_presence presence = begin(false);
    (void)read_until(&presence, START + 600 * PERIOD, UINT64_MAX, 500);
    assert_int_equal(cpu_presence_offline_ns(&presence, START + 601 * PERIOD), 0);
    cpu_presence_stop(&presence, at(START + 601 * PERIOD));
    assert_int_equal(cpu_presence_offline_ns(&presence, START + 900 * PERIOD), 0);
}

TEST(finds_when_it_went_by_its_time_running)
{
    static const uint64_t ppms[] = {0, 500};
    for (size_t i = 0; i < COUNT_OF(ppms); i++) {
        struct cpu_presence presence = begin(false);
        const uint64_t gone_ns = START + 600 * PERIOD + 30 * MS;
        /* Found a second after; a reading in between is not taken for one of an event that runs. */
        uint64_t running_ns = read_until(&presence, gone_ns + 1000 * MS, gone_ns, ppms[i]);
        uint64_t found_ns = cpu_presence_lose(&presence, at(gone_ns + 1001 * MS), running_ns);
        assert_in_range(found_ns, gone_ns + AHEAD - MS / 10, gone_ns + AHEAD);
        assert_in_range(cpu_presence_offline_ns(&presence, gone_ns + 2000 * MS), 2000 * MS,
                        2000 * MS + MS / 10);
        cpu_presence_return(&presence, at(gone_ns + 3000 * MS), running_ns);
        assert_in_range(cpu_presence_offline_ns(&presence, gone_ns + 9000 * MS), 3000 * MS,
                        3000 * MS + MS / 10);
    }
}

TEST(a_reading_that_took_long_says_nothing)
{
    struct cpu_presence presence = begin(false);
    cpu_presence_see(&presence, at(START + 100 * MS), at(START + 100 * MS + 1000), 100 * MS);
    cpu_presence_see(&presence, at(START + 200 * MS), at(START + 290 * MS), 200 * MS);
    assert_int_equal(cpu_presence_lose(&presence, at(START + 400 * MS), 210 * MS),
                     START + 210 * MS + 1000 + AHEAD);
}

TEST(who_never_came_is_offline_from_the_start_to_the_stop)
{
    struct cpu_presence presence = begin(true);
    assert_int_equal(cpu_presence_offline_ns(&presence, START + 7 * MS), 7 * MS);
    cpu_presence_stop(&presence, at(START + 10 * MS));
    assert_int_equal(cpu_presence_offline_ns(&presence, START + 99 * MS), 10 * MS);
    /* A second run, in which it comes. */
    cpu_presence_start(&presence, at(START + 200 * MS), 0, true);
    cpu_presence_return(&presence, at(START + 205 * MS), 0);
    cpu_presence_stop(&presence, at(START + 300 * MS));
    assert_int_equal(cpu_presence_offline_ns(&presence, START + 999 * MS), 15 * MS);
}

TEST(being_away_between_two_runs_is_in_none)
{
    struct cpu_presence presence = begin(false);
    cpu_presence_stop(&presence, at(START + 10 * MS));
    (void)cpu_presence_lose(&presence, at(START + 20 * MS), 10 * MS);
    assert_int_equal(cpu_presence_offline_ns(&presence, START + 50 * MS), 0);
    cpu_presence_start(&presence, at(START + 60 * MS), 10 * MS, false);
    assert_int_equal(cpu_presence_offline_ns(&presence, START + 99 * MS), 0);
}

TEST(a_suspend_is_no_time_offline)
{
    struct cpu_presence presence = begin(false);
    const uint64_t night_ns = UINT64_C(28800000) * MS;
    uint64_t running_ns = read_until(&presence, START + 10 * PERIOD, UINT64_MAX, 0);
    /* The CPU goes 20 ms before the machine does, and is found to be away 5 ms after. */
    const uint64_t gone_ns = START + 10 * PERIOD + 7 * MS;
    struct clock_moment found = at(gone_ns + 25 * MS);
    found.boottime_ns += night_ns;
    assert_int_equal(cpu_presence_lose(&presence, found, running_ns + 7 * MS), gone_ns + AHEAD);
    struct clock_moment back = at(gone_ns + 30 * MS);
    back.boottime_ns += night_ns;
    cpu_presence_return(&presence, back, running_ns + 7 * MS);
    assert_int_equal(cpu_presence_offline_ns(&presence, back.monotonic_ns), 30 * MS);
}
