/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Module and Mmap stand together in one group, so that no reader gets one without the other. Notes
 * are small arrays that begin with a few elements, since most processes need no more.
 */
#include "trace_definition.h"

#include "fxt_writer.h"
#include "grow.h"

#include <stdlib.h>
#include <string.h>

#define FLAGS_READ_EXECUTE 5 /* ELF p_flags */
#define NOTES_BEGIN        16

bool trace_definition_write(struct definition_log *log, const struct shown_mapping *shown,
                            const struct definition *definition)
{
    uint64_t group[128];
    struct fxt_writer writer;
    fxt_writer_init(&writer, group, sizeof group);
    fxt_write_module(&writer, &(struct fxt_module){
                                  .time_ns = shown->from_ns,
                                  .pid = (uint64_t)shown->pid,
                                  .module_id = shown->module_id,
                                  .name = definition->name,
                                  .name_bytes = strlen(definition->name),
                                  .build_id = definition->build_id,
                                  .build_id_bytes = definition->build_id_bytes,
                              });
    fxt_write_mmap(&writer, &(struct fxt_mmap){
                                .time_ns = shown->from_ns,
                                .pid = (uint64_t)shown->pid,
                                .module_id = shown->module_id,
                                .flags = FLAGS_READ_EXECUTE,
                                .start = shown->start,
                                .size_bytes = shown->size_bytes,
                                .vaddr = definition->vaddr,
                            });
    return fxt_writer_ok(&writer) &&
           definition_log_put(log, definition->owner, definition->kind, group, writer.used_bytes);
}

/* What the module's segments say of the place where file_offset is mapped; else the offset itself.
 */
static uint64_t mapped_vaddr(const struct symbol_table *table, uint64_t file_offset,
                             uint64_t size_bytes)
{
    for (size_t i = 0; i < table->segment_count; i++) {
        const struct symbol_segment *segment = &table->segments[i];
        if (segment->offset < file_offset + size_bytes &&
            file_offset < segment->offset + segment->size_bytes) {
            return file_offset + (segment->vaddr - segment->offset);
        }
    }
    return file_offset;
}

bool trace_definition_write_scope(struct definition_log *log, const struct shown_mapping *shown,
                                  uint32_t owner, const struct symbol_scope *scope)
{
    const struct symbol_table *table = &scope->module->symbols;
    return trace_definition_write(
        log, shown,
        &(struct definition){
            .owner = owner,
            .kind = DEFINITION_MAPPING,
            .vaddr = mapped_vaddr(table, shown->file_offset, shown->size_bytes),
            .name = scope->name,
            .build_id = scope->build_id,
            .build_id_bytes = scope->build_id_bytes,
        });
}

bool trace_notes_grow(void **array, size_t *capacity, size_t count, size_t max,
                      size_t element_bytes)
{
    void *grown = count < *capacity || count < max
                      ? grow_array(*array, element_bytes, capacity, count + 1, NOTES_BEGIN)
                      : NULL;
    if (grown != NULL) {
        *array = grown;
    }
    return grown != NULL;
}
