/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Each tick of a run goes to one term. The first stories are told by hand, in ticks of 1000 ns that
 * stand at 1000 k; the last ones are made by a timer of which the truth is known.
 */
#include "ticks.h"
#include "unit_test.h"

#define PERIOD 1000
#define LATE   5 /* between a tick and its sample */

static struct ticks begin(uint64_t time_ns)
{
    struct ticks ticks;
    ticks_init(&ticks, PERIOD);
    ticks_start(&ticks, time_ns, true);
    return ticks;
}

/* Samples of the ticks from `first` to `last`. */
static void samples(struct ticks *ticks, uint64_t first, uint64_t last)
{
    for (uint64_t tick = first; tick <= last; tick++) {
        ticks_sample(ticks, tick * PERIOD + LATE);
    }
}

static void idle(struct ticks *ticks, uint64_t from_ns, uint64_t to_ns)
{
    ticks_switch(ticks, from_ns, false, true);
    ticks_switch(ticks, to_ns, true, false);
}

static void end(struct ticks *ticks, uint64_t time_ns)
{
    ticks_end(ticks, time_ns);
    ticks_close(ticks);
}

static void assert_counts(const struct ticks *ticks, uint64_t came, uint64_t lost,
                          uint64_t throttled, uint64_t missed, uint64_t idle_count)
{
    struct tick_counts counts = ticks_counts(ticks);
    assert_int_equal(counts.samples, came);
    assert_int_equal(counts.lost, lost);
    assert_int_equal(counts.throttled, throttled);
    assert_int_equal(counts.missed, missed);
    assert_int_equal(counts.idle, idle_count);
}

TEST(a_busy_cpu_has_samples_alone)
{
    struct ticks ticks = begin(0);
    samples(&ticks, 1, 100);
    end(&ticks, 100500);
    assert_counts(&ticks, 100, 0, 0, 0, 0);
}

TEST(a_gap_that_nothing_explains_was_missed)
{
    struct ticks ticks = begin(0);
    samples(&ticks, 1, 10);
    samples(&ticks, 12, 20);
    samples(&ticks, 25, 30);
    assert_counts(&ticks, 25, 0, 0, 5, 0);
    /* One that came late, when the next was due, and the next in time. */
    ticks_sample(&ticks, 31900);
    samples(&ticks, 32, 40);
    assert_counts(&ticks, 35, 0, 0, 5, 0);
    /* One so late that it stands for two. */
    ticks_sample(&ticks, 42100);
    samples(&ticks, 43, 80);
    assert_counts(&ticks, 74, 0, 0, 6, 0);
    end(&ticks, 80500);
    assert_counts(&ticks, 74, 0, 0, 6, 0);
}

TEST(missed_ticks_between_close_samples_are_crowded)
{
    struct ticks ticks;
    const uint64_t period_ns = 10000;
    ticks_init(&ticks, period_ns);
    ticks_start(&ticks, 0, true);
    for (uint64_t i = 1; i <= 99; i += 2) {
        ticks_sample(&ticks, i * period_ns);
    }
    assert_int_equal(ticks_counts(&ticks).missed, 49);
    assert_int_equal(ticks_counts(&ticks).crowded, 49);
    /* A hypervisor's pause is not of this kind, and neither is one of more than 100 us. */
    ticks_sample(&ticks, 110 * period_ns);
    ticks_sample(&ticks, 510 * period_ns);
    assert_int_equal(ticks_counts(&ticks).missed, 49 + 10 + 399);
    assert_int_equal(ticks_counts(&ticks).crowded, 49);
}

TEST(ticks_before_the_first_sample_belong_to_the_run)
{
    struct ticks ticks = begin(0);
    samples(&ticks, 4, 10);
    assert_counts(&ticks, 7, 0, 0, 3, 0);
}

