/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Finds .eh_frame, by its name or through the program headers, and joins all sources of a file's
 * rows. Where two sources have rows for the same code, the first one wins. The order is: names that
 * override call-frame information, .eh_frame, .debug_frame, other names, the program's entry, and
 * for 32 bits the thunks of position-independent code.
 */
#include "eh_frame.h"

#include "cfi_roots.h"
#include "cleanup.h"
#include "code_thunks.h"
#include "debug_frame.h"
#include "dwarf_entries.h"
#include "eh_frame_header.h"
#include "elf_file.h"

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

/* Finds the section through .eh_frame_hdr, as the unwinder of the C++ library does. */
static bool find_by_header(const struct elf_file *file, struct extent *ret)
{
    struct eh_frame_header header;
    GElf_Phdr segment;
    if (!eh_frame_header_read(file, &header) ||
        !elf_file_segment(file, PT_LOAD, header.frames_address, &segment)) {
        return false;
    }
    uint64_t skipped = header.frames_address - segment.p_vaddr;
    if (segment.p_offset > UINT64_MAX - skipped) {
        return false;
    }
    *ret = (struct extent){
        .offset = segment.p_offset + skipped,
        .address = header.frames_address,
        .size_bytes = segment.p_filesz - skipped,
        .ends_with_nothing = true,
    };
    return is_extent_valid(file, ret);
}

static bool find_frames(const struct elf_file *file, struct extent *ret)
{
    return find_by_section(file, ret) || find_by_header(file, ret);
}

/* Reads the section; `*ret_content` (returned, release with free()) has its bytes. */
static int read_section(const struct elf_file *file, const struct extent *extent,
                        uint8_t **ret_content, struct dwarf_section *ret)
{
    uint64_t bytes = extent->size_bytes;
    if (bytes > EH_FRAME_BYTES_MAX) {
        if (!extent->ends_with_nothing) {
            return -E2BIG;
        }
        bytes = EH_FRAME_BYTES_MAX;
    }
    uint8_t *content = malloc(bytes + 1);
    if (content == NULL) {
        return -ENOMEM;
    }
    *ret = (struct dwarf_section){
        .content.bytes = content,
        .content.left = elf_file_read(file, extent->offset, content, bytes),
        .content.address = extent->address,
        .content.is_32bit = elf_file_machine(file) == ELF_MACHINE_X86_32BIT,
        .data_address = extent->data_address,
        .ends_with_nothing = extent->ends_with_nothing,
    };
    *ret_content = content;
    return 0;
}

static int walk_extent(const struct elf_file *file, const struct extent *extent,
                       dwarf_function_fn on_function, void *userdata)
{
    cleanup_(freep) uint8_t *content = NULL;
    struct dwarf_section section;
    int r = read_section(file, extent, &content, &section);
    return r < 0 ? r : dwarf_entries_walk(&section, file, on_function, userdata);
}

int eh_frame_walk(const struct elf_file *file, dwarf_function_fn on_function, void *userdata)
{
    struct extent extent = {0};
    if (elf_file_machine(file) == ELF_MACHINE_OTHER || !find_frames(file, &extent)) {
        return 0;
    }
    return walk_extent(file, &extent, on_function, userdata);
}

int eh_frame_find(const struct elf_file *file, const uint64_t *addresses, size_t count,
                  dwarf_function_fn on_function, void *userdata)
{
    struct eh_frame_header header;
    struct extent extent;
    struct dwarf_section section;
    cleanup_(freep) uint8_t *content = NULL;
    if (elf_file_machine(file) == ELF_MACHINE_OTHER || !find_frames(file, &extent) ||
        !eh_frame_header_read(file, &header)) {
        return -ENOENT;
    }
    cleanup_(freep) uint8_t *table = eh_frame_header_table(file, &header);
    int r = table == NULL ? -ENOENT : read_section(file, &extent, &content, &section);
    uint64_t left_bytes = r < 0 ? 0 : section.content.left;
    uint64_t last = 0;
    for (size_t i = 0; i < count && r == 0; i++) {
        uint64_t entry = eh_frame_header_find(&header, table, addresses[i]);
        if (entry != last) {
            r = dwarf_entries_read(&section, file, entry, &left_bytes, on_function, userdata);
            r = r == -E2BIG ? -ENOENT : r;
        }
        last = entry;
    }
    return r;
}

/* All but the thunks. */
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
