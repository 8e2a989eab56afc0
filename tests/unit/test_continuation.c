/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the client makes of partials and completions, in whatever order and however many they come.
 */
#include "app_recording.h"

TEST(gives_every_part_the_stack_of_its_completion)
{
    /* The second completion is told before its part. */
    struct profile *profile = load_recording(recording_of(
        APP "partial 10 7 0x3000000000009; partial 11 7 0x3000000000009;"
            "completion 0x3000000000009 0x10020 0x10008; completion 0x300000000000a 0x10010;"
            "partial 12 7 0x300000000000a"));
    assert_int_equal(profile->sample_count, 3);
    assert_int_equal(profile->orphan_partial_count, 0);
    assert_int_equal(profile->orphan_completion_count, 0);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(profile->samples[i].cpu, 3);
        assert_int_equal(profile_rooted(&profile->samples[i]), PROFILE_STACK_COMPLETE);
    }
    size_t count = 0;
    assert_int_equal(profile->samples[0].chain, profile->samples[1].chain);
    (void)profile_chain(profile, profile->samples[0].chain, &count);
    assert_int_equal(count, 2);
    (void)profile_chain(profile, profile->samples[2].chain, &count);
    assert_int_equal(count, 1);
    (void)profile_free(profile);
}

/* A stack of the kernel is the part's or the completion's; of the user's stack the part has the
 * beginning, and the completion the rest. */
TEST(keeps_what_a_part_says_itself)
{
    struct recording *recording = app_recording();
    add_kernel(recording);
    add_lines(recording, "partial 10 7 1 | 0xffffffff81000001; completion 1 0x10020;"
                         "partial 11 7 2; completion 2 0x10010 | 0xffffffff81000001;"
                         "partial 12 7 3 0x10010; completion 3 0x10008");
    assert_folded(recording, "app;leaf;sys_read_[k] 1\napp;main;work 1\napp;work;sys_read_[k] 1\n");
}

/* Of two that share the rest of their stack, one was in the kernel: only it says so. */
TEST(in_the_kernel_is_said_of_one_part_or_of_all)
{
    assert_folded(recording_of(APP "partial 10 7 1; partial 10 7 1 |; completion 1;"
                                   "partial 11 7 2; partial 11 7 2; completion 2 |"),
                  "app;[kernel] 3\napp;[unknown] 1\n");
}

TEST(a_part_that_tells_its_quality_keeps_it)
{
    struct recording *recording = app_recording();
    struct fxt_sample part = partial(10, 1);
    struct fxt_sample rest = completion(1, ADDRESSES(0x10008));
    part.fields |= FXT_SAMPLE_QUALITY;
    part.quality = COMPLETE;
    rest.fields &= ~FXT_SAMPLE_QUALITY;
    fxt_write_sample(&recording->writer, &part);
    part = partial(11, 1);
    fxt_write_sample(&recording->writer, &part);
    fxt_write_sample(&recording->writer, &rest);
    struct profile *profile = load_recording(recording);
    assert_int_equal(profile_rooted(&profile->samples[0]), PROFILE_STACK_COMPLETE);
    assert_int_equal(profile_rooted(&profile->samples[1]), PROFILE_STACK_TRUNCATED);
    (void)profile_free(profile);
}

/* Samples of another event are no time, and their completions are no orphans. */
TEST(a_profile_has_the_samples_of_the_clock)
{
    struct recording *recording = app_recording();
    struct fxt_sample part = partial(10, 1);
    struct fxt_sample whole = user_sample(11, 7, COMPLETE, ADDRESSES(0x10020, 0x10008));
    struct fxt_sample rest = completion(1, ADDRESSES(0x10008));
    fxt_write_sample(&recording->writer, &whole);
    whole.fields |= FXT_SAMPLE_EVENT | FXT_SAMPLE_WEIGHT;
    whole.event = 1;
    whole.weight = 1000;
    fxt_write_sample(&recording->writer, &whole);
    part.fields |= FXT_SAMPLE_EVENT;
    part.event = 2;
    fxt_write_sample(&recording->writer, &part);
    fxt_write_sample(&recording->writer, &rest);
    struct profile *profile = load_recording(recording);
    assert_int_equal(profile->sample_count, 1);
    assert_int_equal(profile->orphan_completion_count, 0);
    (void)profile_free(profile);
}

/* However long what many parts share: each of them costs no more than PROFILE_MERGED_MAX entries.
 */
TEST(what_parts_share_is_cut_where_it_would_blow_up)
{
    static uint64_t stack[PROFILE_MERGED_MAX + 1];
    const size_t shared[] = {PROFILE_MERGED_MAX - 1, PROFILE_MERGED_MAX, PROFILE_MERGED_MAX + 1};
    struct recording *recording = app_recording();
    for (uint64_t i = 0; i < 3; i++) {
        const struct fxt_sample rest = completion(i, stack, shared[i]);
        struct fxt_sample part = partial(10, i);
        part.fields |= FXT_SAMPLE_USER_STACK;
        part.user_stack = stack;
        part.user_count = 1;
        fxt_write_sample(&recording->writer, &part);
        fxt_write_sample(&recording->writer, &rest);
    }
    struct profile *profile = load_recording(recording);
    for (size_t i = 0; i < 3; i++) {
        size_t count = 0;
        (void)profile_chain(profile, profile->samples[i].chain, &count);
        assert_in_range(count, PROFILE_MERGED_MAX, PROFILE_MERGED_MAX + 1); /* [truncated] */
        assert_int_equal(profile_rooted(&profile->samples[i]),
                         i == 0 ? PROFILE_STACK_COMPLETE : PROFILE_STACK_TRUNCATED);
    }
    (void)profile_free(profile);
}