TEST(ticks_after_the_last_sample_were_missed)
{
    struct ticks ticks = begin(0);
    samples(&ticks, 1, 10);
    end(&ticks, 20500);
    assert_counts(&ticks, 10, 0, 0, 10, 0);
    /* A program ran, and the CPU gave no sample at all. */
    ticks = begin(0);
    ticks_switch(&ticks, 3500, true, false);
    ticks_switch(&ticks, 12500, false, true);
    end(&ticks, 20500);
    assert_counts(&ticks, 0, 0, 0, 9, 11);
    /* The end forestalls an interrupt that is due. */
    ticks = begin(0);
    samples(&ticks, 1, 10);
    end(&ticks, 11040);
    assert_counts(&ticks, 10, 0, 0, 0, 0);
    /* Losses, throttled time and blind time explain them as they do before a sample. */
    ticks = begin(0);
    samples(&ticks, 1, 10);
    ticks_lost(&ticks, 4);
    end(&ticks, 20500);
    assert_counts(&ticks, 10, 4, 0, 6, 0);
    ticks = begin(0);
    samples(&ticks, 1, 10);
    ticks_throttle(&ticks, 15000);
    end(&ticks, 20000);
    assert_counts(&ticks, 10, 0, 5, 5, 0);
    ticks = begin(0);
    samples(&ticks, 1, 10);
    ticks_switches_lost(&ticks);
    end(&ticks, 20500);
    assert_counts(&ticks, 10, 0, 0, 0, 0);
}

/* Idle from just after one tick to just before another, and every other way to stand. */
TEST(idle_ticks_are_those_within)
{
    static const struct {
        uint64_t from_ns, to_ns, next_sample, idle, missed;
    } cases[] = {
        {10010, 10990, 11, 0, 0}, /* between two ticks */
        {10010, 13500, 14, 3, 0}, /* over 11 to 13 */
        {10900, 13006, 14, 3, 0}, /* 13 comes as late as samples do */
        {11030, 13500, 14, 3, 0}, /* 11 found interrupts off, and then the idle task */
        {11500, 13500, 14, 2, 1}, /* 11 was none of it */
        {10500, 11500, 14, 1, 2}, /* 12 and 13 were none of it */
        {10500, 13001, 13, 2, 0}, /* 13 woke while the switch was under way: a sample */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ticks ticks = begin(0);
        samples(&ticks, 1, 10);
        idle(&ticks, cases[i].from_ns, cases[i].to_ns);
        samples(&ticks, cases[i].next_sample, 20);
        end(&ticks, 20500);
        assert_counts(&ticks, 10 + 21 - cases[i].next_sample, 0, 0, cases[i].missed, cases[i].idle);
    }
}

TEST(many_short_idle_times_in_one_gap_add_up)
{
    struct ticks ticks = begin(0);
    samples(&ticks, 1, 10);
    for (uint64_t tick = 11; tick < 100; tick++) {
        idle(&ticks, tick * PERIOD - 300, tick * PERIOD + 300);
        idle(&ticks, tick * PERIOD + 400, tick * PERIOD + 600);
    }
    samples(&ticks, 100, 110);
    assert_counts(&ticks, 21, 0, 0, 0, 89);
}

TEST(losses_throttles_and_idleness_share_one_gap)
{
    struct ticks ticks = begin(0);
    samples(&ticks, 1, 10);
    idle(&ticks, 10500, 15500);    /* 11 to 15 */
    ticks_throttle(&ticks, 20003); /* 16 to 20 had samples that were lost */
    idle(&ticks, 22000, 24000);    /* throttled, whatever the CPU does */
    ticks_unthrottle(&ticks, 30003);
    ticks_lost(&ticks, 4);      /* of 31 to 35 */
    idle(&ticks, 35500, 39500); /* 36 to 39 */
    samples(&ticks, 41, 50);
    end(&ticks, 50500);
    /* The five lost ones of the first part are told of by the second's record: each part is short
     * by as many or has too many, and what is missing is not made up. */
    struct tick_counts counts = ticks_counts(&ticks);
    assert_int_equal(counts.idle, 9);
    assert_int_equal(counts.throttled, 10);
    assert_int_equal(counts.lost, 4);
    assert_int_equal(counts.missed, 5 + 2);
}

TEST(a_loss_answers_for_its_gap)
{
    struct ticks ticks = begin(0);
    samples(&ticks, 1, 10);
    idle(&ticks, 14500, 16500);
    ticks_lost(&ticks, 7);
    samples(&ticks, 21, 30);
    assert_counts(&ticks, 20, 7, 0, 1, 2);
}

