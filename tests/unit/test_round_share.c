/* SPDX-License-Identifier: Apache-2.0 */

/* How the steps of a round are shared. */
#include "round_share.h"

#include "unit_test.h"

static uint32_t take_all(struct round_share *share, uint32_t owner)
{
    uint32_t count = 0;
    while (round_share_take(share, owner, 1)) {
        count++;
        assert_true(count <= share->max);
    }
    return count;
}

TEST(one_user_has_half_and_leaves_some_to_all_others)
{
    struct round_share share = {.max = 256};
    assert_int_equal(take_all(&share, 4711), 128);
    /* The next user gets half of the rest, unless it meets the first one in a place of 256. All 16
     * do so with a probability of 256^-16. */
    uint32_t other = 4712;
    while (other < 4712 + 15 && !round_share_take(&share, other, 1)) {
        other++;
    }
    assert_int_equal(take_all(&share, other), 63);
    uint32_t total = share.taken;
    for (uint32_t owner = 1; owner < 1000; owner++) {
        total += take_all(&share, owner);
    }
    assert_int_equal(share.taken, total);
    assert_true(share.taken <= share.max);
}

TEST(each_round_begins_anew)
{
    struct round_share share = {.max = 256};
    for (size_t round = 0; round < 3; round++) {
        round_share_begin(&share);
        assert_int_equal(take_all(&share, 4711), 128);
    }
}

TEST(refuses_as_a_whole)
{
    struct round_share share = {.max = 256};
    assert_false(round_share_take(&share, 1, 129));
    assert_int_equal(share.taken, 0);
    assert_true(round_share_take(&share, 1, 128));
    assert_false(round_share_take(&share, 1, 1));
}
