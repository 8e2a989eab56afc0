/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <wchar.h>

/* A line of a screen has no more. */
#define TOP_CELLS_MAX ((size_t)1024)

/*
 * Puts a text (borrowed) into exactly `columns` cells of a terminal, TOP_CELLS_MAX at most: of a
 * longer one the middle is left out, and "..." stands for it; behind a shorter one stand spaces.
 * What a terminal obeys, what has no width of its own, and what is not UTF-8 is '?', and so is all
 * but ASCII without `is_utf8`, where the locale has no such characters. Of wide characters only
 * whole ones are shown. `ret` has room for TOP_CELLS_MAX + 1. Returns how many characters it has.
 */
size_t top_cells_fit(const char *text, size_t columns, bool is_utf8, wchar_t *ret);