TEST(a_throttle_has_no_ticks_and_the_timer_begins_anew)
{
    struct ticks ticks = begin(0);
    samples(&ticks, 1, 9);
    ticks_throttle(&ticks, 10004);
    samples(&ticks, 10, 10);
    ticks_unthrottle(&ticks, 15404);
    for (uint64_t tick = 1; tick <= 10; tick++) {
        ticks_sample(&ticks, 15404 + tick * PERIOD + LATE);
    }
    assert_counts(&ticks, 20, 0, 5, 0, 0);
    ticks_throttle(&ticks, 26404);
    ticks_sample(&ticks, 26408);
    ticks_advance(&ticks, 30000);
    assert_counts(&ticks, 21, 0, 9, 0, 0);
    end(&ticks, 36404);
    assert_counts(&ticks, 21, 0, 15, 0, 0);
}

TEST(a_throttle_whose_end_was_lost_ends_before_the_next_sample)
{
    struct ticks ticks = begin(0);
    ticks_throttle(&ticks, 1004);
    ticks_sample(&ticks, 1005);
    ticks_sample(&ticks, 9005);
    ticks_sample(&ticks, 10005);
    end(&ticks, 10500);
    assert_counts(&ticks, 3, 0, 7, 0, 0);
    ticks = begin(0);
    samples(&ticks, 1, 2);
    ticks_lost(&ticks, 4); /* 3 to 5, and the throttle */
    ticks_unthrottle(&ticks, 5905);
    ticks_sample(&ticks, 6910);
    end(&ticks, 7000);
    assert_counts(&ticks, 3, 4, 0, 0, 0);
}

TEST(a_session_that_starts_idle_has_idle_ticks_from_its_start)
{
    struct ticks ticks = begin(0);
    ticks_advance(&ticks, 5000);
    ticks_switch(&ticks, 7500, true, false);
    samples(&ticks, 8, 10);
    end(&ticks, 10500);
    assert_counts(&ticks, 3, 0, 0, 0, 7);
    /* Who was not idle had none. */
    ticks = begin(0);
    ticks_switch(&ticks, 7500, false, false);
    samples(&ticks, 8, 10);
    assert_counts(&ticks, 3, 0, 0, 7, 0);
    /* The switch to idle was recorded before the start. */
    ticks = begin(10000);
    ticks_switch(&ticks, 9000, false, true);
    ticks_advance(&ticks, 14500);
    assert_counts(&ticks, 0, 0, 0, 0, 4);
}

TEST(a_cpu_of_which_nothing_is_heard_was_idle_throughout)
{
    struct ticks ticks = begin(0);
    end(&ticks, 100500);
    assert_counts(&ticks, 0, 0, 0, 0, 100);
    ticks = begin(0);
    ticks_lost(&ticks, 60);
    end(&ticks, 100500);
    assert_counts(&ticks, 0, 60, 0, 0, 0);
}

TEST(idleness_lasts_to_the_end_and_no_longer)
{
    struct ticks ticks = begin(0);
    samples(&ticks, 1, 10);
    ticks_switch(&ticks, 10500, false, true);
    ticks_end(&ticks, 20500);
    ticks_switch(&ticks, 30000, true, false);
    ticks_switch(&ticks, 31000, false, true);
    ticks_close(&ticks);
    assert_counts(&ticks, 10, 0, 0, 0, 10);
}

TEST(a_pause_is_in_no_term)
{
    struct ticks ticks = begin(0);
    samples(&ticks, 1, 10);
    ticks_switch(&ticks, 10500, false, true);
    end(&ticks, 12500);
    ticks_switch(&ticks, 40000, true, false);
    ticks_switch(&ticks, 50000, false, true);
    ticks_start(&ticks, 60300, true);
    ticks_switch(&ticks, 62800, true, false);
    for (uint64_t tick = 3; tick <= 10; tick++) {
        ticks_sample(&ticks, 60300 + tick * PERIOD + LATE);
    }
    end(&ticks, 70800);
    assert_counts(&ticks, 18, 0, 0, 0, 4);
}

TEST(a_horizon_amid_idleness_changes_nothing)
{
    for (uint64_t step = 1; step < 3000; step += 7) {
        struct ticks ticks = begin(0);
        samples(&ticks, 1, 10);
        ticks_switch(&ticks, 10500, false, true);
        for (uint64_t time = 10501; time < 20500; time += step) {
            ticks_advance(&ticks, time);
            assert_int_equal(ticks_counts(&ticks).idle, (time - LATE - 1) / PERIOD - 10);
        }
        ticks_switch(&ticks, 20500, true, false);
        samples(&ticks, 21, 30);
        assert_counts(&ticks, 20, 0, 0, 0, 10);
    }
}

