/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Each tick of a run goes to one term. The first stories are texts, in ticks of 1000 ns that stand
 * at 1000 k; the last ones are made by a timer of which the truth is known.
 */
#include "ticks.h"
#include "unit_test.h"

#define PERIOD 1000
#define LATE   5 /* between a tick and its sample */

static void start(struct ticks *ticks, uint64_t time_ns)
{
    ticks_start(ticks, time_ns, true);
}

static void start_blind(struct ticks *ticks, uint64_t time_ns)
{
    ticks_start(ticks, time_ns, false);
}

static void end(struct ticks *ticks, uint64_t time_ns)
{
    ticks_end(ticks, time_ns);
    ticks_close(ticks);
}

static void sleep_at(struct ticks *ticks, uint64_t time_ns)
{
    ticks_switch(ticks, time_ns, false, true);
}

static void wake(struct ticks *ticks, uint64_t time_ns)
{
    ticks_switch(ticks, time_ns, true, false);
}

static void switch_tasks(struct ticks *ticks, uint64_t time_ns)
{
    ticks_switch(ticks, time_ns, false, false);
}

static void lose_switches(struct ticks *ticks, uint64_t unused)
{
    (void)unused;
    ticks_switches_lost(ticks);
}

static void give_up_switches(struct ticks *ticks, uint64_t time_ns)
{
    ticks_use_switches(ticks, time_ns, false);
}

static void take_up_switches(struct ticks *ticks, uint64_t time_ns)
{
    ticks_use_switches(ticks, time_ns, true);
}

/* The events of a story: a word and a time or a number. */
static const struct {
    const char *word;
    void (*happen)(struct ticks *ticks, uint64_t number);
} events[] = {
    {"start", start},
    {"start-blind", start_blind}, /* without switch records */
    {"sample", ticks_sample},
    {"sleep", sleep_at},
    {"wake", wake},
    {"switch", switch_tasks},
    {"lost", ticks_lost},
    {"switches-lost", lose_switches},
    {"switches-off", give_up_switches},
    {"switches-on", take_up_switches},
    {"throttle", ticks_throttle},
    {"unthrottle", ticks_unthrottle},
    {"advance", ticks_advance},
    {"told-idle", ticks_tell_idle},
    {"suspended", ticks_suspended},
    {"ending", ticks_end}, /* and what came before may be told yet */
    {"end", end},
};

/* Samples of the ticks from `first` to `last`. */
static void samples(struct ticks *ticks, uint64_t first, uint64_t last)
{
    for (uint64_t tick = first; tick <= last; tick++) {
        ticks_sample(ticks, tick * PERIOD + LATE);
    }
}

static void idle(struct ticks *ticks, uint64_t from_ns, uint64_t to_ns)
{
    sleep_at(ticks, from_ns);
    wake(ticks, to_ns);
}

/* Plays "WORD NUMBER WORD NUMBER-NUMBER ..."; two numbers are of `samples` or `idle`. */
static void play(struct ticks *ticks, const char *text)
{
    char word[16];
    int used = 0;
    for (; sscanf(text, " %15[a-z-]%n", word, &used) == 1; text += used) {
        char *end = NULL;
        text += used;
        const uint64_t first = strtoul(text, &end, 10);
        const uint64_t last = *end == '-' ? strtoul(end + 1, &end, 10) : 0;
        used = (int)(end - text);
        if (last > 0) {
            (strcmp(word, "samples") == 0 ? samples : idle)(ticks, first, last);
            continue;
        }
        size_t i = 0;
        while (strcmp(events[i].word, word) != 0) {
            i++;
            assert_true(i < COUNT_OF(events));
        }
        events[i].happen(ticks, first);
    }
    assert_string_equal(text, "");
}

/* "NUMBER TERM ..." of what was counted. */
static void expect_counts(const struct ticks *ticks, const char *expected)
{
    const struct tick_counts counts = ticks_counts(ticks);
    const struct {
        uint64_t count;
        const char *term;
    } terms[] = {
        {counts.samples, "samples"}, {counts.lost, "lost"}, {counts.throttled, "throttled"},
        {counts.missed, "missed"},   {counts.idle, "idle"}, {counts.idle_told, "told"},
        {counts.blind, "blind"},
    };
    char text[128] = "";
    for (size_t i = 0, used = 0; i < COUNT_OF(terms); i++) {
        if (terms[i].count > 0) {
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%d %s",
                                     used == 0 ? "" : " ", (int)terms[i].count, terms[i].term);
        }
    }
    assert_string_equal(text, expected);
}

struct chapter {
    const char *events, *counts;
};

static void tell(const struct chapter *chapters, size_t count)
{
    struct ticks ticks;
    ticks_init(&ticks, PERIOD);
    for (size_t i = 0; i < count; i++) {
        play(&ticks, chapters[i].events);
        expect_counts(&ticks, chapters[i].counts);
    }
}

#define STORY(claim, ...)                                                                          \
    TEST(claim)                                                                                    \
    {                                                                                              \
        tell(ROWS_OF(struct chapter, __VA_ARGS__));                                                \
    }

