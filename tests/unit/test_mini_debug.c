/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is packed into .gnu_debugdata comes out, as long as it is small enough; a stripped program
 * is named by it.
 */
#include "mini_debug.h"

#include "built_tables.h"
#include "elf_image.h"
#include "elf_symbols.h"

#include <lzma.h>

#define BLOCK_HEADER_OFFSET     12                        /* behind the stream's header */
#define BLOCK_DICTIONARY_OFFSET (BLOCK_HEADER_OFFSET + 6) /* sizes below 128 stand before it */
#define DICTIONARY_4_GIB        40

static uint8_t *pack(const void *bytes, size_t size_bytes, size_t *ret_size_bytes)
{
    size_t room = lzma_stream_buffer_bound(size_bytes);
    uint8_t *packed = malloc(room);
    size_t used = 0;
    assert_non_null(packed);
    assert_int_equal(
        lzma_easy_buffer_encode(0, LZMA_CHECK_CRC64, NULL, bytes, size_bytes, packed, &used, room),
        LZMA_OK);
    *ret_size_bytes = used;
    return packed;
}

/* Opens what a file with this section has in it; NULL: with none. */
static int open_packed(const void *section, size_t size_bytes, int *ret_fd)
{
    const struct elf_image image = {
        .sections = {{".gnu_debugdata", SHT_PROGBITS, 0, section, size_bytes, 0, 0}},
        .section_count = section == NULL ? 0 : 1};
    struct elf_file file;
    cleanup_(closep) int fd = elf_image_make(&image);
    assert_int_equal(elf_file_init(&file, fd), 0);
    int r = mini_debug_open(&file, ret_fd);
    elf_file_done(&file);
    return r;
}

TEST(gives_what_was_packed)
{
    static const size_t sizes[] = {1, 100, 16384, 16385, 1000000};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        cleanup_(freep) uint8_t *bytes = malloc(sizes[i]);
        cleanup_(freep) uint8_t *got = malloc(sizes[i] + 1);
        assert_non_null(bytes);
        assert_non_null(got);
        for (size_t j = 0; j < sizes[i]; j++) {
            bytes[j] = (uint8_t)(rand() % 7);
        }
        size_t packed_bytes = 0;
        cleanup_(freep) uint8_t *packed = pack(bytes, sizes[i], &packed_bytes);
        cleanup_(closep) int fd = -1;
        assert_int_equal(open_packed(packed, packed_bytes, &fd), 0);
        assert_int_equal(pread(fd, got, sizes[i] + 1, 0), sizes[i]);
        assert_memory_equal(got, bytes, sizes[i]);
    }
}

TEST(refuses_what_is_cut_or_no_xz)
{
    size_t packed_bytes = 0;
    cleanup_(freep) uint8_t *packed = pack("some words, some words", 23, &packed_bytes);
    int fd = -1;
    for (size_t bytes = 0; bytes < packed_bytes; bytes++) {
        assert_int_equal(open_packed(packed, bytes, &fd), -EBADMSG);
    }
    for (size_t at = 0; at < packed_bytes; at++) {
        packed[at] ^= 0x55;
        assert_int_equal(open_packed(packed, packed_bytes, &fd), -EBADMSG);
        packed[at] ^= 0x55;
    }
    assert_int_equal(fd, -1);
}

TEST(refuses_what_becomes_too_large)
{
    const size_t size_bytes = MINI_DEBUG_BYTES_MAX + 1;
    cleanup_(freep) uint8_t *zeros = calloc(1, size_bytes);
    size_t packed_bytes = 0;
    assert_non_null(zeros);
    cleanup_(freep) uint8_t *packed = pack(zeros, size_bytes, &packed_bytes);
    assert_true(packed_bytes < 65536);
    int fd = -1;
    assert_int_equal(open_packed(packed, packed_bytes, &fd), -EBADMSG);
}

static void set_dictionary(uint8_t *packed, uint8_t size)
{
    size_t header_bytes = ((size_t)packed[BLOCK_HEADER_OFFSET] + 1) * 4;
    packed[BLOCK_DICTIONARY_OFFSET] = size;
    uint32_t crc = lzma_crc32(packed + BLOCK_HEADER_OFFSET, header_bytes - sizeof crc, 0);
    memcpy(packed + BLOCK_HEADER_OFFSET + header_bytes - sizeof crc, &crc, sizeof crc);
}

TEST(refuses_a_dictionary_that_needs_too_much_memory)
{
    size_t packed_bytes = 0;
    cleanup_(freep) uint8_t *packed = pack("some words, some words", 23, &packed_bytes);
    int fd = -1;
    set_dictionary(packed, DICTIONARY_4_GIB);
    assert_int_equal(open_packed(packed, packed_bytes, &fd), -EBADMSG);
    /* It is the size that is refused: with another one it is unpacked. */
    set_dictionary(packed, 16);
    assert_int_equal(open_packed(packed, packed_bytes, &fd), 0);
    close_fd(fd);
}

