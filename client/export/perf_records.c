/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Builds one record at a time. Its fields fit: the longest are stacks, of which perf_data.c
 * says why they do, and a name, which is cut here.
 */
#include "perf_records.h"

#include "utf8.h"

#include <linux/perf_event.h>
#include <string.h>

#define TEXT_BYTES_MAX ((size_t)1024)

void perf_records_text(struct perf_records *records, const char *text)
{
    char shown[TEXT_BYTES_MAX + sizeof(uint64_t)] = {0};
    size_t size_bytes = utf8_shown(shown, TEXT_BYTES_MAX, text, strlen(text));
    size_t word_bytes = sizeof(uint64_t);
    perf_records_bytes(records, shown, (size_bytes / word_bytes + 1) * word_bytes);
}

void perf_records_task(struct perf_records *records, const struct perf_task *task)
{
    perf_records_u32(records, task->pid);
    perf_records_u32(records, task->tid);
    perf_records_u64(records, task->time_ns);
    perf_records_u32(records, task->cpu);
    perf_records_u32(records, 0);
}

void perf_records_begin(struct perf_records *records, uint32_t type, uint16_t misc)
{
    const struct perf_event_header header = {.type = type, .misc = misc};
    records->used_bytes = 0;
    perf_records_bytes(records, &header, sizeof header);
}

void perf_records_end(struct perf_records *records)
{
    uint16_t size_bytes = (uint16_t)records->used_bytes;
    memcpy(records->bytes + offsetof(struct perf_event_header, size), &size_bytes,
           sizeof size_bytes);
    records->written_bytes += size_bytes;
    if (records->out.file != NULL) {
        byte_out_put(&records->out, records->bytes, size_bytes);
    }
}

void perf_records_flush(struct perf_records *records)
{
    if (records->out.file != NULL) {
        byte_out_flush(&records->out);
    }
}
