/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Ranges of functions by call-frame information: of code in this program itself, and of files made
 * by hand.
 */
#include "function_ranges.h"

#include "cleanup.h"
#include "eh_frame.h"
#include "eh_frame_file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* Two functions, one right behind the other, and code of none. */
__asm__(".pushsection .text.test_ranges, \"ax\"\n"
        ".globl range_first, range_second, range_none\n"
        "range_first: .cfi_startproc\n"
        ".skip 32\n"
        ".cfi_endproc\n"
        "range_second: .cfi_startproc\n"
        ".skip 16\n"
        ".cfi_endproc\n"
        "range_none: .skip 16\n"
        ".popsection\n");
extern const char range_first[];
extern const char range_second[];
extern const char range_none[];
extern const char __ehdr_start[];

/* The program's own address of one of its addresses. */
static uint64_t vaddr_of(const char *address)
{
    return (uint64_t)(address - __ehdr_start);
}

static void assert_range(const struct function_range *range, uint64_t start, uint64_t end)
{
    assert_int_equal(range->start, start);
    assert_int_equal(range->end, end);
}

TEST(finds_the_function_that_holds_an_address)
{
    const uint64_t first = vaddr_of(range_first);
    const uint64_t second = vaddr_of(range_second);
    const uint64_t none = vaddr_of(range_none);
    const uint64_t addresses[] = {0, first, first + 31, second, second + 15, none, UINT64_MAX};
    struct function_range ranges[COUNT_OF(addresses)];
    cleanup_(closep) int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    assert_int_equal(function_ranges_find(fd, addresses, COUNT_OF(addresses), ranges), 0);
    assert_range(&ranges[0], 0, 0);
    assert_range(&ranges[1], first, second);
    assert_range(&ranges[2], first, second);
    assert_range(&ranges[3], second, none);
    assert_range(&ranges[4], second, none);
    assert_range(&ranges[5], 0, 0);
    assert_range(&ranges[6], 0, 0);
}

#define PROBED_COUNT      4096
#define TABLE_FORM_OFFSET 3 /* in .eh_frame_hdr */
#define COUNT_OFFSET      8

/* This program, in memory. */
struct copy {
    int fd;
    uint8_t *bytes;
    size_t size_bytes;
    uint64_t header_offset; /* of .eh_frame_hdr */
    Elf64_Phdr *header;
};

static void copy_done(struct copy *copy)
{
    (void)munmap(copy->bytes, copy->size_bytes);
    (void)close(copy->fd);
}

static void copy_program(struct copy *ret)
{
    struct stat status;
    cleanup_(closep) int program = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    assert_int_equal(fstat(program, &status), 0);
    *ret = (struct copy){.fd = memfd_create("program", MFD_CLOEXEC),
                         .size_bytes = (size_t)status.st_size};
    assert_int_equal(ftruncate(ret->fd, status.st_size), 0);
    ret->bytes = mmap(NULL, ret->size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ret->fd, 0);
    assert_true(ret->bytes != MAP_FAILED);
    assert_int_equal(pread(program, ret->bytes, ret->size_bytes, 0), status.st_size);
    const Elf64_Ehdr *elf = (const Elf64_Ehdr *)ret->bytes;
    ret->header = (Elf64_Phdr *)(ret->bytes + elf->e_phoff);
    while (ret->header->p_type != PT_GNU_EH_FRAME) {
        ret->header++;
    }
    ret->header_offset = ret->header->p_offset;
}

/* The functions of addresses all over the file. Returns how many addresses have one. */
static size_t probe(const struct copy *copy, struct function_range ranges[PROBED_COUNT])
{
    uint64_t addresses[PROBED_COUNT];
    size_t found_count = 0;
    for (size_t i = 0; i < PROBED_COUNT; i++) {
        addresses[i] = i * copy->size_bytes / PROBED_COUNT;
    }
    assert_int_equal(function_ranges_find(copy->fd, addresses, PROBED_COUNT, ranges), 0);
    for (size_t i = 0; i < PROBED_COUNT; i++) {
        found_count += ranges[i].end > 0;
    }
    return found_count;
}

