/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The order of things: two CPUs' rings, filled by hand as the kernel fills them, drained in rounds.
 * The module cache is a stand-in that knows no file; processes have pids that no machine gives out,
 * so that /proc knows nothing of them.
 */
#include "drain.h"
#include "fxt_reader.h"
#include "trace_reader.h"

#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define RING_BYTES   65536
#define BUFFER_BYTES ((size_t)1 << 20)
#define PID          4100000
#define SAMPLE_TYPE                                                                                \
    (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |               \
     PERF_SAMPLE_CALLCHAIN)

struct module_ticket *module_cache_request(struct module_cache *cache, enum module_table table,
                                           enum module_urgency urgency,
                                           const struct module_query *query)
{
    (void)table;
    (void)urgency;
    (void)cache;
    (void)query;
    return NULL;
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
    return NULL;
}

enum module_state module_ticket_state(const struct module_ticket *ticket)
{
    (void)ticket;
    return MODULE_FAILED;
}

const struct module *module_ticket_module(const struct module_ticket *ticket)
{
    (void)ticket;
    return NULL;
}

void module_ticket_release(struct module_ticket *ticket)
{
    assert_null(ticket);
}

struct world {
    struct perf_event_mmap_page pages[2][2];
    uint64_t rings[2][2][RING_BYTES / 8];
    uint8_t bounce[PERF_RING_BOUNCE_BYTES];
    struct perf_cpu cpus[2];
    struct perf_source source;
    struct trace_buffer *buffer;
    struct trace *trace;
    struct trace_reader *reader;
    struct process_table *processes;
    struct proc_scan *scan;
    struct filter *filter;
    struct drain *drain;
    char text[65536];
};

static int set_up_with(void **state, const int32_t *targets, size_t target_count)
{
    static const uint32_t cpu_ids[] = {0, 1};
    struct world *world = calloc(1, sizeof *world);
    struct filter_config filter = {
        .target_pids = targets, .target_pid_count = target_count, .kernel_threads = true};
    for (size_t i = 0; i < 2; i++) {
        world->cpus[i].cpu = (uint32_t)i;
        perf_ring_init(&world->cpus[i].sample_ring, &world->pages[i][0],
                       (const uint8_t *)world->rings[i][0], RING_BYTES, world->bounce);
        perf_ring_init(&world->cpus[i].sideband_ring, &world->pages[i][1],
                       (const uint8_t *)world->rings[i][1], RING_BYTES, world->bounce);
    }
    world->source = (struct perf_source){.layout = {.sample_type = SAMPLE_TYPE},
                                         .sample_max_stack = 127,
                                         .cpus = world->cpus,
                                         .cpu_count = 2};
    world->buffer = trace_buffer_new(2, BUFFER_BYTES, BUFFER_BYTES);
    struct trace_config trace = {
        .buffer = world->buffer, .cpus = cpu_ids, .cpu_count = 2, .session_json = "{}"};
    if (trace_reader_new(world->buffer, &world->reader) < 0 ||
        trace_new(&trace, &world->trace) < 0) {
        return -1;
    }
    world->processes = process_table_new(trace_file_gone, world->trace);
    world->scan = proc_scan_new();
    world->filter = filter_new(&filter);
    struct drain_config config = {
        .source = &world->source,
        .processes = world->processes,
        .scan = world->scan,
        .filter = world->filter,
        .trace = world->trace,
        .max_stack_depth = 3,
    };
    world->drain = drain_new(&config);
    *state = world;
    return world->drain == NULL ? -1 : 0;
}

static int set_up(void **state)
{
    return set_up_with(state, NULL, 0);
}

static int set_up_target(void **state)
{
    static const int32_t targets[] = {PID};
    return set_up_with(state, targets, 1);
}

static int tear_down(void **state)
{
    struct world *world = *state;
    (void)drain_free(world->drain);
    (void)process_table_free(world->processes);
    (void)proc_scan_free(world->scan);
    (void)filter_free(world->filter);
    (void)trace_free(world->trace);
    (void)trace_reader_free(world->reader);
    (void)trace_buffer_free(world->buffer);
    free(world);
    return 0;
}

/* Appends a record as the kernel would: `words` follow the header. */
static void put(struct world *world, size_t cpu, size_t ring, uint32_t type, uint16_t misc,
                const uint64_t *words, size_t word_count)
{
    struct perf_event_mmap_page *page = &world->pages[cpu][ring];
    uint64_t *data = world->rings[cpu][ring];
    struct perf_event_header header = {
        .type = type, .misc = misc, .size = (uint16_t)(8 + 8 * word_count)};
    memcpy(&data[page->data_head % RING_BYTES / 8], &header, sizeof header);
    for (size_t i = 0; i < word_count; i++) {
        data[(page->data_head / 8 + 1 + i) % (RING_BYTES / 8)] = words[i];
    }
    page->data_head += header.size;
}

