/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the process table knows of a mapping, in the words of the module cache.
 */
#include "mapping_query.h"

#include "extremes.h"

#include <string.h>

/* The vdso of a 32-bit process is another image than that of 64 bits; it lies where 32 bits reach.
 */
#define COMPAT_END (UINT64_C(1) << 32)

/*
 * What the kernel calls memory without a file of its own that several mappings can show: anonymous
 * memory that is shared, that of System V, huge pages, and what .NET maps twice, to write and to
 * execute. Runtimes put code there.
 */
static bool is_shared_memory(const char *path)
{
    static const char *const names[] = {"/dev/zero", "/SYSV", "/anon_hugepage",
                                        "/memfd:doublemapper"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strncmp(path, names[i], strlen(names[i])) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_vdso(const char *path)
{
    return strcmp(path, "[vdso]") == 0;
}

bool mapping_has_module(const struct mapping *mapping)
{
    const char *path = mapping->file->path;
    bool is_file = path[0] == '/' && path[1] != '/' && !is_shared_memory(path);
    return is_file || is_vdso(path);
}

bool mapping_is_vdso_32bit(const struct mapping *mapping)
{
    return mapping->start < COMPAT_END && is_vdso(mapping->file->path);
}

/* "[vvar]", "[vsyscall]" and the like are the kernel's. */
bool mapping_is_made_code(const struct mapping *mapping)
{
    return !mapping_has_module(mapping) && strncmp(mapping->file->path, "[v", 2) != 0;
}

struct module_query mapping_query(const struct process *process, const struct mapping *mapping)
{
    const struct mapped_file *file = mapping->file;
    return (struct module_query){
        .pid = process->pid,
        .parent_pid = process->parent_pid,
        .start = mapping->start,
        .end = mapping->end,
        .file_offset = mapping->file_offset,
        .path = file->path,
        .device_major = file->device_major,
        .device_minor = file->device_minor,
        .inode = file->inode,
        .inode_generation = file->inode_generation,
        .mapped_ns = max_u64(mapping->from_ns, mapping->seen_ns),
        .start_time_ns = process->start_time_ns,
    };
}

struct module_ticket *mapping_ask(struct module_cache *cache, enum module_table table,
                                  enum module_urgency urgency, const struct module_query *query)
{
    return is_vdso(query->path) ? module_cache_request_vdso(cache, table, query->start < COMPAT_END)
                                : module_cache_request(cache, table, urgency, query);
}

struct module_ticket *mapping_request(struct module_cache *cache, enum module_table table,
                                      enum module_urgency urgency, const struct process *process,
                                      const struct mapping *mapping)
{
    const struct module_query query = mapping_query(process, mapping);
    return mapping_ask(cache, table, urgency, &query);
}
