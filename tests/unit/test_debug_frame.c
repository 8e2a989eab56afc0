/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Sections of CIEs and FDEs for debuggers (DWARF 5, 6.4.1), in files of their own, as they are and
 * compressed. The one function that each describes is at CODE_START.
 */
#include "debug_frame.h"

#include "built_tables.h"
#include "cfi_words.h"
#include "eh_frame.h"
#include "eh_frame_file.h"

#include <endian.h>
#include <zlib.h>

#define BYTES_MAX 128

#define IS_CIE    0xff, 0xff, 0xff, 0xff
#define IS_LONG   0xff, 0xff, 0xff, 0xff
#define PROGRAM   0x0c, 7, 8, 0x90, 1 /* CFA = rsp + 8, return address at CFA - 8 */
#define ALIGNMENT 1, 0x78, 16         /* of code, of data, and the return address's column */
#define FUNCTION  0, 0, 0x10, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0

/* 18 bytes: so far from the start of the section is the FDE. */
#define FDE(cie)  20, 0, 0, 0, cie, 0, 0, 0, FUNCTION
#define PLAIN_CIE 14, 0, 0, 0, IS_CIE, 3, 0, ALIGNMENT, PROGRAM

static const uint8_t plain[] = {PLAIN_CIE, FDE(0)};

static void describe(const struct eh_frame_file *file, uint64_t vaddr, char *words)
{
    struct cfi_builder *builder = cfi_builder_new();
    cleanup_(closep) int fd = eh_frame_file_make(file);
    assert_int_equal(eh_frame_read(fd, builder), 0);
    cleanup_(free_cfi) struct made_cfi made = finish_cfi(builder);
    cfi_words(cfi_table_find(&made.table, vaddr), words);
}

struct form {
    const char *what;
    uint8_t bytes[BYTES_MAX];
    size_t size_bytes;
    const char *words;
};

static const struct form forms[] = {
    {"version 1", BYTES(14, 0, 0, 0, IS_CIE, 1, 0, ALIGNMENT, PROGRAM, FDE(0)), ENTRY},
    {"version 3", BYTES(PLAIN_CIE, FDE(0)), ENTRY},
    {"version 4", BYTES(16, 0, 0, 0, IS_CIE, 4, 0, 8, 0, ALIGNMENT, PROGRAM, FDE(0)), ENTRY},
    {"addresses of four bytes", BYTES(16, 0, 0, 0, IS_CIE, 4, 0, 4, 0, ALIGNMENT, PROGRAM, FDE(0)),
     "unsupported"},
    {"segments", BYTES(16, 0, 0, 0, IS_CIE, 4, 0, 8, 1, ALIGNMENT, PROGRAM, FDE(0)), "unsupported"},
    {"a CIE that is not the first", BYTES(PLAIN_CIE, PLAIN_CIE, FDE(18)), ENTRY},
    {"64 bits",
     BYTES(IS_LONG, 18, 0, 0, 0, 0, 0, 0, 0, IS_CIE, IS_CIE, 3, 0, ALIGNMENT, PROGRAM, IS_LONG, 24,
           0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, FUNCTION),
     ENTRY},
    {"a function of Go, which says nothing of rbp",
     BYTES(17, 0, 0, 0, IS_CIE, 3, 0, 1, 0x7c, 16, 0x0c, 7, 8, 0x05, 16, 2, 0, 0, 24, 0, 0, 0, 0, 0,
           0, 0, FUNCTION, 0x13, 0x7c, 0, 0),
     "r7+16 ra c-8 bp ? bx ? fp"},
    {"and without a frame",
     BYTES(17, 0, 0, 0, IS_CIE, 3, 0, 1, 0x7c, 16, 0x0c, 7, 8, 0x05, 16, 2, 0, 0, FDE(0)),
     "r7+8 ra c-8 bp ? bx ?"},
    {"a place in the manner of .eh_frame", BYTES(PLAIN_CIE, FDE(22)), "none"},
    {"a CIE that comes after", BYTES(FDE(24), PLAIN_CIE), "none"},
    {"a CIE in the manner of .eh_frame",
     BYTES(14, 0, 0, 0, 0, 0, 0, 0, 3, 0, ALIGNMENT, PROGRAM, FDE(0)), "none"},
    {"half a function", BYTES(PLAIN_CIE, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0), "none"},
    {"a length that does not fit", BYTES(PLAIN_CIE, 21, 0, 0, 0, 0, 0, 0, 0, FUNCTION), "none"},
};

TEST(reads_every_form_of_entry)
{
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        char words[CFI_WORDS_BYTES];
        const struct eh_frame_file file = {
            .machine = EM_X86_64,
            .debug_frame = forms[i].bytes,
            .debug_frame_bytes = forms[i].size_bytes,
            .debug_frame_name = DEBUG_FRAME_NAME,
        };
        describe(&file, CODE_START, words);
        if (strcmp(words, forms[i].words) != 0) {
            fail_msg("%s: %s, expected %s", forms[i].what, words, forms[i].words);
        }
    }
}

