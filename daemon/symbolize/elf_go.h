/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "elf_file.h"
#include "go_functions.h"

/* A section with a larger table is not read: the largest known is of a program of 700 MB. */
#define ELF_GO_BYTES_MAX ((uint64_t)256 << 20)

/*
 * Calls for each function of a Go program that has no .symtab, with the names that its own runtime
 * shows: those of .symtab, but for type arguments ("[...]") and the suffix of assembly (".abi0").
 * A file that has none, or is broken there, has no such functions. A callback that returns < 0 ends
 * it. Returns 0, -ENOMEM, or what the callback did.
 */
int elf_go_functions(const struct elf_file *file, go_function_fn on_function, void *userdata);
