/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Groups come out whole, in their lane's order, definitions before the samples that may need them;
 * what was not acknowledged comes out again, with the log that it was put beside.
 */
#include "trace_buffer.h"
#include "unit_test.h"

#include <pthread.h>

#define LANE_BYTES ((size_t)256 * 1024)

/* Puts a group of one word, at once to be taken. */
static void put_word(struct trace_buffer *buffer, size_t lane, uint64_t word)
{
    assert_true(trace_buffer_put(buffer, lane, &word, sizeof word));
    trace_buffer_mark(buffer);
    trace_buffer_show(buffer);
}

static void assert_takes(struct trace_buffer *buffer, const uint64_t *words, size_t count)
{
    uint64_t out[64] = {0};
    assert_int_equal(trace_buffer_take(buffer, out, sizeof out), count * sizeof *words);
    assert_memory_equal(out, words, count * sizeof *words);
}

#define WORDS(...) ROWS_OF(uint64_t, __VA_ARGS__)

#define STORY(name)                                                                                \
    TEST_MADE(struct trace_buffer *buffer, name, trace_buffer_new(2, LANE_BYTES, LANE_BYTES),      \
              trace_buffer_free)

STORY(hands_out_no_sample_before_all_definitions)
{
    uint64_t big[512] = {7};
    uint64_t out[520] = {0};
    assert_true(trace_buffer_put(buffer, TRACE_LANE_DEFINITIONS, big, 8));
    assert_true(trace_buffer_put(buffer, TRACE_LANE_DEFINITIONS, big, sizeof big));
    put_word(buffer, TRACE_LANE_CPU(0), 9);
    assert_int_equal(trace_buffer_take(buffer, out, 64), 8);
    assert_int_equal(trace_buffer_take(buffer, out, 64), 0);
    assert_int_equal(trace_buffer_take(buffer, out, sizeof out), sizeof big + 8);
    assert_int_equal(out[512], 9);
}

STORY(holds_samples_back_until_they_are_shown)
{
    put_word(buffer, TRACE_LANE_CPU(0), 1);
    trace_buffer_mark(buffer);
    assert_true(trace_buffer_put(buffer, TRACE_LANE_CPU(0), (uint64_t[]){2}, 8));
    trace_buffer_show(buffer);
    assert_true(trace_buffer_put(buffer, TRACE_LANE_DEFINITIONS, (uint64_t[]){3}, 8));
    assert_takes(buffer, WORDS(3, 1));
    assert_int_equal(trace_buffer_waiting_bytes(buffer), 16);
    trace_buffer_mark(buffer);
    assert_takes(buffer, NULL, 0);
    trace_buffer_show(buffer);
    assert_takes(buffer, WORDS(2));
}

STORY(a_full_lane_refuses_until_an_acknowledgement)
{
    static uint64_t out[LANE_BYTES / 8];
    uint64_t group[16] = {0};
    uint64_t put = 0;
    for (group[0] = 0; trace_buffer_put(buffer, TRACE_LANE_CPU(0), group, sizeof group);
         group[0]++) {
        put++;
    }
    trace_buffer_mark(buffer);
    trace_buffer_show(buffer);
    assert_int_equal(put, LANE_BYTES / (sizeof group + 8));
    assert_false(trace_buffer_has_room(buffer, TRACE_LANE_CPU(0), sizeof group));
    assert_true(trace_buffer_has_room(buffer, TRACE_LANE_DEFINITIONS, sizeof group));
    assert_int_equal(trace_buffer_take(buffer, out, sizeof out), put * sizeof group);
    for (uint64_t i = 0; i < put; i++) {
        assert_int_equal(out[i * 16], i);
    }
    assert_false(trace_buffer_put(buffer, TRACE_LANE_CPU(0), group, sizeof group));
    trace_buffer_acknowledge(buffer);
    assert_true(trace_buffer_put(buffer, TRACE_LANE_CPU(0), group, sizeof group));
}

STORY(room_that_is_kept_is_there_whatever_came_meanwhile)
{
    size_t lane = TRACE_LANE_CPU(0);
    uint64_t group[16] = {0};
    uint64_t one = 0;
    assert_false(trace_buffer_reserve(buffer, lane, LANE_BYTES));
    assert_true(trace_buffer_reserve(buffer, lane, sizeof group));
    assert_true(trace_buffer_reserve(buffer, lane, sizeof group));
    while (trace_buffer_put(buffer, lane, &one, sizeof one)) {
        one++;
    }
    assert_int_equal(one, (LANE_BYTES - 2 * (8 + sizeof group)) / 16);
    assert_false(trace_buffer_reserve(buffer, lane, sizeof group));
    for (size_t i = 0; i < 2; i++) {
        trace_buffer_release(buffer, lane, sizeof group);
        assert_true(trace_buffer_put(buffer, lane, group, sizeof group));
    }
    assert_false(trace_buffer_put(buffer, lane, &one, sizeof one));
}

