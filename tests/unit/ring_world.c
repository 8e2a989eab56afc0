/* SPDX-License-Identifier: Apache-2.0 */

/* See ring_world.h. */
#include "ring_world.h"
#include "unit_test.h"

#include "arch_x86_64.h"
#include "capacity.h"
#include "grow.h"

#define BUFFER_BYTES           CAPACITY((size_t)8 << 20)
#define FILE_BYTES_MIN         ((size_t)64 << 10)
#define EMPTY_BEFORE_END_BYTES 1000

static void on_file_gone(struct mapped_file *file, void *userdata)
{
    const struct ring_world *world = userdata;
    trace_file_gone(file, world->trace);
    code_map_file_gone(file);
}

static void init_rings(struct ring_world *world, size_t index)
{
    struct perf_cpu *cpu = &world->cpus[index];
    static const enum perf_consumer consumers[PERF_STREAMS_MAX] = {
        [PERF_STREAM_CLOCK] = PERF_CONSUMER_SAMPLES,
        [PERF_STREAM_SIDEBAND] = PERF_CONSUMER_SIDEBAND,
        [PERF_STREAM_SWITCHES] = PERF_CONSUMER_SWITCHES,
        [PERF_STREAM_WAITS] = PERF_CONSUMER_WAITS,
        [RING_STREAM_FURTHER] = PERF_CONSUMER_SAMPLES,
    };
    for (size_t kind = 0; kind < PERF_STREAMS_MAX; kind++) {
        struct perf_event_mmap_page *page = &world->pages[index][kind];
        cpu->streams[kind].consumer = consumers[kind];
        cpu->streams[kind].event = kind == RING_STREAM_FURTHER;
        page->data_head = RING_BYTES - EMPTY_BEFORE_END_BYTES;
        page->data_tail = page->data_head;
        perf_ring_init(&cpu->streams[kind].ring, page, (const uint8_t *)world->data[index][kind],
                       RING_BYTES, world->bounces[index][kind]);
    }
}

static void make_source(struct ring_world *world, const struct ring_world_options *options)
{
    bool copies = options->unwind != SESSION_UNWIND_FP;
    uint64_t type = RING_SAMPLE_TYPE |
                    (copies ? PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER : 0) |
                    (options->cgroups ? PERF_SAMPLE_CGROUP : 0);
    world->source = (struct perf_source){
        .config = {.period_ns = options->period_ns,
                   .has_waits = options->waits,
                   .wait_cost_percent = 100},
        .features = {.cgroup = options->cgroups},
        .layout = perf_record_layout_make(type, copies ? ARCH_PERF_REGS_MASK : 0),
        .switch_layout = perf_record_layout_make(PERF_SAMPLE_TID | PERF_SAMPLE_TIME, 0),
        .has_switches = options->switches,
        .cpus = world->cpus,
        .cpu_count = options->cpu_count,
        .sideband_count = options->cpu_count,
        .sample_max_stack = 127,
        .deferring = options->deferring,
        .sampling = true,
    };
    for (size_t i = 0; i < options->cpu_count; i++) {
        world->cpus[i] = (struct perf_cpu){.cpu = (uint32_t)i, .started_ns = options->started_ns};
        init_rings(world, i);
    }
}

static const uint32_t cpu_ids[RING_CPU_COUNT] = {0, 1, 2};

static bool make_trace(const struct ring_world_options *options, struct address_cache *addresses,
                       struct trace_buffer **ret_buffer, struct trace **ret)
{
    *ret_buffer = trace_buffer_new(options->cpu_count, BUFFER_BYTES, BUFFER_BYTES);
    const struct trace_config config = {.buffer = *ret_buffer,
                                        .addresses = addresses,
                                        .cpus = cpu_ids,
                                        .cpu_count = options->cpu_count,
                                        .session_json = "{}",
                                        .max_stack_depth = options->max_stack_depth};
    return addresses != NULL && *ret_buffer != NULL && trace_new(&config, ret) == 0;
}

/* A second sink, which has a trace and a filter of its own. */
static bool make_second(struct ring_world *world, const struct ring_world_options *options)
{
    struct ring_world_second *second = &world->second;
    second->addresses = address_cache_new();
    second->filter = filter_new(&(struct filter_config){
        .number = 1, .targets = options->second_targets, .kernel_threads = true});
    return second->filter != NULL &&
           make_trace(options, second->addresses, &second->buffer, &second->trace);
}