static uint64_t pair(uint32_t low, uint32_t high)
{
    return (uint64_t)high << 32 | low;
}

static void put_sample(struct world *world, size_t cpu, uint32_t pid, uint64_t time_ns, uint64_t pc)
{
    uint64_t words[] = {1, pair(pid, pid), time_ns, cpu, 2, PERF_CONTEXT_USER, pc};
    put(world, cpu, 0, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, words, 7);
}

static void put_fork(struct world *world, size_t cpu, uint32_t pid, uint32_t parent,
                     uint64_t time_ns)
{
    uint64_t words[] = {
        pair(pid, parent), pair(pid, parent), time_ns, pair(parent, parent), time_ns, cpu, 2};
    put(world, cpu, 1, PERF_RECORD_FORK, 0, words, 7);
}

static void put_exec(struct world *world, size_t cpu, uint32_t pid, uint64_t time_ns,
                     const char *comm)
{
    uint64_t words[] = {pair(pid, pid), 0, 0, pair(pid, pid), time_ns, cpu, 2};
    (void)snprintf((char *)&words[1], 16, "%s", comm);
    put(world, cpu, 1, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, words, 7);
}

/* An executable mapping [start, start + 0x1000) of "/x.." (5 letters and NULs). */
static void put_mmap(struct world *world, size_t cpu, uint32_t pid, uint64_t time_ns,
                     uint64_t start, const char *path)
{
    uint64_t words[] = {pair(pid, pid),
                        start,
                        0x1000,
                        0,
                        pair(8, 1),
                        77,
                        0,
                        pair(5, 0), /* PROT_READ | PROT_EXEC */
                        0,
                        pair(pid, pid),
                        time_ns,
                        cpu,
                        2};
    (void)snprintf((char *)&words[8], 8, "%s", path);
    put(world, cpu, 1, PERF_RECORD_MMAP2, 0, words, 13);
}

/* Modules and samples that have come out since, in the file's order. */
static const char *read_all(struct world *world)
{
    struct fxt_reader *reader = fxt_reader_new();
    struct trace_chunk chunk;
    size_t used = 0;
    world->text[0] = '\0';
    trace_poll(world->trace);
    trace_reader_begin_segment(world->reader);
    trace_reader_read(world->reader, BUFFER_BYTES, &chunk);
    assert_true(trace_reader_acknowledge(world->reader, chunk.sequence));
    for (size_t at = 0; at < chunk.size_bytes;) {
        struct fxt_record record;
        assert_int_equal(fxt_reader_next(reader, (const uint8_t *)chunk.bytes + at,
                                         chunk.size_bytes - at, &record),
                         1);
        char *out = world->text + used;
        size_t room = sizeof world->text - used;
        if (record.kind == FXT_RECORD_MODULE) {
            used += (size_t)snprintf(out, room, "%.*s at %d\n", (int)record.module.name_bytes,
                                     record.module.name, (int)record.module.time_ns);
        } else if (record.kind == FXT_RECORD_SAMPLE) {
            used += (size_t)snprintf(out, room, "sample at %d, quality %d\n",
                                     (int)record.sample.boot_ts_ns,
                                     (int)(record.sample.quality & 0xff));
        }
        at += record.size_bytes;
    }
    (void)fxt_reader_free(reader);
    return world->text;
}

static void a_sample_finds_what_another_cpu_told_before_it(void **state)
{
    struct world *world = *state;
    put_sample(world, 0, PID, 500, 0x5010);
    put_exec(world, 1, PID, 100, "prog");
    put_mmap(world, 1, PID, 200, 0x5000, "/prog");
    drain_all(world->drain, 1000);
    assert_string_equal(read_all(world),
                        "[unknown] at 100\n/prog at 200\nsample at 500, quality 4\n");
    assert_int_equal(drain_counts(world->drain)->mapping_uncertain, 0);
    assert_int_equal(drain_cpu_counts(world->drain)[0].kept, 1);
}

static void each_sample_sees_the_state_of_its_own_time(void **state)
{
    struct world *world = *state;
    put_exec(world, 0, PID, 100, "prog");
    put_mmap(world, 0, PID, 200, 0x5000, "/old");
    put_mmap(world, 1, PID, 400, 0x5000, "/new");
    put_sample(world, 0, PID, 500, 0x5010);
    put_sample(world, 1, PID, 300, 0x5010);
    drain_all(world->drain, 1000);
    const char *text = read_all(world);
    assert_non_null(strstr(text, "/old at 200\n"));
    assert_non_null(strstr(text, "/new at 400\n"));
    assert_int_equal(drain_counts(world->drain)->mapping_uncertain, 0);
}

