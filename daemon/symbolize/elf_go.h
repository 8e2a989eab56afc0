/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "elf_file.h"
#include "go_functions.h"

/* True for a file that Go's linker made, alone or as a part that a C linker took in. What gccgo
 * makes has another runtime, and is none. */
bool elf_go_is_linked(const struct elf_file *file);

/* A section with a larger table is not read: the largest known is of a program of 700 MB. */
#define ELF_GO_BYTES_MAX ((uint64_t)256 << 20)

/*
 * Calls `on_function` for each function of a Go program without .symtab. Names are those of Go's
 * runtime: as in .symtab, but for type arguments ("[...]") and the suffix of assembly (".abi0"). A
 * file without a table of functions, or with a broken one, has no functions. A callback that
 * returns < 0 ends the walk. Returns 0, -ENOMEM, or the callback's result.
 */
int elf_go_functions(const struct elf_file *file, go_function_fn on_function, void *userdata);
