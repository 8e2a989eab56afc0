/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Shares of bounded tables for users that are not trusted, without knowing how many there will be:
 * each may hold a part of what the others leave. No holder alone can fill a table,
 * and the next one finds room: less each time, but some until the table is really full.
 */

#include <stdbool.h>
#include <stdint.h>

/* True when a user with `own` of `total`, which has room for `max`, may have `more`: together at
 * most 1/`parts` of what the others leave. */
static inline bool fair_share_allows(uint64_t max, uint64_t parts, uint64_t total, uint64_t own,
                                     uint64_t more)
{
    uint64_t others = total - own;
    return others <= max && own + more <= (max - others) / parts;
}
