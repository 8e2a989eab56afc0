/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a worker keeps of the files that it has read: found again as long as the file is the same,
 * and no more of it than the bounds allow.
 */
#include "kept_builders.h"

#include "cleanup.h"
#include "unit_test.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* A file in memory, whose content does not matter. */
static int make_file(struct kept_builder *ret)
{
    int fd = memfd_create("file", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "x", 1), 1);
    assert_int_equal(fstat(fd, &ret->file), 0);
    return fd;
}

/* A builder that knows `count` functions. */
static void fill(struct kept_builder *one, size_t count)
{
    const struct cfi_table *table = NULL;
    struct cfi_rule rule = {.kind = CFI_OFFSET, .cfa_register = 7, .ra_saved = CFI_AT_CFA};
    one->builder = cfi_builder_new();
    one->pointers = (struct code_pointers){0};
    assert_non_null(one->builder);
    for (size_t i = 0; i < count; i++) {
        rule.cfa_offset = i % 2 == 0 ? 8 : 16;
        assert_int_equal(cfi_builder_add(one->builder, 4096 + i, 4096 + i + 1, &rule), 0);
    }
    assert_int_equal(cfi_builder_settle(one->builder, &table), 0);
}

static bool has(struct kept_builders *kept, const struct stat *file)
{
    struct kept_builder found;
    const struct cfi_table *table = NULL;
    bool is_there = kept_builders_take(kept, file, &found, &table);
    if (is_there) {
        assert_int_equal(cfi_table_find(table, 4096)->cfa_offset, 8);
        kept_builder_done(&found);
    }
    return is_there;
}

TEST(gives_back_what_it_keeps_once)
{
    struct kept_builders kept = {.count = 0};
    struct kept_builder one;
    struct kept_builder other;
    cleanup_(closep) int fd = make_file(&one);
    cleanup_(closep) int other_fd = make_file(&other);
    fill(&one, 2);
    kept_builders_keep(&kept, fd, &one);
    assert_false(has(&kept, &other.file));
    assert_true(has(&kept, &one.file));
    assert_false(has(&kept, &one.file));
}

TEST(keeps_nothing_of_a_file_that_has_changed)
{
    struct kept_builders kept = {.count = 0};
    struct kept_builder one;
    cleanup_(closep) int fd = make_file(&one);
    struct stat now;
    fill(&one, 2);
    assert_int_equal(write(fd, "y", 1), 1);
    kept_builders_keep(&kept, fd, &one);
    assert_int_equal(kept.count, 0);
    assert_int_equal(fstat(fd, &one.file), 0);
    fill(&one, 2);
    kept_builders_keep(&kept, fd, &one);
    assert_int_equal(write(fd, "z", 1), 1);
    assert_int_equal(fstat(fd, &now), 0);
    assert_false(has(&kept, &now));
    assert_true(has(&kept, &one.file));
}

TEST(lets_go_of_the_first)
{
    struct kept_builders kept = {.count = 0};
    struct kept_builder all[KEPT_BUILDERS_MAX + 1];
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        cleanup_(closep) int fd = make_file(&all[i]);
        fill(&all[i], 2);
        kept_builders_keep(&kept, fd, &all[i]);
    }
    assert_int_equal(kept.count, KEPT_BUILDERS_MAX);
    assert_false(has(&kept, &all[0].file));
    assert_true(has(&kept, &all[KEPT_BUILDERS_MAX].file));
    kept_builders_done(&kept);
    assert_int_equal(kept.count, 0);
}

TEST(keeps_no_more_memory_than_it_may)
{
    struct kept_builders kept = {.count = 0};
    struct kept_builder all[3];
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        cleanup_(closep) int fd = make_file(&all[i]);
        fill(&all[i], KEPT_BUILDERS_BYTES_MAX / 8 - 65536); /* nearly half, of 4 bytes a row */
        kept_builders_keep(&kept, fd, &all[i]);
    }
    assert_int_equal(kept.count, 2);
    assert_false(has(&kept, &all[0].file));
    assert_true(has(&kept, &all[1].file));
    assert_true(has(&kept, &all[2].file));
    cleanup_(closep) int fd = make_file(&all[0]);
    fill(&all[0], KEPT_BUILDERS_BYTES_MAX / 4);
    kept_builders_keep(&kept, fd, &all[0]);
    assert_int_equal(kept.count, 0);
}