STORY(samples_stay_with_their_log)
{
    put_word(buffer, TRACE_LANE_DEFINITIONS, 1);
    assert_true(trace_buffer_put(buffer, TRACE_LANE_CPU(0), (uint64_t[]){11}, 8));
    assert_true(trace_buffer_has_log(buffer));
    trace_buffer_next_log(buffer);
    put_word(buffer, TRACE_LANE_DEFINITIONS, 2);
    put_word(buffer, TRACE_LANE_CPU(0), 12);
    assert_false(trace_buffer_has_log(buffer)); /* both are needed */

    assert_true(trace_buffer_begins_segment(buffer));
    assert_takes(buffer, WORDS(1, 11));
    assert_takes(buffer, NULL, 0);
    assert_true(trace_buffer_begins_segment(buffer));
    assert_takes(buffer, WORDS(2, 12));
    assert_false(trace_buffer_has_log(buffer));

    trace_buffer_rewind(buffer);
    assert_true(trace_buffer_begins_segment(buffer));
    assert_takes(buffer, WORDS(1, 11));
    trace_buffer_acknowledge(buffer);
    assert_true(trace_buffer_has_log(buffer));
    assert_true(trace_buffer_begins_segment(buffer));
    assert_takes(buffer, WORDS(2, 12));
}

STORY(a_rewind_leaves_out_a_log_without_samples)
{
    put_word(buffer, TRACE_LANE_DEFINITIONS, 1);
    put_word(buffer, TRACE_LANE_CPU(0), 11);
    assert_true(trace_buffer_begins_segment(buffer));
    assert_takes(buffer, WORDS(1, 11));
    put_word(buffer, TRACE_LANE_DEFINITIONS, 2); /* of which no reader took note */
    trace_buffer_acknowledge(buffer);
    trace_buffer_next_log(buffer);
    put_word(buffer, TRACE_LANE_DEFINITIONS, 3);
    trace_buffer_rewind(buffer);
    assert_true(trace_buffer_begins_segment(buffer));
    assert_takes(buffer, WORDS(3));
    assert_true(trace_buffer_has_log(buffer));
}

/* Memory of this process, by the kernel's account. */
static size_t resident_bytes(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*u %lu", &pages), 1);
    (void)fclose(file);
    return pages * 4096;
}

/* 64 MB in small pieces, each read at once, through a lane that could hold all of it. */
TEST(what_was_read_is_given_back_however_small_the_reads)
{
    struct trace_buffer *buffer = trace_buffer_new(1, LANE_BYTES, (size_t)128 << 20);
    uint64_t group[119] = {1};
    uint64_t out[119];
    size_t before = resident_bytes();
    for (int i = 0; i < 67000; i++) {
        assert_true(trace_buffer_put(buffer, TRACE_LANE_CPU(0), group, sizeof group));
        trace_buffer_mark(buffer);
        trace_buffer_show(buffer);
        assert_int_equal(trace_buffer_take(buffer, out, sizeof out), sizeof group);
        trace_buffer_acknowledge(buffer);
    }
    /* Sanitizers keep books of their own; 64 MB would show all the same. */
    assert_true(resident_bytes() < before + ((size_t)16 << 20));
    (void)trace_buffer_free(buffer);
}

/* Twenty logs of 8 MiB, each full, each read. */
TEST(a_log_that_is_over_is_given_back)
{
    struct trace_buffer *buffer = trace_buffer_new(1, (size_t)8 << 20, LANE_BYTES);
    static uint64_t group[8192] = {1};
    static uint64_t out[8193];
    size_t before = resident_bytes();
    for (int log = 0; log < 20; log++) {
        while (trace_buffer_put(buffer, TRACE_LANE_DEFINITIONS, group, sizeof group)) {
        }
        put_word(buffer, TRACE_LANE_CPU(0), 1);
        trace_buffer_next_log(buffer);
        for (bool any = true; any;) {
            (void)trace_buffer_begins_segment(buffer);
            any = trace_buffer_take(buffer, out, sizeof out) > 0;
            trace_buffer_acknowledge(buffer);
        }
    }
    assert_true(resident_bytes() < before + ((size_t)16 << 20));
    (void)trace_buffer_free(buffer);
}

