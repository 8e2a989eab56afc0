/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "elf_file.h"

/*
 * .eh_frame_hdr (Linux Standard Base, 10.6.2): where .eh_frame is, and a table of its functions by
 * rising address. All of it is what the file says.
 */
struct eh_frame_header {
    uint64_t frames_address; /* of .eh_frame */
    uint64_t address;        /* its own, to which the table's addresses are relative */
    uint64_t table_offset;   /* of the table in the file */
    size_t function_count;   /* 0: there is no table, or none in the form that linkers write */
};

/* Finds it through the program headers. False: the file has none that can be read. */
bool eh_frame_header_read(const struct elf_file *file, struct eh_frame_header *ret);

/* The bytes of the table (returned, release with free()). NULL: no memory, or no such bytes. */
uint8_t *eh_frame_header_table(const struct elf_file *file, const struct eh_frame_header *header);

/* The address of the entry in .eh_frame of the last function that begins at or before `address`;
 * 0: there is none. */
uint64_t eh_frame_header_find(const struct eh_frame_header *header, const uint8_t *table,
                              uint64_t address);
