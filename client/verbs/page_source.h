/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A recording as the page of a flame graph has it, with what is said of it there. */

#include "flamegraph.h"
#include "profile.h"

/* All zero is none. */
struct page_texts {
    char *host; /* owned; or NULL, as the next */
    char *what;
};

void page_texts_done(struct page_texts *texts);

/* The source of a page; `profile` (borrowed; NULL: there is none) is of the recording `path`. The
 * texts are needed as long as the source. */
struct flame_source page_source(const struct profile *profile, const char *path,
                                struct page_texts *texts);
