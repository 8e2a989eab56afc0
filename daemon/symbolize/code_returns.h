/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "code_backward.h"

/* Fills `returns` of each state, after the look back has settled. Where that takes more than a
 * bounded number of rounds, some are left at 0. Returns false: no more may be looked at. */
bool code_returns_run(const struct code_region *region, const struct cfi_table *table,
                      struct code_backward *states);
