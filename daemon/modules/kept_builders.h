/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is left of the call-frame tables that a worker has made last, by file. Mostly a file's table
 * of all rows is asked for soon after its own, if it is, and much of the work for both is the same.
 * All zero: none are kept.
 */

#include "code_rows.h"

#include <sys/stat.h>

#define KEPT_BUILDERS_MAX       8
#define KEPT_BUILDERS_BYTES_MAX ((size_t)16 << 20)

struct kept_builder {
    struct stat file; /* as it was when it was read */
    struct cfi_builder *builder;
    struct code_pointers pointers;
};

struct kept_builders {
    struct kept_builder all[KEPT_BUILDERS_MAX]; /* the one that was kept first comes first */
    size_t count;
};

/* Keeps the builder and the pointers (owned from now on) of a file, which was as `one->file` says
 * before it was read; if it still is, and as far as there is room: those that were kept first have
 * to go. */
void kept_builders_keep(struct kept_builders *kept, int fd, const struct kept_builder *one);

/* What is kept of the same file, if that has not changed since (returned: kept_builder_done()), and
 * the builder's table (borrowed from it). False: nothing is. */
bool kept_builders_take(struct kept_builders *kept, const struct stat *file,
                        struct kept_builder *ret, const struct cfi_table **ret_table);

void kept_builder_done(struct kept_builder *one);
void kept_builders_done(struct kept_builders *kept);
