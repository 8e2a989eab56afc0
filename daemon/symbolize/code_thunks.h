/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cfi_table.h"
#include "elf_file.h"

#include <stdbool.h>
#include <stddef.h>

/* Of the code of a 32-bit file so much is looked at. */
#define CODE_THUNKS_BYTES_MAX ((uint64_t)128 << 20)

/*
 * Adds a row for each thunk of a 32-bit file that tells position-independent code its own address.
 * To be called after its call frames, which come first. Returns what cfi_builder_add() does, or
 * -ENOMEM.
 */
int code_thunks_add(const struct elf_file *file, struct cfi_builder *builder);

/*
 * The end of the thunk through which functions return that GCC makes for -mfunction-return=thunk:
 * it takes its own return address off the stack, and returns. Its call frames say nothing of what
 * it took off: its last row has two words, and begins with that end. A trap may follow.
 */
#define CODE_THUNKS_RETURN_AT    ((size_t)12) /* from its start */
#define CODE_THUNKS_RETURN_BYTES ((size_t)6)
#define CODE_THUNKS_TRAP_BYTES   ((size_t)2) /* at most */
bool code_thunks_is_return(const uint8_t *code, size_t bytes);