STORY(a_busy_cpu_has_samples_alone, {"start 0 samples 1-100 end 100500", "100 samples"})
STORY(a_gap_that_nothing_explains_was_missed,
      {"start 0 samples 1-10 samples 12-20 samples 25-30", "25 samples 5 missed"},
      /* One that came late, when the next was due, and the next in time. */
      {"sample 31900 samples 32-40", "35 samples 5 missed"},
      /* One so late that it stands for two. */
      {"sample 42100 samples 43-80", "74 samples 6 missed"}, {"end 80500", "74 samples 6 missed"})
STORY(ticks_before_the_first_sample_belong_to_the_run,
      {"start 0 samples 4-10", "7 samples 3 missed"})

STORY(ticks_after_the_last_sample_were_missed,
      {"start 0 samples 1-10 end 20500", "10 samples 10 missed"})
STORY(a_program_that_ran_without_a_sample_was_missed,
      {"start 0 wake 3500 sleep 12500 end 20500", "9 missed 11 idle"})
STORY(the_end_forestalls_an_interrupt_that_is_due, {"start 0 samples 1-10 end 11040", "10 samples"})
STORY(a_loss_explains_ticks_at_the_end,
      {"start 0 samples 1-10 lost 4 end 20500", "10 samples 4 lost 6 missed"})
STORY(a_throttle_explains_ticks_at_the_end,
      {"start 0 samples 1-10 throttle 15000 end 20000", "10 samples 5 throttled 5 missed"})
STORY(blind_time_explains_ticks_at_the_end,
      {"start 0 samples 1-10 switches-lost end 20500", "10 samples 10 blind"})

/* 11 to 15 are idle; 16 to 20 had samples that were lost; up to 30 the CPU is throttled, whatever
 * it does; 4 of 31 to 35 were lost; 36 to 39 are idle. The five lost ones of the first part are
 * told of by the second's record: each part is short by as many or has too many, and what is
 * missing is not made up. */
STORY(losses_throttles_and_idleness_share_one_gap,
      {"start 0 samples 1-10 idle 10500-15500 throttle 20003 idle 22000-24000 unthrottle 30003 "
       "lost 4 idle 35500-39500 samples 41-50 end 50500",
       "20 samples 4 lost 10 throttled 7 missed 9 idle"})
STORY(a_loss_answers_for_its_gap, {"start 0 samples 1-10 idle 14500-16500 lost 7 samples 21-30",
                                   "20 samples 7 lost 1 missed 2 idle"})

STORY(
    a_throttle_has_no_ticks_and_the_timer_begins_anew,
    {"start 0 samples 1-9 throttle 10004 samples 10-10 unthrottle 15404 sample 16409 sample 17409 "
     "sample 18409",
     "13 samples 5 throttled"},
    {"throttle 19404 sample 19408 advance 23000", "14 samples 9 throttled"},
    {"end 29404", "14 samples 15 throttled"})
STORY(a_throttle_whose_end_was_lost_ends_before_the_next_sample,
      {"start 0 throttle 1004 sample 1005 sample 9005 sample 10005 end 10500",
       "3 samples 7 throttled"})
/* 3 to 5, and the throttle. */
STORY(a_throttle_whose_begin_was_lost_is_a_loss,
      {"start 0 samples 1-2 lost 4 unthrottle 5905 sample 6910 end 7000", "3 samples 4 lost"})

STORY(a_session_that_starts_idle_has_idle_ticks_from_its_start,
      {"start 0 advance 5000 wake 7500 samples 8-10 end 10500", "3 samples 7 idle"})
STORY(a_session_that_starts_busy_has_none,
      {"start 0 switch 7500 samples 8-10", "3 samples 7 missed"})
STORY(a_switch_before_the_start_counts_from_the_start,
      {"start 10000 sleep 9000 advance 14500", "4 idle"})
STORY(a_cpu_of_which_nothing_is_heard_was_idle_throughout, {"start 0 end 100500", "100 idle"})
STORY(a_cpu_of_which_a_loss_is_heard_was_not, {"start 0 lost 60 end 100500", "60 lost 100 blind"})
STORY(idleness_lasts_to_the_end_and_no_longer,
      {"start 0 samples 1-10 sleep 10500 ending 20500 wake 30000 sleep 31000 end 20500",
       "10 samples 10 idle"})
STORY(a_pause_is_in_no_term,
      {"start 0 samples 1-10 sleep 10500 end 12500 wake 40000 sleep 50000 start 60300 wake 62800 "
       "sample 63305 sample 64305 end 64800",
       "12 samples 4 idle"})

/* 11 and 12 are idle; 13, 14, 17 to 19 and 21 to 24 are in the dark, of which 2000 ns are known. A
 * switch record ends the dark. What is told is no more than what is in it. */
