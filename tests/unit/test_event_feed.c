/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What records and readings of an event become in the books: losses, times that nothing was
 * counted, and the limit to an event that brings too many samples.
 */
#include "cleanup.h"
#include "clock.h"
#include "event_feed.h"
#include "unit_test.h"

static void take(struct event_feed *feed, enum perf_record_kind kind, uint64_t time_ns)
{
    struct perf_record record = {.kind = kind, .time_ns = time_ns};
    if (kind == PERF_KIND_LOST) {
        record.lost.count = 7;
    }
    event_feed_take(feed, &record);
}

static struct books_event line_of(const struct event_feed *feed)
{
    struct books_event line = {0};
    event_feed_line(feed, &line);
    return line;
}

TEST(counts_what_was_lost_by_the_larger_of_two_counts)
{
    struct event_feed feed = {0};
    event_feed_start(&feed, 0);
    take(&feed, PERF_KIND_LOST, 1);
    take(&feed, PERF_KIND_LOST, 2);
    assert_int_equal(line_of(&feed).lost, 14);
    feed.kernel.lost_count = 20;
    assert_int_equal(line_of(&feed).lost, 20);
}

TEST(measures_for_how_long_the_kernel_stopped_it)
{
    struct event_feed feed = {0};
    event_feed_start(&feed, 100);
    take(&feed, PERF_KIND_THROTTLE, 1000);
    take(&feed, PERF_KIND_UNTHROTTLE, 1500);
    take(&feed, PERF_KIND_UNTHROTTLE, 1600); /* of none: another record was lost */
    take(&feed, PERF_KIND_THROTTLE, 2000);
    event_feed_end(&feed, 2200);
    assert_int_equal(line_of(&feed).throttled, 2);
    assert_int_equal(line_of(&feed).throttled_ns, 700);
    event_feed_start(&feed, 3000);
    event_feed_end(&feed, 4000);
    assert_int_equal(line_of(&feed).throttled_ns, 700);
}

/* 100 samples a second are 20 in a fifth of it. */
TEST(holds_back_an_event_for_the_rest_of_a_window)
{
    struct event_feed feed = {.rate_max_hz = 100};
    event_feed_start(&feed, NS_PER_S);
    for (uint64_t i = 0; i < 21; i++) {
        take(&feed, PERF_KIND_SAMPLE, NS_PER_S + i);
    }
    assert_int_equal(event_feed_judge(&feed, NS_PER_S + 1000), EVENT_KEEP);
    take(&feed, PERF_KIND_SAMPLE, NS_PER_S + 1000);
    assert_int_equal(event_feed_judge(&feed, NS_PER_S + 10000000), EVENT_DISABLE);
    assert_int_equal(event_feed_judge(&feed, NS_PER_S + 20000000), EVENT_KEEP);
    assert_int_equal(event_feed_judge(&feed, NS_PER_S + 199999999), EVENT_KEEP);
    assert_int_equal(event_feed_judge(&feed, NS_PER_S + 210000000), EVENT_ENABLE);
    assert_int_equal(line_of(&feed).held_back_ns, 200000000);
    assert_int_equal(event_feed_judge(&feed, NS_PER_S + 220000000), EVENT_KEEP);
    /* And in the next window, which has begun by then. */
    for (uint64_t i = 0; i < 22; i++) {
        take(&feed, PERF_KIND_SAMPLE, NS_PER_S + 230000000 + i);
    }
    assert_int_equal(event_feed_judge(&feed, NS_PER_S + 240000000), EVENT_DISABLE);
}

TEST(holds_back_until_the_end)
{
    struct event_feed feed = {.rate_max_hz = 1};
    event_feed_start(&feed, 5);
    take(&feed, PERF_KIND_SAMPLE, 6);
    take(&feed, PERF_KIND_SAMPLE, 7);
    assert_int_equal(event_feed_judge(&feed, 10), EVENT_DISABLE);
    event_feed_end(&feed, 110);
    assert_int_equal(line_of(&feed).held_back_ns, 100);
    /* It is on again with the next start. */
    event_feed_start(&feed, 1000);
    assert_int_equal(event_feed_judge(&feed, 1001), EVENT_KEEP);
    event_feed_end(&feed, 2000);
    assert_int_equal(line_of(&feed).held_back_ns, 100);
}

TEST(holds_nothing_back_without_a_limit)
{
    struct event_feed feed = {0};
    event_feed_start(&feed, 0);
    for (uint64_t i = 0; i < 100000; i++) {
        take(&feed, PERF_KIND_SAMPLE, i);
    }
    assert_int_equal(event_feed_judge(&feed, 100000), EVENT_KEEP);
}

/* A sample with two followers, of which one has counted something, is two. */
TEST(samples_of_followers_count_against_the_limit)
{
    struct event_feed feed = {.rate_max_hz = 100};
    const struct perf_record record = {.kind = PERF_KIND_SAMPLE,
                                       .sample = {.weight = 1, .followed = {2, 2, {7, 0}}}};
    event_feed_start(&feed, NS_PER_S);
    for (uint64_t i = 0; i < 10; i++) {
        event_feed_take(&feed, &record);
    }
    assert_int_equal(event_feed_judge(&feed, NS_PER_S + 1000), EVENT_KEEP);
    event_feed_take(&feed, &record);
    assert_int_equal(event_feed_judge(&feed, NS_PER_S + 2000), EVENT_DISABLE);
    assert_int_equal(line_of(&feed).held_weight, 11);
}

