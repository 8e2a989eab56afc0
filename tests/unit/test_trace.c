/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the trace writes for a sample, read back with the strict reader: names and mappings before
 * the sample, each once; corrections when a file's table comes; functions once; drops counted. The
 * module cache is a stand-in whose answers the test gives when it likes.
 */
#include "fxt_reader.h"
#include "process_table.h"
#include "trace.h"
#include "trace_reader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BUFFER_BYTES ((size_t)1 << 20)
#define TICKETS_MAX  16

/* The stand-in. */
struct module_ticket {
    char path[64];
    enum module_state state;
    const struct module *module;
    int released;
};

static struct module_ticket tickets[TICKETS_MAX];
static size_t ticket_count;

static struct module_ticket *make_ticket(const char *path)
{
    assert_true(ticket_count < TICKETS_MAX);
    struct module_ticket *ticket = &tickets[ticket_count++];
    *ticket = (struct module_ticket){.state = MODULE_PENDING};
    (void)snprintf(ticket->path, sizeof ticket->path, "%s", path);
    return ticket;
}

struct module_ticket *module_cache_request(struct module_cache *cache, enum module_table table,
                                           enum module_urgency urgency,
                                           const struct module_query *query)
{
    (void)table;
    (void)urgency;
    (void)cache;
    return make_ticket(query->path);
}

struct module_ticket *module_cache_request_vdso(struct module_cache *cache, enum module_table table)
{
    (void)cache;
    (void)table;
    return NULL;
}

struct module_ticket *module_cache_request_kernel(struct module_cache *cache)
{
    (void)cache;
    return make_ticket("[kernel]");
}

struct module_ticket *module_cache_request_perf_map(struct module_cache *cache,
                                                    const struct module_query *query)
{
    (void)cache;
    char name[32];
    (void)snprintf(name, sizeof name, "map of %d", (int)query->pid);
    return make_ticket(name);
}

enum module_state module_ticket_state(const struct module_ticket *ticket)
{
    return ticket->state;
}

const struct module *module_ticket_module(const struct module_ticket *ticket)
{
    return ticket->module;
}

void module_ticket_release(struct module_ticket *ticket)
{
    if (ticket != NULL) {
        ticket->released++;
    }
}

/* Functions low [0x1000,0x1100), high [0x1200,0x1210), and a kernel-sized one; offset 0 is vaddr
 * 0x400000. */
static const struct symbol test_symbols[] = {
    {0x401000, 0x100, 0}, {0x401200, 0x10, 4}, {0xffffffff81000000, 0x1000, 9}};
static const char test_names[] = "low\0high\0kernel\"fn";
static const struct symbol_segment test_segment = {0, 0x400000, 0x10000};
static const uint8_t test_build_id[4] = {0xab, 0xcd, 0xef, 1};

#define TEST_MODULE                                                                                \
    {                                                                                              \
        .symbols = {.symbols = test_symbols,                                                       \
                    .symbol_count = 3,                                                             \
                    .segments = &test_segment,                                                     \
                    .segment_count = 1,                                                            \
                    .names = test_names,                                                           \
                    .names_bytes = sizeof test_names,                                              \
                    .build_id = test_build_id,                                                     \
                    .build_id_bytes = 4},                                                          \
    }
static const struct module test_module = TEST_MODULE;
static struct module other_module = TEST_MODULE;

struct world {
    struct trace_buffer *buffer;
    struct trace *trace;
    struct process_table *processes;
    struct trace_reader *chunks;
    struct fxt_reader *reader;
    char text[1 << 22]; /* what was read, a line a record */
};

