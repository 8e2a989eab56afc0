/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The smallest ELF library with call-frame information, made for one .eh_frame and one section for
 * debuggers: a segment that maps the file, and one of code that has no bytes in the file and needs
 * none.
 */

#include "unit_test.h"

#include <elf.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CODE_START     UINT64_C(0x100000)
#define CODE_END       UINT64_C(0x180000)
#define NAMES_OFFSET   0x200
#define HEADER_OFFSET  0x280
#define EH_FRAME_START 0x300 /* in the file and in memory */

/* How the section for debuggers can be called. */
enum eh_frame_file_debug {
    DEBUG_FRAME_NAMELESS = 0,
    DEBUG_FRAME_NAME = 21,
    DEBUG_FRAME_GNU_NAME = 34,
};

static const char eh_frame_file_names[] = "\0.eh_frame\0.shstrtab\0.debug_frame\0.zdebug_frame";

struct eh_frame_file {
    const uint8_t *eh_frame;
    size_t eh_frame_bytes;
    uint64_t claimed_bytes; /* 0: as many as there are */
    uint64_t entry;
    uint16_t machine;
    bool has_no_sections;
    const uint8_t *debug_frame; /* comes after the other one */
    size_t debug_frame_bytes;
    enum eh_frame_file_debug debug_frame_name;
    bool is_compressed; /* so says the flag */
};

static inline void eh_frame_file_segments(const struct eh_frame_file *file, Elf64_Phdr *segments)
{
    segments[0] = (Elf64_Phdr){
        .p_type = PT_LOAD,
        .p_flags = PF_R,
        .p_filesz = EH_FRAME_START + file->eh_frame_bytes,
        .p_memsz = EH_FRAME_START + file->eh_frame_bytes,
    };
    segments[1] = (Elf64_Phdr){
        .p_type = PT_LOAD,
        .p_flags = PF_R | PF_X,
        .p_offset = CODE_START,
        .p_vaddr = CODE_START,
        .p_filesz = CODE_END - CODE_START,
        .p_memsz = CODE_END - CODE_START,
    };
    segments[2] = (Elf64_Phdr){
        .p_type = PT_GNU_EH_FRAME,
        .p_flags = PF_R,
        .p_offset = HEADER_OFFSET,
        .p_vaddr = HEADER_OFFSET,
        .p_filesz = 8,
    };
}

/* Without sections the frames are found through this header: pcrel, four signed bytes. */
static inline void eh_frame_file_header(uint8_t *bytes)
{
    int32_t distance = EH_FRAME_START - (HEADER_OFFSET + 4);
    memcpy(bytes, (uint8_t[]){1, 0x1b, 0xff, 0xff}, 4);
    memcpy(bytes + 4, &distance, sizeof distance);
}

static inline void eh_frame_file_sections(const struct eh_frame_file *file, Elf64_Shdr *sections)
{
    sections[1] = (Elf64_Shdr){
        .sh_name = 1,
        .sh_type = SHT_PROGBITS,
        .sh_flags = SHF_ALLOC,
        .sh_addr = EH_FRAME_START,
        .sh_offset = EH_FRAME_START,
        .sh_size = file->claimed_bytes > 0 ? file->claimed_bytes : file->eh_frame_bytes,
    };
    sections[2] = (Elf64_Shdr){
        .sh_name = 11,
        .sh_type = SHT_STRTAB,
        .sh_offset = NAMES_OFFSET,
        .sh_size = sizeof eh_frame_file_names,
    };
    sections[3] = (Elf64_Shdr){
        .sh_name = file->debug_frame_name,
        .sh_type = SHT_PROGBITS,
        .sh_flags = file->is_compressed ? SHF_COMPRESSED : 0,
        .sh_offset = EH_FRAME_START + file->eh_frame_bytes,
        .sh_size = file->debug_frame_bytes,
    };
}

/* A descriptor of the file; close it. */
static inline int eh_frame_file_make(const struct eh_frame_file *file)
{
    size_t size_bytes = EH_FRAME_START + file->eh_frame_bytes + file->debug_frame_bytes;
    uint8_t *bytes = calloc(1, size_bytes);
    assert_non_null(bytes);
    Elf64_Ehdr *header = (Elf64_Ehdr *)(void *)bytes;
    *header = (Elf64_Ehdr){
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_DYN,
        .e_machine = file->machine,
        .e_version = EV_CURRENT,
        .e_entry = file->entry,
        .e_phoff = sizeof *header,
        .e_ehsize = sizeof *header,
        .e_phentsize = sizeof(Elf64_Phdr),
        .e_phnum = 3,
    };
    Elf64_Phdr *segments = (Elf64_Phdr *)(void *)(header + 1);
    eh_frame_file_segments(file, segments);
    eh_frame_file_header(bytes + HEADER_OFFSET);
    if (!file->has_no_sections) {
        header->e_shoff = sizeof *header + 3 * sizeof *segments;
        header->e_shentsize = sizeof(Elf64_Shdr);
        header->e_shnum = 4;
        header->e_shstrndx = 2;
        eh_frame_file_sections(file, (Elf64_Shdr *)(void *)(segments + 3));
    }
    memcpy(bytes + NAMES_OFFSET, eh_frame_file_names, sizeof eh_frame_file_names);
    if (file->eh_frame_bytes > 0) {
        memcpy(bytes + EH_FRAME_START, file->eh_frame, file->eh_frame_bytes);
    }
    if (file->debug_frame_bytes > 0) {
        memcpy(bytes + size_bytes - file->debug_frame_bytes, file->debug_frame,
               file->debug_frame_bytes);
    }
    int fd = memfd_create("eh_frame", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, size_bytes), size_bytes);
    free(bytes);
    return fd;
}