static bool make_drain(struct ring_world *world, const struct ring_world_options *options)
{
    const struct filter_config filter = {.targets = options->targets, .kernel_threads = true};
    make_source(world, options);
    world->addresses = address_cache_new();
    if (world->addresses == NULL) {
        return false;
    }
    if (options->unwind != SESSION_UNWIND_FP) {
        world->code = code_map_new(options->caches ? &world->cache : NULL, world->addresses);
    }
    world->filter = filter_new(&filter);
    world->processes = process_table_new(on_file_gone, world);
    if (!make_trace(options, world->addresses, &world->buffer, &world->trace) ||
        trace_cursor_new(world->buffer, &world->reader) < 0 ||
        (options->second_targets != NULL && !make_second(world, options))) {
        return false;
    }
    world->books = cpu_books_new(&world->source);
    const struct drain_config config = {
        .source = &world->source,
        .books = world->books,
        .processes = world->processes,
        .sinks = {{world->filter, world->trace}, {world->second.filter, world->second.trace}},
        .sink_count = options->second_targets == NULL ? 1 : 2,
        .code = world->code,
        .unwind = options->unwind,
        .max_stack_depth = options->max_stack_depth,
        .held_bytes = CAPACITY((size_t)32 << 20)};
    world->drain = world->books == NULL ? NULL : drain_new(&config);
    return world->drain != NULL;
}

struct ring_world *ring_world_new(const struct ring_world_options *options)
{
    struct ring_world_options all = *options;
    struct ring_world *world = calloc(1, sizeof *world);
    if (world == NULL) {
        return NULL;
    }
    fake_proc_set(NULL, NULL);
    all.cpu_count = all.cpu_count == 0 ? RING_CPU_COUNT : all.cpu_count;
    all.period_ns = all.period_ns == 0 ? 1000000 : all.period_ns;
    all.max_stack_depth = all.max_stack_depth == 0 ? 127 : all.max_stack_depth;
    if (!make_drain(world, &all)) {
        return ring_world_free(world);
    }
    drain_start(world->drain);
    return world;
}

struct ring_world *ring_world_free(struct ring_world *world)
{
    if (world != NULL) {
        (void)drain_free(world->drain);
        (void)cpu_books_free(world->books);
        (void)process_table_free(world->processes);
        (void)code_map_free(world->code);
        (void)filter_free(world->filter);
        (void)filter_free(world->second.filter);
        (void)trace_free(world->second.trace);
        (void)trace_buffer_free(world->second.buffer);
        (void)address_cache_free(world->second.addresses);
        (void)trace_free(world->trace);
        assert_int_equal(world->cache.held_count, 0);
        fake_module_table_free();
        (void)trace_cursor_free(world->reader);
        (void)trace_buffer_free(world->buffer);
        (void)address_cache_free(world->addresses);
        free(world->file);
        free(world);
    }
    return NULL;
}

bool ring_world_put(struct ring_world *world, size_t cpu, size_t stream, uint32_t type,
                    uint16_t misc, const uint64_t *words, size_t word_count)
{
    struct perf_event_mmap_page *page = &world->pages[cpu][stream];
    uint64_t *data = world->data[cpu][stream];
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

const uint8_t *ring_world_file(struct ring_world *world, size_t *ret_size_bytes)
{
    size_t capacity = FILE_BYTES_MIN;
    uint8_t *file = malloc(capacity);
    size_t size_bytes = 0;
    struct trace_chunk chunk = {0};
    (void)trace_finish(world->trace, "{\"books\":1}");
    trace_cursor_begin_segment(world->reader);
    while (file != NULL) {
        trace_cursor_read(world->reader, TRACE_CHUNK_BYTES_MAX, &chunk);
        if (chunk.size_bytes == 0 ||
            grow_from(file, capacity, size_bytes + chunk.size_bytes, FILE_BYTES_MIN) < 0 ||
            !trace_cursor_acknowledge(world->reader, chunk.sequence)) {
            break;
        }
        memcpy(file + size_bytes, chunk.bytes, chunk.size_bytes);
        size_bytes += chunk.size_bytes;
    }
    *ret_size_bytes = size_bytes;
    world->file = file;
    return file;
}
