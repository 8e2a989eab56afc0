/* SPDX-License-Identifier: Apache-2.0 */

/* Groups come out whole, in their lane's order, definitions before the samples that may need them.
 */
#include "trace_buffer.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LANE_BYTES ((size_t)256 * 1024)

static void hands_out_definitions_first(void **state)
{
    struct trace_buffer *buffer = trace_buffer_new(2, LANE_BYTES, LANE_BYTES);
    uint64_t words[3] = {1, 2, 3};
    uint64_t out[8] = {0};
    (void)state;
    assert_true(trace_buffer_put(buffer, TRACE_LANE_CPU(1), &words[2], 8));
    assert_true(trace_buffer_put(buffer, TRACE_LANE_CPU(0), &words[1], 8));
    assert_true(trace_buffer_put(buffer, TRACE_LANE_DEFINITIONS, &words[0], 8));
    assert_int_equal(trace_buffer_take(buffer, out, sizeof out), 24);
    assert_memory_equal(out, words, sizeof words);
    assert_int_equal(trace_buffer_used_bytes(buffer), 0);
    (void)trace_buffer_free(buffer);
}

static void hands_out_no_sample_before_all_definitions(void **state)
{
    struct trace_buffer *buffer = trace_buffer_new(1, LANE_BYTES, LANE_BYTES);
    uint64_t big[512] = {7};
    uint64_t sample = 9;
    uint64_t out[520] = {0};
    (void)state;
    assert_true(trace_buffer_put(buffer, TRACE_LANE_DEFINITIONS, big, 8));
    assert_true(trace_buffer_put(buffer, TRACE_LANE_DEFINITIONS, big, sizeof big));
    assert_true(trace_buffer_put(buffer, TRACE_LANE_CPU(0), &sample, 8));
    assert_int_equal(trace_buffer_take(buffer, out, 64), 8);
    assert_int_equal(trace_buffer_take(buffer, out, 64), 0);
    assert_int_equal(trace_buffer_take(buffer, out, sizeof out), sizeof big + 8);
    assert_int_equal(out[512], 9);
    (void)trace_buffer_free(buffer);
}

static void a_full_lane_refuses_and_keeps(void **state)
{
    struct trace_buffer *buffer = trace_buffer_new(1, LANE_BYTES, LANE_BYTES);
    static uint64_t out[LANE_BYTES / 8];
    uint64_t group[16] = {0};
    uint64_t put = 0;
    (void)state;
    for (group[0] = 0; trace_buffer_put(buffer, TRACE_LANE_CPU(0), group, sizeof group);
         group[0]++) {
        put++;
    }
    assert_int_equal(put, LANE_BYTES / (sizeof group + 8));
    assert_false(trace_buffer_has_room(buffer, TRACE_LANE_CPU(0), sizeof group));
    assert_true(trace_buffer_has_room(buffer, TRACE_LANE_DEFINITIONS, sizeof group));
    assert_int_equal(trace_buffer_take(buffer, out, sizeof out), put * sizeof group);
    for (uint64_t i = 0; i < put; i++) {
        assert_int_equal(out[i * 16], i);
    }
    assert_true(trace_buffer_put(buffer, TRACE_LANE_CPU(0), group, sizeof group));
    (void)trace_buffer_free(buffer);
}

/* Pages of a lane that are in memory, by the kernel's account of this process. */
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
static void what_was_read_is_given_back_however_small_the_reads(void **state)
{
    struct trace_buffer *buffer = trace_buffer_new(1, LANE_BYTES, (size_t)128 << 20);
    uint64_t group[119] = {1};
    uint64_t out[119];
    (void)state;
    size_t before = resident_bytes();
    for (int i = 0; i < 67000; i++) {
        assert_true(trace_buffer_put(buffer, TRACE_LANE_CPU(0), group, sizeof group));
        assert_int_equal(trace_buffer_take(buffer, out, sizeof out), sizeof group);
    }
    /* Sanitizers keep books of their own; 64 MB would show all the same. */
    assert_true(resident_bytes() < before + ((size_t)16 << 20));
    (void)trace_buffer_free(buffer);
}

static void no_lane_starves(void **state)
{
    struct trace_buffer *buffer = trace_buffer_new(2, LANE_BYTES, LANE_BYTES);
    uint64_t from_second = 0;
    (void)state;
    for (uint64_t i = 0; i < 100; i++) {
        uint64_t first = 1;
        uint64_t second = 2;
        uint64_t out = 0;
        assert_true(trace_buffer_put(buffer, TRACE_LANE_CPU(0), &first, 8));
        assert_true(trace_buffer_put(buffer, TRACE_LANE_CPU(1), &second, 8));
        assert_int_equal(trace_buffer_take(buffer, &out, 8), 8);
        from_second += out == 2;
    }
    assert_in_range(from_second, 40, 60);
    (void)trace_buffer_free(buffer);
}

#define GROUPS 200000

/* Group i of a lane: 1..40 words, the first of which is i; the others are i too. */
static void *write_groups(void *userdata)
{
    struct trace_buffer *buffer = userdata;
    for (uint64_t i = 0; i < GROUPS; i++) {
        uint64_t group[40];
        size_t count = 1 + i % 40;
        for (size_t k = 0; k < count; k++) {
            group[k] = i;
        }
        while (!trace_buffer_put(buffer, i % 3, group, count * 8)) {
            struct timespec pause = {.tv_nsec = 1000};
            (void)nanosleep(&pause, NULL);
        }
    }
    return NULL;
}

/* Small lanes, so that they wrap and memory is given back hundreds of times. */
static void two_threads_lose_and_tear_nothing(void **state)
{
    struct trace_buffer *buffer = trace_buffer_new(2, LANE_BYTES, LANE_BYTES);
    static uint64_t out[8192];
    uint64_t next[3] = {0, 1, 2};
    uint64_t groups = 0;
    pthread_t writer;
    (void)state;
    assert_int_equal(pthread_create(&writer, NULL, write_groups, buffer), 0);
    while (groups < GROUPS) {
        size_t words = trace_buffer_take(buffer, out, sizeof out) / 8;
        for (size_t i = 0; i < words; groups++) {
            uint64_t number = out[i];
            assert_int_equal(number, next[number % 3]);
            next[number % 3] += 3;
            for (size_t k = 0; k < 1 + number % 40; k++) {
                assert_int_equal(out[i + k], number);
            }
            i += 1 + number % 40;
        }
    }
    (void)pthread_join(writer, NULL);
    assert_int_equal(trace_buffer_used_bytes(buffer), 0);
    (void)trace_buffer_free(buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hands_out_definitions_first),
        cmocka_unit_test(hands_out_no_sample_before_all_definitions),
        cmocka_unit_test(a_full_lane_refuses_and_keeps),
        cmocka_unit_test(what_was_read_is_given_back_however_small_the_reads),
        cmocka_unit_test(no_lane_starves),
        cmocka_unit_test(two_threads_lose_and_tear_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
