/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Each tick of a run goes to one term. The first stories are told by hand, in ticks of 1000 ns that
 * stand at 1000 k; the last ones are made by a timer of which the truth is known.
 */
#include "tick_ledger.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define PERIOD 1000
#define LATE   5 /* between a tick and its sample */

static struct tick_ledger begin(uint64_t time_ns)
{
    struct tick_ledger ledger;
    tick_ledger_init(&ledger, PERIOD);
    tick_ledger_start(&ledger, time_ns, true);
    return ledger;
}

/* Samples of the ticks from `first` to `last`. */
static void samples(struct tick_ledger *ledger, uint64_t first, uint64_t last)
{
    for (uint64_t tick = first; tick <= last; tick++) {
        tick_ledger_sample(ledger, tick * PERIOD + LATE);
    }
}

static void idle(struct tick_ledger *ledger, uint64_t from_ns, uint64_t to_ns)
{
    tick_ledger_switch(ledger, from_ns, false, true);
    tick_ledger_switch(ledger, to_ns, true, false);
}

static void end(struct tick_ledger *ledger, uint64_t time_ns)
{
    tick_ledger_end(ledger, time_ns);
    tick_ledger_close(ledger);
}

static void assert_counts(const struct tick_ledger *ledger, uint64_t came, uint64_t lost,
                          uint64_t throttled, uint64_t missed, uint64_t idle_count)
{
    struct tick_counts counts = tick_ledger_counts(ledger);
    assert_int_equal(counts.samples, came);
    assert_int_equal(counts.lost, lost);
    assert_int_equal(counts.throttled, throttled);
    assert_int_equal(counts.missed, missed);
    assert_int_equal(counts.idle, idle_count);
}

static void a_busy_cpu_has_samples_alone(void **state)
{
    struct tick_ledger ledger = begin(0);
    (void)state;
    samples(&ledger, 1, 100);
    end(&ledger, 100500);
    assert_counts(&ledger, 100, 0, 0, 0, 0);
}

static void a_gap_that_nothing_explains_was_missed(void **state)
{
    struct tick_ledger ledger = begin(0);
    (void)state;
    samples(&ledger, 1, 10);
    samples(&ledger, 12, 20);
    samples(&ledger, 25, 30);
    assert_counts(&ledger, 25, 0, 0, 5, 0);
    /* One that came late, when the next was due, and the next in time. */
    tick_ledger_sample(&ledger, 31900);
    samples(&ledger, 32, 40);
    assert_counts(&ledger, 35, 0, 0, 5, 0);
    /* One so late that it stands for two. */
    tick_ledger_sample(&ledger, 42100);
    samples(&ledger, 43, 80);
    assert_counts(&ledger, 74, 0, 0, 6, 0);
    end(&ledger, 80500);
    assert_counts(&ledger, 74, 0, 0, 6, 0);
}

static void missed_ticks_between_close_samples_are_crowded(void **state)
{
    struct tick_ledger ledger;
    const uint64_t period_ns = 10000;
    (void)state;
    tick_ledger_init(&ledger, period_ns);
    tick_ledger_start(&ledger, 0, true);
    for (uint64_t i = 1; i <= 99; i += 2) {
        tick_ledger_sample(&ledger, i * period_ns);
    }
    assert_int_equal(tick_ledger_counts(&ledger).missed, 49);
    assert_int_equal(tick_ledger_counts(&ledger).crowded, 49);
    /* A hypervisor's pause is not of this kind, and neither is one of more than 100 us. */
    tick_ledger_sample(&ledger, 110 * period_ns);
    tick_ledger_sample(&ledger, 510 * period_ns);
    assert_int_equal(tick_ledger_counts(&ledger).missed, 49 + 10 + 399);
    assert_int_equal(tick_ledger_counts(&ledger).crowded, 49);
}

static void ticks_before_the_first_sample_belong_to_the_run(void **state)
{
    struct tick_ledger ledger = begin(0);
    (void)state;
    samples(&ledger, 4, 10);
    assert_counts(&ledger, 7, 0, 0, 3, 0);
}

static void what_comes_after_the_last_sample_is_not_called_missed(void **state)
{
    struct tick_ledger ledger = begin(0);
    (void)state;
    samples(&ledger, 1, 10);
    end(&ledger, 20500);
    assert_counts(&ledger, 10, 0, 0, 0, 0);
}

