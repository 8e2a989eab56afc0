/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the process table knows of a mapping, in the words of the module cache.
 */
#include "mapping_query.h"

#include <string.h>

bool mapping_is_file(const struct mapping *mapping)
{
    const char *path = mapping->file->path;
    return path[0] == '/' && path[1] != '/';
}

struct module_query mapping_query(const struct process *process, const struct mapping *mapping)
{
    const struct mapped_file *file = mapping->file;
    struct module_query query = {
        .pid = process->pid,
        .parent_pid = process->parent_pid,
        .start = mapping->start,
        .end = mapping->end,
        .file_offset = mapping->file_offset,
        .path = file->path,
        .has_build_id = file->has_build_id,
        .build_id_bytes = file->build_id_bytes,
        .device_major = file->device_major,
        .device_minor = file->device_minor,
        .inode = file->inode,
    };
    memcpy(query.build_id, file->build_id, sizeof query.build_id);
    return query;
}
