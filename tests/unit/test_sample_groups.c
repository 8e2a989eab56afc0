/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Samples are listed by process, thread, CPU and stack, and those that are alike in the order of
 * the file.
 */
#include "sample_groups.h"

#include "made_recording.h"

#define STACKS 100

struct made_sample {
    uint64_t pid;
    uint64_t tid;
    uint32_t cpu;
    uint32_t stack; /* the caller's number */
};

static struct profile *load_samples(const struct made_sample *samples, size_t count)
{
    struct recording *recording = recording_of("name 9 0 0 nine; name 8 0 0 eight;");
    const uint64_t address = 0x1004;
    for (size_t i = 0; i < count; i++) {
        struct fxt_sample sample = user_sample(i + 1, samples[i].pid, COMPLETE, &address, 1);
        sample.tid = samples[i].tid;
        sample.cpu = samples[i].cpu;
        fxt_write_sample(&recording->writer, &sample);
    }
    return load_recording(recording);
}

/* Adds all samples, and asserts how often a lane is new. */
static void add_all(struct sample_groups *groups, const struct made_sample *samples, size_t count,
                    size_t new_count)
{
    for (size_t i = 0; i < count; i++) {
        const struct sample_lane *lane = NULL;
        assert_int_equal(sample_groups_add(groups, (uint32_t)i, samples[i].stack, &lane), 0);
        if (lane != NULL) {
            assert_int_equal(lane->task->pid, samples[i].pid);
            assert_int_equal(lane->task->tid, samples[i].tid);
            assert_int_equal(lane->cpu, samples[i].cpu);
            new_count--;
        }
    }
    assert_int_equal(new_count, 0);
}

TEST(lists_samples_by_process_thread_cpu_and_stack)
{
    static const struct made_sample samples[] = {
        {9, 9, 1, 5},  {8, 80, 1, 7}, {9, 9, 0, 99}, {8, 8, 1, 0}, {9, 9, 1, 4},
        {8, 80, 1, 6}, {9, 9, 1, 5},  {9, 9, 0, 99}, {9, 9, 1, 4},
    };
    static const uint32_t expected[] = {3, 5, 1, 2, 7, 4, 8, 0, 6};
    static const size_t firsts[] = {0, 1, 3, 5};
    struct profile *profile = load_samples(samples, COUNT_OF(samples));
    struct sample_groups groups;
    assert_int_equal(sample_groups_init(&groups, profile), 0);
    add_all(&groups, samples, COUNT_OF(samples), COUNT_OF(firsts));
    assert_int_equal(sample_groups_sort(&groups, STACKS), 0);
    assert_memory_equal(groups.order, expected, sizeof expected);
    assert_int_equal(sample_groups_lanes(&groups), COUNT_OF(firsts));
    for (size_t i = 0; i < COUNT_OF(firsts); i++) {
        assert_int_equal(groups.lanes[i].first, firsts[i]);
    }
    assert_true(sample_groups_same_process(&groups.lanes[0], &groups.lanes[1]));
    assert_false(sample_groups_same_process(&groups.lanes[1], &groups.lanes[2]));
    assert_true(sample_groups_same_process(&groups.lanes[2], &groups.lanes[3]));
    sample_groups_done(&groups);
    (void)profile_free(profile);
}

TEST(sorts_nothing_where_there_is_nothing)
{
    struct profile *profile = load_samples(NULL, 0);
    struct sample_groups groups;
    assert_int_equal(sample_groups_init(&groups, profile), 0);
    assert_int_equal(sample_groups_sort(&groups, 1), 0);
    assert_int_equal(sample_groups_lanes(&groups), 0);
    sample_groups_done(&groups);
    (void)profile_free(profile);
}
