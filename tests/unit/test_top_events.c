/* SPDX-License-Identifier: Apache-2.0 */

/* Which events a session of profctl top has, and how amounts of them are shown. */
#include "top_events.h"
#include "unit_test.h"

#include <errno.h>

#define WITH_WAITS                                                                                 \
    "{\"session\":\"a\",\"events\":["                                                              \
    "{\"event\":\"cpu-clock\",\"unit\":\"ns\",\"period\":2004002},"                                \
    "{\"event\":\"page-faults\",\"unit\":\"faults\",\"period\":100},"                              \
    "{\"event\":\"off-cpu\",\"unit\":\"ns\",\"period\":1},"                                        \
    "{\"event\":\"preempted\",\"unit\":\"ns\",\"period\":1}]}"

static struct top_events *events_new(void)
{
    struct top_events *events = calloc(1, sizeof *events);
    assert_non_null(events);
    assert_int_equal(top_events_init(events), 0);
    return events;
}

static struct top_events *events_free(struct top_events *events)
{
    top_events_done(events);
    free(events);
    return NULL;
}

/* "NAME VALUE UNIT" of a sample; "": it is of no event. */
static const char *said_of(const struct top_events *events, uint32_t number, uint64_t weight)
{
    static char text[128];
    char amount[TOP_AMOUNT_BYTES];
    uint32_t event = 0;
    uint64_t value = 0;
    const struct told_event told = {.weight = weight, .number = number};
    text[0] = '\0';
    if (top_events_value(events, &told, &event, &value)) {
        const struct profile_event *found = &events->all[event];
        (void)snprintf(text, sizeof text, "%s %s %s", found->name,
                       top_events_amount(found, value, amount), top_events_unit(found));
    }
    return text;
}

TEST_MADE(struct top_events *events, knows_what_samples_stand_for, events_new(), events_free)
{
    assert_string_equal(said_of(events, 0, 9), "cpu-clock 1 samples");
    assert_string_equal(said_of(events, 2, 9), "");
    assert_int_equal(top_events_read(events, NULL), 0);
    assert_int_equal(top_events_read(events, WITH_WAITS), 0);
    assert_int_equal(events->count, 4);
    assert_string_equal(said_of(events, 0, 9), "cpu-clock 1 samples");
    assert_string_equal(said_of(events, 1, 3), "page-faults 300 faults");
    assert_string_equal(said_of(events, 2, 12345678), "off-cpu 12.35 ms");
    assert_string_equal(said_of(events, 3, 5000), "preempted 0.01 ms");
    assert_string_equal(said_of(events, 3, 0), ""); /* it stands for nothing */
    assert_string_equal(said_of(events, 4, 1), "");
    assert_string_equal(said_of(events, UINT32_MAX, 1), "");
    assert_string_equal(said_of(events, 1, UINT64_MAX), "page-faults 18446744073709551615 faults");
}

TEST_MADE(struct top_events *events, keeps_numbers_from_session_to_session, events_new(),
          events_free)
{
    assert_int_equal(top_events_read(events, WITH_WAITS), 0);
    assert_int_equal(
        top_events_read(events, "{\"events\":[{\"event\":\"cpu-clock\"},"
                                "{\"event\":\"preempted\",\"unit\":\"ns\",\"period\":1},"
                                "{\"unit\":\"ns\"},{\"event\":\"cycles\"},"
                                "{\"event\":\"page-faults\",\"unit\":\"faults\",\"period\":7}]}"),
        0);
    assert_int_equal(events->count, 5);
    assert_string_equal(events->all[2].name, "off-cpu");
    assert_string_equal(said_of(events, 1, 1000000), "preempted 1.00 ms");
    assert_string_equal(said_of(events, 2, 1), ""); /* it has no name */
    assert_string_equal(said_of(events, 3, 1), "cycles 1 events");
    assert_string_equal(said_of(events, 4, 1), "page-faults 7 faults");
    assert_int_equal(top_events_read(events, "{\"session\":\"b\"}"), 0);
    assert_int_equal(events->count, 5);
    assert_string_equal(said_of(events, 1, 1), "");
}

TEST_MADE(struct top_events *events, chooses_by_any_name_that_perf_has, events_new(), events_free)
{
    struct fault fault = {0};
    uint32_t chosen = 9;
    assert_int_equal(top_events_choose(events, NULL, &chosen, &fault), 0);
    assert_int_equal(chosen, TOP_CLOCK);
    assert_int_equal(top_events_choose(events, "off-cpu", &chosen, &fault), -EAGAIN);
    assert_int_equal(top_events_read(events, WITH_WAITS), 0);
    assert_int_equal(top_events_choose(events, "off-cpu", &chosen, &fault), 0);
    assert_int_equal(chosen, 2);
    assert_int_equal(top_events_choose(events, "faults", &chosen, &fault), 0);
    assert_int_equal(chosen, 1);
    assert_int_equal(top_events_choose(events, "cpu-clock", &chosen, &fault), 0);
    assert_int_equal(chosen, TOP_CLOCK);
    assert_int_equal(fault.code, 0);
    chosen = 9;
    assert_int_equal(top_events_choose(events, "cycles", &chosen, &fault), -ESRCH);
    assert_int_equal(chosen, 9);
    assert_string_equal(fault.text, "the session has no event 'cycles'; it has cpu-clock, "
                                    "page-faults, off-cpu, preempted");
    assert_int_equal(top_events_choose(events, "blocked", &chosen, &fault), -ESRCH);
    assert_string_equal(fault.text, "the session has no event 'blocked': off-cpu has the time that "
                                    "threads are blocked");
}

TEST_MADE(struct top_events *events, says_how_to_get_events, events_new(), events_free)
{
    struct fault fault = {0};
    uint32_t chosen = 0;
    assert_int_equal(top_events_read(events, "{\"session\":\"a\"}"), 0);
    assert_int_equal(top_events_choose(events, "off-cpu", &chosen, &fault), -ESRCH);
    assert_string_equal(fault.text, "the session has no event 'off-cpu'; it has cpu-clock alone: "
                                    "--wall adds off-cpu and preempted, -e others");
}

TEST_MADE(struct top_events *events, passes_over_too_many, events_new(), events_free)
{
    char json[2048] = "{\"events\":[{\"event\":\"cpu-clock\"}";
    for (int i = 1; i < 20; i++) {
        (void)snprintf(json + strlen(json), sizeof json - strlen(json), ",{\"event\":\"e%d\"}%s", i,
                       i < 19 ? "" : "]}");
    }
    assert_int_equal(top_events_read(events, json), 0);
    assert_int_equal(events->count, TOP_EVENTS_MAX);
    assert_string_equal(said_of(events, TOP_EVENTS_MAX - 1, 2), "e15 2 events");
    assert_string_equal(said_of(events, TOP_EVENTS_MAX, 2), "");
    assert_int_equal(top_events_read(events, "{\"events\":[{},{\"event\":\"new\"}]}"), 0);
    assert_string_equal(said_of(events, 1, 2), "");
}
