/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which modules of a recording have not been read, as far as its records say that: of a file that
 * was read a module has a build-id, or its inode in its name.
 */

#include "fxt_reader.h"

#include <stdbool.h>
#include <stddef.h>

#define UNREAD_MODULES_MAX 256

/* All zero is empty. More than there is room for are left out. */
struct unread_modules {
    char *paths[UNREAD_MODULES_MAX]; /* owned; a NUL may be within one, and is behind each */
    size_t path_bytes[UNREAD_MODULES_MAX];
    size_t count;
    bool has_kernel;      /* stacks of it */
    bool is_kernel_named; /* a function of it has a name */
};

void unread_modules_done(struct unread_modules *modules);

/* Takes a record, if it is of a module or of names. */
void unread_modules_see(struct unread_modules *modules, const struct fxt_record *record);

/* Whether there are stacks of the kernel, and no function of it has a name. */
bool unread_modules_has_kernel(const struct unread_modules *modules);