/* A leader has a part for each of its followers, and waits have one. */
TEST(events_have_equal_parts_of_the_rate)
{
    struct perf_source_config config = {.event_count = 4, .event_rate_max_hz = 1000};
    assert_int_equal(perf_source_rate_part_hz(&config, 1), 250);
    assert_int_equal(perf_source_rate_part_hz(&config, 3), 750);
    config.has_waits = true;
    assert_int_equal(perf_source_rate_part_hz(&config, 1), 200);
    assert_int_equal(perf_source_rate_part_hz(&config, 4), 800);
    config.event_count = 0;
    assert_int_equal(perf_source_rate_part_hz(&config, 1), 1000);
    config = (struct perf_source_config){.event_count = 3, .event_rate_max_hz = 2};
    assert_int_equal(perf_source_rate_part_hz(&config, 1), 1);
    config.event_rate_max_hz = 0;
    assert_int_equal(perf_source_rate_part_hz(&config, 1), 0);
}

/* It is off and on with its leader. */
TEST(a_follower_is_never_held_back)
{
    struct event_feed feed = {.rate_max_hz = 1};
    event_feed_start(&feed, NS_PER_S);
    for (uint64_t i = 0; i < 1000; i++) {
        event_feed_follow(&feed, 3);
    }
    assert_int_equal(event_feed_judge(&feed, NS_PER_S + 1000), EVENT_KEEP);
    assert_int_equal(line_of(&feed).held_weight, 3000);
}

TEST(prints_whose_follower_an_event_is)
{
    struct books_cpu cpu = {.is_known = true,
                            .idle_source = "",
                            .events = {{.counted = 90, .received = 3},
                                       {.counted = 70, .weight = 60, .received = 2, .kept = 2}}};
    const struct books books = {
        .period_ns = 1000,
        .cpus = &cpu,
        .cpu_count = 1,
        .totals_only = true,
        .events = {{.name = "cycles", .unit = "cycles", .period = 30},
                   {.name = "instructions", .unit = "instructions", .leader = "cycles"}},
        .event_count = 2,
    };
    cleanup_(freep) char *text = books_print(&books);
    assert_non_null(
        strstr(text, "{\"event\":\"cycles\",\"unit\":\"cycles\",\"period\":30,\"cpus\""));
    assert_non_null(strstr(text, "{\"event\":\"instructions\",\"unit\":\"instructions\","
                                 "\"period\":0,\"leader\":\"cycles\",\"cpus\":[],"
                                 "\"total\":{\"counted\":70,\"sampled\":60,\"unexplained\":10,"));
}

/* Two CPUs, one never online; an event that has a period and one that has a rate. */
TEST(prints_the_books_of_events)
{
    struct books_cpu cpus[3] = {
        {.cpu = 0,
         .is_known = true,
         .idle_source = "",
         .events = {{.counted = 1005,
                     .weight = 9,
                     .received = 9,
                     .lost = 1,
                     .kept = 5,
                     .filtered = 3,
                     .dropped = 1,
                     .enabled_ns = 10,
                     .running_ns = 10},
                    {.counted = 50,
                     .weight = 48,
                     .received = 2,
                     .lost = 1,
                     .kept = 2,
                     .throttled = 3,
                     .throttled_ns = 4,
                     .held_back_ns = 5,
                     .enabled_ns = 20,
                     .running_ns = 10}}},
        {.cpu = 1},
        {.cpu = 2,
         .is_known = true,
         .idle_source = "",
         .events = {{.counted = 500, .weight = 2, .held_weight = 3, .received = 2, .kept = 2}}},
    };
    const struct books books = {
        .period_ns = 1000,
        .cpus = cpus,
        .cpu_count = 3,
        .events = {{"page-faults", "faults", 100}, {"cycles:u", "cycles", 0}},
        .event_count = 2,
    };
    cleanup_(freep) char *text = books_print(&books);
    const char *events = strstr(text, ",\"events\":");
    assert_non_null(events);
#define COUNTS(counted, sampled, unexplained, received, lost, kept, filtered, dropped)             \
    "\"counted\":" #counted ",\"sampled\":" #sampled ",\"unexplained\":" #unexplained              \
    ",\"received\":" #received ",\"lost\":" #lost ",\"kept\":" #kept ",\"filtered\":" #filtered    \
    ",\"dropped\":" #dropped
#define TIMES(throttled, throttled_ns, held_back_ns, enabled_ns, running_ns)                       \
    ",\"throttled\":" #throttled ",\"throttled_ns\":" #throttled_ns                                \
    ",\"held_back_ns\":" #held_back_ns ",\"enabled_ns\":" #enabled_ns                              \
    ",\"running_ns\":" #running_ns
    assert_string_equal(
        events,
        ",\"events\":[{\"event\":\"page-faults\",\"unit\":\"faults\",\"period\":100,\"cpus\":["
        "{\"cpu\":0," COUNTS(1005, 900, 5, 9, 1, 5, 3, 1) TIMES(
            0, 0, 0, 10,
            10) "},"
                "{\"cpu\":2," COUNTS(200, 200, 0, 2, 0, 2, 0, 0) TIMES(
                    0, 0, 0, 0,
                    0) "}],"
                       "\"total\":{" COUNTS(1205, 1100, 5, 11, 1, 7, 3, 1) TIMES(
                           0, 0, 0, 10,
                           10) "}},"
                               "{\"event\":\"cycles:u\",\"unit\":\"cycles\",\"period\":0,\"cpus\":["
                               "{\"cpu\":0," COUNTS(50, 48, 2, 2, 1, 2, 0, 0) TIMES(
                                   3, 4, 5, 20, 10) "},"
                                                    "{\"cpu\":2," COUNTS(0, 0, 0, 0, 0, 0, 0, 0)
                                                        TIMES(0, 0, 0, 0,
                                                              0) "}],"
                                                                 "\"total\":{" COUNTS(50, 48, 2, 2,
                                                                                      1, 2, 0, 0)
                                                                     TIMES(3, 4, 5, 20, 10) "}}]}");
}