/* Idle from just after one tick to just before another, and every other way to stand. */
static void idle_ticks_are_those_within(void **state)
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
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tick_ledger ledger = begin(0);
        samples(&ledger, 1, 10);
        idle(&ledger, cases[i].from_ns, cases[i].to_ns);
        samples(&ledger, cases[i].next_sample, 20);
        end(&ledger, 20500);
        assert_counts(&ledger, 10 + 21 - cases[i].next_sample, 0, 0, cases[i].missed,
                      cases[i].idle);
    }
}

static void many_short_idle_times_in_one_gap_add_up(void **state)
{
    struct tick_ledger ledger = begin(0);
    (void)state;
    samples(&ledger, 1, 10);
    for (uint64_t tick = 11; tick < 100; tick++) {
        idle(&ledger, tick * PERIOD - 300, tick * PERIOD + 300);
        idle(&ledger, tick * PERIOD + 400, tick * PERIOD + 600);
    }
    samples(&ledger, 100, 110);
    assert_counts(&ledger, 21, 0, 0, 0, 89);
}

static void losses_throttles_and_idleness_share_one_gap(void **state)
{
    struct tick_ledger ledger = begin(0);
    (void)state;
    samples(&ledger, 1, 10);
    idle(&ledger, 10500, 15500);          /* 11 to 15 */
    tick_ledger_throttle(&ledger, 20003); /* 16 to 20 had samples that were lost */
    idle(&ledger, 22000, 24000);          /* throttled, whatever the CPU does */
    tick_ledger_unthrottle(&ledger, 30003);
    tick_ledger_lost(&ledger, 4); /* of 31 to 35 */
    idle(&ledger, 35500, 39500);  /* 36 to 39 */
    samples(&ledger, 41, 50);
    end(&ledger, 50500);
    /* The five lost ones of the first part are told of by the second's record: each part is short
     * by as many or has too many, and what is missing is not made up. */
    struct tick_counts counts = tick_ledger_counts(&ledger);
    assert_int_equal(counts.idle, 9);
    assert_int_equal(counts.throttled, 10);
    assert_int_equal(counts.lost, 4);
    assert_int_equal(counts.missed, 5 + 2);
}

static void a_loss_answers_for_its_gap(void **state)
{
    struct tick_ledger ledger = begin(0);
    (void)state;
    samples(&ledger, 1, 10);
    idle(&ledger, 14500, 16500);
    tick_ledger_lost(&ledger, 7);
    samples(&ledger, 21, 30);
    assert_counts(&ledger, 20, 7, 0, 1, 2);
}

static void a_throttle_has_no_ticks_and_the_timer_begins_anew(void **state)
{
    struct tick_ledger ledger = begin(0);
    (void)state;
    samples(&ledger, 1, 9);
    tick_ledger_throttle(&ledger, 10004);
    samples(&ledger, 10, 10);
    tick_ledger_unthrottle(&ledger, 15404);
    for (uint64_t tick = 1; tick <= 10; tick++) {
        tick_ledger_sample(&ledger, 15404 + tick * PERIOD + LATE);
    }
    assert_counts(&ledger, 20, 0, 5, 0, 0);
    tick_ledger_throttle(&ledger, 26404);
    tick_ledger_sample(&ledger, 26408);
    tick_ledger_advance(&ledger, 30000);
    assert_counts(&ledger, 21, 0, 9, 0, 0);
    end(&ledger, 36404);
    assert_counts(&ledger, 21, 0, 15, 0, 0);
}

static void a_throttle_whose_end_was_lost_ends_before_the_next_sample(void **state)
{
    struct tick_ledger ledger = begin(0);
    (void)state;
    tick_ledger_throttle(&ledger, 1004);
    tick_ledger_sample(&ledger, 1005);
    tick_ledger_sample(&ledger, 9005);
    tick_ledger_sample(&ledger, 10005);
    end(&ledger, 10500);
    assert_counts(&ledger, 3, 0, 7, 0, 0);
    ledger = begin(0);
    samples(&ledger, 1, 2);
    tick_ledger_lost(&ledger, 4); /* 3 to 5, and the throttle */
    tick_ledger_unthrottle(&ledger, 5905);
    tick_ledger_sample(&ledger, 6910);
    end(&ledger, 7000);
    assert_counts(&ledger, 3, 4, 0, 0, 0);
}

