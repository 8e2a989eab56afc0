/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A few builders in the order in which they came, bounded by their number and their memory. A file
 * is the same if its inode, its size and its time of change are.
 */
#include "kept_builders.h"

#include <string.h>

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static size_t count_bytes(const struct kept_builder *one)
{
    return cfi_builder_bytes(one->builder) + one->pointers.capacity * sizeof *one->pointers.values;
}

static size_t sum_bytes(const struct kept_builders *kept)
{
    size_t sum = 0;
    for (size_t i = 0; i < kept->count; i++) {
        sum += count_bytes(&kept->all[i]);
    }
    return sum;
}

/* Takes one out of the order. */
static struct kept_builder take_out(struct kept_builders *kept, size_t number)
{
    struct kept_builder one = kept->all[number];
    kept->count--;
    memmove(&kept->all[number], &kept->all[number + 1],
            (kept->count - number) * sizeof kept->all[0]);
    return one;
}

void kept_builder_done(struct kept_builder *one)
{
    one->builder = cfi_builder_free(one->builder);
    code_pointers_done(&one->pointers);
}

void kept_builders_keep(struct kept_builders *kept, int fd, const struct kept_builder *one)
{
    struct kept_builder added = *one;
    struct stat now;
    if (fstat(fd, &now) < 0 || !is_same_file(&added.file, &now) ||
        cfi_builder_rewind(added.builder) == NULL ||
        count_bytes(&added) > KEPT_BUILDERS_BYTES_MAX) {
        kept_builder_done(&added);
        return;
    }
    while (kept->count == KEPT_BUILDERS_MAX ||
           sum_bytes(kept) > KEPT_BUILDERS_BYTES_MAX - count_bytes(&added)) {
        struct kept_builder first = take_out(kept, 0);
        kept_builder_done(&first);
    }
    kept->all[kept->count++] = added;
}

bool kept_builders_take(struct kept_builders *kept, const struct stat *file,
                        struct kept_builder *ret, const struct cfi_table **ret_table)
{
    for (size_t i = 0; i < kept->count; i++) {
        if (is_same_file(&kept->all[i].file, file)) {
            *ret = take_out(kept, i);
            *ret_table = cfi_builder_rewind(ret->builder);
            return true;
        }
    }
    return false;
}

void kept_builders_done(struct kept_builders *kept)
{
    while (kept->count > 0) {
        struct kept_builder first = take_out(kept, 0);
        kept_builder_done(&first);
    }
}