TEST(finds_nothing_where_nothing_is)
{
    int fd = -1;
    assert_int_equal(open_packed(NULL, 0, &fd), -ENOENT);
}

/* How many functions of that name the table of a file has. */
static size_t count_named(int fd, int debug_fd, const char *name)
{
    struct symbol_builder *builder = symbol_builder_new();
    size_t count = 0;
    assert_int_equal(elf_symbols_read(fd, debug_fd, builder), 0);
    cleanup_(free_symbols) struct made_symbols made = finish_symbols(builder);
    for (size_t i = 0; i < made.table.symbol_count; i++) {
        count += strcmp(symbol_table_name(&made.table, i), name) == 0;
    }
    return count;
}

TEST(names_the_functions_of_a_file_without_symbols)
{
    size_t self_bytes = 0;
    size_t packed_bytes = 0;
    cleanup_(freep) uint8_t *self = read_self(&self_bytes);
    cleanup_(freep) uint8_t *packed = pack(self, self_bytes, &packed_bytes);
    cleanup_(freep) uint8_t *padded = calloc(1, self_bytes * 2);
    assert_non_null(padded);
    /* So large that the code of the functions is within its segment. */
    memcpy(padded, packed, packed_bytes);
    const struct elf_image image = {
        .sections = {{".gnu_debugdata", SHT_PROGBITS, 0, packed, packed_bytes, 0, 0},
                     {".text", SHT_PROGBITS, SHF_EXECINSTR, padded, self_bytes * 2, 0, 0}},
        .section_count = 2,
    };
    cleanup_(closep) int fd = elf_image_make(&image);
    assert_int_equal(count_named(fd, -1, "open_packed"), 1);
    assert_int_equal(count_named(fd, -1, "no_such_function"), 0);

    /* Broken, it costs its own names only. */
    uint8_t broken = 0;
    assert_int_equal(pwrite(fd, &broken, 1, (off_t)elf_image_offset(&image, 1)), 1);
    assert_int_equal(count_named(fd, -1, "open_packed"), 0);
}

#define BUILD_ID_NOTE_BYTES 36

/* A file with one function, or none, and a build-id of this byte. */
static int make_built(uint8_t build_id, const char *function)
{
    uint8_t note[BUILD_ID_NOTE_BYTES] = {4, 0, 0, 0, 20, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0};
    char names[64] = "";
    Elf64_Sym symbols[2] = {{0},
                            {.st_name = 1,
                             .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                             .st_shndx = 1,
                             .st_value = 0x100,
                             .st_size = 16}};
    memset(note + 16, build_id, 20);
    (void)snprintf(names + 1, sizeof names - 1, "%s", function == NULL ? "" : function);
    const struct elf_image image = {
        .sections = {{".note", SHT_NOTE, 0, note, sizeof note, 0, 4},
                     {".symtab", SHT_SYMTAB, 0, symbols, sizeof symbols, 3, sizeof *symbols},
                     {".strtab", SHT_STRTAB, 0, names, sizeof names, 0, 0},
                     {".symtab", SHT_SYMTAB, 0, symbols, sizeof symbols, 5, sizeof *symbols},
                     {".strtab", SHT_STRTAB, 0, "\0of_a_second_table", 19, 0, 0}},
        .section_count = 5,
        .note_number = 1,
    };
    int fd = elf_image_make(&image);
    assert_true(fd >= 0);
    return fd;
}

TEST(takes_the_functions_of_a_debug_file_of_the_same_build_only)
{
    cleanup_(closep) int fd = make_built(7, NULL);
    cleanup_(closep) int same_fd = make_built(7, "split_off");
    cleanup_(closep) int other_fd = make_built(8, "split_off");
    cleanup_(closep) int no_elf_fd = memfd_create("text", MFD_CLOEXEC);
    assert_int_equal(count_named(fd, -1, "split_off"), 0);
    assert_int_equal(count_named(fd, same_fd, "split_off"), 1);
    assert_int_equal(count_named(fd, other_fd, "split_off"), 0);
    assert_int_equal(count_named(same_fd, -1, "of_a_second_table"), 0); /* there is one */
    assert_int_equal(count_named(fd, no_elf_fd, "split_off"), 0);

    /* No build-id is the same as no other. */
    const struct elf_image nameless = {.section_count = 0};
    cleanup_(closep) int nameless_fd = elf_image_make(&nameless);
    assert_int_equal(count_named(nameless_fd, same_fd, "split_off"), 0);
}