static void a_session_that_starts_idle_has_idle_ticks_from_its_start(void **state)
{
    struct tick_ledger ledger = begin(0);
    (void)state;
    tick_ledger_advance(&ledger, 5000);
    tick_ledger_switch(&ledger, 7500, true, false);
    samples(&ledger, 8, 10);
    end(&ledger, 10500);
    assert_counts(&ledger, 3, 0, 0, 0, 7);
    /* Who was not idle had none. */
    ledger = begin(0);
    tick_ledger_switch(&ledger, 7500, false, false);
    samples(&ledger, 8, 10);
    assert_counts(&ledger, 3, 0, 0, 7, 0);
    /* The switch to idle was recorded before the start. */
    ledger = begin(10000);
    tick_ledger_switch(&ledger, 9000, false, true);
    tick_ledger_advance(&ledger, 14500);
    assert_counts(&ledger, 0, 0, 0, 0, 4);
}

static void a_cpu_of_which_nothing_is_heard_was_idle_throughout(void **state)
{
    struct tick_ledger ledger = begin(0);
    (void)state;
    end(&ledger, 100500);
    assert_counts(&ledger, 0, 0, 0, 0, 100);
    ledger = begin(0);
    tick_ledger_lost(&ledger, 60);
    end(&ledger, 100500);
    assert_counts(&ledger, 0, 60, 0, 0, 0);
}

static void idleness_lasts_to_the_end_and_no_longer(void **state)
{
    struct tick_ledger ledger = begin(0);
    (void)state;
    samples(&ledger, 1, 10);
    tick_ledger_switch(&ledger, 10500, false, true);
    tick_ledger_end(&ledger, 20500);
    tick_ledger_switch(&ledger, 30000, true, false);
    tick_ledger_switch(&ledger, 31000, false, true);
    tick_ledger_close(&ledger);
    assert_counts(&ledger, 10, 0, 0, 0, 10);
}

static void a_pause_is_in_no_term(void **state)
{
    struct tick_ledger ledger = begin(0);
    (void)state;
    samples(&ledger, 1, 10);
    tick_ledger_switch(&ledger, 10500, false, true);
    end(&ledger, 12500);
    tick_ledger_switch(&ledger, 40000, true, false);
    tick_ledger_switch(&ledger, 50000, false, true);
    tick_ledger_start(&ledger, 60300, true);
    tick_ledger_switch(&ledger, 62800, true, false);
    for (uint64_t tick = 3; tick <= 10; tick++) {
        tick_ledger_sample(&ledger, 60300 + tick * PERIOD + LATE);
    }
    end(&ledger, 70800);
    assert_counts(&ledger, 18, 0, 0, 0, 4);
}

static void a_horizon_amid_idleness_changes_nothing(void **state)
{
    (void)state;
    for (uint64_t step = 1; step < 3000; step += 7) {
        struct tick_ledger ledger = begin(0);
        samples(&ledger, 1, 10);
        tick_ledger_switch(&ledger, 10500, false, true);
        for (uint64_t time = 10501; time < 20500; time += step) {
            tick_ledger_advance(&ledger, time);
            assert_int_equal(tick_ledger_counts(&ledger).idle, (time - LATE - 1) / PERIOD - 10);
        }
        tick_ledger_switch(&ledger, 20500, true, false);
        samples(&ledger, 21, 30);
        assert_counts(&ledger, 20, 0, 0, 0, 10);
    }
}

static void lost_switch_records_leave_their_time_to_another_source(void **state)
{
    struct tick_ledger ledger = begin(0);
    (void)state;
    samples(&ledger, 1, 10);
    idle(&ledger, 10500, 12500); /* 11, 12 */
    tick_ledger_switches_lost(&ledger);
    samples(&ledger, 15, 16);            /* 13, 14 are in the dark */
    samples(&ledger, 20, 20);            /* and 17 to 19 */
    tick_ledger_advance(&ledger, 24900); /* and 21 to 24 */
    struct tick_counts counts = tick_ledger_counts(&ledger);
    assert_int_equal(counts.idle, 2);
    assert_int_equal(counts.missed, 0);
    assert_int_equal(counts.blind, 9);
    /* 2000 ns of it are known. */
    tick_ledger_tell_idle(&ledger, 2000 + 5000);
    counts = tick_ledger_counts(&ledger);
    assert_int_equal(counts.idle, 7);
    assert_int_equal(counts.idle_told, 5);
    /* A switch record ends the dark. */
    tick_ledger_switch(&ledger, 24900, false, false);
    samples(&ledger, 27, 30);
    idle(&ledger, 30500, 33500);
    samples(&ledger, 34, 40);
    counts = tick_ledger_counts(&ledger);
    assert_int_equal(counts.missed, 2);
    assert_int_equal(counts.blind, 9);
    assert_int_equal(counts.idle, 10);
    /* What is told is no more than what is in the dark. */
    tick_ledger_tell_idle(&ledger, 1000000000);
    assert_int_equal(tick_ledger_counts(&ledger).idle, 10 + 0);
}

