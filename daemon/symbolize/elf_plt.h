/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "elf_file.h"

/*
 * Adds each entry of the procedure linkage tables as "FUNCTION@plt": what a call into another
 * module goes through has no symbol of its own. Entries are known by the slot through which they
 * jump, and a slot by the relocation that fills it. Anything that is not so is left out.
 *
 * Returns 0, -ENOMEM, or what symbol_builder_add() does.
 */
int elf_plt_add(const struct elf_file *file, struct symbol_builder *builder);