static int set_up(void **state)
{
    static const uint32_t cpus[] = {0, 5};
    struct world *world = calloc(1, sizeof *world);
    ticket_count = 0;
    world->buffer = trace_buffer_new(2, BUFFER_BYTES, 4096);
    world->reader = fxt_reader_new();
    struct trace_config config = {
        .buffer = world->buffer, .cpus = cpus, .cpu_count = 2, .session_json = "{\"s\":1}"};
    if (trace_reader_new(world->buffer, &world->chunks) < 0 ||
        trace_new(&config, &world->trace) < 0) {
        return -1;
    }
    world->processes = process_table_new(trace_file_gone, world->trace);
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    (void)process_table_free(world->processes);
    (void)trace_free(world->trace);
    (void)trace_reader_free(world->chunks);
    (void)trace_buffer_free(world->buffer);
    (void)fxt_reader_free(world->reader);
    free(world);
    for (size_t i = 0; i < ticket_count; i++) {
        assert_int_equal(tickets[i].released, 1);
    }
    return 0;
}

static int describe(char *out, size_t room, const struct fxt_record *record)
{
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
        return snprintf(out, room, "sample cpu %d %d/%d at %d, %zu user %zu kernel, quality %lx\n",
                        (int)record->sample.cpu, (int)record->sample.pid, (int)record->sample.tid,
                        (int)record->sample.boot_ts_ns, record->sample.user_count,
                        record->sample.kernel_count, (unsigned long)record->sample.quality);
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
        used += (size_t)describe(world->text + used, sizeof world->text - used, &record);
        assert_true(used < sizeof world->text);
        at += record.size_bytes;
    }
    return used;
}

/* What the reader may have by now, a line a record; the tables' own records left out. */
static const char *read_shown(struct world *world)
{
    struct trace_chunk chunk;
    size_t used = 0;
    world->text[0] = '\0';
    do {
        trace_reader_read(world->chunks, BUFFER_BYTES, &chunk);
        used = describe_chunk(world, &chunk, used);
        assert_true(trace_reader_acknowledge(world->chunks, chunk.sequence));
    } while (chunk.size_bytes > 0);
    return world->text;
}

/* What has been written since the last call, shown or not. */
static const char *read_all(struct world *world)
{
    trace_buffer_mark(world->buffer);
    trace_buffer_show(world->buffer);
    return read_shown(world);
}

static void map_at(struct world *world, int32_t pid, const char *path, uint64_t start,
                   uint64_t time_ns)
{
    struct mapping_description mapping = {
        .start = start, .end = start + 0x10000, .file_offset = 0, .path = path};
    process_table_mmap(world->processes, pid, &mapping, time_ns);
}

