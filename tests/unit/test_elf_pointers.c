/* SPDX-License-Identifier: Apache-2.0 */

/* Which words of a file's data lead to its code, by relocations and at fixed addresses. */
#include "elf_pointers.h"

#include "elf_image.h"
#include "unit_test.h"

#include "cleanup.h"

#include <errno.h>

#define CODE_START UINT64_C(0x10000)
#define CODE_BYTES UINT64_C(0x1000)
#define RELATIVE   ELF64_R_INFO(0, R_X86_64_RELATIVE)
#define FOUND_MAX  8

struct found {
    size_t count;
    uint64_t places[FOUND_MAX];
    uint64_t values[FOUND_MAX];
    int answer; /* of the callback */
};

static int on_pointer(uint64_t place, uint64_t value, void *userdata)
{
    struct found *found = userdata;
    assert_in_range(found->count, 0, FOUND_MAX - 1);
    found->places[found->count] = place;
    found->values[found->count++] = value;
    return found->answer;
}

/* Two words lead to the code's ends, three beside it or nowhere. */
static const Elf64_Rela relocations[] = {
    {0x100, RELATIVE, CODE_START - 1},
    {0x108, RELATIVE, CODE_START},
    {0x110, RELATIVE, CODE_START + CODE_BYTES - 1},
    {0x118, RELATIVE, CODE_START + CODE_BYTES},
    {0x120, ELF64_R_INFO(1, R_X86_64_GLOB_DAT), CODE_START},
};
static const uint64_t words[] = {CODE_START - 1, CODE_START, 7, CODE_START + CODE_BYTES - 1};

static struct elf_image make_image(uint16_t type)
{
    return (struct elf_image){
        .sections = {{".rela.dyn", SHT_RELA, SHF_ALLOC, relocations, sizeof relocations, 0,
                      sizeof *relocations},
                     {".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, words, sizeof words, 0, 0},
                     {".debug", SHT_PROGBITS, 0, words, sizeof words, 0, 0},
                     {".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, words, sizeof words, 0, 0}},
        .section_count = 4,
        .segments = {{.p_type = PT_LOAD,
                      .p_flags = PF_R | PF_X,
                      .p_vaddr = CODE_START,
                      .p_filesz = CODE_BYTES}},
        .segment_count = 1,
        .type = type,
    };
}

static int read_to_code(const struct elf_image *image, struct found *found)
{
    struct elf_file file;
    cleanup_(closep) int fd = elf_image_make(image);
    assert_int_equal(elf_file_init(&file, fd), 0);
    int r = elf_pointers_to_code(&file, on_pointer, found);
    elf_file_done(&file);
    return r;
}

TEST(finds_what_relocations_lead_to_code)
{
    struct elf_image image = make_image(ET_DYN);
    struct found found = {0};
    assert_int_equal(read_to_code(&image, &found), 0);
    assert_int_equal(found.count, 2);
    assert_int_equal(found.places[0], 0x108);
    assert_int_equal(found.values[0], CODE_START);
    assert_int_equal(found.places[1], 0x110);
    assert_int_equal(found.values[1], CODE_START + CODE_BYTES - 1);
}

TEST(finds_words_of_data_at_fixed_addresses)
{
    struct elf_image image = make_image(ET_EXEC);
    struct found found = {0};
    assert_int_equal(read_to_code(&image, &found), 0);
    assert_int_equal(found.count, 4);
    assert_int_equal(found.places[2], elf_image_offset(&image, 2) + 8);
    assert_int_equal(found.values[2], CODE_START);
    assert_int_equal(found.values[3], CODE_START + CODE_BYTES - 1);
}

TEST(ends_where_the_callback_does)
{
    struct elf_image image = make_image(ET_EXEC);
    struct found found = {.answer = -ENOMEM};
    assert_int_equal(read_to_code(&image, &found), -ENOMEM);
    assert_int_equal(found.count, 1);
}

TEST(says_what_it_leaves_out)
{
    struct elf_image packed = make_image(ET_DYN);
    packed.sections[1].type = SHT_RELR;
    struct elf_image large = make_image(ET_EXEC);
    large.liar_number = 2;
    large.claimed_bytes = UINT64_C(64) << 20;
    struct elf_image broken = make_image(ET_EXEC);
    broken.liar_number = 1;
    broken.claimed_bytes = sizeof relocations * 1000;
    struct found found = {0};
    assert_int_equal(read_to_code(&packed, &found), -E2BIG);
    assert_int_equal(found.count, 2);
    assert_int_equal(read_to_code(&large, &found), -E2BIG);
    assert_int_equal(found.count, 4);
    assert_int_equal(read_to_code(&broken, &found), 0);
    assert_int_equal(found.count, 6);
}
