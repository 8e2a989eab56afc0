/* SPDX-License-Identifier: Apache-2.0 */

/* Records come out once, whole, in the order of their time, and not before the horizon reaches
 * them. */
#include "sideband.h"
#include "unit_test.h"

#include "core_dump.h"

static void add(struct sideband *sideband, uint64_t time_ns, uint64_t number)
{
    uint64_t record[3] = {number, ~number, time_ns};
    assert_true(sideband_add(sideband, time_ns, (const uint8_t *)record, sizeof record));
}

static void expect(struct sideband *sideband, uint64_t horizon_ns, uint64_t number)
{
    size_t size_bytes = 0;
    uint64_t record[3];
    const uint8_t *bytes = sideband_next(sideband, horizon_ns, &size_bytes);
    assert_non_null(bytes);
    assert_int_equal(size_bytes, sizeof record);
    memcpy(record, bytes, sizeof record);
    assert_int_equal(record[0], number);
    assert_int_equal(record[1], ~number);
}

#define STORY(name) TEST_MADE(struct sideband *sideband, name, sideband_new(), sideband_free)

STORY(sorts_by_time_and_keeps_equal_times_in_order)
{
    size_t size_bytes = 0;
    add(sideband, 30, 1);
    add(sideband, 10, 2);
    add(sideband, 20, 3);
    add(sideband, 10, 4);
    sideband_sort(sideband);
    expect(sideband, 100, 2);
    expect(sideband, 100, 4);
    expect(sideband, 100, 3);
    expect(sideband, 100, 1);
    assert_null(sideband_next(sideband, 100, &size_bytes));
}

STORY(keeps_what_is_newer_than_the_horizon)
{
    size_t size_bytes = 0;
    add(sideband, 30, 1);
    add(sideband, 10, 2);
    sideband_sort(sideband);
    expect(sideband, 29, 2);
    assert_null(sideband_next(sideband, 29, &size_bytes));
    add(sideband, 25, 3); /* late, but not too late */
    sideband_sort(sideband);
    expect(sideband, 30, 3);
    expect(sideband, 30, 1);
    assert_null(sideband_next(sideband, UINT64_MAX, &size_bytes));
}

/* A record may be words of somebody's stack. */
STORY(what_was_handed_out_is_wiped)
{
    size_t size_bytes = 0;
    add(sideband, 10, 1);
    add(sideband, 20, 2);
    add(sideband, 30, 3);
    sideband_sort(sideband);
    const uint8_t *first = sideband_next(sideband, 20, &size_bytes);
    assert_non_null(first);
    assert_false(is_in_core_dump(first));
    assert_non_null(sideband_next(sideband, 20, &size_bytes));
    sideband_sort(sideband);
    const uint8_t *last = sideband_next(sideband, 30, &size_bytes);
    assert_ptr_equal(last, first); /* it has moved up */
    for (size_t i = size_bytes; i < 3 * size_bytes; i++) {
        assert_int_equal(last[i], 0);
    }
}

STORY(many_rounds_need_no_more_memory_than_what_waits)
{
    uint64_t seed = 88172645463325252U;
    uint64_t handed_out = 0;
    uint64_t last_ns = 0;
    size_t size_bytes = 0;
    /* 72 MB in all: past the bound of 64 MiB if anything that was handed out were kept. */
    for (uint64_t round = 1; round <= 3000; round++) {
        for (uint64_t i = 0; i < 1000; i++) {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            add(sideband, round * 1000 + seed % 1500, i);
        }
        sideband_sort(sideband);
        const uint8_t *bytes = NULL;
        while ((bytes = sideband_next(sideband, round * 1000 + 999, &size_bytes)) != NULL) {
            uint64_t record[3];
            memcpy(record, bytes, sizeof record);
            assert_true(record[2] >= last_ns);
            last_ns = record[2];
            handed_out++;
        }
    }
    sideband_sort(sideband);
    while (sideband_next(sideband, UINT64_MAX, &size_bytes) != NULL) {
        handed_out++;
    }
    assert_int_equal(handed_out, 3000000);
}

STORY(refuses_what_is_past_its_bound)
{
    static uint8_t record[65536];
    size_t size_bytes = 0;
    size_t added = 0;
    while (sideband_add(sideband, added, record, sizeof record)) {
        added++;
    }
    assert_int_equal(added, ((size_t)64 << 20) / sizeof record);
    sideband_sort(sideband);
    for (size_t i = 0; i < added; i++) {
        assert_non_null(sideband_next(sideband, UINT64_MAX, &size_bytes));
    }
    sideband_sort(sideband);
    assert_true(sideband_add(sideband, 1, record, sizeof record));
}

/* Small records as well: what waits is sorted and applied in one round. */
STORY(refuses_too_many_however_small_they_are)
{
    size_t added = 0;
    while (sideband_add(sideband, added, (const uint8_t *)"12345678", 8)) {
        added++;
        assert_true(added <= 131072);
    }
    assert_int_equal(added, 131072);
    size_t size_bytes = 0;
    sideband_sort(sideband);
    assert_non_null(sideband_next(sideband, UINT64_MAX, &size_bytes));
    sideband_sort(sideband);
    assert_true(sideband_add(sideband, 1, (const uint8_t *)"12345678", 8));
    assert_false(sideband_add(sideband, 1, (const uint8_t *)"12345678", 8));
}

/* A storm's records are applied in the round that brings them: the next one's find all places free.
 */
STORY(what_was_handed_out_takes_no_place_of_what_comes)
{
    static const uint8_t record[65536];
    static const struct {
        size_t size_bytes, count;
    } cases[] = {{8, 131072}, {sizeof record, 1024}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        for (uint64_t round = 0; round < 3; round++) {
            size_t size_bytes = 0;
            for (size_t added = 0; added < cases[i].count; added++) {
                assert_true(sideband_add(sideband, round, record, cases[i].size_bytes));
            }
            assert_false(sideband_add(sideband, round, record, cases[i].size_bytes));
            sideband_sort(sideband);
            for (size_t taken = 0; taken < cases[i].count; taken++) {
                assert_non_null(sideband_next(sideband, round, &size_bytes));
            }
        }
    }
}

/* Also when the waiting ones move to make place. */
STORY(what_waits_keeps_its_order_when_more_is_added)
{
    size_t size_bytes = 0;
    add(sideband, 30, 1);
    add(sideband, 10, 2);
    add(sideband, 20, 3);
    sideband_sort(sideband);
    expect(sideband, 10, 2);
    add(sideband, 25, 4);
    add(sideband, 20, 5);
    sideband_sort(sideband);
    expect(sideband, 30, 3);
    expect(sideband, 30, 5);
    expect(sideband, 30, 4);
    expect(sideband, 30, 1);
    assert_null(sideband_next(sideband, UINT64_MAX, &size_bytes));
}