static void without_switch_records_all_is_told_by_another_source(void **state)
{
    struct tick_ledger ledger;
    (void)state;
    tick_ledger_init(&ledger, PERIOD);
    tick_ledger_start(&ledger, 0, false);
    samples(&ledger, 1, 10);
    idle(&ledger, 10500, 19500); /* of a foreign task, as it may be */
    tick_ledger_tell_idle(&ledger, 0);
    samples(&ledger, 21, 30);
    tick_ledger_tell_idle(&ledger, 8600);
    assert_counts(&ledger, 20, 0, 0, 0, 8);
    samples(&ledger, 41, 50);
    tick_ledger_tell_idle(&ledger, 8600); /* with the rest of before */
    assert_counts(&ledger, 30, 0, 0, 0, 17);
    tick_ledger_advance(&ledger, 60900);
    tick_ledger_tell_idle(&ledger, 40000000); /* more than there can be */
    assert_counts(&ledger, 30, 0, 0, 0, 30);
    samples(&ledger, 61, 70);
    end(&ledger, 70500);
    assert_counts(&ledger, 40, 0, 0, 0, 30);
}

static void lost_samples_are_not_told_idle_as_well(void **state)
{
    struct tick_ledger ledger;
    (void)state;
    tick_ledger_init(&ledger, PERIOD);
    tick_ledger_start(&ledger, 0, false);
    samples(&ledger, 1, 10);
    tick_ledger_lost(&ledger, 6);
    samples(&ledger, 21, 30);
    tick_ledger_tell_idle(&ledger, 10000);
    assert_counts(&ledger, 20, 6, 0, 0, 4);
}

static void switch_records_can_be_given_up_and_taken_up_again(void **state)
{
    struct tick_ledger ledger = begin(0);
    (void)state;
    samples(&ledger, 1, 10);
    tick_ledger_switch(&ledger, 10500, false, true);
    tick_ledger_use_switches(&ledger, 15500, false); /* 11 to 15 idle */
    tick_ledger_switch(&ledger, 16000, true, false); /* an old one */
    tick_ledger_use_switches(&ledger, 19500, true);
    tick_ledger_switch(&ledger, 20500, true, false); /* 16 to 20 in the dark */
    samples(&ledger, 22, 30);
    struct tick_counts counts = tick_ledger_counts(&ledger);
    assert_int_equal(counts.idle, 5);
    assert_int_equal(counts.blind, 5);
    assert_int_equal(counts.missed, 1);
}

