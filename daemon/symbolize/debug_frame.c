/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Finds .debug_frame and reads it into memory. The section can be compressed, with the ELF
 * standard's header or, under another name, with the older one of GNU's tools. The sizes in these
 * headers are foreign. A size that is too large, or that compressed bytes of this length cannot
 * have, is refused before memory is allocated. Output beyond the size ends the section.
 *
 * A linker that removes a function leaves its entry, with the address 0, or a low one that may be
 * another function's. So an entry counts if a symbol says that a function begins and ends there; in
 * a file without symbols of functions, unless its address is a mark of removed ones.
 */
#include "debug_frame.h"

#include "array.h"
#include "cleanup.h"
#include "dwarf_entries.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* No byte of DEFLATE gives more. */
#define ZLIB_RATIO_MAX 1032

#define GNU_MAGIC       "ZLIB"
#define GNU_MAGIC_BYTES 4
#define CHUNK_BYTES     ((size_t)16384)

/* Linkers mark what they removed by 0, or by 1 where 0 would end a list. */
#define REMOVED_MAX 1

/* Where a section's bytes are in the file, and what becomes of them. */
struct stored {
    uint64_t offset;
    uint64_t size_bytes;
    uint64_t content_bytes; /* as many as stored, if not compressed */
    bool is_compressed;
};

static bool read_standard_header(const struct elf_file *file, struct stored *stored)
{
    union {
        Elf64_Chdr of_64;
        Elf32_Chdr of_32;
    } header;
    bool is_32bit = elf_file_machine(file) == ELF_MACHINE_X86_32BIT;
    size_t header_bytes = is_32bit ? sizeof header.of_32 : sizeof header.of_64;
    if (stored->size_bytes < header_bytes ||
        elf_file_read(file, stored->offset, &header, header_bytes) != header_bytes ||
        (is_32bit ? header.of_32.ch_type : header.of_64.ch_type) != ELFCOMPRESS_ZLIB) {
        return false;
    }
    stored->offset += header_bytes;
    stored->size_bytes -= header_bytes;
    stored->content_bytes = is_32bit ? header.of_32.ch_size : header.of_64.ch_size;
    stored->is_compressed = true;
    return true;
}

static bool read_gnu_header(const struct elf_file *file, struct stored *stored)
{
    uint64_t size_bytes = 0;
    uint8_t header[GNU_MAGIC_BYTES + sizeof size_bytes];
    if (stored->size_bytes < sizeof header ||
        elf_file_read(file, stored->offset, header, sizeof header) != sizeof header ||
        memcmp(header, GNU_MAGIC, GNU_MAGIC_BYTES) != 0) {
        return false;
    }
    memcpy(&size_bytes, header + GNU_MAGIC_BYTES, sizeof size_bytes);
    stored->offset += sizeof header;
    stored->size_bytes -= sizeof header;
    stored->content_bytes = be64toh(size_bytes);
    stored->is_compressed = true;
    return true;
}

/* Whether a section is ours to read, and where its bytes are. */
static bool look_at(const struct elf_file *file, const char *name, bool is_gnu, struct stored *ret)
{
    GElf_Shdr section;
    if (!elf_file_section(file, name, &section)) {
        return false;
    }
    struct stored stored = {section.sh_offset, section.sh_size, section.sh_size, false};
    if (section.sh_type == SHT_NOBITS || !elf_file_has(file, stored.offset, stored.size_bytes)) {
        return false;
    }
    if (is_gnu ? !read_gnu_header(file, &stored)
               : (section.sh_flags & SHF_COMPRESSED) != 0 && !read_standard_header(file, &stored)) {
        return false;
    }
    bool is_possible =
        !stored.is_compressed || stored.content_bytes / ZLIB_RATIO_MAX <= stored.size_bytes;
    if (stored.content_bytes > DEBUG_FRAME_BYTES_MAX || !is_possible) {
        return false;
    }
    *ret = stored;
    return true;
}

static bool find_section(const struct elf_file *file, struct stored *ret)
{
    return look_at(file, ".debug_frame", false, ret) || look_at(file, ".zdebug_frame", true, ret);
}

