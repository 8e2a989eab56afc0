/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Shares a bounded amount (places of a table, bytes, steps of a round) among holders that are not
 * trusted, without knowing how many there will be: each may hold a part of what the others leave.
 * No holder alone can take it all, and the next one finds some: less each time, but some until all
 * is really taken. A holder is an account or a pid.
 */

#include "capacity.h"

#include <stdbool.h>
#include <stdint.h>

#define QUOTA_PLACES CAPACITY(4096)

/* All zero but for `max` and `parts` is a quota of which nothing is taken. */
struct quota {
    uint64_t max;
    uint64_t parts;                  /* a holder may have 1/parts of what the others leave */
    uint64_t taken;                  /* by all holders */
    uint64_t taken_by[QUOTA_PLACES]; /* holders with the same place share it; the hash is seeded */
};

/* The rule: true when a holder with `own` of `taken`, of `max`, may have `more`. For tables that
 * count for themselves what each holder has. */
static inline bool quota_rule_allows(uint64_t max, uint64_t parts, uint64_t taken, uint64_t own,
                                     uint64_t more)
{
    uint64_t others = taken - own;
    return others <= max && own + more <= (max - others) / parts;
}

uint64_t quota_taken_by(const struct quota *quota, uint32_t holder);
/* Takes `amount` for a holder. False: it would be more than the holder's part, and none is taken.
 */
bool quota_take(struct quota *quota, uint32_t holder, uint64_t amount);
/* Takes it even beyond the holder's part. */
void quota_charge(struct quota *quota, uint32_t holder, uint64_t amount);
/* Gives back what the holder has taken. */
void quota_give(struct quota *quota, uint32_t holder, uint64_t amount);
/* Gives back all that was taken. */
void quota_clear(struct quota *quota);
