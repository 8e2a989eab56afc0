/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Recordings of several sessions, boots and machines in one file: each sample has its own time of
 * the day, and the names that held at that time on its own machine.
 */
#include "made_recording.h"
#include "selection.h"

#include <time.h>

#define S UINT64_C(1000000000)

/* Midnight of 2026-01-01, UTC. */
#define NEW_YEAR (UINT64_C(1767225600) * S)

struct session {
    const char *id;
    uint64_t boot_ns;
    uint64_t wall_ns; /* 0: it does not say */
};

/* Machine `a` was booted later than `b`, though its times of the clock are the earlier ones. */
static const struct session a = {"a", 1000 * S, NEW_YEAR};
static const struct session b = {"b", 900000 * S, NEW_YEAR + S * 86400 * 10};
static const struct session clockless = {"c", 0, 0};

/* Begins a segment, which is of `session`, NULL: it tells none. */
static void add_segment(struct recording *recording, const struct session *session)
{
    char json[256];
    fxt_write_segment_begin(&recording->writer, 1, "test");
    if (session == NULL) {
        return;
    }
    size_t used = (size_t)snprintf(json, sizeof json, "{\"session\":\"%s\"", session->id);
    if (session->wall_ns > 0) {
        used += (size_t)snprintf(json + used, sizeof json - used,
                                 ",\"created_boot_ns\":\"%llu\",\"created_realtime_ns\":\"%llu\"",
                                 (unsigned long long)session->boot_ns,
                                 (unsigned long long)session->wall_ns);
    }
    (void)snprintf(json + used, sizeof json - used, "}\n");
    add_data(recording, FXT_STRING_SESSION, json);
}

/* Adds process 7, which has another name and another module 5 s after a time, 1 s before and after
 * that. */
static void add_process(struct recording *recording, uint64_t time_ns, const char *before,
                        const char *after)
{
    add_name(recording, 7, 0, 0, before);
    add_name(recording, 7, 0, time_ns + 5 * S, after);
    add_module(recording, 7, 1, before, 0);
    add_module(recording, 7, 2, after, 0);
    add_mmap(recording, 0, 7, 1, 0x1000, 0x1000, 0);
    add_mmap(recording, time_ns + 5 * S, 7, 2, 0x1000, 0x1000, 0);
    add_sample(recording, time_ns + 4 * S, 7, COMPLETE, ADDRESSES(0x1001));
    add_sample(recording, time_ns + 6 * S, 7, COMPLETE, ADDRESSES(0x1001));
}

static void assert_sample(const struct profile *profile, size_t number, uint64_t wall_ns,
                          const char *name)
{
    const struct profile_sample *sample = &profile->samples[number];
    size_t count = 0;
    const uint32_t *chain = profile_chain(profile, sample->chain, &count);
    int64_t offset_ns = 0;
    assert_true(profile_wall_offset_ns(profile, &offset_ns));
    assert_int_equal(sample->time_ns + (uint64_t)offset_ns, wall_ns);
    assert_string_equal(profile_text(profile, profile_task(profile, sample->task)->process_name),
                        name);
    const struct profile_frame *frame = profile_frame(profile, chain[0]);
    assert_string_equal(profile_text(profile, profile->modules[frame->module].name), name);
}

static struct profile *two_machines(const struct session *first, const struct session *second)
{
    struct recording *recording = recording_new();
    add_segment(recording, first);
    add_process(recording, first->boot_ns, first->id, "x");
    add_segment(recording, second);
    add_process(recording, second->boot_ns, second->id, "y");
    return load_recording(recording);
}

TEST(gives_each_sample_the_time_of_its_own_machine)
{
    const struct session *orders[][2] = {{&a, &b}, {&b, &a}};
    for (size_t i = 0; i < COUNT_OF(orders); i++) {
        const struct session *first = orders[i][0];
        const struct session *second = orders[i][1];
        struct profile *profile = two_machines(first, second);
        assert_sample(profile, 0, first->wall_ns + 4 * S, first->id);
        assert_sample(profile, 1, first->wall_ns + 6 * S, "x");
        assert_sample(profile, 2, second->wall_ns + 4 * S, second->id);
        assert_sample(profile, 3, second->wall_ns + 6 * S, "y");
        assert_int_equal(profile->first_ns, profile->samples[i == 0 ? 0 : 2].time_ns);
        assert_int_equal(profile->last_ns, profile->samples[i == 0 ? 3 : 1].time_ns);
        assert_int_equal(profile->session_count, 2);
        (void)profile_free(profile);
    }
}

