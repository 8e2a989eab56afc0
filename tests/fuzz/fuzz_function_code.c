/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any file is refused, or gives each address a function that has it, or none; and the lines of its
 * code lie within it, in order, as whole texts.
 */
#include "disassembly.h"
#include "eh_frame_file.h"
#include "function_ranges.h"
#include "fuzz_target.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ADDRESS_COUNT 64
#define CODE_BYTES    512

static void check(bool is_sound)
{
    if (!is_sound) {
        abort();
    }
}

static void read_code(int fd, uint64_t start, uint64_t end)
{
    static struct disassembly_line lines[CODE_BYTES];
    size_t count = 0;
    if (disassembly_read(fd, start, end, lines, &count) < 0) {
        return;
    }
    check(count <= end - start);
    for (size_t i = 0; i < count; i++) {
        check(lines[i].address - start < end - start);
        check(i == 0 ? lines[i].address == start : lines[i].address > lines[i - 1].address);
        check(memchr(lines[i].text, '\0', sizeof lines[i].text) != NULL);
    }
}

static void read_file(int fd)
{
    uint64_t addresses[ADDRESS_COUNT];
    struct function_range ranges[ADDRESS_COUNT];
    for (size_t i = 0; i < ADDRESS_COUNT; i++) {
        addresses[i] = (i % 2 == 0 ? 0x1000 : CODE_START) + 9 * i;
    }
    if (function_ranges_find(fd, addresses, ADDRESS_COUNT, ranges) < 0) {
        return;
    }
    for (size_t i = 0; i < ADDRESS_COUNT; i++) {
        uint64_t start = ranges[i].start;
        uint64_t end = ranges[i].end;
        if (start == end) {
            check(start == 0);
            continue;
        }
        check(start <= addresses[i] && addresses[i] < end);
        read_code(fd, start, end - start > CODE_BYTES ? start + CODE_BYTES : end);
    }
    read_code(fd, addresses[0], addresses[0] + CODE_BYTES);
    read_code(fd, UINT64_MAX - CODE_BYTES, UINT64_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd >= 0 && write(fd, bytes, size) == (ssize_t)size) {
        read_file(fd);
    }
    (void)close(fd);
    return 0;
}
