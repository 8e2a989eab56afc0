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

/* Pointers to code in a file's data, read once for both of its tables; all zero: not yet. */
struct code_pointers {
    uint64_t *values; /* owned; where they lead */
    size_t count;
    size_t capacity;
    bool is_whole; /* all that were read are there, */
    int result;    /* of the reading: 0, or -E2BIG where there are more that were not */
};
#define CODE_POINTERS_MAX ((size_t)1 << 18) /* more are not kept, but read again */
void code_pointers_done(struct code_pointers *pointers);

/* The same as code_rows_read(). Notes pointers that it reads for the next call. */
int code_rows_read_first(int fd, enum code_rows_extent extent, struct code_pointers *pointers,
                         struct cfi_builder *builder);
/* The same with a builder of which cfi_builder_rewind() has left the table of the file's own rows:
 * of the same file, so that its call frames and its pointers are not read again. */
int code_rows_read_again(int fd, enum code_rows_extent extent, const struct cfi_table *table,
                         struct code_pointers *pointers, struct cfi_builder *builder);
