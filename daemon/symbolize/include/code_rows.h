/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cfi_table.h"

struct elf_file;

/* How often instructions of a file are looked at: some 20 ns each. What is left then has no rows.
 */
#define CODE_ROWS_VISITS_MAX UINT64_C(200000000)

/*
 * Adds rows for code of which the builder has none that an unwinder can follow: hand-written
 * assembly, linkage tables, whole libraries without call-frame information. They come from the
 * instructions. To be called last. Returns as cfi_builder_add(); what cannot be told has no row.
 */
int code_rows_add(const struct elf_file *file, struct cfi_builder *builder);

/* All that a file gives: eh_frame_add(), and then code_rows_add(). Returns as eh_frame_read(). */
int code_rows_read(int fd, struct cfi_builder *builder);
