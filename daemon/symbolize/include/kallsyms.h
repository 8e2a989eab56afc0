/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "symbol_table.h"

/*
 * Adds the functions of a text of /proc/kallsyms, as "name" or "name [module]", at their addresses
 * in memory. The text has no sizes: each function reaches to the next symbol of any kind.
 *
 * Returns 0; -EACCES: every address is 0, so the kernel hid them from the process that opened it;
 * -EBADMSG: not such a text; -E2BIG, -ENOMEM.
 */
int kallsyms_parse(const char *text, size_t bytes, struct symbol_builder *builder);

/* The same for a file (borrowed), which is read from its start: a reader that died halfway may have
 * moved the shared offset. Also returns -errno of pread(). */
int kallsyms_read(int fd, struct symbol_builder *builder);
