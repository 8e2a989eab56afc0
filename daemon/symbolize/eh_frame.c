/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Finds .eh_frame and walks its entries (Linux Standard Base, 10.6): CIEs, which say what functions
 * have in common, and FDEs, which each name a CIE before them and describe one function. The
 * instructions in both are dwarf_cfa.c's.
 *
 * The section is foreign. The walk goes forward only, and an FDE can name only a CIE that the walk
 * came by, so that each byte is read once and CIEs cannot overlap. An entry whose content is broken
 * costs itself; one that does not fit ends the walk. Rows are for code only: what an FDE claims
 * beyond the executable segment that it begins in is left out.
 */
#include "eh_frame.h"

#include "arch_x86_64.h"
#include "array.h"
#include "cfi_roots.h"
#include "cleanup.h"
#include "dwarf_cfa.h"
#include "elf_file.h"
#include "segments.h"

#include <string.h>

#define LENGTH_IS_64_BITS UINT64_C(0xffffffff)
#define HEADER_BYTES_MAX  20 /* of .eh_frame_hdr: its four bytes and the longest first pointer */

/* Where the section lies. */
struct extent {
    uint64_t offset;
    uint64_t address;
    uint64_t size_bytes;
    uint64_t data_address;  /* what data-relative pointers start from, or 0 */
    bool ends_with_nothing; /* its size is not known, and an empty entry is its end */
};

struct cie_entry {
    uint64_t address;
    struct dwarf_cie cie;
};

struct walk {
    const struct elf_file *file;
    struct cfi_builder *builder;
    uint64_t data_address;
    struct cie_entry *cies; /* by rising address */
    size_t cie_count;
    size_t cie_capacity;
};

static bool is_extent_valid(const struct elf_file *file, const struct extent *extent)
{
    return elf_file_has(file, extent->offset, extent->size_bytes) &&
           extent->address <= UINT64_MAX - extent->size_bytes;
}

