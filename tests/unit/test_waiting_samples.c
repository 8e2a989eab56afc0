/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The memory of held samples against a plain list: whatever is added and released in whatever
 * order, what is held comes out in its order and byte for byte, and what is released is gone.
 */
#include "unit_test.h"
#include "waiting_samples.h"

#define CAPACITY_BYTES 65536
#define STACK_BYTES    6000
#define ROUNDS         20000
#define HELD_MAX       256

/* A sample whose every part follows from `number`. */
struct example {
    uint64_t words[64];
    uint8_t stack[STACK_BYTES];
    struct perf_record record;
};

static const struct sample_wait wait = {1, 2};

static void fill_example(struct example *example, uint64_t number)
{
    size_t kernel_count = number % 5;
    size_t user_count = number % 31;
    for (size_t i = 0; i < 64; i++) {
        example->words[i] = number * 64 + i;
    }
    for (size_t i = 0; i < STACK_BYTES; i++) {
        example->stack[i] = (uint8_t)(number + i);
    }
    example->record = (struct perf_record){
        .kind = PERF_KIND_SAMPLE,
        .time_ns = number,
        .pid = (int32_t)(number % 3),
        .sample =
            {
                .kernel_chain = kernel_count == 0 ? NULL : example->words,
                .kernel_count = kernel_count,
                .user_chain = example->words + kernel_count,
                .user_count = user_count,
                .user_regs = example->words + 40,
                .user_regs_count = 17,
                .user_stack = example->stack,
                .user_stack_bytes = (number * 2654435761U) % STACK_BYTES,
            },
    };
}

static void assert_is_example(const struct held_sample *held, uint64_t number)
{
    static struct example example;
    fill_example(&example, number);
    const struct perf_sample_view *want = &example.record.sample;
    const struct perf_sample_view *got = &held->record.sample;
    assert_int_equal(held->cpu_index, number % 7);
    assert_int_equal(held->record.time_ns, number);
    assert_memory_equal(&held->wait, &wait, sizeof wait);
    assert_int_equal(got->kernel_count, want->kernel_count);
    assert_int_equal(got->user_count, want->user_count);
    assert_int_equal(got->user_stack_bytes, want->user_stack_bytes);
    if (want->kernel_count > 0) {
        assert_memory_equal(got->kernel_chain, want->kernel_chain, want->kernel_count * 8);
    }
    if (want->user_count > 0) {
        assert_memory_equal(got->user_chain, want->user_chain, want->user_count * 8);
    }
    assert_memory_equal(got->user_regs, want->user_regs, want->user_regs_count * 8);
    if (want->user_stack_bytes > 0) {
        assert_memory_equal(got->user_stack, want->user_stack, want->user_stack_bytes);
    }
}

TEST(holds_what_a_list_holds)
{
    static struct example example;
    uint64_t list[HELD_MAX];
    size_t count = 0;
    uint64_t next_number = 1;
    uint64_t refused_count = 0;
    struct waiting_samples *held = waiting_samples_new(CAPACITY_BYTES);
    srand(1);
    for (int round = 0; round < ROUNDS; round++) {
        if (rand() % 2 == 0 && count < HELD_MAX) {
            fill_example(&example, next_number);
            if (waiting_samples_add(held, next_number % 7, &example.record, &wait)) {
                list[count++] = next_number;
            } else {
                refused_count++;
            }
            next_number++;
        } else if (count > 0) {
            size_t victim = rand() % 3 == 0 ? (size_t)rand() % count : 0;
            const struct held_sample *sample = waiting_samples_first(held);
            for (size_t i = 0; i < victim; i++) {
                sample = waiting_samples_next(held, sample);
            }
            assert_is_example(sample, list[victim]);
            waiting_samples_release(held, sample);
            memmove(&list[victim], &list[victim + 1], (count - victim - 1) * sizeof list[0]);
            count--;
        }
        assert_int_equal(waiting_samples_count(held), count);
        const struct held_sample *sample = waiting_samples_first(held);
        for (size_t i = 0; i < count; i++) {
            assert_non_null(sample);
            assert_int_equal(sample->record.time_ns, list[i]);
            sample = waiting_samples_next(held, sample);
        }
        assert_null(sample);
    }
    assert_true(refused_count > 0);
    (void)waiting_samples_free(held);
}

TEST(wipes_what_it_lets_go)
{
    static struct example example;
    struct waiting_samples *held = waiting_samples_new(CAPACITY_BYTES);
    for (uint64_t number = 3; number < 6; number++) {
        fill_example(&example, number);
        assert_true(waiting_samples_add(held, number % 7, &example.record, &wait));
    }
    /* The oldest stays, so the memory does too. */
    const struct held_sample *second = waiting_samples_next(held, waiting_samples_first(held));
    const uint8_t *stack = second->record.sample.user_stack;
    size_t stack_bytes = second->record.sample.user_stack_bytes;
    assert_true(stack_bytes > 0);
    waiting_samples_release(held, second);
    for (size_t i = 0; i < stack_bytes; i++) {
        assert_int_equal(stack[i], 0);
    }
    (void)waiting_samples_free(held);
}

/* One process that fills its share leaves as much again to whoever comes next, and gets its own
 * back. */
TEST(leaves_room_for_others)
{
    static struct example example;
    struct waiting_samples *held = waiting_samples_new(CAPACITY_BYTES);
    size_t greedy_bytes = 0;
    fill_example(&example, 1);
    while (waiting_samples_add(held, 0, &example.record, &wait)) {
        greedy_bytes += example.record.sample.user_stack_bytes;
        assert_true(greedy_bytes <= CAPACITY_BYTES / 2);
    }
    assert_true(greedy_bytes > CAPACITY_BYTES / 4);
    example.record.pid = 2;
    assert_true(waiting_samples_add(held, 0, &example.record, &wait));
    assert_true(waiting_samples_add(held, 0, &example.record, &wait));
    example.record.pid = 1;
    assert_false(waiting_samples_add(held, 0, &example.record, &wait));
    while (waiting_samples_count(held) > 0) {
        waiting_samples_release(held, waiting_samples_first(held));
    }
    assert_true(waiting_samples_add(held, 0, &example.record, &wait));
    (void)waiting_samples_free(held);
}
