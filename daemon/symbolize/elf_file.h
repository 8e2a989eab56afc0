/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "symbol_table.h"

#include <gelf.h>

/*
 * An ELF program or library, as all readers here need it. The file is foreign: it is read with
 * pread() only and never mapped, so that a file that shrinks causes a short read and no signal.
 */
struct elf_file {
    Elf *elf;
    int fd; /* borrowed */
    uint64_t file_bytes;
    struct symbol_segment segments[SYMBOL_TABLE_SEGMENTS_MAX]; /* the executable ones, all valid */
    size_t segment_count;
    uint8_t build_id[SYMBOL_BUILD_ID_BYTES_MAX];
    size_t build_id_bytes; /* 0: it has none */
};

/*
 * Opens `fd` (borrowed until elf_file_done()), reads the program headers and the build-id.
 * Returns 0; -EBADMSG: not an ELF program or library, or a broken one; -E2BIG: more executable
 * segments than a table holds; -ENOMEM; or the errno of fstat(). `*ret` needs elf_file_done() after
 * success.
 */
int elf_file_init(struct elf_file *ret, int fd);
void elf_file_done(struct elf_file *file);

/* The machine of the file's code. */
enum elf_machine {
    ELF_MACHINE_OTHER,
    ELF_MACHINE_X86_64,
    ELF_MACHINE_X86_32BIT, /* what x86-64's kernels run as 32-bit tasks */
};
enum elf_machine elf_file_machine(const struct elf_file *file);

/* Whether it is mapped at the addresses that it was linked for: numbers in it may be addresses. */
bool elf_file_is_fixed(const struct elf_file *file);

bool elf_file_has(const struct elf_file *file, uint64_t offset, uint64_t bytes);

/* Fills `buffer` from the file; less when it has shrunk. */
size_t elf_file_read(const struct elf_file *file, uint64_t offset, void *buffer, size_t bytes);

/* The first program header of a type, or for PT_LOAD the one whose bytes of the file hold `vaddr`;
 * false: there is none. */
bool elf_file_segment(const struct elf_file *file, uint32_t type, uint64_t vaddr, GElf_Phdr *ret);

/* Fills `buffer` by an address of the module, up to the end of its segment: what is mapped there.
 * 0: nothing of the file is. */
size_t elf_file_read_mapped(const struct elf_file *file, uint64_t vaddr, void *buffer,
                            size_t bytes);

/* The first section of that name; false: there is none. */
bool elf_file_section(const struct elf_file *file, const char *name, GElf_Shdr *ret);

/*
 * The bytes of the first section of that name, if it has code, and less than 16 MiB of it:
 * `*ret_code` (returned, release with free()), `*ret_bytes` of them, less when the file has shrunk,
 * and its header. NULL: there is none. Returns 0 or -ENOMEM.
 */
int elf_file_code(const struct elf_file *file, const char *name, GElf_Shdr *ret, uint8_t **ret_code,
                  size_t *ret_bytes);

/* The bytes of a section (borrowed from libelf) that lies in the file as it is, or NULL. */
Elf_Data *elf_file_data(const struct elf_file *file, Elf_Scn *section, const GElf_Shdr *header);

/*
 * Calls for each symbol of the first .symtab and the first .dynsym with its name (borrowed for the
 * call); a callback that returns < 0 ends it. A table that cannot be read is left out. Returns 0,
 * -EBADMSG when the section headers are broken, or what the callback returned.
 */
typedef int (*elf_symbol_fn)(const GElf_Sym *symbol, const char *name, void *userdata);
int elf_file_symbols(const struct elf_file *file, elf_symbol_fn on_symbol, void *userdata);
/* The same without the names, which are not read: `name` is NULL. */
int elf_file_nameless(const struct elf_file *file, elf_symbol_fn on_symbol, void *userdata);