/* Finds the section by its name; false when the file has none with bytes. */
static bool find_by_section(const struct elf_file *file, struct extent *ret)
{
    size_t names = 0;
    struct extent found = {0};
    uint64_t data_address = 0;
    Elf_Scn *section = NULL;
    if (elf_getshdrstrndx(file->elf, &names) != 0) {
        return false;
    }
    while ((section = elf_nextscn(file->elf, section)) != NULL) {
        GElf_Shdr header;
        const char *name = gelf_getshdr(section, &header) == NULL
                               ? NULL
                               : elf_strptr(file->elf, names, header.sh_name);
        if (name == NULL) {
            continue;
        }
        if (strcmp(name, ".got.plt") == 0) {
            data_address = header.sh_addr;
        }
        const struct extent extent = {header.sh_offset, header.sh_addr, header.sh_size, 0, false};
        if (strcmp(name, ".eh_frame") == 0 && header.sh_type != SHT_NOBITS &&
            (header.sh_flags & SHF_COMPRESSED) == 0 && is_extent_valid(file, &extent)) {
            found = extent;
        }
    }
    if (found.size_bytes == 0) {
        return false;
    }
    found.data_address = data_address;
    *ret = found;
    return true;
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

/* The augmentation's letters, in their order, each with its part of the data. */
static bool read_augmentation_data(struct dwarf_cursor *cursor, const char *letters,
                                   struct dwarf_cie *cie)
{
    uint8_t encoding = 0;
    uint64_t personality = 0;
    for (; *letters != '\0'; letters++) {
        switch (*letters) {
        case 'R':
            if (!dwarf_read_u8(cursor, &cie->pointer_encoding)) {
                return false;
            }
            break;
        case 'L':
            if (!dwarf_read_u8(cursor, &encoding)) {
                return false;
            }
            break;
        case 'P':
            if (!dwarf_read_u8(cursor, &encoding) ||
                (encoding != DWARF_POINTER_OMITTED &&
                 !dwarf_read_pointer(cursor, encoding & (uint8_t)~DWARF_POINTER_INDIRECT,
                                     UINT64_MAX, &personality))) {
                return false;
            }
            break;
        case 'S':
            cie->is_signal_frame = true;
            break;
        case 'B':
            break;
        default: /* the size of the data says where it ends, its meaning is not needed */
            return cie->has_augmentation_size;
        }
    }
    return true;
}

/* From the augmentation string to the initial instructions, which are what is left. */
static bool read_augmentation(struct dwarf_cursor *cursor, const char *letters,
                              struct dwarf_cie *cie)
{
    uint64_t size_bytes = 0;
    struct dwarf_cursor data;
    if (letters[0] != 'z') {
        return read_augmentation_data(cursor, letters, cie);
    }
    cie->has_augmentation_size = true;
    return dwarf_read_uleb(cursor, &size_bytes) && dwarf_read_block(cursor, size_bytes, &data) &&
           read_augmentation_data(&data, letters + 1, cie);
}

/* What stands between version and augmentation data. */
static bool read_alignment(struct dwarf_cursor *cursor, uint8_t version, const char *letters,
                           struct dwarf_cie *cie)
{
    uint64_t ignored = 0;
    uint64_t return_column = 0;
    uint64_t sizes = 0; /* of an address and of a segment selector */
    bool is_old = strcmp(letters, "eh") == 0;
    return (!is_old || dwarf_read_unsigned(cursor, 8, &ignored)) &&
           (version < 4 || (dwarf_read_unsigned(cursor, 2, &sizes) && sizes == 8)) &&
           dwarf_read_uleb(cursor, &cie->code_align) && dwarf_read_sleb(cursor, &cie->data_align) &&
           (version == 1 ? dwarf_read_unsigned(cursor, 1, &return_column)
                         : dwarf_read_uleb(cursor, &return_column)) &&
           return_column == ARCH_DWARF_RA && (is_old || read_augmentation(cursor, letters, cie));
}

static int add_cie(struct walk *walk, struct dwarf_cursor body, uint64_t address)
{
    void *cies = walk->cies;
    int r = array_grow(&cies, &walk->cie_capacity, walk->cie_count + 1, sizeof(struct cie_entry));
    walk->cies = cies;
    if (r < 0) {
        return r;
    }
    struct cie_entry *entry = &walk->cies[walk->cie_count++];
    *entry = (struct cie_entry){
        .address = address,
        .cie = {.data_address = walk->data_address},
    };
    uint8_t version = 0;
    const char *letters = NULL;
    entry->cie.is_supported = dwarf_read_u8(&body, &version) &&
                              (version == 1 || version == 3 || version == 4) &&
                              dwarf_read_string(&body, &letters) &&
                              read_alignment(&body, version, letters, &entry->cie) &&
                              dwarf_cfa_begin(&entry->cie, body) == 0;
    return 0;
}

static const struct dwarf_cie *find_cie(const struct walk *walk, uint64_t address)
{
    size_t low = 0;
    size_t high = walk->cie_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (walk->cies[middle].address <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low > 0 && walk->cies[low - 1].address == address ? &walk->cies[low - 1].cie : NULL;
}

static int add_fde(struct walk *walk, struct dwarf_cursor body, const struct dwarf_cie *cie)
{
    uint64_t start = 0;
    uint64_t bytes = 0;
    uint64_t augmentation_bytes = 0;
    struct dwarf_cursor augmentation;
    if (!dwarf_read_pointer(&body, cie->pointer_encoding, cie->data_address, &start) ||
        !dwarf_read_pointer(&body, cie->pointer_encoding & DWARF_POINTER_FORMAT, 0, &bytes)) {
        return 0;
    }
    const struct symbol_segment *segment =
        segments_find(walk->file->segments, walk->file->segment_count, start);
    if (segment == NULL) {
        return 0;
    }
    uint64_t room = segment->size_bytes - (start - segment->vaddr);
    uint64_t end = start + (bytes < room ? bytes : room);
    if (cie->has_augmentation_size &&
        (!dwarf_read_uleb(&body, &augmentation_bytes) ||
         !dwarf_read_block(&body, augmentation_bytes, &augmentation))) {
        return 0;
    }
    return dwarf_cfa_run(cie, body, start, end, walk->builder);
}

/* Reads one entry off the section; false at its end. */
static bool read_entry(struct dwarf_cursor *section, struct dwarf_cursor *ret)
{
    uint64_t length = 0;
    struct dwarf_cursor ahead = *section;
    if (!dwarf_read_unsigned(&ahead, 4, &length) ||
        (length == LENGTH_IS_64_BITS && !dwarf_read_unsigned(&ahead, 8, &length)) ||
        !dwarf_read_block(&ahead, length, ret)) {
        return false;
    }
    *section = ahead;
    return true;
}

static int walk_entries(struct walk *walk, struct dwarf_cursor section, bool ends_with_nothing)
{
    struct dwarf_cursor body;
    int r = 0;
    for (uint64_t address = section.address; r == 0 && read_entry(&section, &body);
         address = section.address) {
        uint64_t id_address = body.address;
        uint64_t id = 0;
        if (body.left == 0 && ends_with_nothing) {
            break;
        }
        if (!dwarf_read_unsigned(&body, 4, &id)) {
            continue;
        }
        if (id == 0) {
            r = add_cie(walk, body, address);
            continue;
        }
        const struct dwarf_cie *cie = find_cie(walk, id_address - id);
        r = cie == NULL ? 0 : add_fde(walk, body, cie);
    }
    return r;
}

static int read_section(struct walk *walk, const struct extent *extent)
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
    const struct dwarf_cursor section = {
        .bytes = content,
        .left = elf_file_read(walk->file, extent->offset, content, bytes),
        .address = extent->address,
    };
    walk->data_address = extent->data_address;
    int r = walk_entries(walk, section, extent->ends_with_nothing);
    free(walk->cies);
    return r;
}

static bool is_x86_64(const struct elf_file *file)
{
    GElf_Ehdr header;
    return gelf_getehdr(file->elf, &header) != NULL && header.e_machine == EM_X86_64 &&
           header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_ident[EI_DATA] == ELFDATA2LSB;
}

static int read_file(const struct elf_file *file, struct cfi_builder *builder)
{
    int r = cfi_builder_build_id(builder, file->build_id, file->build_id_bytes);
    for (size_t i = 0; r == 0 && i < file->segment_count; i++) {
        r = cfi_builder_segment(builder, &file->segments[i]);
    }
    if (r < 0 || !is_x86_64(file)) {
        return r;
    }
    struct extent extent = {0};
    struct walk walk = {.file = file, .builder = builder};
    if (find_by_section(file, &extent) || find_by_header(file, &extent)) {
        r = read_section(&walk, &extent);
    }
    return r < 0 ? r : cfi_roots_add(file, builder);
}

int eh_frame_read(int fd, struct cfi_builder *builder)
{
    struct elf_file file;
    int r = elf_file_init(&file, fd);
    if (r == 0) {
        r = read_file(&file, builder);
        elf_file_done(&file);
    }
    return r;
}
