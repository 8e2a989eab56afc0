/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Paths of recordings. Whether two are of one file is a question of their inodes: a name may be a
 * link, or stand there twice since two patterns of a shell match it.
 */
#include "input_paths.h"

#include "cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const char *input_title(const char *path)
{
    const char *slash = strrchr(path, '/');
    return strcmp(path, "-") == 0 ? "standard input" : slash == NULL ? path : slash + 1;
}

int input_find_same_file(const char *const *paths, size_t count, size_t *ret_first,
                         size_t *ret_second)
{
    cleanup_(freep) struct stat *files = calloc(count + 1, sizeof *files);
    if (files == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        if (strcmp(paths[i], "-") == 0 || stat(paths[i], &files[i]) < 0 ||
            !S_ISREG(files[i].st_mode)) {
            files[i] = (struct stat){0};
            continue;
        }
        for (size_t before = 0; before < i; before++) {
            if (S_ISREG(files[before].st_mode) && files[before].st_dev == files[i].st_dev &&
                files[before].st_ino == files[i].st_ino) {
                *ret_first = before;
                *ret_second = i;
                return 1;
            }
        }
    }
    return 0;
}
