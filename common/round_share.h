/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Bounds the work of one kind in one round of the collector, counted in steps, and shares it among
 * users. A long round costs samples of all users, so further work is refused or left for a later
 * round, and counted there. Each user may take half of what the
 * others leave of a round (fair_share.h): a user who asks for everything leaves something to each
 * of the others.
 */

#include <stdbool.h>
#include <stdint.h>

#define ROUND_SHARE_USERS 256

struct round_share {
    uint32_t max; /* steps of a round */
    uint32_t taken;
    uint32_t taken_by[ROUND_SHARE_USERS]; /* users with the same place share it */
};

/* All zero but for `max` is a round that has begun. */
void round_share_begin(struct round_share *share);
/* Takes `steps` for a user (a uid, or what else work is charged to); false: none is taken. */
bool round_share_take(struct round_share *share, uint32_t owner, uint32_t steps);
