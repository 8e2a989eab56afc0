/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Finds .eh_frame, by its name or through the program headers, and joins all sources of a file's
 * rows. Where two sources have rows for the same code, the first one wins. The order is: names that
 * override call-frame information, .eh_frame, .debug_frame, other names, and for 32 bits the thunks
 * of position-independent code.
 */
#include "eh_frame.h"

#include "cfi_roots.h"
#include "cleanup.h"
#include "code_thunks.h"
#include "debug_frame.h"
#include "dwarf_entries.h"
#include "elf_file.h"

#include <string.h>

#define HEADER_BYTES_MAX 20 /* of .eh_frame_hdr: its four bytes and the longest first pointer */

/* Where the section lies. */
struct extent {
    uint64_t offset;
    uint64_t address;
    uint64_t size_bytes;
    uint64_t data_address;  /* what data-relative pointers start from, or 0 */
    bool ends_with_nothing; /* its size is not known, and an empty entry is its end */
};

static bool is_extent_valid(const struct elf_file *file, const struct extent *extent)
{
    return elf_file_has(file, extent->offset, extent->size_bytes) &&
           extent->address <= UINT64_MAX - extent->size_bytes;
}

/* Finds the section by its name; false when the file has none with bytes. */
static bool find_by_section(const struct elf_file *file, struct extent *ret)
{
    GElf_Shdr header;
    GElf_Shdr plt;
    if (!elf_file_section(file, ".eh_frame", &header) || header.sh_type == SHT_NOBITS ||
        (header.sh_flags & SHF_COMPRESSED) != 0 || header.sh_size == 0) {
        return false;
    }
    *ret = (struct extent){
        .offset = header.sh_offset,
        .address = header.sh_addr,
        .size_bytes = header.sh_size,
        .data_address = elf_file_section(file, ".got.plt", &plt) ? plt.sh_addr : 0,
    };
    return is_extent_valid(file, ret);
}

/* The first program header of a kind, or the loaded one that holds an address. */
static bool find_program_header(const struct elf_file *file, uint32_t type, uint64_t address,
                                GElf_Phdr *ret)
{
    size_t count = 0;
    if (elf_getphdrnum(file->elf, &count) != 0) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (gelf_getphdr(file->elf, (int)i, ret) != NULL && ret->p_type == type &&
            (type != PT_LOAD ||
             (address >= ret->p_vaddr && address - ret->p_vaddr < ret->p_filesz))) {
            return true;
        }
    }
    return false;
}

/* Finds the section through .eh_frame_hdr, as the unwinder of the C++ library does. */
static bool find_by_header(const struct elf_file *file, struct extent *ret)
{
    GElf_Phdr header;
    uint8_t bytes[HEADER_BYTES_MAX];
    uint8_t version = 0;
    uint8_t encoding = 0;
    uint64_t other_encodings = 0;
    uint64_t address = 0;
    if (!find_program_header(file, PT_GNU_EH_FRAME, 0, &header)) {
        return false;
    }
    struct dwarf_cursor cursor = {
        .bytes = bytes,
        .left = elf_file_read(file, header.p_offset, bytes, sizeof bytes),
        .address = header.p_vaddr,
        .is_32bit = elf_file_machine(file) == ELF_MACHINE_X86_32BIT,
    };
    if (!dwarf_read_u8(&cursor, &version) || version != 1 || !dwarf_read_u8(&cursor, &encoding) ||
        !dwarf_read_unsigned(&cursor, 2, &other_encodings) ||
        !dwarf_read_pointer(&cursor, encoding, header.p_vaddr, &address) ||
        !find_program_header(file, PT_LOAD, address, &header)) {
        return false;
    }
    uint64_t skipped = address - header.p_vaddr;
    if (header.p_offset > UINT64_MAX - skipped) {
        return false;
    }
    *ret = (struct extent){
        .offset = header.p_offset + skipped,
        .address = address,
        .size_bytes = header.p_filesz - skipped,
        .ends_with_nothing = true,
    };
    return is_extent_valid(file, ret);
}

static bool find_frames(const struct elf_file *file, struct extent *ret)
{
    return find_by_section(file, ret) || find_by_header(file, ret);
}

static int walk_extent(const struct elf_file *file, const struct extent *extent,
                       dwarf_function_fn on_function, void *userdata)
{
    uint64_t bytes = extent->size_bytes;
    if (bytes > EH_FRAME_BYTES_MAX) {
        if (!extent->ends_with_nothing) {
            return -E2BIG;
        }
        bytes = EH_FRAME_BYTES_MAX;
    }
    cleanup_(freep) uint8_t *content = malloc(bytes + 1);
    if (content == NULL) {
        return -ENOMEM;
    }
    const struct dwarf_section section = {
        .content.bytes = content,
        .content.left = elf_file_read(file, extent->offset, content, bytes),
        .content.address = extent->address,
        .content.is_32bit = elf_file_machine(file) == ELF_MACHINE_X86_32BIT,
        .data_address = extent->data_address,
        .ends_with_nothing = extent->ends_with_nothing,
    };
    return dwarf_entries_walk(&section, file, on_function, userdata);
}

int eh_frame_walk(const struct elf_file *file, dwarf_function_fn on_function, void *userdata)
{
    struct extent extent = {0};
    if (elf_file_machine(file) == ELF_MACHINE_OTHER || !find_frames(file, &extent)) {
        return 0;
    }
    return walk_extent(file, &extent, on_function, userdata);
}

/* All that is not read from instructions. */
static int add_sources(const struct elf_file *file, const struct cfi_roots *roots,
                       struct cfi_builder *builder)
{
    struct extent extent = {0};
    bool has_frames = find_frames(file, &extent);
    int r = cfi_roots_add_certain(roots, builder);
    if (r == 0 && has_frames) {
        r = walk_extent(file, &extent, dwarf_entries_add_rows, builder);
    }
    if (r == 0) {
        r = debug_frame_add(file, builder);
    }
    if (r == 0) {
        r = cfi_roots_add(roots, builder);
    }
    if (r == 0 && has_frames) {
        r = cfi_roots_add_entry(file, builder);
    }
    return r;
}

int eh_frame_add(const struct elf_file *file, struct cfi_builder *builder)
{
    int r = cfi_builder_build_id(builder, file->build_id, file->build_id_bytes);
    for (size_t i = 0; r == 0 && i < file->segment_count; i++) {
        r = cfi_builder_segment(builder, &file->segments[i]);
    }
    enum elf_machine machine = elf_file_machine(file);
    if (r < 0 || machine == ELF_MACHINE_OTHER) {
        return r;
    }
    if (machine == ELF_MACHINE_X86_32BIT) {
        cfi_builder_32bit(builder);
    }
    struct cfi_roots *roots = NULL;
    r = cfi_roots_find(file, &roots);
    if (r < 0) {
        return r;
    }
    r = add_sources(file, roots, builder);
    (void)cfi_roots_free(roots);
    if (r == 0 && machine == ELF_MACHINE_X86_32BIT) {
        r = code_thunks_add(file, builder);
    }
    return r;
}

int eh_frame_read(int fd, struct cfi_builder *builder)
{
    struct elf_file file;
    int r = elf_file_init(&file, fd);
    if (r == 0) {
        r = eh_frame_add(&file, builder);
        elf_file_done(&file);
    }
    return r;
}
