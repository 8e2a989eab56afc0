/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Two libraries of one size: TRUTH_OWN is the function that spins, TRUTH_ROOM the size of its
 * frame.
 */
#include "truth.h"

TRUTH_FUNCTION uint64_t TRUTH_OWN(uint64_t count);
TRUTH_FUNCTION uint64_t TRUTH_OWN(uint64_t count)
{
    volatile uint64_t room[TRUTH_ROOM];
    room[count % TRUTH_ROOM] = 1;
    return truth_spin(count) + room[count % TRUTH_ROOM];
}

void work(uint64_t count);
TRUTH_FUNCTION void work(uint64_t count)
{
    volatile uint64_t room[TRUTH_ROOM * 2];
    room[count % TRUTH_ROOM] = TRUTH_OWN(count);
}
