/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Keeps the paths of files that stand in the recording without an identity, which the daemon writes
 * first, and removes each when it comes with one. What is left when the session has ended has not
 * been read. The list is bounded; most files are in it for moments.
 */
#include "unread_modules.h"

#include "recording.h"

#include <stdlib.h>
#include <string.h>

#define KERNEL      "[kernel]"
#define KERNEL_LINE "\"module\":\"" KERNEL "\""
#define INODE       " (inode "

void unread_modules_done(struct unread_modules *modules)
{
    for (size_t i = 0; i < modules->count; i++) {
        free(modules->paths[i]);
    }
    *modules = (struct unread_modules){0};
}

static size_t find(const struct unread_modules *modules, const char *path, size_t path_bytes)
{
    size_t at = 0;
    while (at < modules->count && (modules->path_bytes[at] != path_bytes ||
                                   memcmp(modules->paths[at], path, path_bytes) != 0)) {
        at++;
    }
    return at;
}

/* Does nothing where there is no room or no memory. */
static void add(struct unread_modules *modules, const char *path, size_t path_bytes)
{
    size_t at = modules->count;
    char *copy = at < UNREAD_MODULES_MAX ? malloc(path_bytes + 1) : NULL;
    if (copy != NULL) {
        memcpy(copy, path, path_bytes);
        copy[path_bytes] = '\0';
        modules->paths[at] = copy;
        modules->path_bytes[at] = path_bytes;
        modules->count++;
    }
}

static void drop(struct unread_modules *modules, size_t at)
{
    size_t last = --modules->count;
    free(modules->paths[at]);
    modules->paths[at] = modules->paths[last];
    modules->path_bytes[at] = modules->path_bytes[last];
}

static void see_module(struct unread_modules *modules, const struct fxt_module *module)
{
    const char *inode = memmem(module->name, module->name_bytes, INODE, strlen(INODE));
    size_t path_bytes = inode == NULL ? module->name_bytes : (size_t)(inode - module->name);
    bool is_read = inode != NULL || module->build_id_bytes > 0;
    if (module->name_bytes == strlen(KERNEL) && memcmp(module->name, KERNEL, strlen(KERNEL)) == 0) {
        modules->has_kernel = true;
    }
    if (module->name_bytes == 0 || module->name[0] != '/') {
        return;
    }
    size_t at = find(modules, module->name, path_bytes);
    if (is_read && at < modules->count) {
        drop(modules, at);
    } else if (!is_read && at == modules->count) {
        add(modules, module->name, path_bytes);
    }
}

void unread_modules_see(struct unread_modules *modules, const struct fxt_record *record)
{
    if (record->kind == FXT_RECORD_MODULE) {
        see_module(modules, &record->module);
    } else if (record->kind == FXT_RECORD_DATA && modules->has_kernel &&
               !modules->is_kernel_named && data_is_named(&record->data, DATA_NAME_SYMBOLS)) {
        modules->is_kernel_named = memmem(record->data.payload, record->data.payload_bytes,
                                          KERNEL_LINE, strlen(KERNEL_LINE)) != NULL;
    }
}

bool unread_modules_has_kernel(const struct unread_modules *modules)
{
    return modules->has_kernel && !modules->is_kernel_named;
}
