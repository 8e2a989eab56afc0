/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The order of things: two CPUs' rings, filled by hand as the kernel fills them, drained in rounds.
 * The module cache is a stand-in that answers when it is told to; processes have pids that no
 * machine gives out, so that /proc knows nothing of them.
 */
#include "drain.h"

#include "arch_x86_64.h"
#include "fake_module_cache.h"
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

#define STACK_SAMPLE_TYPE (SAMPLE_TYPE | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER)
#define STACK_TOP         UINT64_C(0x7000000)
#define LEAF_PC           0x5014 /* in a function of fake_module_table()'s file, mapped at 0x5000 */
#define ROOT_PC           0x5105

struct world {
    struct module_cache cache;
    struct code_map *code; /* NULL with frame pointers alone */
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

static void on_file_gone(struct mapped_file *file, void *userdata)
{
    struct world *world = userdata;
    trace_file_gone(file, world->trace);
    code_map_file_gone(file);
}

static int set_up_with(void **state, const int32_t *targets, size_t target_count,
                       enum session_unwind unwind)
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
    world->source = (struct perf_source){
        .layout = unwind == SESSION_UNWIND_FP
                      ? perf_record_layout_make(SAMPLE_TYPE, 0)
                      : perf_record_layout_make(STACK_SAMPLE_TYPE, ARCH_PERF_REGS_MASK),
        .cpus = world->cpus,
        .cpu_count = 2,
        .sample_max_stack = 127};
    world->code = unwind == SESSION_UNWIND_FP ? NULL : code_map_new(&world->cache);
    world->buffer = trace_buffer_new(2, BUFFER_BYTES, BUFFER_BYTES);
    struct trace_config trace = {
        .buffer = world->buffer, .cpus = cpu_ids, .cpu_count = 2, .session_json = "{}"};
    if (trace_reader_new(world->buffer, &world->reader) < 0 ||
        trace_new(&trace, &world->trace) < 0) {
        return -1;
    }
    world->processes = process_table_new(on_file_gone, world);
    world->scan = proc_scan_new();
    world->filter = filter_new(&filter);
    struct drain_config config = {
        .source = &world->source,
        .processes = world->processes,
        .scan = world->scan,
        .filter = world->filter,
        .trace = world->trace,
        .code = world->code,
        .unwind = unwind,
        .max_stack_depth = 3,
    };
    world->drain = drain_new(&config);
    *state = world;
    return world->drain == NULL ? -1 : 0;
}

static int set_up(void **state)
{
    return set_up_with(state, NULL, 0, SESSION_UNWIND_FP);
}

static int set_up_target(void **state)
{
    static const int32_t targets[] = {PID};
    return set_up_with(state, targets, 1, SESSION_UNWIND_FP);
}

static int set_up_stacks(void **state)
{
    return set_up_with(state, NULL, 0, SESSION_UNWIND_AUTO);
}

