/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads program headers of 64-bit ELF files. A file of the name may be another by now, so it counts
 * only with the module's build-id. Each read has a fixed size, and nothing in the file is followed
 * but the places of its headers and notes.
 */
#include "load_segments.h"

#include "cleanup.h"
#include "regular_file.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define HEADERS_MAX     64
#define PAGE_BYTES      UINT64_C(4096)
#define NOTES_BYTES_MAX ((size_t)4096)
#define BUILD_ID_MAX    ((size_t)20)

static bool read_at(int fd, void *into, size_t size_bytes, uint64_t offset)
{
    return offset <= INT64_MAX && pread(fd, into, size_bytes, (off_t)offset) == (ssize_t)size_bytes;
}

/* Whether the note is a build-id that reads so in digits. */
static bool is_build_id(const Elf64_Nhdr *note, const uint8_t *content, const char *build_id)
{
    char digits[2 * BUILD_ID_MAX + 1];
    if (note->n_type != NT_GNU_BUILD_ID || note->n_namesz != sizeof ELF_NOTE_GNU ||
        memcmp(content, ELF_NOTE_GNU, sizeof ELF_NOTE_GNU) != 0 || note->n_descsz > BUILD_ID_MAX) {
        return false;
    }
    for (size_t i = 0; i < note->n_descsz; i++) {
        (void)sprintf(digits + 2 * i, "%02x", content[sizeof ELF_NOTE_GNU + i]);
    }
    digits[(size_t)2 * note->n_descsz] = '\0';
    return strcmp(digits, build_id) == 0;
}

/* Whether one of a segment's notes is that build-id. */
static bool has_build_id(int fd, const Elf64_Phdr *header, const char *build_id)
{
    uint8_t notes[NOTES_BYTES_MAX];
    size_t size_bytes = header->p_filesz < sizeof notes ? header->p_filesz : sizeof notes;
    size_t at = 0;
    if (!read_at(fd, notes, size_bytes, header->p_offset)) {
        return false;
    }
    while (size_bytes - at >= sizeof(Elf64_Nhdr)) {
        Elf64_Nhdr note;
        memcpy(&note, notes + at, sizeof note);
        at += sizeof note;
        uint64_t content_bytes = (((uint64_t)note.n_namesz + 3) & ~UINT64_C(3)) +
                                 (((uint64_t)note.n_descsz + 3) & ~UINT64_C(3));
        if (content_bytes > size_bytes - at) {
            return false;
        }
        if (is_build_id(&note, notes + at, build_id)) {
            return true;
        }
        at += content_bytes;
    }
    return false;
}

/* Mappings are of whole pages, so the segment begins where its first page does. */
static void add_segment(struct load_segments *segments, const Elf64_Phdr *header)
{
    uint64_t before = header->p_vaddr % PAGE_BYTES;
    if (segments->count < LOAD_SEGMENTS_MAX && header->p_offset >= before &&
        header->p_offset <= INT64_MAX && header->p_filesz <= INT64_MAX - header->p_offset) {
        segments->segments[segments->count].address = header->p_vaddr - before;
        segments->segments[segments->count].size_bytes = header->p_filesz + before;
        segments->segments[segments->count].offset_bytes = header->p_offset - before;
        segments->count++;
    }
}

void load_segments_read(const char *path, const char *build_id, struct load_segments *ret)
{
    Elf64_Ehdr file = {0};
    Elf64_Phdr headers[HEADERS_MAX];
    struct load_segments segments = {.count = 0};
    bool is_found = false;
    *ret = segments;
    if (path[0] != '/' || build_id[0] == '\0') {
        return;
    }
    cleanup_(closep) int fd = regular_file_open(path);
    if (fd < 0 || !read_at(fd, &file, sizeof file, 0) ||
        memcmp(file.e_ident, ELFMAG, SELFMAG) != 0 || file.e_ident[EI_CLASS] != ELFCLASS64 ||
        file.e_phentsize != sizeof headers[0] || file.e_phnum > HEADERS_MAX ||
        !read_at(fd, headers, file.e_phnum * sizeof headers[0], file.e_phoff)) {
        return;
    }
    for (size_t i = 0; i < file.e_phnum; i++) {
        if (headers[i].p_type == PT_LOAD) {
            add_segment(&segments, &headers[i]);
        } else if (headers[i].p_type == PT_NOTE && !is_found) {
            is_found = has_build_id(fd, &headers[i], build_id);
        }
    }
    if (is_found) {
        *ret = segments;
    }
}

bool load_segments_find(const struct load_segments *segments, uint64_t address,
                        uint64_t *ret_offset_bytes)
{
    for (size_t i = 0; i < segments->count; i++) {
        uint64_t into = address - segments->segments[i].address;
        if (address >= segments->segments[i].address && into < segments->segments[i].size_bytes) {
            *ret_offset_bytes = segments->segments[i].offset_bytes + into;
            return true;
        }
    }
    return false;
}