#define SHARED_COUNT 4000 /* entries, of the longest stack but a few */

/* Adds the samples of `count` processes, or (`one`) of one whose mapping changes between any two.
 */
static void add_sharers(struct recording *recording, uint64_t count, bool one)
{
    static uint64_t stack[SHARED_COUNT];
    for (size_t i = 0; i < SHARED_COUNT; i++) {
        stack[i] = 0x10000 + 16 * i;
    }
    const struct fxt_sample rest = completion(1, stack, SHARED_COUNT);
    fxt_write_sample(&recording->writer, &rest);
    for (uint64_t i = 0; i < count; i++) {
        struct fxt_sample part = partial(10 + i, 1);
        part.pid = one ? 7 : 8 + i;
        fxt_write_sample(&recording->writer, &part);
        if (one) {
            add_mmap(recording, 10 + i, 7, 1, 0x10000, 1 << 20, i << 24);
        }
    }
}

/* Each of them takes what is remembered of 4,000 addresses, or 4,000 frames as well: those that
 * come first are shown. Near the end, a process whose place in the quota is another's too may be
 * left out before others, so only the first 60 are told one by one. */
TEST(leaves_out_what_would_become_very_much)
{
    for (int one = 0; one < 2; one++) {
        const uint64_t counts[] = {40, one != 0 ? 800 : 4000};
        for (size_t i = 0; i < 2; i++) {
            struct recording *recording = app_recording();
            add_sharers(recording, counts[i], one != 0);
            struct profile *profile = load_recording(recording);
            uint64_t left_out_count = 0;
            assert_int_equal(profile->sample_count, counts[i]);
            assert_in_range(profile->left_out_count, i == 0 ? 0 : 100, i == 0 ? 0 : counts[i] - 50);
            for (uint64_t sample = 0; sample < counts[i]; sample++) {
                size_t count = 0;
                (void)profile_chain(profile, profile->samples[sample].chain, &count);
                assert_true(count == SHARED_COUNT || (count == 1 && sample >= 60));
                left_out_count += count == 1;
            }
            assert_int_equal(left_out_count, profile->left_out_count);
            (void)profile_free(profile);
        }
    }
}

/* What one process fills leaves the stacks of others as they are. One of two others may have its
 * place in the quota, by chance. */
TEST(leaves_room_for_the_stacks_of_others)
{
    struct recording *recording = app_recording();
    add_lines(recording,
              "name 8 0 0 app; module 8 1 /bin/app 0xab; mmap 0 8 1 0x10000 0x1000 0x1000;"
              "name 9 0 0 app; module 9 1 /bin/app 0xab; mmap 0 9 1 0x10000 0x1000 0x1000");
    add_sharers(recording, 400, true);
    add_lines(recording,
              "partial 1000 8 2; completion 2 0x10008; partial 1000 9 3; completion 3 0x10008");
    struct profile *profile = load_recording(recording);
    /* The second time, what the first one has made does not count. */
    for (int i = 0; i < 2; i++) {
        size_t shown_count = 0;
        for (size_t sample = 400; sample < 402; sample++) {
            size_t count = 0;
            const uint32_t *chain = profile_chain(profile, profile->samples[sample].chain, &count);
            const struct profile_frame *frame = profile_frame(profile, chain[0]);
            assert_int_equal(count, 1);
            shown_count += strcmp(profile_text(profile, frame->name), "main") == 0;
        }
        assert_true(profile->left_out_count > 0);
        assert_int_equal(profile->plain_count, 0);
        assert_true(shown_count > 0);
        assert_int_equal(profile_resolve(profile), 0);
    }
    (void)profile_free(profile);
}

/* One stack of returns, with which the stacks of three times and two processes go on. */
TEST(what_parts_share_is_named_for_each_time_and_process)
{
    assert_folded(recording_of(APP
                               "module 7 2 plugin; mmap 50 7 2 0x10000 0x10 0; name 8 0 0 other;"
                               "module 8 1 /bin/other; mmap 0 8 1 0x10000 0x1000 0;"
                               "partial 40 7 0 0x10020; completion 0 0x10008;"
                               "partial 60 7 1 0x10020; completion 1 0x10008;"
                               "partial 45 7 2 0x10020; completion 2 0x10008;"
                               "partial 61 8 3 0x10020; completion 3 0x10008"),
                  "app;main;leaf 2\napp;plugin+0x8;leaf 1\nother;other+0x8;other+0x20 1\n");
}

/* The second completion of an id completes nothing. */
TEST(counts_parts_and_completions_without_the_other)
{
    struct profile *profile =
        load_recording(recording_of(APP "partial 10 7 1; completion 2 0x1; partial 11 7 3;"
                                        "completion 3 0x1; completion 3 0x2"));
    assert_int_equal(profile->sample_count, 2);
    assert_int_equal(profile->orphan_partial_count, 1);
    assert_int_equal(profile->orphan_completion_count, 2);
    assert_int_equal(profile->samples[0].user_stack, 0);
    assert_int_not_equal(profile->samples[0].closed, 0);
    (void)profile_free(profile);
}

/* Only a reader of all of it knows it, so the books are told. */
TEST(the_books_tell_what_came_without_the_other)
{
    struct recording *recording = recording_of(APP "partial 10 7 1; completion 2 0x1");
    add_data(recording, FXT_STRING_BOOKS,
             "{\"orphan_partials\":2,\"orphan_completions\":0,\"a\":7}\n");
    struct profile *profile = load_recording(recording);
    assert_string_equal(profile->books_json,
                        "{\"a\":7,\"orphan_partials\":3,\"orphan_completions\":1}");
    (void)profile_free(profile);
}
