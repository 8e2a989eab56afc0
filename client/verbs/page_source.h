/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A recording as the page of a flame graph has it, with what is said of it there. */

#include "flamegraph.h"
#include "load.h"
#include "profile.h"

/* All zero is none. */
struct page_texts {
    char *host; /* owned; or NULL, as the next */
    char *what;
};

void page_texts_done(struct page_texts *texts);

/* The source of a page; `profile` (borrowed) is of the recording `path`. The texts are needed as
 * long as the source. */
struct flame_source page_source(const struct profile *profile, const char *path,
                                struct page_texts *texts);

/* The sources of a page with all that it switches between. All zero: none. */
#define PAGE_SOURCES_MAX (1 + LOAD_WAITS_MAX)
struct page_sources {
    struct flame_source all[PAGE_SOURCES_MAX];
    struct page_texts texts[PAGE_SOURCES_MAX];
    size_t count;
};
void page_sources_done(struct page_sources *sources);

/* Adds a profile of the recording `path` (both borrowed as long as the sources are); and its waits.
 */
void page_sources_add(struct page_sources *sources, const struct profile *profile,
                      const char *path);
void page_sources_add_waits(struct page_sources *sources, const struct waits *waits,
                            const char *path);
