/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The instructions of a function, from the file of its module. A child without rights reads the
 * file (lines.h).
 */

#include "lines.h"
#include "profile.h"

#include <stddef.h>
#include <stdint.h>

#define LINES_INSTRUCTION_BYTES 104

/* More code of a function is not read. */
#define LINES_CODE_BYTES_MAX ((uint64_t)256 << 10)

struct lines_instruction {
    uint64_t address; /* the module's own */
    char text[LINES_INSTRUCTION_BYTES];
};

struct lines_code {
    struct lines_instruction *instructions; /* owned; by rising addresses */
    size_t count;
    struct lines_losses losses;
};

void lines_code_done(struct lines_code *code);

/*
 * Reads what a module (its number in the profile) has from `start` to `end`, of which no more than
 * LINES_CODE_BYTES_MAX are read. Returns 0; -ENOENT: the module's file is not on this machine, or
 * not as it was; -EBADMSG: it cannot be read; -ENOMEM. In any case lines_code_done() releases what
 * `ret` has.
 */
int lines_code_read(const struct profile *profile, uint32_t module, uint64_t start, uint64_t end,
                    struct lines_code *ret);
