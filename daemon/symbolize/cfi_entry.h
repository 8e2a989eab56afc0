/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cfi_table.h"
#include "elf_file.h"
#include "entry_code.h"

/*
 * How much of a file's code at `start` belongs to an entry of unknown size that begins there, and
 * that nothing else of the file claims: no range that the builder has, no symbol, no other section.
 * Nothing, where there is no code.
 */
struct entry_code cfi_entry_measure(const struct elf_file *file, const struct cfi_builder *builder,
                                    uint64_t start);