static bool take_sample(struct world *world, int32_t pid, uint64_t time_ns, const uint64_t *stack,
                        size_t count)
{
    struct sample sample = {
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
    (void)trace_sample(world->trace, 1, &sample, process_table_find(world->processes, pid, time_ns),
                       &uncertain);
    return uncertain;
}

static void begins_a_segment_with_its_session(void **state)
{
    assert_string_equal(read_all(*state), "data {\"s\":1}\n"
                                          "name 0/0 [outside] since 0\n"
                                          "name -1/0 [exited] since 0\n");
}

static void defines_before_the_sample_and_once(void **state)
{
    struct world *world = *state;
    uint64_t stack[] = {0x7001010, 0x7001205};
    process_table_comm(world->processes, 42, 42, "prog", true, 50);
    map_at(world, 42, "/bin/prog", 0x7000000, 60);
    (void)read_all(world);
    assert_false(take_sample(world, 42, 100, stack, 2));
    assert_false(take_sample(world, 42, 200, stack, 2));
    assert_string_equal(read_all(world),
                        "name 42/0 prog since 50\n"
                        "name 42/42 prog since 50\n"
                        "module 42:1 [unknown] build-id 0 bytes\n"
                        "mmap 42:1 0+100000000000000 = 0 at 50\n"
                        "module 42:2 /bin/prog build-id 0 bytes\n"
                        "mmap 42:2 7000000+10000 = 0 at 60\n"
                        "sample cpu 5 42/42 at 100, 2 user 0 kernel, quality 200000004\n"
                        "sample cpu 5 42/42 at 200, 2 user 0 kernel, quality 200000004\n");
    assert_int_equal(ticket_count, 1);
    assert_true(trace_names_pending(world->trace));
}

static void a_table_corrects_addresses_and_names_what_was_sampled(void **state)
{
    struct world *world = *state;
    uint64_t stack[] = {0x7001010, 0x7001200}; /* the caller's call ends where `high` begins */
    uint64_t again[] = {0x7001201};
    process_table_comm(world->processes, 42, 42, "prog", true, 50);
    map_at(world, 42, "/bin/prog", 0x7000000, 60);
    (void)take_sample(world, 42, 100, stack, 2);
    (void)read_all(world);
    tickets[0].module = &test_module;
    tickets[0].state = MODULE_READY;
    trace_poll(world->trace);
    assert_string_equal(
        read_all(world),
        "module 42:2 /bin/prog build-id 4 bytes\n"
        "mmap 42:2 7000000+10000 = 400000 at 60\n"
        "data {\"build_id\":\"abcdef01\",\"module\":\"/bin/prog\",\"start\":\"0x401000\","
        "\"size\":256,\"name\":\"low\"}\n");
    assert_false(trace_names_pending(world->trace));
    (void)take_sample(world, 42, 300, again, 1);
    (void)take_sample(world, 42, 400, stack, 2);
    trace_poll(world->trace);
    assert_non_null(
        strstr(read_all(world), "\"start\":\"0x401200\",\"size\":16,\"name\":\"high\"}\n"));
    assert_null(strstr(world->text, "\"low\""));
}

static void a_process_that_is_gone_still_gets_its_names(void **state)
{
    struct world *world = *state;
    uint64_t stack[] = {0x7001010};
    process_table_comm(world->processes, 42, 42, "brief", true, 50);
    map_at(world, 42, "/bin/brief", 0x7000000, 60);
    (void)take_sample(world, 42, 100, stack, 1);
    process_table_exit(world->processes, 42, 42, 150);
    process_table_prune(world->processes, 100000);
    assert_null(process_table_find(world->processes, 42, 100));
    (void)read_all(world);
    tickets[0].module = &test_module;
    tickets[0].state = MODULE_READY;
    trace_poll(world->trace);
    assert_non_null(strstr(read_all(world), "\"name\":\"low\""));
}

static void a_file_with_anothers_build_id_and_path_gets_a_name_of_its_own(void **state)
{
    struct world *world = *state;
    uint64_t stack[] = {0x7001010};
    for (int32_t pid = 42; pid < 44; pid++) {
        process_table_comm(world->processes, pid, pid, "prog", true, 50);
        map_at(world, pid, "/lib/libc.so.6", 0x7000000, 60);
        (void)take_sample(world, pid, 100, stack, 1);
    }
    (void)read_all(world);
    tickets[0].module = &test_module;
    other_module.identity.inode = 99;
    tickets[1].module = &other_module;
    tickets[0].state = tickets[1].state = MODULE_READY;
    trace_poll(world->trace);
    const char *text = read_all(world);
    assert_non_null(strstr(text, "\"module\":\"/lib/libc.so.6\""));
    assert_non_null(strstr(text, "\"module\":\"/lib/libc.so.6 (2)\""));
    assert_non_null(strstr(text, ":2 /lib/libc.so.6 (2) build-id 4 bytes\n"));
}

/* A file that was never read stands under no build-id; a file without one is known by its inode. */
static void nothing_names_the_functions_of_a_file_that_was_not_read(void **state)
{
    struct world *world = *state;
    uint64_t stack[] = {0x7001010};
    struct module nameless = TEST_MODULE;
    nameless.symbols.build_id_bytes = 0;
    nameless.identity.device = 0x801;
    nameless.identity.inode = 77;
    for (int32_t pid = 42; pid < 44; pid++) {
        struct mapping_description mapping = {
            .start = 0x7000000, .end = 0x7010000, .path = "/tmp/prog", .inode = 77};
        process_table_comm(world->processes, pid, pid, "prog", true, 50);
        process_table_mmap(world->processes, pid, &mapping, 60);
        (void)take_sample(world, pid, 100, stack, 1);
    }
    const char *text = read_all(world);
    assert_non_null(strstr(text, "module 42:2 /tmp/prog build-id 0 bytes\n"));
    assert_non_null(strstr(text, "module 43:2 /tmp/prog build-id 0 bytes\n"));
    tickets[0].state = MODULE_FAILED;
    tickets[1].module = &nameless;
    tickets[1].state = MODULE_READY;
    trace_poll(world->trace);
    assert_int_equal(trace_counts(world->trace).modules_unread, 1);
    text = read_all(world);
    assert_non_null(strstr(text, "module 43:2 /tmp/prog (inode 801:77) build-id 0 bytes\n"));
    assert_non_null(strstr(text, "\"module\":\"/tmp/prog (inode 801:77)\""));
    assert_null(strstr(text, "\"module\":\"/tmp/prog\""));
}

static void a_reused_address_is_defined_anew_even_in_one_drain(void **state)
{
    struct world *world = *state;
    uint64_t stack[] = {0x7001010};
    process_table_comm(world->processes, 42, 42, "prog", true, 50);
    map_at(world, 42, "/lib/first.so", 0x7000000, 60);
    map_at(world, 42, "/lib/second.so", 0x7000000, 200); /* told before the samples are handled */
    (void)read_all(world);
    (void)take_sample(world, 42, 100, stack, 1);
    (void)take_sample(world, 42, 300, stack, 1);
    const char *text = read_all(world);
    assert_non_null(strstr(text, "module 42:2 /lib/first.so"));
    assert_non_null(strstr(text, "mmap 42:2 7000000+10000 = 0 at 60\n"));
    assert_non_null(strstr(text, "module 42:3 /lib/second.so"));
    assert_non_null(strstr(text, "mmap 42:3 7000000+10000 = 0 at 200\n"));
}

static void an_address_in_no_mapping_is_unknown_and_uncertain(void **state)
{
    struct world *world = *state;
    uint64_t stack[] = {0x123456};
    process_table_comm(world->processes, 42, 42, "prog", true, 50);
    (void)read_all(world);
    assert_true(take_sample(world, 42, 100, stack, 1));
    assert_true(take_sample(world, 42, 110, stack, 1));
    assert_non_null(strstr(read_all(world), "module 42:1 [unknown] build-id 0 bytes\n"
                                            "mmap 42:1 0+100000000000000 = 0 at 50\n"
                                            "sample"));
    assert_null(strstr(world->text, "module 42:2"));
}

static void memory_without_a_file_is_anon_until_its_map_is_read(void **state)
{
    struct world *world = *state;
    uint64_t stack[] = {0x9000010};
    struct mapping_description mapping = {.start = 0x9000000, .end = 0x9001000, .path = "//anon"};
    process_table_comm(world->processes, 42, 42, "jit", true, 50);
    process_table_mmap(world->processes, 42, &mapping, 60);
    (void)take_sample(world, 42, 100, stack, 1);
    assert_non_null(
        strstr(read_all(world), "[anon] build-id 0 bytes\nmmap 42:2 9000000+1000 = 9000000"));
    assert_int_equal(ticket_count, 1);
    assert_string_equal(tickets[0].path, "map of 42");
    assert_true(trace_names_pending(world->trace));

    const struct symbol function = {0x9000000, 0x20, 0};
    const struct module map = {.symbols = {.symbols = &function,
                                           .symbol_count = 1,
                                           .names = "made",
                                           .names_bytes = sizeof "made"}};
    tickets[0].module = &map;
    tickets[0].state = MODULE_READY;
    trace_poll(world->trace);
    assert_string_equal(read_all(world),
                        "module 42:2 [jit] (pid 42) build-id 0 bytes\n"
                        "mmap 42:2 9000000+1000 = 9000000 at 60\n"
                        "data {\"build_id\":\"\",\"module\":\"[jit] (pid 42)\","
                        "\"start\":\"0x9000000\",\"size\":32,\"name\":\"made\"}\n");
    assert_false(trace_names_pending(world->trace));
}

static void kernel_frames_are_named_with_numbers_that_json_can_carry(void **state)
{
    struct world *world = *state;
    uint64_t kernel[] = {0xffffffff81000010, 0xffffffff81000020};
    struct sample sample = {
        .time_ns = 5, .pid = 2, .tid = 2, .kernel_stack = kernel, .kernel_count = 2};
    bool uncertain = false;
    (void)read_all(world);
    (void)trace_sample(world->trace, 0, &sample, NULL, &uncertain);
    tickets[0].module = &test_module;
    tickets[0].state = MODULE_READY;
    trace_poll(world->trace);
    assert_string_equal(
        read_all(world),
        "module 0:1 [kernel] build-id 0 bytes\n"
        "mmap 0:1 ffff800000000000+7fffffffffff = ffff800000000000 at 0\n"
        "data {\"build_id\":\"abcdef01\",\"module\":\"[kernel]\","
        "\"start\":\"0xffffffff81000000\",\"size\":4096,\"name\":\"kernel\\\"fn\"}\n"
        "sample cpu 0 2/2 at 5, 0 user 2 kernel, quality 0\n");
    assert_false(uncertain);
}

static void a_full_lane_drops_and_tells_how_many(void **state)
{
    struct world *world = *state;
    size_t kept = 0;
    (void)read_all(world);
    process_table_comm(world->processes, 42, 42, "prog", true, 50);
    struct process *process = process_table_find(world->processes, 42, 100);
    bool uncertain = false;
    for (uint64_t time_ns = 1000; time_ns < 1200; time_ns++) {
        struct sample sample = {.time_ns = time_ns, .cpu = 5, .pid = 42, .tid = 42};
        kept += trace_sample(world->trace, 1, &sample, process, &uncertain) == TRACE_KEPT;
    }
    /* A sample without a stack is 7 words, and one more in the lane: 64 of them in a page. */
    assert_int_equal(kept, 64);
    assert_null(strstr(read_all(world), "dropped"));
    (void)take_sample(world, 42, 1300, NULL, 0);
    (void)take_sample(world, 42, 1400, NULL, 0);
    assert_string_equal(read_all(world),
                        "dropped 136 of cpu 5 from 1064 to 1199\n"
                        "sample cpu 5 42/42 at 1300, 0 user 0 kernel, quality 0\n"
                        "sample cpu 5 42/42 at 1400, 0 user 0 kernel, quality 0\n");
}

static void names_change_with_time(void **state)
{
    struct world *world = *state;
    process_table_comm(world->processes, 42, 42, "before", true, 50);
    process_table_fork(world->processes, 42, 42, 43, 42, 60);
    process_table_comm(world->processes, 42, 43, "thread\xff", false, 70);
    (void)read_all(world);
    struct sample sample = {.time_ns = 100, .cpu = 5, .pid = 42, .tid = 43};
    bool uncertain = false;
    (void)trace_sample(world->trace, 1, &sample, process_table_find(world->processes, 42, 100),
                       &uncertain);
    process_table_comm(world->processes, 42, 42, "after", false, 150);
    (void)take_sample(world, 42, 200, NULL, 0);
    assert_string_equal(read_all(world), "name 42/43 before since 60\n"
                                         "name 42/43 thread\xEF\xBF\xBD since 70\n"
                                         "name 42/0 before since 50\n"
                                         "name 42/42 before since 50\n"
                                         "module 42:1 [unknown] build-id 0 bytes\n"
                                         "mmap 42:1 0+100000000000000 = 0 at 50\n"
                                         "name 42/0 after since 150\n"
                                         "name 42/42 after since 150\n"
                                         "sample cpu 5 42/43 at 100, 0 user 0 kernel, quality 0\n"
                                         "sample cpu 5 42/42 at 200, 0 user 0 kernel, quality 0\n");
}

/* Fills the log until another one is open. */
static void fill_log(struct world *world)
{
    for (int32_t pid = 1000; trace_buffer_has_log(world->buffer); pid++) {
        assert_true(pid < 20000);
        process_table_comm(world->processes, pid, pid, "filler", true, 50);
        (void)take_sample(world, pid, 100, NULL, 0);
    }
}

static void a_new_log_says_again_what_is_sampled_again(void **state)
{
    struct world *world = *state;
    uint64_t stack[] = {0x7001010};
    process_table_comm(world->processes, 42, 42, "prog", true, 50);
    map_at(world, 42, "/bin/prog", 0x7000000, 60);
    (void)take_sample(world, 42, 100, stack, 1);
    fill_log(world); /* while the file is being read */
    (void)read_all(world);
    tickets[0].module = &test_module;
    tickets[0].state = MODULE_READY;
    trace_poll(world->trace);
    (void)read_all(world);
    /* Here nothing is known of the process yet, so there is nothing to correct. */
    assert_non_null(strstr(world->text, "\"name\":\"low\""));
    assert_null(strstr(world->text, "42:2"));
    (void)take_sample(world, 42, 300, stack, 1);
    assert_non_null(strstr(read_all(world), "name 42/0 prog since 50\n"
                                            "name 42/42 prog since 50\n"
                                            "module 42:1 [unknown] build-id 0 bytes\n"
                                            "mmap 42:1 0+100000000000000 = 0 at 50\n"
                                            "module 42:2 /bin/prog build-id 4 bytes\n"
                                            "mmap 42:2 7000000+10000 = 400000 at 60\n"));
    assert_int_equal(ticket_count, 1);
}

static void full_logs_drop_what_is_not_defined_in_them(void **state)
{
    struct world *world = *state;
    int32_t pid = 1000;
    (void)take_sample(world, 1000, 100, NULL, 0);
    fill_log(world); /* the first one, and its samples are never read */
    while (trace_buffer_has_room(world->buffer, TRACE_LANE_DEFINITIONS, 4096)) {
        pid++;
        process_table_comm(world->processes, pid, pid, "filler", true, 50);
        (void)take_sample(world, pid, 100, NULL, 0);
    }
    bool uncertain = false;
    size_t dropped = 0;
    for (size_t i = 0; i < 40; i++) {
        pid++;
        process_table_comm(world->processes, pid, pid, "filler", true, 50);
        struct sample sample = {.time_ns = 100, .pid = pid, .tid = pid};
        dropped +=
            trace_sample(world->trace, 0, &sample, process_table_find(world->processes, pid, 100),
                         &uncertain) == TRACE_DROPPED;
    }
    assert_in_range(dropped, 5, 35);
}

static void finishing_writes_drops_and_books(void **state)
{
    struct world *world = *state;
    (void)read_all(world);
    assert_true(trace_finish(world->trace, "{\"books\":true}"));
    assert_string_equal(read_all(world), "data {\"books\":true}\n");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(begins_a_segment_with_its_session),
        TEST(defines_before_the_sample_and_once),
        TEST(a_table_corrects_addresses_and_names_what_was_sampled),
        TEST(a_process_that_is_gone_still_gets_its_names),
        TEST(a_file_with_anothers_build_id_and_path_gets_a_name_of_its_own),
        TEST(nothing_names_the_functions_of_a_file_that_was_not_read),
        TEST(a_reused_address_is_defined_anew_even_in_one_drain),
        TEST(an_address_in_no_mapping_is_unknown_and_uncertain),
        TEST(memory_without_a_file_is_anon_until_its_map_is_read),
        TEST(kernel_frames_are_named_with_numbers_that_json_can_carry),
        TEST(a_full_lane_drops_and_tells_how_many),
        TEST(names_change_with_time),
        TEST(a_new_log_says_again_what_is_sampled_again),
        TEST(full_logs_drop_what_is_not_defined_in_them),
        TEST(finishing_writes_drops_and_books),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
