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

bool trace_definition_write(struct trace_buffer *buffer, const struct shown_mapping *shown,
                            uint64_t vaddr, const char *name, const uint8_t *build_id,
                            size_t build_id_bytes)
{
    uint64_t group[128];
    struct fxt_writer writer;
    fxt_writer_init(&writer, group, sizeof group);
    fxt_write_module(&writer, &(struct fxt_module){
                                  .time_ns = shown->from_ns,
                                  .pid = (uint64_t)shown->pid,
                                  .module_id = shown->module_id,
                                  .name = name,
                                  .name_bytes = strlen(name),
                                  .build_id = build_id,
                                  .build_id_bytes = build_id_bytes,
                              });
    fxt_write_mmap(&writer, &(struct fxt_mmap){
                                .time_ns = shown->from_ns,
                                .pid = (uint64_t)shown->pid,
                                .module_id = shown->module_id,
                                .flags = FLAGS_READ_EXECUTE,
                                .start = shown->start,
                                .size_bytes = shown->size_bytes,
                                .vaddr = vaddr,
                            });
    return fxt_writer_ok(&writer) &&
           trace_buffer_put(buffer, TRACE_LANE_DEFINITIONS, group, writer.used_bytes);
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
