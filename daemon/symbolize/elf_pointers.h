/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "elf_file.h"

/*
 * Calls for each word of the file's data that its relocations (SHT_RELA) make an address of the
 * module: `value`, at `place`. A callback that returns < 0 ends it. What cannot be read is left
 * out. Returns 0, or what the callback returned.
 */
typedef int (*elf_pointer_fn)(uint64_t place, uint64_t value, void *userdata);
int elf_pointers_relocated(const struct elf_file *file, elf_pointer_fn on_pointer, void *userdata);

/* The same for addresses of code alone. A program with fixed addresses has no such relocations:
 * there each aligned word of its data may be one. -E2BIG: some were left out. */
int elf_pointers_to_code(const struct elf_file *file, elf_pointer_fn on_pointer, void *userdata);
