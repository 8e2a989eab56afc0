/* SPDX-License-Identifier: Apache-2.0 */

/* Any file is refused, or gives each address a chain that lies within the table. */
#include "fuzz_target.h"
#include "lines_answer.h"
#include "lines_dwarf.h"
#include "lines_file.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define ADDRESS_COUNT 64

static void read_file(int fd)
{
    struct intern texts = {0};
    struct inlines table = {0};
    struct lines_about about;
    struct lines_address addresses[ADDRESS_COUNT];
    for (size_t i = 0; i < ADDRESS_COUNT; i++) {
        addresses[i] = (struct lines_address){.vaddr = 0x1000 + 9 * i};
    }
    struct lines_file *file = lines_file_begin(fd, &about);
    if (!lines_about_is_sound(&about)) {
        abort();
    }
    if (file != NULL && lines_file_is_whole(file) &&
        lines_dwarf_read(file->dwarf, addresses, ADDRESS_COUNT, &texts, &table) == 0) {
        for (size_t i = 0; i < ADDRESS_COUNT; i++) {
            if (addresses[i].chain.first > table.frame_count ||
                addresses[i].chain.count > table.frame_count - addresses[i].chain.first) {
                abort();
            }
        }
    }
    (void)lines_file_free(file);
    inlines_done(&table);
    intern_done(&texts);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd >= 0 && write(fd, bytes, size) == (ssize_t)size) {
        read_file(fd);
    } else if (fd >= 0) {
        (void)close(fd);
    }
    return 0;
}
