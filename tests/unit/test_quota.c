/* SPDX-License-Identifier: Apache-2.0 */

/* How a bounded amount is shared among holders. */
#include "quota.h"

#include "unit_test.h"

static uint64_t take_all(struct quota *quota, uint32_t holder)
{
    uint64_t count = 0;
    while (quota_take(quota, holder, 1)) {
        count++;
        assert_true(count <= quota->max);
    }
    return count;
}

TEST(one_holder_has_its_part_and_leaves_some_to_all_others)
{
    struct quota half = {.max = 256, .parts = 2};
    struct quota fourth = {.max = 256, .parts = 4};
    assert_int_equal(take_all(&fourth, 4711), 64);
    assert_int_equal(take_all(&half, 4711), 128);
    /* The next holder gets half of the rest, unless it meets the first one in a place of 4,096. All
     * 16 do so with a probability of 4096^-16. */
    uint32_t other = 4712;
    while (other < 4712 + 15 && !quota_take(&half, other, 1)) {
        other++;
    }
    assert_int_equal(take_all(&half, other), 63);
    uint64_t total = half.taken;
    for (uint32_t holder = 1; holder < 1000; holder++) {
        total += take_all(&half, holder);
    }
    assert_int_equal(half.taken, total);
    assert_true(half.taken <= half.max);
}

TEST(what_is_given_back_can_be_taken_again)
{
    struct quota quota = {.max = 256, .parts = 2};
    for (size_t round = 0; round < 3; round++) {
        assert_int_equal(take_all(&quota, 4711), 128);
        quota_give(&quota, 4711, 28);
        assert_int_equal(quota_taken_by(&quota, 4711), 100);
        assert_int_equal(take_all(&quota, 4711), 28);
        quota_clear(&quota);
        assert_int_equal(quota.taken, 0);
    }
}

TEST(takes_all_or_nothing)
{
    struct quota quota = {.max = 256, .parts = 2};
    assert_false(quota_take(&quota, 1, 129));
    assert_int_equal(quota.taken, 0);
    assert_true(quota_take(&quota, 1, 128));
    assert_false(quota_take(&quota, 1, 1));
}

TEST(what_is_charged_beyond_a_part_counts)
{
    struct quota quota = {.max = 256, .parts = 2};
    quota_charge(&quota, 1, 300);
    assert_false(quota_take(&quota, 1, 0));
    quota_give(&quota, 1, 200);
    assert_true(quota_take(&quota, 1, 28));
    assert_false(quota_take(&quota, 1, 1));
}

TEST(more_than_there_is_leaves_nothing)
{
    assert_false(quota_rule_allows(100, 2, 150, 30, 0));
    assert_true(quota_rule_allows(100, 2, 130, 30, 0) == false);
    assert_true(quota_rule_allows(100, 2, 100, 100 / 2, 0) == false);
    assert_true(quota_rule_allows(100, 1, 100, 100, 0));
}
