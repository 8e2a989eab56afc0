/* SPDX-License-Identifier: Apache-2.0 */

/* An array grows by doubling, keeps what is in it, and refuses what no memory could hold. */
#include "grow.h"
#include "unit_test.h"

TEST(doubles_and_keeps_what_is_there)
{
    uint16_t *items = NULL;
    uint32_t capacity = 0;
    uint32_t moves = 0;
    for (uint16_t i = 0; i < 1000; i++) {
        const uint32_t before = capacity;
        assert_int_equal(grow_from(items, capacity, i + 1U, 3), 0);
        assert_true(capacity == before || capacity == 2 * before || before == 0);
        moves += capacity != before;
        items[i] = i;
    }
    assert_int_equal(capacity, 3 * 512);
    assert_int_equal(moves, 10);
    for (uint16_t i = 0; i < 1000; i++) {
        assert_int_equal(items[i], i);
    }
    assert_int_equal(grow(items, capacity, 5000), 0);
    assert_int_equal(capacity, 5000);
    assert_int_equal(items[999], 999);
    free(items);
}

TEST(an_empty_array_is_one_all_the_same)
{
    char *items = NULL;
    size_t capacity = 0;
    assert_int_equal(grow(items, capacity, 0), 0);
    assert_non_null(items);
    assert_int_equal(capacity, 32);
    free(items);
}

TEST(refuses_more_than_can_be_addressed)
{
    uint64_t *items = NULL;
    size_t capacity = 0;
    assert_int_equal(grow(items, capacity, 1), 0);
    uint64_t *before = items;
    assert_int_equal(grow(items, capacity, SIZE_MAX / sizeof *items + 2), -ENOMEM);
    assert_int_equal(grow(items, capacity, SIZE_MAX), -ENOMEM);
    assert_ptr_equal(items, before);
    assert_int_equal(capacity, 32);
    free(items);
}
