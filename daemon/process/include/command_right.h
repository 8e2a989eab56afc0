/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whose command lines a user may have: a command line is memory of its process. Root has all. Any
 * other user has those of processes that are this user's alone, which this user could read without
 * any right.
 */

#include <stdbool.h>
#include <stdint.h>

#define COMMAND_UID_NONE UINT32_MAX /* a process of several users, or one that is not dumpable */

/* All zero is no right. */
struct command_right {
    bool is_given;
    uint32_t uid;
};

/* `uid`: the only user of the process with this command line, or COMMAND_UID_NONE. */
static inline bool command_right_covers(const struct command_right *right, uint32_t uid)
{
    return right->is_given && (right->uid == 0 || (right->uid == uid && uid != COMMAND_UID_NONE));
}
