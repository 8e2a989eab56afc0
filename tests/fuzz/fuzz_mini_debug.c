/* SPDX-License-Identifier: Apache-2.0 */

/* Any .gnu_debugdata is refused, or becomes a file that is no larger than it may. */
#include "elf_image.h"
#include "fuzz_target.h"
#include "mini_debug.h"

#include <sys/stat.h>

static void unpack(int fd)
{
    struct elf_file file;
    struct stat status;
    int unpacked_fd = -1;
    if (elf_file_init(&file, fd) < 0) {
        abort();
    }
    if (mini_debug_open(&file, &unpacked_fd) == 0) {
        if (fstat(unpacked_fd, &status) < 0 || status.st_size > (off_t)MINI_DEBUG_BYTES_MAX) {
            abort();
        }
        (void)close(unpacked_fd);
    }
    elf_file_done(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const struct elf_image image = {
        .sections = {{".gnu_debugdata", SHT_PROGBITS, 0, bytes, size, 0, 0}},
        .section_count = 1,
    };
    int fd = elf_image_make(&image);
    if (fd >= 0) {
        unpack(fd);
        (void)close(fd);
    }
    return 0;
}
