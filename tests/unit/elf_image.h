/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A small ELF library made of the sections that a test gives it, with one executable segment that
 * maps all of the file at address 0, or the segments that the test gives. Sections are numbered
 * from 1, in their order; their names stand in one more, behind them.
 */

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ELF_IMAGE_SECTIONS_MAX 8
#define ELF_IMAGE_SEGMENTS_MAX 3
#define ELF_IMAGE_NAMES_BYTES  256

struct elf_image_section {
    const char *name;
    uint32_t type;
    uint64_t flags;
    const void *bytes;
    size_t size_bytes;
    uint32_t link;
    uint64_t entry_bytes;
};

struct elf_image {
    struct elf_image_section sections[ELF_IMAGE_SECTIONS_MAX];
    size_t section_count;
    size_t note_number; /* the section that a PT_NOTE shows; 0: none */
    size_t liar_number; /* the section that claims to have `claimed_bytes`; 0: none */
    uint64_t claimed_bytes;
    Elf64_Phdr segments[ELF_IMAGE_SEGMENTS_MAX];
    size_t segment_count; /* 0: the usual one */
    uint64_t entry;
    uint16_t type;        /* 0: a library */
    uint16_t machine;     /* 0: x86-64 */
    bool has_no_sections; /* so says the header */
};

/* Where the bytes of a section are, in the file and in memory. */
static inline size_t elf_image_offset(const struct elf_image *image, size_t number)
{
    size_t offset = sizeof(Elf64_Ehdr) + ELF_IMAGE_SEGMENTS_MAX * sizeof(Elf64_Phdr) +
                    (image->section_count + 2) * sizeof(Elf64_Shdr) + ELF_IMAGE_NAMES_BYTES;
    for (size_t i = 1; i < number; i++) {
        offset += (image->sections[i - 1].size_bytes + 15) / 16 * 16;
    }
    return offset;
}

static inline void elf_image_fill(const struct elf_image *image, uint8_t *bytes, size_t size_bytes)
{
    Elf64_Ehdr *header = (Elf64_Ehdr *)(void *)bytes;
    Elf64_Phdr *segments = (Elf64_Phdr *)(void *)(header + 1);
    Elf64_Shdr *sections = (Elf64_Shdr *)(void *)(segments + ELF_IMAGE_SEGMENTS_MAX);
    size_t names_number = image->section_count + 1;
    uint64_t names_offset = (uint64_t)((uint8_t *)(sections + names_number + 1) - bytes);
    char *names = (char *)bytes + names_offset;
    *header = (Elf64_Ehdr){
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = image->type == 0 ? ET_DYN : image->type,
        .e_machine = image->machine == 0 ? EM_X86_64 : image->machine,
        .e_version = EV_CURRENT,
        .e_entry = image->entry,
        .e_phoff = sizeof *header,
        .e_ehsize = sizeof *header,
        .e_phentsize = sizeof *segments,
        .e_phnum = image->segment_count > 0 ? (Elf64_Half)image->segment_count
                   : image->note_number > 0 ? 2
                                            : 1,
    };
    if (!image->has_no_sections) {
        header->e_shoff = (uint64_t)((uint8_t *)sections - bytes);
        header->e_shentsize = sizeof *sections;
        header->e_shnum = (Elf64_Half)(names_number + 1);
        header->e_shstrndx = (Elf64_Half)names_number;
    }
    memcpy(segments, image->segments, sizeof image->segments);
    if (image->segment_count == 0) {
        segments[0] =
            (Elf64_Phdr){.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = size_bytes};
    }
    if (image->note_number > 0) {
        segments[1] = (Elf64_Phdr){
            .p_type = PT_NOTE,
            .p_offset = elf_image_offset(image, image->note_number),
            .p_filesz = image->sections[image->note_number - 1].size_bytes,
            .p_align = 4,
        };
    }
    size_t names_used = 1;
    for (size_t i = 1; i < names_number; i++) {
        const struct elf_image_section *section = &image->sections[i - 1];
        size_t offset = elf_image_offset(image, i);
        sections[i] = (Elf64_Shdr){
            .sh_name = (Elf64_Word)names_used,
            .sh_type = section->type,
            .sh_flags = section->flags,
            .sh_addr = offset,
            .sh_offset = offset,
            .sh_size = i == image->liar_number ? image->claimed_bytes : section->size_bytes,
            .sh_link = section->link,
            .sh_addralign = 1,
            .sh_entsize = section->entry_bytes,
        };
        memcpy(names + names_used, section->name, strlen(section->name));
        names_used += strlen(section->name) + 1;
        if (section->size_bytes > 0) {
            memcpy(bytes + offset, section->bytes, section->size_bytes);
        }
    }
    sections[names_number] = (Elf64_Shdr){
        .sh_type = SHT_STRTAB,
        .sh_offset = names_offset,
        .sh_size = ELF_IMAGE_NAMES_BYTES,
    };
}

/* A descriptor of the file, to be closed; -1: no memory. */
static inline int elf_image_make(const struct elf_image *image)
{
    size_t size_bytes = elf_image_offset(image, image->section_count + 1);
    uint8_t *bytes = calloc(1, size_bytes);
    int fd = bytes == NULL ? -1 : memfd_create("elf", MFD_CLOEXEC);
    if (fd >= 0) {
        elf_image_fill(image, bytes, size_bytes);
        if (write(fd, bytes, size_bytes) != (ssize_t)size_bytes) {
            (void)close(fd);
            fd = -1;
        }
    }
    free(bytes);
    return fd;
}
