/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A module cache that opens nothing: it notes what it is asked for, and answers when the test says
 * so. NULL in place of a cache refuses everything.
 */

#include "module_cache.h"

#include <stddef.h>

#define FAKE_REQUESTS_MAX 256

struct module_cache {
    struct fake_request {
        enum module_table table;
        enum module_urgency urgency;
        uint64_t inode;               /* 0: the vdso, or the kernel */
        struct module_ticket *ticket; /* NULL once it is released */
    } requests[FAKE_REQUESTS_MAX];
    size_t request_count;
    struct fake_request
        names[FAKE_REQUESTS_MAX]; /* for symbols, by the same opening as the above */
    size_t names_count;
    struct fake_request code_request; /* the last for MODULE_CODE that failed at once */
    size_t held_count;                /* tickets that are not released */
    uint64_t shown_ns;                /* of the answers that come from now on */
    bool refuses;
    bool has_code; /* requests for MODULE_CODE are as all others; if not, they fail at once */
};

/* To all that asked for this inode and have no answer yet, but for `names`; `table` stays the
 * caller's. */
void fake_module_ready(struct module_cache *cache, uint64_t inode, const struct cfi_table *table);
void fake_module_failed(struct module_cache *cache, uint64_t inode, enum module_failure failure);
/* To all of `names` without an answer. NONE: they are ready. */
void fake_names_answer(struct module_cache *cache, enum module_failure failure);

/*
 * A table of a file whose first 0x1000 bytes are code: at 0x10 a function whose caller is found at
 * rsp + 8 (CFA = rsp + 16), at 0x100 a root, at 0x200 one that goes over to another stack.
 * Borrowed, until fake_module_table_free().
 */
const struct cfi_table *fake_module_table(void);
void fake_module_table_free(void);
