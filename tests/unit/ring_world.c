/* SPDX-License-Identifier: Apache-2.0 */

/* See ring_world.h. */
#include "ring_world.h"

#include "arch_x86_64.h"

#include <stdlib.h>
#include <string.h>

#define BUFFER_BYTES           ((size_t)4 << 20)
#define EMPTY_BEFORE_END_BYTES 1000

static void on_file_gone(struct mapped_file *file, void *userdata)
{
    const struct ring_world *world = userdata;
    trace_file_gone(file, world->trace);
    code_map_file_gone(file);
}

static void make_source(struct ring_world *world, enum session_unwind unwind)
{
    for (size_t i = 0; i < RING_CPU_COUNT; i++) {
        struct perf_cpu *cpu = &world->cpus[i];
        cpu->cpu = (uint32_t)i;
        for (size_t kind = 0; kind < RING_KIND_COUNT; kind++) {
            world->pages[i][kind].data_head = RING_BYTES - EMPTY_BEFORE_END_BYTES;
            world->pages[i][kind].data_tail = RING_BYTES - EMPTY_BEFORE_END_BYTES;
        }
        perf_ring_init(&cpu->sample_ring, &world->pages[i][RING_OF_SAMPLES],
                       (const uint8_t *)world->data[i][RING_OF_SAMPLES], RING_BYTES,
                       world->bounces[i][RING_OF_SAMPLES]);
        perf_ring_init(&cpu->sideband_ring, &world->pages[i][RING_OF_SIDEBAND],
                       (const uint8_t *)world->data[i][RING_OF_SIDEBAND], RING_BYTES,
                       world->bounces[i][RING_OF_SIDEBAND]);
    }
    bool copies = unwind != SESSION_UNWIND_FP;
    uint64_t type =
        RING_SAMPLE_TYPE | (copies ? PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER : 0);
    world->source = (struct perf_source){
        .config = {.period_ns = RING_PERIOD_NS},
        .layout = perf_record_layout_make(type, copies ? ARCH_PERF_REGS_MASK : 0),
        .cpus = world->cpus,
        .cpu_count = RING_CPU_COUNT,
        .sideband_count = RING_CPU_COUNT,
        .sample_max_stack = 127,
    };
}

static bool make_trace(struct ring_world *world)
{
    static const uint32_t cpu_ids[RING_CPU_COUNT] = {0, 1, 2};
    world->buffer = trace_buffer_new(RING_CPU_COUNT, BUFFER_BYTES, BUFFER_BYTES);
    const struct trace_config config = {.buffer = world->buffer,
                                        .cpus = cpu_ids,
                                        .cpu_count = RING_CPU_COUNT,
                                        .session_json = "{}",
                                        .max_stack_depth = 127};
    return world->buffer != NULL && trace_reader_new(world->buffer, &world->reader) == 0 &&
           trace_new(&config, &world->trace) == 0;
}

struct ring_world *ring_world_new(enum session_unwind unwind)
{
    const struct filter_config filter = {.kernel_threads = true};
    struct ring_world *world = calloc(1, sizeof *world);
    if (world == NULL) {
        return NULL;
    }
    make_source(world, unwind);
    world->code = unwind == SESSION_UNWIND_FP ? NULL : code_map_new(NULL);
    world->filter = filter_new(&filter);
    world->scan = proc_scan_new();
    world->processes = process_table_new(on_file_gone, world);
    const struct drain_config config = {.source = &world->source,
                                        .processes = world->processes,
                                        .scan = world->scan,
                                        .filter = world->filter,
                                        .trace = make_trace(world) ? world->trace : NULL,
                                        .code = world->code,
                                        .unwind = unwind,
                                        .max_stack_depth = 127};
    world->drain = config.trace == NULL ? NULL : drain_new(&config);
    if (world->drain == NULL) {
        return ring_world_free(world);
    }
    drain_start(world->drain);
    return world;
}

struct ring_world *ring_world_free(struct ring_world *world)
{
    if (world != NULL) {
        (void)drain_free(world->drain);
        (void)process_table_free(world->processes);
        (void)code_map_free(world->code);
        (void)filter_free(world->filter);
        (void)proc_scan_free(world->scan);
        (void)trace_free(world->trace);
        (void)trace_reader_free(world->reader);
        (void)trace_buffer_free(world->buffer);
        free(world);
    }
    return NULL;
}

bool ring_world_put(struct ring_world *world, size_t cpu, enum ring_kind kind, uint32_t type,
                    uint16_t misc, const uint64_t *words, size_t word_count)
{
    struct perf_event_mmap_page *page = &world->pages[cpu][kind];
    uint64_t *data = world->data[cpu][kind];
    const struct perf_event_header header = {
        .type = type, .misc = misc, .size = (uint16_t)(8 + 8 * word_count)};
    if (page->data_head - page->data_tail + header.size > RING_BYTES) {
        return false;
    }
    memcpy(&data[page->data_head % RING_BYTES / 8], &header, sizeof header);
    for (size_t i = 0; i < word_count; i++) {
        data[(page->data_head / 8 + 1 + i) % (RING_BYTES / 8)] = words[i];
    }
    page->data_head += header.size;
    return true;
}

uint8_t *ring_world_file(struct ring_world *world, size_t *ret_size_bytes)
{
    const size_t capacity = 4 * BUFFER_BYTES;
    uint8_t *file = malloc(capacity);
    size_t size_bytes = 0;
    struct trace_chunk chunk = {0};
    (void)trace_finish(world->trace, "{\"books\":1}");
    trace_reader_begin_segment(world->reader);
    while (file != NULL) {
        trace_reader_read(world->reader, TRACE_CHUNK_BYTES_MAX, &chunk);
        if (chunk.size_bytes == 0 || capacity - size_bytes < chunk.size_bytes ||
            !trace_reader_acknowledge(world->reader, chunk.sequence)) {
            break;
        }
        memcpy(file + size_bytes, chunk.bytes, chunk.size_bytes);
        size_bytes += chunk.size_bytes;
    }
    *ret_size_bytes = size_bytes;
    return file;
}
