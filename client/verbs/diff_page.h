/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A comparison as a page for a browser. */

#include "diff.h"
#include "flamegraph.h"

/* Saves the page: at most `limit` rows, 0 for all, above the flame graph of both sides. Complains,
 * and returns an exit status. */
int diff_page_save(const char *path, const struct diff *diff, const struct flame *flame,
                   size_t limit);