TEST(finds_the_same_with_the_table_of_functions_and_without)
{
    static struct function_range with[PROBED_COUNT];
    static struct function_range without[PROBED_COUNT];
    cleanup_(copy_done) struct copy copy;
    copy_program(&copy);
    assert_true(probe(&copy, with) > PROBED_COUNT / 100);
    copy.header->p_type = PT_NULL;
    (void)probe(&copy, without);
    assert_memory_equal(with, without, sizeof with);
    copy.header->p_type = PT_GNU_EH_FRAME;
    copy.bytes[copy.header_offset + TABLE_FORM_OFFSET] = 0x1b; /* relative to itself */
    (void)probe(&copy, without);
    assert_memory_equal(with, without, sizeof with);
}

TEST(believes_a_table_only_what_the_frames_say)
{
    static struct function_range ranges[PROBED_COUNT];
    const uint64_t second = vaddr_of(range_second);
    struct function_range range;
    cleanup_(copy_done) struct copy copy;
    copy_program(&copy);
    uint32_t *count = (uint32_t *)(copy.bytes + copy.header_offset + COUNT_OFFSET);
    int32_t *pairs = (int32_t *)(count + 1);
    const uint32_t true_count = *count;
    /* A table of one function has no other. */
    *count = 1;
    assert_true(probe(&copy, ranges) < PROBED_COUNT / 100);
    assert_int_equal(function_ranges_find(copy.fd, &second, 1, &range), 0);
    assert_range(&range, 0, 0);
    /* One that is longer than its segment is none. */
    *count = UINT32_MAX;
    assert_int_equal(function_ranges_find(copy.fd, &second, 1, &range), 0);
    assert_range(&range, second, vaddr_of(range_none));
    /* Entries of other functions do not hold the address. */
    *count = true_count;
    const int32_t first_entry = pairs[1];
    for (uint32_t i = 0; i < true_count; i++) {
        pairs[2 * i + 1] = first_entry;
    }
    assert_int_equal(function_ranges_find(copy.fd, &second, 1, &range), 0);
    assert_range(&range, 0, 0);
    /* Nor do places that are no entries. */
    for (uint32_t i = 0; i < true_count; i++) {
        pairs[2 * i + 1] = (int32_t)(i * 0x9e3779b9);
    }
    (void)probe(&copy, ranges);
}

static int count_function(const struct dwarf_cie *cie, struct dwarf_cursor program, uint64_t start,
                          uint64_t end, void *userdata)
{
    (void)cie, (void)program, (void)start, (void)end;
    *(size_t *)userdata += 1;
    return 0;
}

/* Else a file whose functions share a CIE of 64 MiB would take hours. */
TEST(reads_no_more_of_cies_than_the_section_has)
{
    const uint64_t addresses[] = {vaddr_of(range_first), vaddr_of(range_second)};
    struct function_range range;
    struct elf_file file;
    GElf_Shdr section;
    size_t count = 0;
    cleanup_(copy_done) struct copy copy;
    copy_program(&copy);
    assert_int_equal(elf_file_init(&file, copy.fd), 0);
    assert_true(elf_file_section(&file, ".eh_frame", &section));
    assert_int_equal(eh_frame_find(&file, addresses, 2, count_function, &count), 0);
    assert_int_equal(count, 2);
    /* The first CIE, which both have, is all of the section. */
    const uint32_t length = (uint32_t)section.sh_size - 4;
    memcpy(copy.bytes + section.sh_offset, &length, sizeof length);
    count = 0;
    assert_int_equal(eh_frame_find(&file, addresses, 1, count_function, &count), 0);
    assert_int_equal(count, 1);
    count = 0;
    assert_int_equal(eh_frame_find(&file, addresses, 2, count_function, &count), -ENOENT);
    assert_int_equal(count, 1);
    elf_file_done(&file);
    assert_int_equal(function_ranges_find(copy.fd, addresses, 1, &range), 0);
    assert_range(&range, addresses[0], addresses[1]);
}

TEST(knows_nothing_of_a_file_without_call_frames)
{
    const uint64_t address = CODE_START;
    struct function_range range = {1, 2};
    cleanup_(closep) int fd = eh_frame_file_make(&(struct eh_frame_file){.machine = EM_X86_64});
    assert_int_equal(function_ranges_find(fd, &address, 1, &range), 0);
    assert_range(&range, 0, 0);
}

TEST(refuses_what_is_no_program)
{
    const uint64_t address = 0;
    struct function_range range = {1, 2};
    cleanup_(closep) int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    assert_int_equal(function_ranges_find(fd, &address, 1, &range), -EBADMSG);
    assert_range(&range, 1, 2);
}
