/* SPDX-License-Identifier: Apache-2.0 */

/* How the steps of a round are shared. */
#include "round_share.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static uint32_t take_all(struct round_share *share, uint32_t owner)
{
    uint32_t count = 0;
    while (round_share_take(share, owner, 1)) {
        count++;
        assert_true(count <= share->max);
    }
    return count;
}

static void one_user_has_half_and_leaves_some_to_all_others(void **state)
{
    struct round_share share = {.max = 256};
    (void)state;
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

static void each_round_begins_anew(void **state)
{
    struct round_share share = {.max = 256};
    (void)state;
    for (size_t round = 0; round < 3; round++) {
        round_share_begin(&share);
        assert_int_equal(take_all(&share, 4711), 128);
    }
}

static void refuses_as_a_whole(void **state)
{
    struct round_share share = {.max = 256};
    (void)state;
    assert_false(round_share_take(&share, 1, 129));
    assert_int_equal(share.taken, 0);
    assert_true(round_share_take(&share, 1, 128));
    assert_false(round_share_take(&share, 1, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_user_has_half_and_leaves_some_to_all_others),
        cmocka_unit_test(each_round_begins_anew),
        cmocka_unit_test(refuses_as_a_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
