/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cfi_table.h"
#include "code_rows.h"
#include "elf_file.h"

/* Where functions begin of which the file has no call frames. */

enum code_start {
    CODE_START_NONE,
    CODE_START_LABEL,    /* of a symbol that may be no function's, or of a pointer */
    CODE_START_FUNCTION, /* of a symbol of that type, or of what may be a call: it is called, or
                            jumped to */
    CODE_START_CALLED,   /* for certain: the return address is on top of the stack */
};

static inline bool code_start_is_function(enum code_start start)
{
    return start == CODE_START_FUNCTION || start == CODE_START_CALLED;
}

struct code_starts;

struct code_starts *code_starts_new(void);
struct code_starts *code_starts_free(struct code_starts *starts);

/* Adds one, of `bytes` of code, 0: unknown; they may come in any order. Returns 0, -ENOMEM, or
 * -E2BIG past a bound. */
int code_starts_add(struct code_starts *starts, uint64_t address, uint64_t bytes,
                    enum code_start kind);

/* Stretches of code, by rising addresses. */
struct code_stretch {
    uint64_t start, end;
};

/* Adds those that the file names, where `table` has no rows that can be followed: symbols, Go's
 * functions, entries of procedure linkage tables, what pointers in its data lead to. Of what is not
 * in one of the stretches (NULL: of all code) none is needed. The pointers are noted, or those that
 * were are used. Returns as code_starts_add(). */
int code_starts_read(struct code_starts *starts, const struct elf_file *file,
                     const struct cfi_table *table, const struct code_stretch *stretches,
                     size_t stretch_count, struct code_pointers *pointers);

/* After the last was added, and before any is asked for. Returns 0 or -ENOMEM. */
int code_starts_sort(struct code_starts *starts);

enum code_start code_starts_find(const struct code_starts *starts, uint64_t address);

/* The number of the first at or behind an address, in the order of addresses; and the address of
 * one by its number, UINT64_MAX: there is none. */
size_t code_starts_number(const struct code_starts *starts, uint64_t address);
uint64_t code_starts_address(const struct code_starts *starts, size_t number);

/* Of one that there is: its kind, and whether data has the address: it may be called, or jumped to
 * with any stack. */
enum code_start code_starts_kind(const struct code_starts *starts, size_t number);
bool code_starts_is_pointed(const struct code_starts *starts, size_t number);

/* Whether both are of one function whose size is known. */
bool code_starts_is_within(const struct code_starts *starts, uint64_t from, uint64_t to);
