/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The sort by numbers against the sort by comparison, which are the same but for the time: of
 * numbers that are near each other and far apart, of few and of many. Elements remember where they
 * came from, so that an order of equal ones is seen.
 */
#include "array.h"

#include "cleanup.h"
#include "unit_test.h"

#include <stdlib.h>
#include <string.h>

#define COUNT_MAX 3000

struct element {
    uint64_t number;
    uint32_t second;
    uint32_t came;
};

static uint64_t draw(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static bool is_second_lower(const void *a, const void *b, const void *userdata)
{
    (void)userdata;
    return ((const struct element *)a)->second < ((const struct element *)b)->second;
}

static bool is_lower(const void *a, const void *b, const void *userdata)
{
    const struct element *left = a;
    const struct element *right = b;
    if (left->number != right->number || userdata == NULL) {
        return left->number < right->number;
    }
    return left->second < right->second;
}

static void compare_sorts(size_t count, uint64_t lowest, uint64_t range, bool has_second)
{
    static struct element by_number[COUNT_MAX];
    static struct element compared[COUNT_MAX];
    static int second;
    uint64_t state = 88172645463325252 + count;
    for (size_t i = 0; i < count; i++) {
        uint64_t number =
            lowest + (range == UINT64_MAX ? draw(&state) : draw(&state) % (range + 1));
        by_number[i] = (struct element){number, (uint32_t)(draw(&state) % 3), (uint32_t)i};
    }
    memcpy(compared, by_number, sizeof compared);
    assert_int_equal(array_sort_by_number(by_number, count, sizeof *by_number,
                                          has_second ? is_second_lower : NULL, NULL),
                     0);
    assert_int_equal(
        array_sort(compared, count, sizeof *compared, is_lower, has_second ? &second : NULL), 0);
    assert_memory_equal(by_number, compared, count * sizeof *compared);
}

TEST(sorts_by_number_as_by_comparison)
{
    static const size_t counts[] = {0, 1, 2, 255, 256, 1000, COUNT_MAX};
    static const uint64_t ranges[] = {
        0, 1, 100, 2047, 2048, UINT64_C(1) << 22, UINT32_MAX, (uint64_t)UINT32_MAX + 1, UINT64_MAX};
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        for (size_t j = 0; j < COUNT_OF(ranges); j++) {
            uint64_t lowest = ranges[j] == UINT64_MAX ? 0 : UINT64_C(0x7fffffff0010);
            compare_sorts(counts[i], lowest, ranges[j], false);
            compare_sorts(counts[i], lowest, ranges[j], true);
        }
    }
}
