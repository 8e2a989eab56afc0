/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cfi_table.h"

struct elf_file;

/* The number of looks at an instruction that a file may cost, some 20 ns each. Code beyond that has
 * no rows. */
#define CODE_ROWS_VISITS_MAX UINT64_C(200000000)

/* Which code the instructions are followed of. */
enum code_rows_extent {
    CODE_ROWS_OWN, /* code that the file's own rows cover, where these do not tell all: functions
                      that continue in another frame, and registers that a callee keeps. Also
                      small stretches between such code (cfi_table_is_settled()) */
    CODE_ROWS_ALL, /* also all other code that no row covers, which takes several times as long */
};

/*
 * Makes rows from the instructions of code for which the builder has no row that an unwinder can
 * follow: hand-written assembly, linkage tables, whole libraries without call-frame information. To
 * be called last. Returns as cfi_builder_add(). Code that cannot be analysed gets no rows.
 */
int code_rows_add(const struct elf_file *file, enum code_rows_extent extent,
                  struct cfi_builder *builder);

/* All rows of a file: eh_frame_add(), then code_rows_add(). Returns as eh_frame_read(). */
int code_rows_read(int fd, enum code_rows_extent extent, struct cfi_builder *builder);
