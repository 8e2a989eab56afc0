/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cfi_table.h"

struct elf_file;

/* The number of looks at an instruction that a file may cost, some 20 ns each. Code beyond that has
 * no rows. */
#define CODE_ROWS_VISITS_MAX UINT64_C(200000000)

/*
 * Makes rows from the instructions of code for which the builder has no row that an unwinder can
 * follow: hand-written assembly, linkage tables, whole libraries without call-frame information. To
 * be called last. Returns as cfi_builder_add(). Code that cannot be analysed gets no rows.
 */
int code_rows_add(const struct elf_file *file, struct cfi_builder *builder);

/* All rows of a file: eh_frame_add(), then code_rows_add(). Returns as eh_frame_read(). */
int code_rows_read(int fd, struct cfi_builder *builder);
