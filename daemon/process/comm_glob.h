/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "session_targets.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * A glob as an automaton, so that a comparison takes one step for each byte of the name, whatever
 * the glob is: users choose the names, and the sampling thread compares.
 */
struct comm_glob {
    /* Elements of the glob that a byte may be, a bit for each. */
    uint64_t elements_of[UINT8_MAX + 1];
    uint64_t stars; /* these elements are stars: any number of bytes */
    uint64_t end;   /* behind the last element; 0: nothing matches */
};

/*
 * `pattern` (borrowed) has at most SESSION_COMM_BYTES_MAX bytes and means what fnmatch(3) says
 * without flags, in the locale "C". A '[' without its ']' is an ordinary byte, and a '\' at the end
 * matches nothing.
 */
void comm_glob_compile(const char *pattern, struct comm_glob *ret);

bool comm_glob_matches(const struct comm_glob *glob, const char *name);
