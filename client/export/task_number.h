/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* The number of a process or thread in formats whose numbers have 32 bits. A task that has no
 * number, as one that has exited, is -1. */
static inline uint32_t task_number(uint64_t number)
{
    return number > INT32_MAX ? UINT32_MAX : (uint32_t)number;
}