/* By the clock that was on first, all that is another's lies later. */
TEST(keeps_the_times_of_the_machine_that_was_booted_first)
{
    struct profile *profile = two_machines(&a, &b);
    assert_int_equal(profile->samples[2].time_ns, b.boot_ns + 4 * S);
    assert_memory_equal(profile->session_json, "{\"session\":\"b\"", 14);
    (void)profile_free(profile);
}

TEST(selects_a_time_of_the_day_of_either_machine)
{
    static const struct {
        const char *from;
        const char *to;
        size_t first; /* of the samples that are left */
    } cases[] = {
        {"2025-12-31 23:59", "2026-01-01 00:10", 0},
        {"2026-01-10 23:59", "2026-01-11 00:10", 2},
    };
    (void)setenv("TZ", "UTC", 1);
    tzset();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct fault fault = {0};
        struct selection selection = {0};
        struct profile *profile = two_machines(&a, &b);
        uint64_t first_ns = profile->samples[cases[i].first].time_ns;
        assert_true(selection_parse_time(cases[i].from, &selection.from));
        assert_true(selection_parse_time(cases[i].to, &selection.to));
        assert_int_equal(selection_apply(&selection, profile, &fault), 0);
        assert_int_equal(profile->sample_count, 2);
        assert_int_equal(profile->samples[0].time_ns, first_ns);
        (void)profile_free(profile);
    }
}

TEST(leaves_the_times_of_one_session_as_they_are)
{
    struct recording *recording = recording_new();
    add_segment(recording, &a);
    add_sample(recording, 5, 7, COMPLETE, ADDRESSES(0x1));
    add_segment(recording, NULL);
    add_segment(recording, &a);
    add_sample(recording, 6, 7, COMPLETE, ADDRESSES(0x1));
    struct profile *profile = load_recording(recording);
    assert_int_equal(profile->samples[0].time_ns, 5);
    assert_int_equal(profile->samples[1].time_ns, 6);
    assert_int_equal(profile->session_count, 1);
    (void)profile_free(profile);
}

/* A segment that lacks its session is of the one before it; at the beginning, of the next. */
TEST(takes_a_segment_without_a_session_for_its_neighbours)
{
    struct recording *recording = recording_new();
    add_sample(recording, 1000 * S, 7, COMPLETE, ADDRESSES(0x1));
    add_segment(recording, &a);
    add_segment(recording, NULL);
    add_sample(recording, 1000 * S, 7, COMPLETE, ADDRESSES(0x1));
    add_segment(recording, &b);
    add_sample(recording, 900000 * S, 7, COMPLETE, ADDRESSES(0x1));
    struct profile *profile = load_recording(recording);
    int64_t offset_ns = 0;
    assert_true(profile_wall_offset_ns(profile, &offset_ns));
    assert_int_equal(profile->samples[0].time_ns + (uint64_t)offset_ns, a.wall_ns);
    assert_int_equal(profile->samples[1].time_ns + (uint64_t)offset_ns, a.wall_ns);
    assert_int_equal(profile->samples[2].time_ns + (uint64_t)offset_ns, b.wall_ns);
    (void)profile_free(profile);
}

TEST(knows_no_time_of_the_day_if_one_session_does_not)
{
    const struct session *orders[][2] = {{&a, &clockless}, {&clockless, &a}};
    for (size_t i = 0; i < COUNT_OF(orders); i++) {
        struct profile *profile = two_machines(orders[i][0], orders[i][1]);
        int64_t offset_ns = 0;
        assert_false(profile_wall_offset_ns(profile, &offset_ns));
        assert_int_equal(profile->samples[0].time_ns, orders[i][0]->boot_ns + 4 * S);
        assert_int_equal(profile->samples[2].time_ns, orders[i][1]->boot_ns + 4 * S);
        assert_int_equal(profile->session_count, 2);
        (void)profile_free(profile);
    }
}

/* Only a hostile recording has such times. */
TEST(ends_at_the_last_time_that_there_is)
{
    struct recording *recording = recording_new();
    add_segment(recording, &a);
    add_sample(recording, UINT64_MAX - 1, 7, COMPLETE, ADDRESSES(0x1));
    add_segment(recording, &b);
    struct profile *profile = load_recording(recording);
    assert_int_equal(profile->samples[0].time_ns, UINT64_MAX);
    assert_int_equal(profile->last_ns, UINT64_MAX);
    (void)profile_free(profile);
}
