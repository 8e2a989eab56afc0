/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Ranges of functions by call-frame information: of code in this program itself, and of files made
 * by hand.
 */
#include "function_ranges.h"

#include "cleanup.h"
#include "eh_frame_file.h"

#include <errno.h>
#include <fcntl.h>

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