TEST(what_is_not_filled_is_not_resident)
{
    size_t before = resident_bytes();
    struct trace_buffer *buffer = trace_buffer_new(4, (size_t)64 << 20, (size_t)64 << 20);
    put_word(buffer, TRACE_LANE_DEFINITIONS, 1);
    put_word(buffer, TRACE_LANE_CPU(0), 1);
    assert_true(resident_bytes() < before + ((size_t)1 << 20));
    (void)trace_buffer_free(buffer);
}

STORY(no_lane_starves)
{
    uint64_t from_second = 0;
    for (uint64_t i = 0; i < 100; i++) {
        uint64_t out = 0;
        put_word(buffer, TRACE_LANE_CPU(0), 1);
        put_word(buffer, TRACE_LANE_CPU(1), 2);
        assert_int_equal(trace_buffer_take(buffer, &out, 8), 8);
        from_second += out == 2;
    }
    assert_in_range(from_second, 40, 60);
}

#define GROUPS 200000

/* Group i of a lane: 1..40 words, the first of which is i; the others are i too. */
static bool put_group(struct trace_buffer *buffer, uint64_t i)
{
    uint64_t group[40];
    size_t count = 1 + i % 40;
    for (size_t k = 0; k < count; k++) {
        group[k] = i;
    }
    return trace_buffer_put(buffer, i % 3, group, count * 8);
}

static void *write_groups(void *userdata)
{
    struct trace_buffer *buffer = userdata;
    for (uint64_t i = 0; i < GROUPS; i++) {
        while (!put_group(buffer, i)) {
            struct timespec pause = {.tv_nsec = 1000};
            trace_buffer_mark(buffer);
            trace_buffer_show(buffer);
            if (i % 3 == TRACE_LANE_DEFINITIONS && trace_buffer_has_log(buffer)) {
                trace_buffer_next_log(buffer);
            }
            (void)nanosleep(&pause, NULL);
        }
    }
    trace_buffer_mark(buffer);
    trace_buffer_show(buffer);
    return NULL;
}

/* Small lanes, so that they wrap and memory is given back hundreds of times, and logs that are
 * over dozens of times. Each sample comes after the definition before it, be it of another log. */
STORY(two_threads_lose_and_tear_nothing)
{
    static uint64_t out[8192];
    uint64_t next[3] = {0, 1, 2};
    uint64_t groups = 0;
    pthread_t writer;
    assert_int_equal(pthread_create(&writer, NULL, write_groups, buffer), 0);
    while (groups < GROUPS) {
        (void)trace_buffer_begins_segment(buffer);
        size_t words = trace_buffer_take(buffer, out, sizeof out) / 8;
        for (size_t i = 0; i < words; groups++) {
            uint64_t number = out[i];
            assert_int_equal(number, next[number % 3]);
            assert_true(number % 3 == 0 || next[0] > number - number % 3);
            next[number % 3] += 3;
            for (size_t k = 0; k < 1 + number % 40; k++) {
                assert_int_equal(out[i + k], number);
            }
            i += 1 + number % 40;
        }
        trace_buffer_acknowledge(buffer);
    }
    (void)pthread_join(writer, NULL);
    assert_int_equal(trace_buffer_waiting_bytes(buffer), 0);
}

STORY(counts_samples_until_they_are_acknowledged)
{
    uint64_t words[3] = {1, 2, 3};
    put_word(buffer, TRACE_LANE_DEFINITIONS, 1);
    assert_true(trace_buffer_put_samples(buffer, TRACE_LANE_CPU(0), words, 24, 5));
    assert_true(trace_buffer_put_samples(buffer, TRACE_LANE_CPU(1), words, 8, 1));
    assert_int_equal(trace_buffer_unread_samples(buffer), 6);
    trace_buffer_mark(buffer);
    trace_buffer_show(buffer);
    assert_takes(buffer, WORDS(1, 1, 2, 3, 1));
    assert_int_equal(trace_buffer_unread_samples(buffer), 6);
    trace_buffer_rewind(buffer);
    assert_takes(buffer, WORDS(1, 1, 1, 2, 3));
    trace_buffer_acknowledge(buffer);
    assert_int_equal(trace_buffer_unread_samples(buffer), 0);
    assert_true(trace_buffer_put_samples(buffer, TRACE_LANE_CPU(1), words, 8, 2));
    trace_buffer_rewind(buffer);
    assert_int_equal(trace_buffer_unread_samples(buffer), 2);
}
