/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "elf_file.h"

/*
 * Adds each entry of the procedure linkage tables as "FUNCTION@plt". Calls into other modules go
 * through these entries, which have no symbols. An entry is recognised by the slot through which it
 * jumps, and the slot by its relocation. Other code is left out.
 *
 * Returns 0, -ENOMEM, or the result of symbol_builder_add().
 */
int elf_plt_add(const struct elf_file *file, struct symbol_builder *builder);
