/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Names are read back by printing what was read, so a name that merely looks like one is passed
 * over.
 */
#include "partial.h"

#include "cleanup.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

char *partial_name(const char *path, const char *tag, const struct partial *partial)
{
    char *name = NULL;
    return asprintf(&name, "%s.partial-%s-%" PRIu64 "-%" PRIu64, path, tag, partial->mark,
                    partial->size_bytes) < 0
               ? NULL
               : name;
}

/* Whether `name` is that of such a file beside `base`. */
static bool parse_name(const char *name, const char *base, const char *tag, struct partial *ret)
{
    const char *mark = strrchr(name, '-');
    char *end = NULL;
    while (mark != NULL && mark > name && mark[-1] != '-') {
        mark--;
    }
    if (mark == NULL || mark == name) {
        return false;
    }
    struct partial partial = {.mark = strtoull(mark, &end, 10)};
    partial.size_bytes = *end == '-' ? strtoull(end + 1, NULL, 10) : 0;
    cleanup_(freep) char *again = partial_name(base, tag, &partial);
    if (again == NULL || strcmp(again, name) != 0) {
        return false;
    }
    *ret = partial;
    return true;
}

static void close_folder(DIR **folder)
{
    if (*folder != NULL) {
        (void)closedir(*folder);
    }
}

int partial_find(const char *path, const char *tag, struct partial *ret, char **ret_name)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash == NULL ? path : slash + 1;
    cleanup_(freep) char *folder_name =
        slash == NULL ? strdup(".") : strndup(path, (size_t)(base - path));
    cleanup_(close_folder) DIR *folder = folder_name == NULL ? NULL : opendir(folder_name);
    struct partial found = {0};
    bool is_found = false;
    if (folder == NULL) {
        return folder_name == NULL ? -ENOMEM : -errno;
    }
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        struct partial partial;
        if (parse_name(entry->d_name, base, tag, &partial) &&
            (!is_found || partial.mark > found.mark)) {
            found = partial;
            is_found = true;
        }
    }
    if (!is_found) {
        return -ENOENT;
    }
    char *name = partial_name(path, tag, &found);
    if (name == NULL) {
        return -ENOMEM;
    }
    *ret = found;
    *ret_name = name;
    return 0;
}
