/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Stacks that are kept are shown as they were, whatever was kept and released before; equal ones
 * are one; and one account cannot take the room of all.
 */
#include "unit_test.h"
#include "wait_stacks.h"

#define DEPTHS 40

static uint64_t frames[2 * WAIT_STACKS_FRAMES_MAX];

static struct sample sample_of(uint64_t number, size_t kernel_count, size_t user_count)
{
    for (size_t i = 0; i < kernel_count + user_count; i++) {
        frames[i] = number << 16 | i;
    }
    return (struct sample){
        .kernel_stack = frames,
        .kernel_count = kernel_count,
        .user_stack = frames + kernel_count,
        .user_count = user_count,
        .quality = (enum stack_quality)(number % 3),
        .cfi_frame_count = (uint16_t)(number % 7),
        .fp_frame_count = (uint16_t)(number % 5),
        .kernel_mode = kernel_count > 0,
    };
}

static void assert_shown(struct wait_stacks *stacks, uint32_t number, const struct sample *wanted)
{
    struct sample shown = {.time_ns = 9};
    wait_stacks_show(stacks, number, &shown);
    assert_int_equal(shown.time_ns, 9);
    assert_int_equal(shown.kernel_count, wanted->kernel_count);
    assert_int_equal(shown.user_count, wanted->user_count);
    assert_memory_equal(shown.kernel_stack, wanted->kernel_stack, 8 * wanted->kernel_count);
    assert_memory_equal(shown.user_stack, wanted->user_stack, 8 * wanted->user_count);
    assert_int_equal(shown.quality, wanted->quality);
    assert_int_equal(shown.cfi_frame_count, wanted->cfi_frame_count);
    assert_int_equal(shown.fp_frame_count, wanted->fp_frame_count);
    assert_int_equal(shown.kernel_mode, wanted->kernel_mode);
}

TEST(shows_what_was_kept_at_any_depth)
{
    struct wait_stacks *stacks = wait_stacks_new();
    uint32_t numbers[DEPTHS];
    (void)state;
    for (size_t round = 0; round < 3; round++) {
        for (size_t i = 0; i < DEPTHS; i++) {
            struct sample sample = sample_of(i + round, i % 4 * 5, i * 13);
            numbers[i] = wait_stacks_add(stacks, &sample, 1);
            assert_int_not_equal(numbers[i], 0);
        }
        for (size_t i = 0; i < DEPTHS; i++) {
            struct sample sample = sample_of(i + round, i % 4 * 5, i * 13);
            assert_shown(stacks, numbers[i], &sample);
        }
        /* Every other one goes, and the rest stay as they were. */
        for (size_t i = 0; i < DEPTHS; i += 2) {
            wait_stacks_release(stacks, numbers[i]);
        }
        for (size_t i = 1; i < DEPTHS; i += 2) {
            struct sample sample = sample_of(i + round, i % 4 * 5, i * 13);
            assert_shown(stacks, numbers[i], &sample);
            wait_stacks_release(stacks, numbers[i]);
        }
        assert_int_equal(wait_stacks_count(stacks), 0);
    }
    (void)wait_stacks_free(stacks);
}

TEST(keeps_equal_stacks_once_and_others_apart)
{
    struct wait_stacks *stacks = wait_stacks_new();
    struct sample sample = sample_of(1, 3, 5);
    (void)state;
    uint32_t first = wait_stacks_add(stacks, &sample, 1);
    assert_int_equal(wait_stacks_add(stacks, &sample, 2), first);
    /* The same words, divided otherwise, or of another quality. */
    sample.kernel_count = 2;
    sample.user_stack = frames + 2;
    sample.user_count = 6;
    assert_int_not_equal(wait_stacks_add(stacks, &sample, 1), first);
    sample = sample_of(1, 3, 5);
    sample.quality = STACK_DEPTH;
    assert_int_not_equal(wait_stacks_add(stacks, &sample, 1), first);
    assert_int_equal(wait_stacks_count(stacks), 3);
    wait_stacks_release(stacks, first);
    sample = sample_of(1, 3, 5);
    assert_shown(stacks, first, &sample);
    wait_stacks_release(stacks, first);
    assert_int_equal(wait_stacks_count(stacks), 2);
    wait_stacks_release(stacks, 0);
    (void)wait_stacks_free(stacks);
}

/* As many as have room of one account: small ones take places, large ones parts. */
static size_t fill(struct wait_stacks *stacks, size_t frame_count, uint32_t *kept)
{
    size_t count = 0;
    for (;;) {
        struct sample sample = sample_of(count, 0, frame_count);
        kept[count] = wait_stacks_add(stacks, &sample, 1);
        if (kept[count] == 0) {
            return count;
        }
        count++;
    }
}

TEST(leaves_room_to_others_and_has_all_of_it_again)
{
    static const size_t frame_counts[] = {510, 1, 510};
    static uint32_t kept[WAIT_STACKS_MAX];
    struct wait_stacks *stacks = wait_stacks_new();
    (void)state;
    for (size_t round = 0; round < COUNT_OF(frame_counts); round++) {
        const size_t count = fill(stacks, frame_counts[round], kept);
        assert_int_equal(count, WAIT_STACKS_PARTS_MAX / 2 / ((frame_counts[round] + 14) / 15 + 1));
        assert_int_equal(wait_stacks_refused(stacks), round + 1);
        struct sample other = sample_of(1, 2, 30);
        uint32_t number = wait_stacks_add(stacks, &other, 2);
        assert_int_not_equal(number, 0);
        assert_shown(stacks, number, &other);
        wait_stacks_release(stacks, number);
        for (size_t i = 0; i < count; i++) {
            wait_stacks_release(stacks, kept[i]);
        }
        assert_int_equal(wait_stacks_count(stacks), 0);
    }
    (void)wait_stacks_free(stacks);
}
