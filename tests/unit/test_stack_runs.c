/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a format makes of a stack is made once, but anew when an address of it has become another
 * file's; and samples that come out of their order are listed by task and time.
 */
#include "stack_runs.h"

#include "made_recording.h"
#include "sample_order.h"

struct making {
    uint64_t time_ns; /* of the sample for which it was made last */
    size_t count;     /* of calls */
};

/* A stack_run_fn: the time of the sample. */
static int make_time(const struct profile_sample *sample, void *userdata, struct made_run *ret)
{
    struct making *making = userdata;
    making->time_ns = sample->time_ns;
    making->count++;
    *ret = (struct made_run){&making->time_ns, sizeof making->time_ns};
    return 0;
}

/* The time that was made for each sample in turn. */
static void assert_made(struct stack_runs *runs, const struct profile *profile,
                        struct making *making, const uint64_t *expected, size_t count)
{
    static uint32_t order[16];
    assert_int_equal(profile->sample_count, count);
    for (size_t i = 0; i < count; i++) {
        order[i] = (uint32_t)i;
    }
    for (size_t i = 0; i < count; i++) {
        struct made_run made = {0};
        stack_runs_fetch_ahead(runs, profile, order, count, i);
        assert_int_equal(
            stack_runs_get(runs, profile, &profile->samples[i], make_time, making, &made), 0);
        assert_int_equal(made.size_bytes, sizeof(uint64_t));
        assert_memory_equal(made.bytes, &expected[i], sizeof(uint64_t));
    }
}

/* Frames in anonymous memory are one, whatever their address: so both mappings make one chain. */
TEST(makes_a_stack_anew_where_its_mapping_changes)
{
    struct profile *profile = load_recording(recording_of(
        "name 7 0 0 app; module 7 1 [anon]; mmap 0 7 1 0x1000 0x1000 0; mmap 5 7 1 0x1000 0x1000 "
        "0x8000; sample 1 7 1 0x1004; sample 2 7 1 0x1004; sample 6 7 1 0x1004; sample 7 7 1 "
        "0x1004; sample 3 7 1 0x1004; sample 4 7 1 0x1005;"));
    struct stack_runs runs = {0};
    struct making making = {0};
    assert_made(&runs, profile, &making, ADDRESSES(1, 1, 6, 6, 3, 4));
    assert_int_equal(making.count, 4);
    stack_runs_done(&runs);
    (void)profile_free(profile);
}

static void assert_order(const struct profile *profile, enum sample_order_by by,
                         const uint64_t *expected, size_t count)
{
    uint32_t *order = sample_order(profile, by);
    assert_non_null(order);
    assert_int_equal(profile->sample_count, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(order[i], expected[i]);
    }
    free(order);
}

TEST(lists_samples_by_task_and_time)
{
    struct profile *profile = load_recording(
        recording_of("name 9 0 0 nine; name 8 0 0 eight; sample 5 9 1 0x1004; sample 4 8 1 0x1004;"
                     "sample 3 9 1 0x1004; sample 6 8 1 0x1004; sample 3 9 1 0x1005;"));
    assert_order(profile, SAMPLE_ORDER_PID, ADDRESSES(1, 3, 2, 4, 0));
    assert_order(profile, SAMPLE_ORDER_PROCESS, ADDRESSES(1, 3, 2, 4, 0));
    assert_order(profile, SAMPLE_ORDER_THREAD, ADDRESSES(1, 3, 2, 4, 0));
    (void)profile_free(profile);
}
