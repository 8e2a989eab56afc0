/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Counts the steps of a round by user. The table is cleared for each round in which steps were
 * taken. No user can choose to share a place of the table with another: the hash is seeded.
 */
#include "round_share.h"

#include "fair_share.h"
#include "seeded_hash.h"

#include <string.h>

#define SHARE_PARTS 2

void round_share_begin(struct round_share *share)
{
    if (share->taken > 0) {
        memset(share->taken_by, 0, sizeof share->taken_by);
        share->taken = 0;
    }
}

bool round_share_take(struct round_share *share, uint32_t owner, uint32_t steps)
{
    uint32_t *own = &share->taken_by[seeded_hash_pair(owner, 0) % ROUND_SHARE_USERS];
    if (!fair_share_allows(share->max, SHARE_PARTS, share->taken, *own, steps)) {
        return false;
    }
    *own += steps;
    share->taken += steps;
    return true;
}