static void what_is_newer_than_the_horizon_waits_for_the_next_round(void **state)
{
    struct world *world = *state;
    put_exec(world, 0, PID, 100, "prog");
    put_mmap(world, 1, PID, 200, 0x5000, "/one");
    put_sample(world, 0, PID, 300, 0x5010);
    put_sample(world, 0, PID, 1500, 0x6010);
    put_mmap(world, 1, PID, 1200, 0x6000, "/two");
    drain_all(world->drain, 1000);
    assert_string_equal(read_all(world),
                        "[unknown] at 100\n/one at 200\nsample at 300, quality 4\n");
    /* A record that took its time before the horizon of the first round, and shows up only now. */
    put_mmap(world, 0, PID, 990, 0x7000, "/late");
    put_sample(world, 1, PID, 1600, 0x7010);
    drain_all(world->drain, 2000);
    drain_all(world->drain, UINT64_MAX);
    assert_int_equal(drain_cpu_counts(world->drain)[0].received, 2);
    assert_int_equal(drain_cpu_counts(world->drain)[1].received, 1);
    assert_int_equal(drain_counts(world->drain)->mapping_uncertain, 0);
}

static void sideband_alone_moves_no_sample(void **state)
{
    struct world *world = *state;
    put_sample(world, 0, PID, 300, 0x5010);
    put_exec(world, 0, PID, 100, "prog");
    drain_sideband(world->drain, 1000);
    assert_int_equal(drain_cpu_counts(world->drain)[0].received, 0);
    assert_non_null(process_table_find(world->processes, PID, 300));
}

static void losses_are_counted_where_they_happen(void **state)
{
    struct world *world = *state;
    uint64_t lost[] = {1, 17, pair(0, 0), 50, 0, 1};
    put(world, 0, 0, PERF_RECORD_LOST, 0, lost, 6);
    assert_false(drain_take_rescan(world->drain));
    drain_all(world->drain, 1000);
    assert_int_equal(drain_cpu_counts(world->drain)[0].lost, 17);
    assert_false(drain_take_rescan(world->drain));
    put(world, 1, 1, PERF_RECORD_LOST, 0, lost, 6);
    drain_all(world->drain, 1000);
    assert_int_equal(drain_cpu_counts(world->drain)[1].lost, 0);
    assert_int_equal(drain_counts(world->drain)->sideband_lost, 17);
    assert_true(drain_take_rescan(world->drain));
    assert_false(drain_take_rescan(world->drain));
}

static void a_record_that_makes_no_sense_is_counted_and_passed(void **state)
{
    struct world *world = *state;
    uint64_t broken[] = {1, pair(PID, PID), 300, 0, 1000};
    put(world, 0, 0, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, broken, 5);
    put_sample(world, 0, PID, 310, 0x5010);
    drain_all(world->drain, 1000);
    assert_int_equal(drain_counts(world->drain)->bad_records, 1);
    assert_int_equal(drain_cpu_counts(world->drain)[0].received, 1);
}

static void a_full_depth_is_a_cut_stack(void **state)
{
    struct world *world = *state;
    uint64_t words[] = {1, pair(PID, PID), 300, 0, 4, PERF_CONTEXT_USER, 0x5010, 0x5020, 0x5030};
    put(world, 0, 0, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, words, 9);
    drain_all(world->drain, 1000);
    assert_non_null(strstr(read_all(world), "sample at 300, quality 3\n"));
    assert_int_equal(drain_counts(world->drain)->truncated_stacks, 1);
}

static void children_of_a_target_are_kept_and_strangers_filtered(void **state)
{
    struct world *world = *state;
    put_fork(world, 0, PID + 1, PID, 100);
    put_fork(world, 1, PID + 2, PID + 1, 200);
    put_fork(world, 1, PID + 3, 1, 210);
    for (uint32_t i = 0; i < 4; i++) {
        put_sample(world, 0, PID + i, 300 + i, 0x5010);
    }
    drain_all(world->drain, 1000);
    assert_int_equal(drain_cpu_counts(world->drain)[0].received, 4);
    assert_int_equal(drain_cpu_counts(world->drain)[0].kept, 3);
    assert_int_equal(drain_cpu_counts(world->drain)[0].filtered, 1);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_sample_finds_what_another_cpu_told_before_it),
        TEST(each_sample_sees_the_state_of_its_own_time),
        TEST(what_is_newer_than_the_horizon_waits_for_the_next_round),
        TEST(sideband_alone_moves_no_sample),
        TEST(losses_are_counted_where_they_happen),
        TEST(a_record_that_makes_no_sense_is_counted_and_passed),
        TEST(a_full_depth_is_a_cut_stack),
        cmocka_unit_test_setup_teardown(children_of_a_target_are_kept_and_strangers_filtered,
                                        set_up_target, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
