/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The memory of held samples against a plain list: whatever is added and released in whatever
 * order, what is held comes out in its order and byte for byte, and what is released is gone. A
 * walk returns those whose table or reading has arrived, and no other.
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

/* For a reading, or for one of two files. */
static struct sample_wait wait_of(uint64_t number)
{
    return number % 3 == 0 ? (struct sample_wait){0} : (struct sample_wait){1, number % 3};
}

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
    assert_int_equal(held->wait.wanted, wait_of(number).wanted);
    assert_int_equal(held->wait.files, wait_of(number).files);
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

/* The walk, in parts of any size, meets those of `numbers` for which something has come. Returns
 * the sample of numbers[wanted], if it is one. */
static const struct held_sample *assert_walk(const struct waiting_samples *held,
                                             struct waiting_walk walk, const uint64_t *numbers,
                                             size_t count, size_t wanted)
{
    const struct held_sample *found = NULL;
    for (size_t i = 0; i <= count; i++) {
        bool has_come = i < count && (wait_of(numbers[i]).wanted == 0
                                          ? walk.has_readings
                                          : (wait_of(numbers[i]).files & walk.files) != 0);
        if (i < count && !has_come) {
            continue;
        }
        const struct held_sample *sample = NULL;
        do {
            size_t steps = 1 + (size_t)rand() % 8;
            sample = waiting_samples_walk(held, &walk, &steps);
            assert_true(sample != NULL || steps == 0 || !walk.is_under_way);
        } while (sample == NULL && walk.is_under_way);
        if (i == count) {
            assert_null(sample);
            break;
        }
        assert_non_null(sample);
        assert_int_equal(sample->record.time_ns, numbers[i]);
        found = i == wanted ? sample : found;
    }
    return found;
}

static const struct waiting_walk all = {.is_under_way = true, .has_readings = true, .files = 3};

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
            const struct sample_wait its = wait_of(next_number);
            if (waiting_samples_add(held, next_number % 7, &example.record, &its)) {
                list[count++] = next_number;
            } else {
                refused_count++;
            }
            next_number++;
        } else if (count > 0) {
            size_t victim = rand() % 3 == 0 ? (size_t)rand() % count : 0;
            const struct held_sample *sample = assert_walk(held, all, list, count, victim);
            assert_is_example(sample, list[victim]);
            waiting_samples_release(held, sample);
            memmove(&list[victim], &list[victim + 1], (count - victim - 1) * sizeof list[0]);
            count--;
        }
        assert_int_equal(waiting_samples_count(held), count);
        assert_int_equal(waiting_samples_first(held) != NULL, count > 0);
        (void)assert_walk(held, all, list, count, 0);
        const struct waiting_walk some = {
            .is_under_way = true, .has_readings = round % 2 == 0, .files = (uint64_t)round % 4};
        (void)assert_walk(held, some, list, count, 0);
    }
    assert_true(refused_count > 0);
    (void)waiting_samples_free(held);
}

/* Whatever is released, added or marked in the middle of a walk, it goes on behind where it was. */
TEST(a_walk_goes_on_while_samples_come_and_go)
{
    static struct example example;
    struct waiting_walk walk = {.is_under_way = true, .files = 1};
    size_t steps = SIZE_MAX;
    struct waiting_samples *held = waiting_samples_new(CAPACITY_BYTES);
    const struct sample_wait first = {1, 1};
    for (uint64_t number = 1; number <= 4; number++) {
        fill_example(&example, number);
        assert_true(waiting_samples_add(held, 0, &example.record, &first));
    }
    const struct held_sample *sample = waiting_samples_walk(held, &walk, &steps);
    assert_int_equal(sample->record.time_ns, 1);
    waiting_samples_mark(held, sample, &wait);
    sample = waiting_samples_walk(held, &walk, &steps);
    assert_int_equal(sample->record.time_ns, 2);
    /* The oldest three go, among them the one that would be next. */
    for (uint64_t number = 1; number <= 3; number++) {
        assert_int_equal(waiting_samples_first(held)->record.time_ns, number);
        waiting_samples_release(held, waiting_samples_first(held));
    }
    fill_example(&example, 5);
    assert_true(waiting_samples_add(held, 0, &example.record, &first));
    assert_int_equal(waiting_samples_walk(held, &walk, &steps)->record.time_ns, 4);
    assert_int_equal(waiting_samples_walk(held, &walk, &steps)->record.time_ns, 5);
    assert_null(waiting_samples_walk(held, &walk, &steps));
    assert_false(walk.is_under_way);
    assert_null(waiting_samples_walk(held, &walk, &steps));
    /* One that was marked is met for what it waits for now. */
    walk = (struct waiting_walk){.is_under_way = true, .files = 2};
    assert_null(waiting_samples_walk(held, &walk, &steps));
    waiting_samples_mark(held, waiting_samples_first(held), &wait);
    walk = (struct waiting_walk){.is_under_way = true, .files = 2};
    assert_int_equal(waiting_samples_walk(held, &walk, &steps)->record.time_ns, 4);
    (void)waiting_samples_free(held);
}

TEST(wipes_what_it_lets_go)
{
    static struct example example;
    struct waiting_samples *held = waiting_samples_new(CAPACITY_BYTES);
    for (uint64_t number = 3; number < 6; number++) {
        const struct sample_wait its = wait_of(number);
        fill_example(&example, number);
        assert_true(waiting_samples_add(held, number % 7, &example.record, &its));
    }
    /* The oldest stays, so the memory does too. */
    const uint64_t numbers[] = {3, 4, 5};
    const struct held_sample *second = assert_walk(held, all, numbers, 3, 1);
    const uint8_t *stack = second->record.sample.user_stack;
    size_t stack_bytes = second->record.sample.user_stack_bytes;
    assert_true(stack_bytes > 0);
    waiting_samples_release(held, second);
    for (size_t i = 0; i < stack_bytes; i++) {
        assert_int_equal(stack[i], 0);
    }
    (void)waiting_samples_free(held);
}

/* One process that fills its share leaves as much again to the next one, and gets its own
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