STORY(lost_switch_records_leave_their_time_to_another_source,
      {"start 0 samples 1-10 idle 10500-12500 switches-lost samples 15-16 samples 20-20 "
       "advance 24900",
       "13 samples 2 idle 9 blind"},
      {"told-idle 7000", "13 samples 7 idle 5 told 9 blind"},
      {"switch 24900 samples 27-30 idle 30500-33500 samples 34-40",
       "24 samples 2 missed 10 idle 5 told 9 blind"},
      {"told-idle 1000000000", "24 samples 2 missed 10 idle 5 told 9 blind"})
/* The switch may be of a foreign task. What is told goes with the rest of before, and is at last
 * more than there can be. */
STORY(without_switch_records_all_is_told_by_another_source,
      {"start-blind 0 samples 1-10 idle 10500-19500 told-idle 0 samples 21-30 told-idle 8600",
       "20 samples 8 idle 8 told 10 blind"},
      {"samples 41-50 told-idle 8600", "30 samples 17 idle 17 told 20 blind"},
      {"advance 60900 told-idle 40000000", "30 samples 30 idle 30 told 30 blind"},
      {"samples 61-70 end 70500", "40 samples 30 idle 30 told 30 blind"})
STORY(one_tick_can_be_told_idle, {"start-blind 0 samples 1-10 samples 12-20 told-idle 1000",
                                  "19 samples 1 idle 1 told 1 blind"})
STORY(lost_samples_are_not_told_idle_as_well,
      {"start-blind 0 samples 1-10 lost 6 samples 21-30 told-idle 10000",
       "20 samples 6 lost 4 idle 4 told 4 blind"})
/* 11 to 15 are idle, and 16 to 20 in the dark; the first waking is an old one. */
STORY(
    switch_records_can_be_given_up_and_taken_up_again,
    {"start 0 samples 1-10 sleep 10500 switches-off 15500 wake 16000 switches-on 19500 wake 20500 "
     "samples 22-30",
     "19 samples 1 missed 5 idle 5 blind"})

STORY(a_suspended_machine_misses_nothing,
      {"start 0 samples 1-10 sleep 10500 suspended 3600000000123 wake 3600000012623 "
       "sample 3600000013128 sample 3600000014128 sample 3600000016128 end 3600000016623",
       "13 samples 1 missed 2 idle"})
STORY(a_suspension_is_not_taken_for_a_gap_before_it,
      {"start 0 samples 1-2 suspended 50000 samples 5-6 samples 57-60 end 60500",
       "8 samples 2 missed"})

/* Idle from just after one tick to just before another, and every other way to stand. */
TEST(idle_ticks_are_those_within)
{
    static const struct chapter cases[] = {
        {"10010-10990 samples 11-20", "20 samples"},                 /* between two ticks */
        {"10010-13500 samples 14-20", "17 samples 3 idle"},          /* over 11 to 13 */
        {"10900-13006 samples 14-20", "17 samples 3 idle"},          /* 13 is as late as samples */
        {"11030-13500 samples 14-20", "17 samples 3 idle"},          /* 11 found interrupts off */
        {"11500-13500 samples 14-20", "17 samples 1 missed 2 idle"}, /* 11 was none of it */
        {"10500-11500 samples 14-20", "17 samples 2 missed 1 idle"}, /* nor 12 and 13 */
        {"10500-13001 samples 13-20", "18 samples 2 idle"}, /* 13 woke amid the switch: a sample */
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[128];
        (void)snprintf(text, sizeof text, "start 0 samples 1-10 idle %s end 20500",
                       cases[i].events);
        tell(&(const struct chapter){text, cases[i].counts}, 1);
    }
}

static struct ticks begin(uint64_t period_ns)
{
    struct ticks ticks;
    ticks_init(&ticks, period_ns);
    ticks_start(&ticks, 0, true);
    return ticks;
}

TEST(missed_ticks_between_close_samples_are_crowded)
{
    const uint64_t period_ns = 10000;
    struct ticks ticks = begin(period_ns);
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

TEST(many_short_idle_times_in_one_gap_add_up)
{
    struct ticks ticks = begin(PERIOD);
    samples(&ticks, 1, 10);
    for (uint64_t tick = 11; tick < 100; tick++) {
        idle(&ticks, tick * PERIOD - 300, tick * PERIOD + 300);
        idle(&ticks, tick * PERIOD + 400, tick * PERIOD + 600);
    }
    samples(&ticks, 100, 110);
    expect_counts(&ticks, "21 samples 89 idle");
}

TEST(a_horizon_amid_idleness_changes_nothing)
{
    for (uint64_t step = 1; step < 3000; step += 7) {
        struct ticks ticks = begin(PERIOD);
        play(&ticks, "samples 1-10 sleep 10500");
        for (uint64_t time = 10501; time < 20500; time += step) {
            ticks_advance(&ticks, time);
            assert_int_equal(ticks_counts(&ticks).idle, (time - LATE - 1) / PERIOD - 10);
        }
        play(&ticks, "wake 20500 samples 21-30");
        expect_counts(&ticks, "20 samples 10 idle");
    }
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
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
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
