/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a stream of FXT records has defined so far: providers, and for each its strings, threads and
 * ticks. The reader's own; no other file includes it.
 */

#include "fxt_format.h"

#define FXT_PROVIDERS_MAX ((size_t)4096)

/* Strings come in pages, so that a single high index does not cost a whole table. */
#define FXT_STRING_PAGE_COUNT 512
#define FXT_STRING_PAGE_SIZE  64

struct fxt_text {
    size_t size_bytes;
    char bytes[];
};

struct fxt_string_page {
    struct fxt_text *texts[FXT_STRING_PAGE_SIZE];
};

struct fxt_thread {
    bool defined;
    uint64_t pid;
    uint64_t tid;
};

struct fxt_provider {
    uint32_t id;
    uint64_t ticks_per_second;
    struct fxt_string_page *pages[FXT_STRING_PAGE_COUNT];
    struct fxt_thread *threads; /* FXT_THREAD_INDEX_MAX + 1, or NULL before the first */
};

struct fxt_tables {
    struct fxt_provider *unnamed;    /* whose records come before any provider; NULL if there are
                                        none */
    struct fxt_provider **providers; /* by rising id */
    size_t provider_count;
    struct fxt_provider *current; /* one of these, or NULL at a segment's start */
};

/* Forgets everything, as a segment's magic number asks; also releases `tables`. */
void fxt_tables_reset(struct fxt_tables *tables);

/* Sets `current` to the unnamed provider where a segment has named none. Returns 0, or -ENOMEM. */
int fxt_tables_need_provider(struct fxt_tables *tables);

/* Adds a provider and makes it current. Returns 0, -EEXIST, -ENOSPC (FXT_PROVIDERS_MAX), -ENOMEM.
 */
int fxt_tables_define_provider(struct fxt_tables *tables, uint32_t id);
/* Makes a provider current. Returns 0, or -ENOENT. */
int fxt_tables_select_provider(struct fxt_tables *tables, uint32_t id);

/* Copies `text`. `index` is 1..FXT_STRING_INDEX_MAX. Returns 0, -EEXIST, -ENOMEM. */
int fxt_provider_define_string(struct fxt_provider *provider, uint16_t index, const char *text,
                               size_t text_bytes);
/* Borrowed until the next reset; NULL when it is not defined. */
const struct fxt_text *fxt_provider_find_string(const struct fxt_provider *provider,
                                                uint16_t index);

/* `index` is 1..FXT_THREAD_INDEX_MAX. Returns 0, -EEXIST, -ENOMEM. */
int fxt_provider_define_thread(struct fxt_provider *provider, uint8_t index, uint64_t pid,
                               uint64_t tid);
/* Borrowed; NULL when it is not defined. */
const struct fxt_thread *fxt_provider_find_thread(const struct fxt_provider *provider,
                                                  uint8_t index);