TEST(lost_switch_records_leave_their_time_to_another_source)
{
    struct ticks ticks = begin(0);
    samples(&ticks, 1, 10);
    idle(&ticks, 10500, 12500); /* 11, 12 */
    ticks_switches_lost(&ticks);
    samples(&ticks, 15, 16);      /* 13, 14 are in the dark */
    samples(&ticks, 20, 20);      /* and 17 to 19 */
    ticks_advance(&ticks, 24900); /* and 21 to 24 */
    struct tick_counts counts = ticks_counts(&ticks);
    assert_int_equal(counts.idle, 2);
    assert_int_equal(counts.missed, 0);
    assert_int_equal(counts.blind, 9);
    /* 2000 ns of it are known. */
    ticks_tell_idle(&ticks, 2000 + 5000);
    counts = ticks_counts(&ticks);
    assert_int_equal(counts.idle, 7);
    assert_int_equal(counts.idle_told, 5);
    /* A switch record ends the dark. */
    ticks_switch(&ticks, 24900, false, false);
    samples(&ticks, 27, 30);
    idle(&ticks, 30500, 33500);
    samples(&ticks, 34, 40);
    counts = ticks_counts(&ticks);
    assert_int_equal(counts.missed, 2);
    assert_int_equal(counts.blind, 9);
    assert_int_equal(counts.idle, 10);
    /* What is told is no more than what is in the dark. */
    ticks_tell_idle(&ticks, 1000000000);
    assert_int_equal(ticks_counts(&ticks).idle, 10 + 0);
}

TEST(without_switch_records_all_is_told_by_another_source)
{
    struct ticks ticks;
    ticks_init(&ticks, PERIOD);
    ticks_start(&ticks, 0, false);
    samples(&ticks, 1, 10);
    idle(&ticks, 10500, 19500); /* of a foreign task, as it may be */
    ticks_tell_idle(&ticks, 0);
    samples(&ticks, 21, 30);
    ticks_tell_idle(&ticks, 8600);
    assert_counts(&ticks, 20, 0, 0, 0, 8);
    samples(&ticks, 41, 50);
    ticks_tell_idle(&ticks, 8600); /* with the rest of before */
    assert_counts(&ticks, 30, 0, 0, 0, 17);
    ticks_advance(&ticks, 60900);
    ticks_tell_idle(&ticks, 40000000); /* more than there can be */
    assert_counts(&ticks, 30, 0, 0, 0, 30);
    samples(&ticks, 61, 70);
    end(&ticks, 70500);
    assert_counts(&ticks, 40, 0, 0, 0, 30);
}

TEST(lost_samples_are_not_told_idle_as_well)
{
    struct ticks ticks;
    ticks_init(&ticks, PERIOD);
    ticks_start(&ticks, 0, false);
    samples(&ticks, 1, 10);
    ticks_lost(&ticks, 6);
    samples(&ticks, 21, 30);
    ticks_tell_idle(&ticks, 10000);
    assert_counts(&ticks, 20, 6, 0, 0, 4);
}

TEST(switch_records_can_be_given_up_and_taken_up_again)
{
    struct ticks ticks = begin(0);
    samples(&ticks, 1, 10);
    ticks_switch(&ticks, 10500, false, true);
    ticks_use_switches(&ticks, 15500, false); /* 11 to 15 idle */
    ticks_switch(&ticks, 16000, true, false); /* an old one */
    ticks_use_switches(&ticks, 19500, true);
    ticks_switch(&ticks, 20500, true, false); /* 16 to 20 in the dark */
    samples(&ticks, 22, 30);
    struct tick_counts counts = ticks_counts(&ticks);
    assert_int_equal(counts.idle, 5);
    assert_int_equal(counts.blind, 5);
    assert_int_equal(counts.missed, 1);
}

