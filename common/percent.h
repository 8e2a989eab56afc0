/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* A part in percent; 0 of nothing. */
static inline double percent_of(uint64_t part, uint64_t whole)
{
    return whole == 0 ? 0 : 100.0 * (double)part / (double)whole;
}
