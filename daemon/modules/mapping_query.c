/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the process table knows of a mapping, in the words of the module cache.
 *
 * A mapped_file is opened once for its call frames and its symbols, and the proof is right for both
 * whenever it is used. It says that a file of this identity has the content that was mapped, which
 * stays true. All mappings of a mapped_file are parts and copies of one mapping, so a request for
 * its symbols means the same content, of whatever process it is. Some proofs hold only if the
 * mapping was still there at module_ticket_shown_ns(). The ticket's holder asks mapped_file_fate()
 * whether it was.
 */
#include "mapping_query.h"

#include "extremes.h"
#include "proc_parse.h"

#include <string.h>

/* The vdso of a 32-bit process is another image than that of 64 bits; it lies where 32 bits reach.
 */
#define COMPAT_END (UINT64_C(1) << 32)

static bool is_vdso(const char *path)
{
    return strcmp(path, "[vdso]") == 0;
}

bool mapping_has_module(const struct mapping *mapping)
{
    const char *path = mapping->file->path;
    return proc_parse_is_file(path) || is_vdso(path);
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

static struct module_ticket *ask(struct module_cache *cache, enum module_table table,
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
    return ask(cache, table, urgency, &query);
}

struct module_ticket *mapping_request_both(struct module_cache *cache,
                                           const struct process *process,
                                           const struct mapping *mapping)
{
    const struct module_query query = mapping_query(process, mapping);
    struct module_ticket *names = NULL;
    if (is_vdso(query.path)) {
        return ask(cache, MODULE_CFI, MODULE_WANTED, &query);
    }
    struct module_ticket *ticket = module_cache_request_both(cache, &query, &names);
    if (ticket != NULL) {
        mapping_file_gone(mapping->file);
        mapping->file->names = names;
    }
    return ticket;
}

/* Whether the file need not be opened again. */
static bool is_answer(const struct module_ticket *ticket)
{
    return ticket != NULL && (module_ticket_state(ticket) != MODULE_FAILED ||
                              module_ticket_failure(ticket) != MODULE_FAILURE_LIMIT);
}

struct module_ticket *mapping_request_names(struct module_cache *cache, struct mapped_file *file,
                                            const struct module_query *query)
{
    struct module_ticket *names = file->names;
    if (is_answer(names)) {
        file->names = NULL;
        return names;
    }
    mapping_file_gone(file);
    return ask(cache, MODULE_SYMBOLS, MODULE_WANTED, query);
}

void mapping_file_gone(struct mapped_file *file)
{
    struct module_ticket *names = file->names;
    file->names = NULL;
    module_ticket_release(names);
}
