/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The smallest ELF library with call-frame information, made for one .eh_frame and one section for
 * debuggers: a segment that maps the file, and one of code that has no bytes in the file and needs
 * none.
 */

#include "elf_image.h"
#include "unit_test.h"

#define CODE_START     UINT64_C(0x100000)
#define CODE_END       UINT64_C(0x180000)
#define EH_FRAME_START 0x338 /* in the file and in memory */

/* How the section for debuggers can be called. */
#define DEBUG_FRAME_NAME     ".debug_frame"
#define DEBUG_FRAME_GNU_NAME ".zdebug_frame"

struct eh_frame_file {
    const uint8_t *eh_frame;
    size_t eh_frame_bytes;
    uint64_t claimed_bytes; /* 0: as many as there are */
    uint16_t machine;
    bool has_no_sections;
    const uint8_t *debug_frame; /* comes after the other one */
    size_t debug_frame_bytes;
    const char *debug_frame_name; /* NULL: none */
    bool is_compressed;           /* so says the flag */
};

/* A descriptor of the file; close it. */
static inline int eh_frame_file_make(const struct eh_frame_file *file)
{
    const char *debug_name = file->debug_frame_name == NULL ? "" : file->debug_frame_name;
    const uint64_t debug_flags = file->is_compressed ? SHF_COMPRESSED : 0;
    uint8_t header[8] = {1, 0x1b, 0xff, 0xff};
    struct elf_image image = {
        .sections = {{"", SHT_PROGBITS, 0, header, sizeof header, 0, 0},
                     {".eh_frame", SHT_PROGBITS, SHF_ALLOC, file->eh_frame, file->eh_frame_bytes, 0,
                      0},
                     {debug_name, SHT_PROGBITS, debug_flags, file->debug_frame,
                      file->debug_frame_bytes, 0, 0}},
        .section_count = 3,
        .liar_number = file->claimed_bytes > 0 ? 2 : 0,
        .claimed_bytes = file->claimed_bytes,
        .segments = {{.p_type = PT_LOAD, .p_flags = PF_R},
                     {.p_type = PT_LOAD,
                      .p_flags = PF_R | PF_X,
                      .p_offset = CODE_START,
                      .p_vaddr = CODE_START,
                      .p_filesz = CODE_END - CODE_START,
                      .p_memsz = CODE_END - CODE_START},
                     {.p_type = PT_GNU_EH_FRAME, .p_flags = PF_R, .p_filesz = sizeof header}},
        .segment_count = 3,
        .machine = file->machine,
        .has_no_sections = file->has_no_sections,
    };
    /* Without sections the frames are found through this header: pcrel, four signed bytes. */
    const size_t header_start = elf_image_offset(&image, 1);
    const int32_t distance = EH_FRAME_START - (int32_t)(header_start + 4);
    memcpy(header + 4, &distance, sizeof distance);
    image.segments[0].p_filesz = image.segments[0].p_memsz = EH_FRAME_START + file->eh_frame_bytes;
    image.segments[2].p_offset = image.segments[2].p_vaddr = header_start;
    assert_int_equal(elf_image_offset(&image, 2), EH_FRAME_START);
    int fd = elf_image_make(&image);
    assert_true(fd >= 0);
    return fd;
}