static int tear_down(void **state)
{
    struct world *world = *state;
    (void)drain_free(world->drain);
    (void)process_table_free(world->processes);
    (void)code_map_free(world->code);
    assert_int_equal(world->cache.held_count, 0);
    fake_module_table_free();
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

/* A sample in the leaf, whose stack holds `stack_bytes` bytes with the return address to the root.
 */
/* A sample at LEAF_PC with a copy of `stack_bytes`, of which `valid_bytes` are valid. */
static void put_copy(struct world *world, uint16_t mode, size_t cpu, uint32_t pid, uint64_t time_ns,
                     size_t stack_bytes, size_t valid_bytes)
{
    static uint64_t words[8000];
    uint64_t head[] = {1, pair(pid, pid), time_ns, cpu, 2, PERF_CONTEXT_USER, LEAF_PC, 2};
    uint64_t *regs = words + sizeof head / sizeof head[0];
    uint64_t *stack = regs + ARCH_PERF_REGS_COUNT;
    size_t stack_words = stack_bytes / 8;
    memset(words, 0, sizeof words);
    memcpy(words, head, sizeof head);
    regs[arch_perf_word[ARCH_DWARF_SP]] = STACK_TOP;
    regs[ARCH_PERF_IP_WORD] = LEAF_PC;
    stack[0] = stack_bytes;
    stack[2] = ROOT_PC;
    stack[1 + stack_words] = valid_bytes;
    put(world, cpu, 0, PERF_RECORD_SAMPLE, mode, words, (size_t)(stack - words) + 2 + stack_words);
}

static void put_stack(struct world *world, size_t cpu, uint32_t pid, uint64_t time_ns,
                      size_t stack_bytes)
{
    put_copy(world, PERF_RECORD_MISC_USER, cpu, pid, time_ns, stack_bytes, stack_bytes);
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

/* A partial gets its quality, which stands as '?' till then, from the completion behind it. */
static size_t add_sample(struct world *world, size_t used, const struct fxt_sample *sample)
{
    bool has_quality = (sample->fields & FXT_SAMPLE_QUALITY) != 0;
    char quality = (char)('0' + (sample->quality & 0xff));
    if ((sample->fields & FXT_SAMPLE_CONTINUATION_COMPLETION) != 0) {
        for (char *open = strchr(world->text, '?'); open != NULL; open = strchr(open, '?')) {
            *open = quality;
        }
        return used;
    }
    return used + (size_t)snprintf(world->text + used, sizeof world->text - used,
                                   "sample at %d, quality %c\n", (int)sample->boot_ts_ns,
                                   has_quality ? quality : '?');
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
            used = add_sample(world, used, &record.sample);
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
    trace_poll(world->trace);
    assert_int_equal(drain_cpu_counts(world->drain)[0].received, 4);
    assert_int_equal(drain_cpu_counts(world->drain)[0].kept, 3);
    assert_int_equal(drain_cpu_counts(world->drain)[0].filtered, 1);
}

/* The program of the samples below: its file is inode 77. */
static void put_program(struct world *world)
{
    put_exec(world, 0, PID, 100, "prog");
    put_mmap(world, 0, PID, 200, 0x5000, "/prog");
}

static uint64_t received(struct world *world)
{
    trace_poll(world->trace);
    const struct drain_cpu_counts *cpus = drain_cpu_counts(world->drain);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(cpus[i].received, cpus[i].kept + cpus[i].filtered + cpus[i].dropped);
    }
    return cpus[0].received + cpus[1].received;
}

static void samples_are_held_until_their_table_comes_and_stay_in_order(void **state)
{
    struct world *world = *state;
    put_program(world);
    put_stack(world, 0, PID, 300, 64);
    put_stack(world, 0, PID, 310, 64);
    put_stack(world, 1, PID, 305, 64);
    drain_all(world->drain, 1000);
    assert_int_equal(received(world), 0);
    assert_int_equal(drain_held(world->drain, 1000), 3);
    assert_int_equal(world->cache.request_count, 1);

    fake_module_ready(&world->cache, 77, fake_module_table());
    assert_int_equal(drain_held(world->drain, 1010), 0);
    assert_int_equal(received(world), 3);
    assert_int_equal(drain_counts(world->drain)->cold_stacks, 0);
    assert_int_equal(drain_counts(world->drain)->truncated_stacks, 0);
    const char *text = read_all(world);
    const char *first = strstr(text, "sample at 300, quality 1\n");
    const char *second = strstr(text, "sample at 310, quality 1\n");
    assert_true(first != NULL && first < second);
    assert_non_null(strstr(text, "sample at 305, quality 1\n"));
}

static void who_waits_does_not_hold_up_the_others(void **state)
{
    struct world *world = *state;
    put_program(world);
    put_mmap(world, 0, PID, 200, 0x9000, "/more");
    put_stack(world, 0, PID, 300, 64);
    put_fork(world, 0, PID + 1, PID, 250);
    put_mmap(world, 0, PID + 1, 260, 0x5000, ""); /* code without a file */
    put_stack(world, 0, PID + 1, 310, 64);
    drain_all(world->drain, 1000);
    assert_int_equal(drain_held(world->drain, 1000), 1);
    assert_int_equal(received(world), 1);
}

static void who_waited_too_long_is_taken_as_it_is(void **state)
{
    struct world *world = *state;
    put_program(world);
    put_stack(world, 0, PID, 300, 64);
    put_stack(world, 0, PID, 900, 64);
    drain_all(world->drain, 1000);
    assert_int_equal(drain_held(world->drain, DRAIN_HELD_NS), 2);
    assert_int_equal(drain_held(world->drain, DRAIN_HELD_NS + 300), 1);
    assert_int_equal(received(world), 1);
    assert_int_equal(drain_counts(world->drain)->cold_stacks, 1);
    assert_int_equal(drain_counts(world->drain)->truncated_stacks, 1);
    fake_module_ready(&world->cache, 77, fake_module_table());
    assert_int_equal(drain_held(world->drain, DRAIN_HELD_NS + 310), 0);
    assert_int_equal(received(world), 2);
    assert_int_equal(drain_counts(world->drain)->cold_stacks, 1);
}

static void a_full_memory_loses_tables_and_no_samples(void **state)
{
    struct world *world = *state;
    uint64_t count = 0;
    put_program(world);
    while (received(world) == 0 && count < 1000) {
        put_stack(world, 0, PID, 300 + count, 60000);
        drain_all(world->drain, 1000000);
        count++;
    }
    assert_true(count > 500);
    assert_int_equal(received(world) + drain_held(world->drain, 1000), count);
    assert_int_equal(drain_counts(world->drain)->cold_stacks, received(world));
    fake_module_ready(&world->cache, 77, fake_module_table());
    assert_int_equal(drain_held(world->drain, 1010), 0);
    assert_int_equal(received(world), count);
}

static void many_that_wait_are_tried_again_a_part_at_a_time(void **state)
{
    struct world *world = *state;
    const size_t count = 3000;
    put_program(world);
    put_mmap(world, 0, PID, 200, 0x9000, "/more");
    for (size_t i = 0; i < count; i++) {
        put_stack(world, 0, PID, 300 + i, 16);
        drain_all(world->drain, 1000000);
    }
    assert_int_equal(drain_held(world->drain, 1000), count);
    fake_module_ready(&world->cache, 77, fake_module_table());
    size_t rounds = 0;
    for (size_t left = count; left > 0; rounds++) {
        size_t now = drain_held(world->drain, 1000);
        assert_true(now < left && left - now <= 1024);
        left = now;
    }
    assert_int_equal(rounds, 3);
    assert_int_equal(received(world), count);
    assert_int_equal(drain_counts(world->drain)->cold_stacks, 0);
}

static void a_pass_goes_on_while_what_it_was_at_expires(void **state)
{
    struct world *world = *state;
    const size_t count = 3000;
    put_program(world);
    for (size_t i = 0; i < count; i++) {
        put_stack(world, 0, PID, 300 + i, 16);
        drain_all(world->drain, 1000000);
    }
    fake_module_ready(&world->cache, 77, fake_module_table());
    assert_int_equal(drain_held(world->drain, 1000), count - 1024);
    assert_int_equal(drain_held(world->drain, DRAIN_HELD_NS + 300 + 2000), count - 2001 - 999);
    assert_int_equal(received(world), count);
    assert_int_equal(drain_counts(world->drain)->cold_stacks, 0);
}

static void a_task_amid_an_exec_has_no_stack(void **state)
{
    struct world *world = *state;
    put_exec(world, 0, PID, 100, "prog");
    put_mmap(world, 0, PID, 200, 0x5000, "//anon");
    put_copy(world, PERF_RECORD_MISC_KERNEL, 0, PID, 300, 64, 0);
    put_copy(world, PERF_RECORD_MISC_KERNEL, 0, PID, 301, 64, 64);
    put_copy(world, PERF_RECORD_MISC_USER, 0, PID, 302, 64, 0);
    drain_all(world->drain, 1000);
    const char *text = read_all(world);
    assert_non_null(strstr(text, "sample at 300, quality 0\n"));
    assert_null(strstr(text, "sample at 301, quality 0\n"));
    assert_null(strstr(text, "sample at 302, quality 0\n"));
    assert_int_equal(drain_counts(world->drain)->truncated_stacks, 2);
    assert_int_equal(drain_counts(world->drain)->mapping_uncertain, 0);
}

#define TEST(function)       cmocka_unit_test_setup_teardown(function, set_up, tear_down)
#define STACK_TEST(function) cmocka_unit_test_setup_teardown(function, set_up_stacks, tear_down)

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
        STACK_TEST(samples_are_held_until_their_table_comes_and_stay_in_order),
        STACK_TEST(who_waits_does_not_hold_up_the_others),
        STACK_TEST(who_waited_too_long_is_taken_as_it_is),
        STACK_TEST(a_full_memory_loses_tables_and_no_samples),
        STACK_TEST(many_that_wait_are_tried_again_a_part_at_a_time),
        STACK_TEST(a_pass_goes_on_while_what_it_was_at_expires),
        cmocka_unit_test_setup_teardown(a_task_amid_an_exec_has_no_stack, set_up_stacks, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
