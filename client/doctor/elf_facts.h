/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a program's file has by which its functions can be named. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ELF_FACTS_BUILD_ID_BYTES ((size_t)48)

struct elf_facts {
    bool is_elf;                             /* of 64 bits; false: nothing else is known */
    bool has_symbols;                        /* a table of them, compressed or not, or Go's */
    bool has_debug;                          /* debugging information */
    char build_id[ELF_FACTS_BUILD_ID_BYTES]; /* in lower-case hex; "": none */
};

/*
 * Reads it of an open file. A bounded part is read: 64 program headers, 4 KiB of each of their
 * notes, 256 section headers and 16 KiB of their names; what lies beyond counts as absent.
 */
void elf_facts_read(int fd, struct elf_facts *ret);

/* The build-id in the notes of a segment; "" where there is none. */
void elf_facts_build_id(const uint8_t *notes, size_t notes_bytes, char *into);
