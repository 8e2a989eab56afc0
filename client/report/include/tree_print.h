/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Prints a tree of stacks, a line or an object a node in the order of the walk. All return what
 * tree_walk() does, and print nothing when that is TREE_NO_FUNCTION. What stands below the text is
 * summary_print_foot()'s.
 */

#include "summary.h"
#include "tree.h"

int tree_print_text(const struct page *page, const struct profile *profile,
                    const struct summary *summary, const struct tree_request *request);
int tree_print_json(FILE *file, const struct profile *profile, const struct summary *summary,
                    const struct tree_request *request);