/* The other describes two functions, of which the first is known from .eh_frame. */
TEST(has_less_weight_than_eh_frame)
{
    static const uint8_t eh_frame[] = {14, 0,    0, 0,  0, 0, 0, 0,  1, 0, ALIGNMENT, 0x0c,    7,
                                       24, 0x90, 1, 20, 0, 0, 0, 22, 0, 0, 0,         FUNCTION};
    static const uint8_t debug_frame[] = {PLAIN_CIE, 20, 0, 0, 0,    0, 0, 0, 0, 0, 0, 0x10, 0,
                                          0,         0,  0, 0, 0x20, 0, 0, 0, 0, 0, 0, 0};
    char words[CFI_WORDS_BYTES];
    const struct eh_frame_file file = {
        .machine = EM_X86_64,
        .eh_frame = eh_frame,
        .eh_frame_bytes = sizeof eh_frame,
        .debug_frame = debug_frame,
        .debug_frame_bytes = sizeof debug_frame,
        .debug_frame_name = DEBUG_FRAME_NAME,
    };
    describe(&file, CODE_START + 15, words);
    assert_string_equal(words, "r7+24 ra c-8 bp = bx =");
    describe(&file, CODE_START + 16, words);
    assert_string_equal(words, ENTRY);
}

struct packing {
    const char *what;
    const char *name;
    uint32_t type;         /* with the flag: of compression */
    uint64_t claimed;      /* as the size of what is compressed; 0: its size */
    size_t missing_bytes;  /* at the end */
    size_t repeated_count; /* times that the section is in there once more */
    bool is_compressed;
    bool is_read;
    size_t padding_bytes; /* after what is compressed */
};

#define PLAIN(...) .name = DEBUG_FRAME_NAME, __VA_ARGS__
#define GNU(...)   .name = DEBUG_FRAME_GNU_NAME, .is_compressed = true, __VA_ARGS__
#define ZLIB(...)  PLAIN(.type = ELFCOMPRESS_ZLIB, .is_compressed = true, __VA_ARGS__)

static const struct packing packings[] = {
    {"as it is", PLAIN(.is_read = true)},
    {"without a name", .name = NULL},
    {"under the name for GNU's header", .name = DEBUG_FRAME_GNU_NAME},
    {"the standard's", ZLIB(.is_read = true)},
    {"GNU's", GNU(.is_read = true)},
    {"of another kind", PLAIN(.type = 2, .is_compressed = true)},
    {"cut in its header", ZLIB(.missing_bytes = 999)},
    {"cut in GNU's header", GNU(.missing_bytes = 999)},
    {"cut before its first entry ends", ZLIB(.missing_bytes = 20)},
    {"more than it says", ZLIB(.claimed = sizeof plain, .repeated_count = 99999, .is_read = true)},
    {"less than it says", ZLIB(.claimed = 4000, .is_read = true)},
    {"more than it can be", ZLIB(.claimed = 1 << 20)},
    {"GNU's, more than it can be", GNU(.claimed = 1 << 20)},
    {"more than there is room for",
     ZLIB(.claimed = DEBUG_FRAME_BYTES_MAX + 1, .padding_bytes = 200000)},
    {"all the memory there is", ZLIB(.claimed = UINT64_MAX)},
};

/* The section once, or many times over: returned, free it. */
static uint8_t *repeat_section(size_t count)
{
    uint8_t *bytes = malloc(count * sizeof plain);
    assert_non_null(bytes);
    for (size_t i = 0; i < count; i++) {
        memcpy(bytes + i * sizeof plain, plain, sizeof plain);
    }
    return bytes;
}

/* Fills `ret` (for free()) with header and compressed bytes. */
static size_t pack(const struct packing *packing, uint8_t **ret)
{
    cleanup_(freep) uint8_t *content = repeat_section(packing->repeated_count + 1);
    uint64_t content_bytes = (packing->repeated_count + 1) * sizeof plain;
    uLongf packed_bytes = compressBound(content_bytes);
    uint64_t claimed_bytes = packing->claimed == 0 ? content_bytes : packing->claimed;
    Elf64_Chdr header = {.ch_type = packing->type, .ch_size = claimed_bytes};
    size_t header_bytes = sizeof header;
    *ret = calloc(1, sizeof header + packed_bytes + packing->padding_bytes);
    assert_non_null(*ret);
    if (strcmp(packing->name, DEBUG_FRAME_GNU_NAME) == 0) {
        uint64_t big_endian = htobe64(claimed_bytes);
        memcpy(*ret, "ZLIB", 4);
        memcpy(*ret + 4, &big_endian, sizeof big_endian);
        header_bytes = 4 + sizeof big_endian;
    } else {
        memcpy(*ret, &header, sizeof header);
    }
    assert_int_equal(compress(*ret + header_bytes, &packed_bytes, content, content_bytes), Z_OK);
    size_t size_bytes = header_bytes + packed_bytes + packing->padding_bytes;
    return packing->missing_bytes < size_bytes ? size_bytes - packing->missing_bytes : 8;
}

TEST(unpacks_what_it_has_room_for)
{
    for (size_t i = 0; i < COUNT_OF(packings); i++) {
        const struct packing *packing = &packings[i];
        cleanup_(freep) uint8_t *packed = NULL;
        size_t packed_bytes = packing->is_compressed ? pack(packing, &packed) : 0;
        char words[CFI_WORDS_BYTES];
        const struct eh_frame_file file = {
            .machine = EM_X86_64,
            .debug_frame = packing->is_compressed ? packed : plain,
            .debug_frame_bytes = packing->is_compressed ? packed_bytes : sizeof plain,
            .debug_frame_name = packing->name,
            .is_compressed = packing->is_compressed && strcmp(packing->name, DEBUG_FRAME_NAME) == 0,
        };
        print_message("  %s\n", packing->what);
        describe(&file, CODE_START, words);
        assert_string_equal(words, packing->is_read ? ENTRY : "none");
    }
}
