/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cfi_table.h"
#include "elf_file.h"

/* Of the code of a file so much is looked at. */
#define CODE_THUNKS_BYTES_MAX ((uint64_t)128 << 20)

/*
 * Adds a row for each thunk of a 32-bit file that tells position-independent code its own address.
 * To be called after its call frames, which come first. Returns what cfi_builder_add() does, or
 * -ENOMEM.
 */
int code_thunks_add(const struct elf_file *file, struct cfi_builder *builder);
