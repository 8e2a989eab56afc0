/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cfi_table.h"
#include "elf_file.h"

/*
 * Adds a CFI_ROOT row for each function that nobody calls and that is known by its name. To be
 * called last: the builder keeps what is there already, so the module's own word comes first.
 * Returns what cfi_builder_add() does.
 */
int cfi_roots_add(const struct elf_file *file, struct cfi_builder *builder);
