/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Finds and opens the file that has a module's debugging information. A file is known by its
 * build-id and by nothing else: one of another build, whatever its name, would tell wrong lines.
 */

#include "lines_remote.h"

#include <elfutils/libdw.h>

#include <stddef.h>
#include <stdint.h>

#define LINES_BUILD_ID_BYTES_MAX 64

struct lines_build_id {
    uint8_t bytes[LINES_BUILD_ID_BYTES_MAX];
    size_t size_bytes;
};

struct lines_file {
    char *path; /* owned; where it was found */
    int fd;
    Elf *elf;
    Dwarf *dwarf;
    struct lines_file *alternate; /* owned; what several files share (dwz), or NULL */
};

/*
 * The file for the module of this name and build-id: the module's own, one below /usr/lib/debug,
 * the one that the module links to, then the one that `remote` (NULL: none) has. Returned:
 * lines_file_free(). Returns 0; -ENOENT: there is none; -EBADMSG: there is one that cannot be read;
 * -ENOMEM.
 */
int lines_file_find(const char *module, const struct lines_build_id *build_id,
                    struct lines_remote *remote, struct lines_file **ret);

/* The same for a file that is open (taken, in any case), and whatever build-id it has. */
int lines_file_open(int fd, struct lines_file **ret);

struct lines_file *lines_file_free(struct lines_file *file);
void lines_file_freep(struct lines_file **file);
