/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Counts what holders have in a hash table of fixed size. Holders that share a place share its
 * part; no holder can choose its place, since the hash is seeded.
 */
#include "quota.h"

#include "seeded_hash.h"

#include <string.h>

static size_t place_of(uint32_t holder)
{
    return seeded_hash_pair(holder, 0) % QUOTA_PLACES;
}

uint64_t quota_taken_by(const struct quota *quota, uint32_t holder)
{
    return quota->taken_by[place_of(holder)];
}

bool quota_take(struct quota *quota, uint32_t holder, uint64_t amount)
{
    if (!quota_rule_allows(quota->max, quota->parts, quota->taken, quota_taken_by(quota, holder),
                           amount)) {
        return false;
    }
    quota_charge(quota, holder, amount);
    return true;
}

void quota_charge(struct quota *quota, uint32_t holder, uint64_t amount)
{
    quota->taken_by[place_of(holder)] += amount;
    quota->taken += amount;
}

void quota_give(struct quota *quota, uint32_t holder, uint64_t amount)
{
    quota->taken_by[place_of(holder)] -= amount;
    quota->taken -= amount;
}

void quota_clear(struct quota *quota)
{
    if (quota->taken > 0) {
        memset(quota->taken_by, 0, sizeof quota->taken_by);
        quota->taken = 0;
    }
}
