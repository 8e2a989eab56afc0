/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "symbol_table.h"

/*
 * Adds the functions that the text of /proc/kallsyms names, "name" or "name [module]", addresses as
 * they run. Sizes are not in it: each function reaches to the next symbol of any kind.
 *
 * Returns 0; -EACCES: every address is 0, so the kernel hides them from who opened the file;
 * -EBADMSG: not such a text; -E2BIG, -ENOMEM.
 */
int kallsyms_parse(const char *text, size_t bytes, struct symbol_builder *builder);

/* The same with the text read from the start of a file (borrowed), wherever its offset is: a reader
 * that was replaced halfway has moved it. Also -errno of pread(). */
int kallsyms_read(int fd, struct symbol_builder *builder);
