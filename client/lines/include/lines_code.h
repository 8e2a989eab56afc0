/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The instructions of functions, from the file of their module. A child without rights reads the
 * file (lines.h).
 */

#include "lines.h"
#include "profile.h"

#include <stddef.h>
#include <stdint.h>

#define LINES_INSTRUCTION_BYTES 104

/* More code is not read, of all functions together, nor more functions. */
#define LINES_CODE_BYTES_MAX  ((uint64_t)256 << 10)
#define LINES_CODE_RANGES_MAX ((size_t)64)

/* The code of a function, by the module's own addresses. */
struct lines_range {
    uint64_t start;
    uint64_t end;      /* not above `start`: not known */
    uint64_t read_end; /* instructions were read up to here */
    size_t first;      /* of the instructions, its own */
    size_t count;
};

struct lines_instruction {
    uint64_t address; /* the module's own */
    char text[LINES_INSTRUCTION_BYTES];
};

struct lines_code {
    struct lines_instruction *instructions; /* owned; of each range by rising addresses */
    size_t capacity;
    size_t count;
    struct lines_losses losses;
};

void lines_code_done(struct lines_code *code);

/*
 * Reads what a module (its number in the profile) has in each of the ranges, the first ones first,
 * and says in these what belongs to them. Returns 0; -ENOENT: the module's file is not on this
 * machine, or not as it was; -EBADMSG: it cannot be read, or no further; -ENOMEM. In any case
 * lines_code_done() releases what `ret` has.
 */
int lines_code_read(const struct profile *profile, uint32_t module, struct lines_range *ranges,
                    size_t range_count, struct lines_code *ret);