TEST(a_suspended_machine_misses_nothing)
{
    const uint64_t jump = 3600000000123;
    struct ticks ticks = begin(0);
    samples(&ticks, 1, 10);
    ticks_switch(&ticks, 10500, false, true);
    ticks_suspended(&ticks, jump);
    ticks_switch(&ticks, jump + 12500, true, false); /* 11, 12 */
    ticks_sample(&ticks, jump + 13000 + LATE);
    ticks_sample(&ticks, jump + 14000 + LATE);
    ticks_sample(&ticks, jump + 16000 + LATE);
    end(&ticks, jump + 16500);
    assert_counts(&ticks, 13, 0, 0, 1, 2);
    /* It is not taken for an ordinary gap that lies before it. */
    ticks = begin(0);
    samples(&ticks, 1, 2);
    ticks_suspended(&ticks, 50000);
    samples(&ticks, 5, 6);
    samples(&ticks, 57, 60);
    end(&ticks, 60500);
    assert_counts(&ticks, 8, 0, 0, 2, 0);
}

static uint64_t random_below(uint64_t bound)
{
    return bound == 0 ? 0 : (uint64_t)rand() % bound;
}

/* What a timer and a scheduler did, as it was, and as the records tell it. */
struct truth {
    uint64_t ticks, came, removed, idle, missed;
};

/*
 * A run of `tick_count` ticks of 250 us: idle by turns of up to `turn_ns`, samples late by 2 to 10
 * us, a tick that stands within 2 us of a switch delivered after it; one sample of `remove_one_in`
 * taken away; one tick of `miss_one_in` merged with the next.
 */
static struct truth simulate(struct ticks *ticks, uint64_t tick_count, uint64_t turn_ns,
                             uint64_t remove_one_in, uint64_t miss_one_in)
{
    const uint64_t period = 250000;
    const uint64_t phase = 77000 + random_below(period);
    struct truth truth = {.ticks = tick_count};
    uint64_t switch_ns = turn_ns == 0 ? UINT64_MAX : random_below(turn_ns) + 1000;
    bool is_idle = false;
    bool merged = false;
    ticks_init(ticks, period);
    ticks_start(ticks, phase + random_below(40000), true);
    for (uint64_t tick = 1; tick <= tick_count; tick++) {
        uint64_t tick_ns = phase + tick * period;
        uint64_t sample_ns = tick_ns + 2000 + random_below(8000);
        while (switch_ns <= tick_ns + 2000) {
            ticks_switch(ticks, switch_ns, is_idle, !is_idle);
            is_idle = !is_idle;
            sample_ns = sample_ns < switch_ns + 500 ? switch_ns + 500 : sample_ns;
            switch_ns += random_below(turn_ns) + 3000;
        }
        if (switch_ns <= sample_ns) {
            switch_ns = sample_ns + 1; /* the timer's interrupt comes first */
        }
        if (is_idle) {
            truth.idle++;
            merged = false;
        } else if (!merged && miss_one_in > 0 && random_below(miss_one_in) == 0) {
            merged = true;
            truth.missed++;
        } else if (remove_one_in > 0 && random_below(remove_one_in) == 0) {
            truth.removed++;
        } else {
            truth.came++;
            ticks_sample(ticks, sample_ns);
        }
        if (random_below(400) == 0) {
            ticks_advance(ticks, sample_ns < switch_ns ? sample_ns : switch_ns);
        }
    }
    ticks_end(ticks, phase + tick_count * period + period / 2);
    ticks_close(ticks);
    return truth;
}

static void assert_near(uint64_t found, uint64_t expected, uint64_t bound)
{
    assert_in_range(found + bound, expected, expected + 2 * bound);
}

TEST(a_timer_of_which_the_truth_is_known_is_told_truly)
{
    static const struct {
        uint64_t turn_ns, remove_one_in, miss_one_in;
    } cases[] = {
        {0, 0, 0},         {0, 100, 0},      {0, 0, 100},         {6000000, 0, 0},
        {6000000, 0, 50},  {500000, 0, 0},   {500000, 100, 0},    {40000, 0, 0},
        {900000, 100, 50}, {90000000, 0, 0}, {900000000, 30, 30},
    };
    srand(1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ticks ticks;
        struct truth truth = simulate(&ticks, 100000, cases[i].turn_ns, cases[i].remove_one_in,
                                      cases[i].miss_one_in);
        struct tick_counts counts = ticks_counts(&ticks);
        assert_int_equal(counts.samples, truth.came);
        /* A tenth of a percent of all ticks, of which there are two switches each at worst. */
        assert_near(counts.idle, truth.idle, 100);
        assert_near(counts.missed, truth.missed + truth.removed, 100);
    }
}
