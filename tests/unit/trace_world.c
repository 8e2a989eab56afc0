/* SPDX-License-Identifier: Apache-2.0 */

/* See trace_world.h. */
#include "trace_world.h"
#include "unit_test.h"

#include "process_owner.h"

uint32_t (*owner_of)(int32_t pid);

static uint32_t own_user(int32_t pid)
{
    return (uint32_t)pid;
}

uint32_t process_owner(int32_t pid)
{
    return owner_of(pid);
}

static const struct symbol test_symbols[] = {
    {0x401000, 0x100, 0}, {0x401200, 0x10, 4}, {0xffffffff81000000, 0x1000, 9}};
static const char test_names[] = "low\0high\0kernel\"fn";
static const struct symbol_segment test_segment = {0, 0x400000, 0x10000};
static const uint8_t test_build_id[4] = {0xab, 0xcd, 0xef, 1};

struct module test_modules[2];

static struct module make_module(void)
{
    return (struct module){.symbols = {.symbols = test_symbols,
                                       .symbol_count = 3,
                                       .segments = &test_segment,
                                       .segment_count = 1,
                                       .names = test_names,
                                       .names_bytes = sizeof test_names,
                                       .build_id = test_build_id,
                                       .build_id_bytes = 4}};
}

static int set_up_lanes(void **state, size_t lane_bytes)
{
    static const uint32_t cpus[] = {0, 5};
    struct world *world = calloc(1, sizeof *world);
    fake_tickets_reset();
    owner_of = own_user;
    test_modules[0] = test_modules[1] = make_module();
    world->buffer = trace_buffer_new(2, BUFFER_BYTES, lane_bytes);
    world->reader = fxt_reader_new();
    world->addresses = address_cache_new();
    assert_non_null(world->addresses);
    struct trace_config config = {.buffer = world->buffer,
                                  .addresses = world->addresses,
                                  .cpus = cpus,
                                  .cpu_count = 2,
                                  .session_json = "{\"s\":1}",
                                  .short_ns = UINT64_MAX,
                                  .max_stack_depth = 4,
                                  .commands = {.is_given = true, .uid = 7}};
    if (trace_cursor_new(world->buffer, &world->chunks) < 0 ||
        trace_new(&config, &world->trace) < 0) {
        return -1;
    }
    world->processes = process_table_new(trace_file_gone, world->trace);
    *state = world;
    return 0;
}

int set_up(void **state)
{
    return set_up_lanes(state, 4096);
}

int set_up_wide(void **state)
{
    return set_up_lanes(state, BUFFER_BYTES);
}

int tear_down(void **state)
{
    struct world *world = *state;
    (void)process_table_free(world->processes);
    (void)trace_free(world->trace);
    (void)trace_cursor_free(world->chunks);
    (void)trace_buffer_free(world->buffer);
    (void)address_cache_free(world->addresses);
    (void)fxt_reader_free(world->reader);
    free(world);
    fake_tickets_check();
    return 0;
}

/* The kernel stack of a sample that says it was in the kernel. */
static void describe_kernel(char *out, size_t room, const struct fxt_sample *sample)
{
    if ((sample->fields & FXT_SAMPLE_KERNEL_STACK) != 0) {
        (void)snprintf(out, room, " %zu kernel", sample->kernel_count);
    }
}