static void a_suspended_machine_misses_nothing(void **state)
{
    const uint64_t jump = 3600000000123;
    struct tick_ledger ledger = begin(0);
    (void)state;
    samples(&ledger, 1, 10);
    tick_ledger_switch(&ledger, 10500, false, true);
    tick_ledger_suspended(&ledger, jump);
    tick_ledger_switch(&ledger, jump + 12500, true, false); /* 11, 12 */
    tick_ledger_sample(&ledger, jump + 13000 + LATE);
    tick_ledger_sample(&ledger, jump + 14000 + LATE);
    tick_ledger_sample(&ledger, jump + 16000 + LATE);
    end(&ledger, jump + 16500);
    assert_counts(&ledger, 13, 0, 0, 1, 2);
    /* It is not taken for an ordinary gap that lies before it. */
    ledger = begin(0);
    samples(&ledger, 1, 2);
    tick_ledger_suspended(&ledger, 50000);
    samples(&ledger, 5, 6);
    samples(&ledger, 57, 60);
    end(&ledger, 60500);
    assert_counts(&ledger, 8, 0, 0, 2, 0);
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
 * A run of `ticks` ticks of 250 us: idle by turns of up to `turn_ns`, samples late by 2 to 10 us, a
 * tick that stands within 2 us of a switch delivered after it; one sample of `remove_one_in` taken
 * away; one tick of `miss_one_in` merged with the next.
 */
static struct truth simulate(struct tick_ledger *ledger, uint64_t ticks, uint64_t turn_ns,
                             uint64_t remove_one_in, uint64_t miss_one_in)
{
    const uint64_t period = 250000;
    const uint64_t phase = 77000 + random_below(period);
    struct truth truth = {.ticks = ticks};
    uint64_t switch_ns = turn_ns == 0 ? UINT64_MAX : random_below(turn_ns) + 1000;
    bool is_idle = false;
    bool merged = false;
    tick_ledger_init(ledger, period);
    tick_ledger_start(ledger, phase + random_below(40000), true);
    for (uint64_t tick = 1; tick <= ticks; tick++) {
        uint64_t tick_ns = phase + tick * period;
        uint64_t sample_ns = tick_ns + 2000 + random_below(8000);
        while (switch_ns <= tick_ns + 2000) {
            tick_ledger_switch(ledger, switch_ns, is_idle, !is_idle);
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
            tick_ledger_sample(ledger, sample_ns);
        }
        if (random_below(400) == 0) {
            tick_ledger_advance(ledger, sample_ns < switch_ns ? sample_ns : switch_ns);
        }
    }
    tick_ledger_end(ledger, phase + ticks * period + period / 2);
    tick_ledger_close(ledger);
    return truth;
}

static void assert_near(uint64_t found, uint64_t expected, uint64_t bound)
{
    assert_in_range(found + bound, expected, expected + 2 * bound);
}

static void a_timer_of_which_the_truth_is_known_is_told_truly(void **state)
{
    static const struct {
        uint64_t turn_ns, remove_one_in, miss_one_in;
    } cases[] = {
        {0, 0, 0},         {0, 100, 0},      {0, 0, 100},         {6000000, 0, 0},
        {6000000, 0, 50},  {500000, 0, 0},   {500000, 100, 0},    {40000, 0, 0},
        {900000, 100, 50}, {90000000, 0, 0}, {900000000, 30, 30},
    };
    (void)state;
    srand(1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tick_ledger ledger;
        struct truth truth = simulate(&ledger, 100000, cases[i].turn_ns, cases[i].remove_one_in,
                                      cases[i].miss_one_in);
        struct tick_counts counts = tick_ledger_counts(&ledger);
        assert_int_equal(counts.samples, truth.came);
        /* A tenth of a percent of all ticks, of which there are two switches each at worst. */
        assert_near(counts.idle, truth.idle, 100);
        assert_near(counts.missed, truth.missed + truth.removed, 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_busy_cpu_has_samples_alone),
        cmocka_unit_test(a_gap_that_nothing_explains_was_missed),
        cmocka_unit_test(missed_ticks_between_close_samples_are_crowded),
        cmocka_unit_test(ticks_before_the_first_sample_belong_to_the_run),
        cmocka_unit_test(what_comes_after_the_last_sample_is_not_called_missed),
        cmocka_unit_test(idle_ticks_are_those_within),
        cmocka_unit_test(many_short_idle_times_in_one_gap_add_up),
        cmocka_unit_test(losses_throttles_and_idleness_share_one_gap),
        cmocka_unit_test(a_loss_answers_for_its_gap),
        cmocka_unit_test(a_throttle_has_no_ticks_and_the_timer_begins_anew),
        cmocka_unit_test(a_throttle_whose_end_was_lost_ends_before_the_next_sample),
        cmocka_unit_test(a_session_that_starts_idle_has_idle_ticks_from_its_start),
        cmocka_unit_test(a_cpu_of_which_nothing_is_heard_was_idle_throughout),
        cmocka_unit_test(idleness_lasts_to_the_end_and_no_longer),
        cmocka_unit_test(a_pause_is_in_no_term),
        cmocka_unit_test(a_horizon_amid_idleness_changes_nothing),
        cmocka_unit_test(lost_switch_records_leave_their_time_to_another_source),
        cmocka_unit_test(without_switch_records_all_is_told_by_another_source),
        cmocka_unit_test(lost_samples_are_not_told_idle_as_well),
        cmocka_unit_test(switch_records_can_be_given_up_and_taken_up_again),
        cmocka_unit_test(a_suspended_machine_misses_nothing),
        cmocka_unit_test(a_timer_of_which_the_truth_is_known_is_told_truly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