/* Returns how many bytes were had of `stored->content_bytes`, for which there is room. */
static size_t decompress(const struct elf_file *file, const struct stored *stored, uint8_t *content)
{
    uint8_t chunk[CHUNK_BYTES];
    uint64_t done_bytes = 0;
    z_stream stream = {.next_out = content, .avail_out = (uInt)stored->content_bytes};
    if (inflateInit(&stream) != Z_OK) {
        return 0;
    }
    int r = Z_OK;
    while (r == Z_OK && stream.avail_out > 0 && done_bytes < stored->size_bytes) {
        uint64_t left = stored->size_bytes - done_bytes;
        size_t got = elf_file_read(file, stored->offset + done_bytes, chunk,
                                   left < sizeof chunk ? left : sizeof chunk);
        if (got == 0) {
            break;
        }
        done_bytes += got;
        stream.next_in = chunk;
        stream.avail_in = (uInt)got;
        r = inflate(&stream, Z_NO_FLUSH);
    }
    (void)inflateEnd(&stream);
    return (size_t)(stored->content_bytes - stream.avail_out);
}

struct function {
    uint64_t start;
    uint64_t size_bytes;
};

/* What is there of the file's functions by its symbols, and where their rows go. */
struct living {
    struct function *functions; /* owned; sorted once all are in it */
    size_t count;
    size_t capacity;
    struct cfi_builder *builder; /* borrowed */
};

static bool is_before(const void *left, const void *right, const void *userdata)
{
    const struct function *a = left;
    const struct function *b = right;
    (void)userdata;
    return a->start != b->start ? a->start < b->start : a->size_bytes < b->size_bytes;
}

static int on_symbol(const GElf_Sym *symbol, const char *name, void *userdata)
{
    struct living *living = userdata;
    unsigned char type = GELF_ST_TYPE(symbol->st_info);
    (void)name;
    if (symbol->st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_GNU_IFUNC)) {
        return 0;
    }
    void *functions = living->functions;
    int r = array_grow(&functions, &living->capacity, living->count + 1, sizeof(struct function));
    living->functions = functions;
    if (r == 0) {
        living->functions[living->count++] = (struct function){symbol->st_value, symbol->st_size};
    }
    return r;
}

static bool is_living(const struct living *living, const struct function *function)
{
    size_t low = 0;
    size_t high = living->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (is_before(&living->functions[middle], function, NULL)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < living->count && living->functions[low].start == function->start &&
           living->functions[low].size_bytes == function->size_bytes;
}

static int add_living(const struct dwarf_cie *cie, struct dwarf_cursor program, uint64_t start,
                      uint64_t end, void *userdata)
{
    const struct living *living = userdata;
    const struct function function = {start, end - start};
    bool counts = living->count > 0 ? is_living(living, &function) : start > REMOVED_MAX;
    return counts ? dwarf_entries_add_rows(cie, program, start, end, living->builder) : 0;
}

static void free_living(struct living *living)
{
    free(living->functions);
}

int debug_frame_add(const struct elf_file *file, struct cfi_builder *builder)
{
    cleanup_(free_living) struct living living = {.builder = builder};
    struct stored stored;
    if (!find_section(file, &stored)) {
        return 0;
    }
    int r = elf_file_symbols(file, on_symbol, &living);
    if (r == 0 || r == -EBADMSG) {
        r = array_sort(living.functions, living.count, sizeof *living.functions, is_before, NULL);
    }
    if (r < 0) {
        return r;
    }
    cleanup_(freep) uint8_t *content = malloc(stored.content_bytes + 1);
    if (content == NULL) {
        return -ENOMEM;
    }
    const struct dwarf_section section = {
        .content.bytes = content,
        .content.left = stored.is_compressed
                            ? decompress(file, &stored, content)
                            : elf_file_read(file, stored.offset, content, stored.content_bytes),
        .content.is_32bit = elf_file_machine(file) == ELF_MACHINE_X86_32BIT,
        .is_debug = true,
    };
    return dwarf_entries_walk(&section, file, add_living, &living);
}