static int describe(char *out, size_t room, const struct fxt_record *record)
{
    char kernel[32] = "";
    switch (record->kind) {
    case FXT_RECORD_NAME:
        return snprintf(out, room, "name %d/%d %.*s since %d\n", (int)record->name.pid,
                        (int)record->name.tid, (int)record->name.name.text_bytes,
                        record->name.name.text, (int)record->name.since_ns);
    case FXT_RECORD_MODULE:
        return snprintf(out, room, "module %d:%d %.*s build-id %d bytes\n", (int)record->module.pid,
                        record->module.module_id, (int)record->module.name_bytes,
                        record->module.name, (int)record->module.build_id_bytes);
    case FXT_RECORD_MMAP:
        return snprintf(out, room, "mmap %d:%d %lx+%lx = %lx at %d\n", (int)record->mmap.pid,
                        record->mmap.module_id, (unsigned long)record->mmap.start,
                        (unsigned long)record->mmap.size_bytes, (unsigned long)record->mmap.vaddr,
                        (int)record->mmap.time_ns);
    case FXT_RECORD_SAMPLE:
        describe_kernel(kernel, sizeof kernel, &record->sample);
        if ((record->sample.fields & FXT_SAMPLE_CONTINUATION_COMPLETION) != 0) {
            return snprintf(out, room, "completes %lx: %zu user, quality %lx\n",
                            (unsigned long)record->sample.continuation_completion,
                            record->sample.user_count, (unsigned long)record->sample.quality);
        }
        if ((record->sample.fields & FXT_SAMPLE_CONTINUATION) != 0) {
            return snprintf(out, room, "partial %lx %d/%d at %d, %zu user%s\n",
                            (unsigned long)record->sample.continuation, (int)record->sample.pid,
                            (int)record->sample.tid, (int)record->sample.boot_ts_ns,
                            record->sample.user_count, kernel);
        }
        return snprintf(out, room, "sample cpu %d %d/%d at %d, %zu user%s, quality %lx\n",
                        (int)record->sample.cpu, (int)record->sample.pid, (int)record->sample.tid,
                        (int)record->sample.boot_ts_ns, record->sample.user_count, kernel,
                        (unsigned long)record->sample.quality);
    case FXT_RECORD_DROP_STATS:
        return snprintf(out, room, "dropped %u of cpu %d from %d to %d\n",
                        record->drop_stats.record_count, (int)record->drop_stats.cpu,
                        (int)record->drop_stats.first_ns, (int)record->drop_stats.last_ns);
    case FXT_RECORD_DATA:
        return snprintf(out, room, "data %.*s", (int)record->data.payload_bytes,
                        (const char *)record->data.payload);
    case FXT_RECORD_MAGIC:
    case FXT_RECORD_PROVIDER:
    case FXT_RECORD_INITIALIZATION:
    case FXT_RECORD_STRING:
    case FXT_RECORD_OTHER:
        break;
    }
    return 0;
}

static bool is_shown(const struct world *world, const struct fxt_record *record)
{
    return world->shows_processes || record->kind != FXT_RECORD_DATA ||
           record->data.name.index != FXT_STRING_PROCESSES;
}

/* Appends a chunk's records to the text, which is `used` long. Returns how long it is then. */
static size_t describe_chunk(struct world *world, const struct trace_chunk *chunk, size_t used)
{
    for (size_t at = 0; at < chunk->size_bytes;) {
        struct fxt_record record;
        int r = fxt_reader_next(world->reader, (const uint8_t *)chunk->bytes + at,
                                chunk->size_bytes - at, &record);
        if (r != 1) {
            fail_msg("the reader refuses: %s", fxt_reader_error(world->reader));
        }
        if (is_shown(world, &record)) {
            used += (size_t)describe(world->text + used, sizeof world->text - used, &record);
        }
        assert_true(used < sizeof world->text);
        at += record.size_bytes;
    }
    return used;
}

const char *read_shown(struct world *world)
{
    struct trace_chunk chunk;
    size_t used = 0;
    world->text[0] = '\0';
    do {
        trace_cursor_read(world->chunks, BUFFER_BYTES, &chunk);
        used = describe_chunk(world, &chunk, used);
        assert_true(trace_cursor_acknowledge(world->chunks, chunk.sequence));
    } while (chunk.size_bytes > 0);
    return world->text;
}

const char *read_all(struct world *world)
{
    trace_poll(world->trace);
    trace_buffer_mark(world->buffer);
    trace_buffer_show(world->buffer);
    return read_shown(world);
}

void map_at(struct world *world, int32_t pid, const char *path, uint64_t start, uint64_t time_ns)
{
    struct mapping_description mapping = {
        .start = start, .end = start + 0x10000, .file_offset = 0, .path = path};
    process_table_mmap(world->processes, pid, &mapping, time_ns);
}

void run(struct world *world, int32_t pid, const char *path)
{
    process_table_comm(world->processes, pid, pid, "prog", true, 50);
    map_at(world, pid, path, 0x7000000, 60);
}

void answer(struct world *world, size_t ticket, const struct module *module)
{
    fake_tickets_ready(ticket, module);
    trace_poll(world->trace);
}

bool take_sample(struct world *world, int32_t pid, uint64_t time_ns, const uint64_t *stack,
                 size_t count)
{
    struct sample sample = {
        .weight = 1,
        .time_ns = time_ns,
        .cpu = 5,
        .pid = pid,
        .tid = pid,
        .quality = count == 0 ? STACK_NONE : STACK_NO_RULE,
        .fp_frame_count = (uint16_t)count,
        .user_stack = stack,
        .user_count = count,
    };
    bool uncertain = false;
    struct process *process = process_table_find(world->processes, pid, time_ns);
    if (process != NULL) {
        trace_note(world->trace, process, sample.cgroup, time_ns);
    }
    trace_sample(world->trace, 1, &sample, process, &uncertain);
    return uncertain;
}
