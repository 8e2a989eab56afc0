/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cfi_table.h"
#include "elf_file.h"

/* The functions of a file that are known by their names, the first ones. */
struct cfi_roots;

/* Looks for them. Returns 0 and `*ret`, for which `file` must last (release: cfi_roots_free()), or
 * what elf_go_functions() does. */
int cfi_roots_find(const struct elf_file *file, struct cfi_roots **ret);
struct cfi_roots *cfi_roots_free(struct cfi_roots *roots);

/*
 * Add a CFI_ROOT row for each of these functions that is never called, and see to it that those
 * which go over to another stack are CFI_SWITCH. The builder keeps what came first:
 * cfi_roots_add_certain(), to be called before anything else is added, is for names whose
 * call-frame information is known to be wrong; cfi_roots_add(), to be called last, for all of them,
 * where the module's own word comes first. Both return what cfi_builder_add() does.
 */
int cfi_roots_add_certain(const struct cfi_roots *roots, struct cfi_builder *builder);
int cfi_roots_add(const struct cfi_roots *roots, struct cfi_builder *builder);

/*
 * Adds the row of the entry of a program, after everything else, if nothing is said of it: that of
 * the vDSO for 32 bits is a function that is called. Nor is it a root if its code returns, or if it
 * may be a library's and does not clear the frame pointer. Only for a file with call-frame
 * information.
 */
int cfi_roots_add_entry(const struct elf_file *file, struct cfi_builder *builder);
