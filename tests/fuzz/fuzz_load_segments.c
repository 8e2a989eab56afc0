/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any file gives no segments, or some whose addresses have a place that a file can have. The input
 * is a build-id of 20 bytes and the file.
 */
#include "fuzz_target.h"
#include "load_segments.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define BUILD_ID_BYTES ((size_t)20)

static void read_file(int fd, const uint8_t *build_id)
{
    char path[64];
    char digits[2 * BUILD_ID_BYTES + 1];
    struct load_segments segments;
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    for (size_t i = 0; i < BUILD_ID_BYTES; i++) {
        (void)sprintf(digits + 2 * i, "%02x", build_id[i]);
    }
    load_segments_read(path, digits, &segments);
    if (segments.count > LOAD_SEGMENTS_MAX) {
        abort();
    }
    for (size_t i = 0; i < segments.count; i++) {
        uint64_t first = segments.segments[i].address;
        uint64_t size_bytes = segments.segments[i].size_bytes;
        uint64_t offset_bytes = 0;
        bool is_found = load_segments_find(&segments, first, &offset_bytes);
        if ((size_bytes > 0 && !is_found) || offset_bytes > INT64_MAX ||
            (load_segments_find(&segments, first + size_bytes - 1, &offset_bytes) &&
             offset_bytes > INT64_MAX)) {
            abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    if (size >= BUILD_ID_BYTES && write(fd, bytes + BUILD_ID_BYTES, size - BUILD_ID_BYTES) ==
                                      (ssize_t)(size - BUILD_ID_BYTES)) {
        read_file(fd, bytes);
    }
    (void)close(fd);
    return 0;
}
