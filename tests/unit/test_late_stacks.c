/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A second and a half of the rings of a real kernel with deferred callchains
 * (tests/vm/ring_recording.sh) through the whole way of a sample: rings, drain, trace, and what the
 * client makes of the file. Each sample must have the stack that its cookie names, wherever and
 * whenever that came. What did not happen in that second is made of a few records by hand.
 */
#include "drain.h"

#include "late_stacks.h"
#include "loaded_recording.h"
#include "perf_abi.h"
#include "ring_recording.h"
#include "trace_reader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define RECORDING     TEST_DATA_DIR "/rings/deferred.rings"
#define RECORDED_CPUS 2
#define RING_BYTES    ((size_t)1 << 20)
#define BUFFER_BYTES  ((size_t)8 << 20)
#define DEPTH         6 /* less than the deepest of the recording */
#define SAMPLES_MAX   2048
#define CHAINS_MAX    1024
#define EXECS_MAX     64
#define PID           4100000
#define COOKIE        UINT64_C(0x18900000001)
#define SAMPLE_TYPE                                                                                \
    (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |               \
     PERF_SAMPLE_CALLCHAIN)

struct known_sample {
    uint64_t time_ns;
    uint32_t cpu;
    int32_t pid, tid;
    uint64_t cookie; /* 0: not deferred */
    size_t user_count;
    const uint64_t *user_chain;
    bool met;
};

struct known_chain {
    uint64_t time_ns;
    int32_t tid;
    uint64_t cookie;
    size_t count;
    const uint64_t *chain;
};

struct world {
    uint8_t *bytes; /* the recording */
    size_t size_bytes;
    struct perf_event_mmap_page pages[2 * RECORDED_CPUS];
    uint64_t *rings[2 * RECORDED_CPUS];
    uint8_t bounce[PERF_RING_BOUNCE_BYTES];
    struct perf_cpu cpus[RECORDED_CPUS];
    struct perf_source source;
    struct trace_buffer *buffer;
    struct trace *trace;
    struct trace_reader *reader;
    struct process_table *processes;
    struct proc_scan *scan;
    struct filter *filter;
    struct drain *drain;

    /* What was put into the rings, as a plain reading of it has it. */
    struct known_sample samples[SAMPLES_MAX];
    size_t sample_count;
    struct known_chain chains[CHAINS_MAX];
    size_t chain_count;
    struct {
        int32_t pid;
        uint64_t time_ns;
    } execs[EXECS_MAX];
    size_t exec_count;
};

static void read_recording(struct world *world)
{
    FILE *file = fopen(RECORDING, "re");
    assert_non_null(file);
    world->bytes = malloc(RING_BYTES);
    assert_non_null(world->bytes);
    world->size_bytes = fread(world->bytes, 1, RING_BYTES, file);
    (void)fclose(file);
    const struct ring_recording *head = (const void *)world->bytes;
    assert_true(world->size_bytes > sizeof *head && world->size_bytes < RING_BYTES);
    assert_int_equal(head->magic, RING_RECORDING_MAGIC);
    assert_int_equal(head->sample_type, SAMPLE_TYPE);
    assert_int_equal(head->cpu_count, RECORDED_CPUS);
}

static void set_up_rings(struct world *world)
{
    for (size_t i = 0; i < (size_t)2 * RECORDED_CPUS; i++) {
        world->rings[i] = calloc(1, RING_BYTES);
        assert_non_null(world->rings[i]);
        struct perf_cpu *cpu = &world->cpus[i / 2];
        cpu->cpu = (uint32_t)(i / 2);
        perf_ring_init(RING_IS_SIDEBAND(i) ? &cpu->sideband_ring : &cpu->sample_ring,
                       &world->pages[i], (const uint8_t *)world->rings[i], RING_BYTES,
                       world->bounce);
    }
}

static int set_up(void **state)
{
    static const uint32_t cpu_ids[RECORDED_CPUS] = {0, 1};
    struct world *world = calloc(1, sizeof *world);
    assert_non_null(world);
    read_recording(world);
    set_up_rings(world);
    world->source = (struct perf_source){
        .config = {.period_ns = 1000000},
        .layout = perf_record_layout_make(SAMPLE_TYPE, 0),
        .cpus = world->cpus,
        .cpu_count = RECORDED_CPUS,
        .sideband_count = RECORDED_CPUS,
        .sample_max_stack = 127,
        .deferring = true,
    };
    world->buffer = trace_buffer_new(RECORDED_CPUS, BUFFER_BYTES, BUFFER_BYTES);
    assert_int_equal(trace_reader_new(world->buffer, &world->reader), 0);
    assert_int_equal(trace_new(&(struct trace_config){.buffer = world->buffer,
                                                      .cpus = cpu_ids,
                                                      .cpu_count = RECORDED_CPUS,
                                                      .session_json = "{}",
                                                      .max_stack_depth = DEPTH},
                               &world->trace),
                     0);
    world->processes = process_table_new(trace_file_gone, world->trace);
    world->scan = proc_scan_new();
    world->filter = filter_new(&(struct filter_config){.kernel_threads = true});
    world->drain = drain_new(&(struct drain_config){
        .source = &world->source,
        .processes = world->processes,
        .scan = world->scan,
        .filter = world->filter,
        .trace = world->trace,
        .unwind = SESSION_UNWIND_FP,
        .max_stack_depth = DEPTH,
    });
    assert_non_null(world->drain);
    *state = world;
    return 0;
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
    for (size_t i = 0; i < (size_t)2 * RECORDED_CPUS; i++) {
        free(world->rings[i]);
    }
    free(world->bytes);
    free(world);
    return 0;
}

static void note_sample(struct world *world, const struct perf_record *record)
{
    assert_true(world->sample_count < SAMPLES_MAX);
    world->samples[world->sample_count++] = (struct known_sample){
        .time_ns = record->time_ns,
        .cpu = record->cpu,
        .pid = record->pid,
        .tid = record->tid,
        .cookie = record->sample.deferred ? record->sample.deferred_cookie : 0,
        .user_count = record->sample.user_count,
        .user_chain = record->sample.user_chain,
    };
}

/* Keeps what a test needs of a record, whose bytes stay where they are. */
static void note(struct world *world, const uint8_t *bytes, size_t size_bytes)
{
    struct perf_record record;
    assert_int_equal(perf_record_parse(&world->source.layout, bytes, size_bytes, &record), 0);
    if (record.kind == PERF_KIND_SAMPLE) {
        note_sample(world, &record);
    } else if (record.kind == PERF_KIND_DEFERRED_CALLCHAIN) {
        assert_true(world->chain_count < CHAINS_MAX);
        world->chains[world->chain_count++] = (struct known_chain){
            .time_ns = record.time_ns,
            .tid = record.tid,
            .cookie = record.deferred.cookie,
            .count = record.deferred.count,
            .chain = record.deferred.chain,
        };
    } else if (record.kind == PERF_KIND_COMM && record.comm.exec) {
        assert_true(world->exec_count < EXECS_MAX);
        world->execs[world->exec_count].pid = record.pid;
        world->execs[world->exec_count++].time_ns = record.time_ns;
    }
}

/* Appends a record as the kernel would. The rings of a test are large enough not to wrap. */
static void put(struct world *world, uint32_t ring, const void *bytes, size_t size_bytes)
{
    struct perf_event_mmap_page *page = &world->pages[ring];
    uint8_t *to = (uint8_t *)world->rings[ring] + page->data_head;
    assert_true(page->data_head + size_bytes <= RING_BYTES);
    memcpy(to, bytes, size_bytes);
    page->data_head += size_bytes;
    note(world, to, size_bytes);
}

/*
 * Plays the recording up to `round_limit` rounds, `at_once` of them in one. Records of `left_out`
 * stay away. Returns the last horizon.
 */
static uint64_t play(struct world *world, size_t round_limit, size_t at_once, uint32_t left_out)
{
    size_t round = 0;
    uint64_t horizon_ns = 0;
    for (size_t at = sizeof(struct ring_recording);
         at < world->size_bytes && round < round_limit;) {
        const struct ring_block *block = (const void *)(world->bytes + at);
        const uint8_t *record = (const uint8_t *)(block + 1);
        at += sizeof *block + block->size_bytes;
        assert_true(at <= world->size_bytes);
        if (block->ring == RING_ROUND_END) {
            round++;
            if (round % at_once == 0 && block->horizon_ns != UINT64_MAX) {
                horizon_ns = block->horizon_ns;
                drain_all(world->drain, horizon_ns);
                trace_poll(world->trace);
            }
        } else if (((const struct perf_event_header *)(const void *)record)->type != left_out) {
            put(world, block->ring, record, block->size_bytes);
        }
    }
    return horizon_ns;
}

/* Ends the recording, and loads what a reader has of it. */
static void stop(struct world *world, struct loaded_recording *loaded)
{
    static uint8_t file[BUFFER_BYTES];
    size_t file_bytes = 0;
    struct trace_chunk chunk;
    drain_all(world->drain, UINT64_MAX);
    trace_poll(world->trace);
    assert_true(trace_finish(world->trace, "{}"));
    trace_reader_begin_segment(world->reader);
    do {
        trace_reader_read(world->reader, TRACE_CHUNK_BYTES_MAX, &chunk);
        assert_true(file_bytes + chunk.size_bytes <= sizeof file);
        memcpy(file + file_bytes, chunk.bytes, chunk.size_bytes);
        file_bytes += chunk.size_bytes;
        assert_true(trace_reader_acknowledge(world->reader, chunk.sequence));
    } while (chunk.size_bytes > 0);
    loaded_recording_init(loaded, file, file_bytes);
    assert_int_equal(loaded->sample_count, world->sample_count);
}

static const struct known_chain *find_chain(const struct world *world,
                                            const struct known_sample *sample)
{
    for (size_t i = 0; i < world->chain_count; i++) {
        if (world->chains[i].tid == sample->tid && world->chains[i].cookie == sample->cookie) {
            return &world->chains[i];
        }
    }
    return NULL;
}

static bool has_exec_between(const struct world *world, int32_t pid, uint64_t from_ns,
                             uint64_t to_ns)
{
    for (size_t i = 0; i < world->exec_count; i++) {
        if (world->execs[i].pid == pid && world->execs[i].time_ns > from_ns &&
            world->execs[i].time_ns <= to_ns) {
            return true;
        }
    }
    return false;
}

static struct known_sample *find_sample(struct world *world, const struct loaded_sample *loaded)
{
    for (size_t i = 0; i < world->sample_count; i++) {
        struct known_sample *sample = &world->samples[i];
        if (!sample->met && sample->time_ns == loaded->time_ns && sample->cpu == loaded->cpu) {
            sample->met = true;
            return sample;
        }
    }
    return NULL;
}

static void expect_stack(const struct loaded_sample *loaded, const uint64_t *chain, size_t count)
{
    count = count < DEPTH ? count : DEPTH;
    assert_int_equal(loaded->closed, STACK_CLOSED_NORMALLY);
    assert_int_equal(loaded->user_count, count);
    assert_memory_equal(loaded->user_stack, chain, count * sizeof *chain);
    if (count == 0) {
        assert_int_equal(loaded->quality, STACK_NONE);
    } else {
        assert_int_equal(loaded->quality, count == DEPTH ? STACK_DEPTH : STACK_NO_RULE);
    }
}

static void expect_none(const struct loaded_sample *loaded)
{
    assert_int_equal(loaded->user_count, 0);
    assert_int_equal(loaded->quality, STACK_NONE);
}

/* Samples by why they have no stack. */
struct reasons {
    size_t counts[STACK_CLOSED_LIMIT + 1];
};

/* Every sample that the kernel wrote is there once, with the stack that belongs to it. */
static struct reasons check_samples(struct world *world, const struct loaded_recording *loaded)
{
    struct reasons reasons = {0};
    for (size_t i = 0; i < loaded->sample_count; i++) {
        const struct loaded_sample *told = &loaded->samples[i];
        const struct known_sample *sample = find_sample(world, told);
        assert_non_null(sample);
        assert_int_equal((int32_t)told->tid, sample->tid);
        assert_int_equal((int32_t)told->pid, sample->pid);
        assert_in_range(told->closed, 0, STACK_CLOSED_LIMIT);
        reasons.counts[told->closed]++;
        const struct known_chain *chain = find_chain(world, sample);
        if (sample->cookie == 0) {
            expect_stack(told, sample->user_chain, sample->user_count);
        } else if (chain == NULL) {
            assert_int_not_equal(told->closed, STACK_CLOSED_NORMALLY);
            expect_none(told);
        } else if (has_exec_between(world, sample->pid, sample->time_ns, chain->time_ns)) {
            assert_int_equal(told->closed, STACK_CLOSED_EXEC);
            expect_none(told);
        } else if (told->closed != STACK_CLOSED_EXEC) {
            expect_stack(told, chain->chain, chain->count);
        }
    }
    return reasons;
}

/* However many rounds the kernel's records are drained in. */
static void check_play(struct world *world, size_t at_once)
{
    struct loaded_recording loaded;
    (void)play(world, SIZE_MAX, at_once, 0);
    stop(world, &loaded);
    struct reasons reasons = check_samples(world, &loaded);
    assert_true(loaded.sample_count > 500);
    assert_int_equal(reasons.counts[STACK_CLOSED_LOST], 0);
    assert_int_equal(reasons.counts[STACK_CLOSED_LIMIT], 0);
    assert_true(reasons.counts[STACK_CLOSED_NORMALLY] > loaded.sample_count * 9 / 10);
    assert_int_equal(drain_counts(world->drain)->orphan_partials,
                     reasons.counts[STACK_CLOSED_STOPPED] + reasons.counts[STACK_CLOSED_GONE]);
    assert_int_equal(drain_counts(world->drain)->orphan_completions, 0);
    assert_int_equal(drain_counts(world->drain)->bad_records, 0);
    loaded_recording_done(&loaded);
}

static void a_real_run_has_every_stack_round_by_round(void **state)
{
    check_play(*state, 1);
}

static void a_real_run_has_every_stack_in_long_rounds(void **state)
{
    check_play(*state, 7);
}

static void a_real_run_has_every_stack_all_at_once(void **state)
{
    check_play(*state, SIZE_MAX);
}

static void a_stop_in_the_middle_closes_what_waits(void **state)
{
    struct world *world = *state;
    struct loaded_recording loaded;
    (void)play(world, 25, 1, 0);
    stop(world, &loaded);
    struct reasons reasons = check_samples(world, &loaded);
    assert_int_equal(drain_counts(world->drain)->orphan_partials,
                     reasons.counts[STACK_CLOSED_STOPPED] + reasons.counts[STACK_CLOSED_GONE]);
    loaded_recording_done(&loaded);
}

static void chains_that_never_come_leave_their_samples_without_a_stack(void **state)
{
    struct world *world = *state;
    struct loaded_recording loaded;
    uint64_t horizon_ns = play(world, SIZE_MAX, 1, PERF_RECORD_CALLCHAIN_DEFERRED);
    drain_all(world->drain, horizon_ns + 3 * UINT64_C(1000000000));
    stop(world, &loaded);
    struct reasons reasons = check_samples(world, &loaded);
    assert_int_equal(world->chain_count, 0);
    assert_true(reasons.counts[STACK_CLOSED_LOST] > 10);
    assert_true(reasons.counts[STACK_CLOSED_GONE] > 50);
    assert_int_equal(reasons.counts[STACK_CLOSED_STOPPED], 0);
    assert_int_equal(drain_counts(world->drain)->orphan_partials,
                     loaded.sample_count - reasons.counts[STACK_CLOSED_NORMALLY]);
    loaded_recording_done(&loaded);
}

/* By hand, all of one task. */
static uint64_t pair(uint32_t low, uint32_t high)
{
    return (uint64_t)high << 32 | low;
}

static void put_words(struct world *world, uint32_t ring, uint32_t type, uint16_t misc,
                      const uint64_t *words, size_t word_count)
{
    uint64_t record[32];
    struct perf_event_header header = {
        .type = type, .misc = misc, .size = (uint16_t)(8 + 8 * word_count)};
    memcpy(record, &header, sizeof header);
    memcpy(record + 1, words, word_count * sizeof *words);
    put(world, ring, record, header.size);
}

static void put_sample(struct world *world, uint32_t cpu, uint64_t time_ns, uint64_t cookie)
{
    uint64_t words[] = {1, pair(PID, PID), time_ns, cpu, 2, PERF_CONTEXT_USER_DEFERRED, cookie};
    put_words(world, RING_SAMPLES(cpu), PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL, words, 7);
}

static void put_chain(struct world *world, uint32_t cpu, uint64_t time_ns, uint64_t cookie)
{
    uint64_t words[] = {cookie, 2, 0x5000, 0x5100, pair(PID, PID), time_ns, cpu, 2};
    put_words(world, RING_SIDEBAND(cpu), PERF_RECORD_CALLCHAIN_DEFERRED, PERF_RECORD_MISC_USER,
              words, 8);
}

static void put_exec(struct world *world, uint32_t cpu, uint64_t time_ns)
{
    uint64_t words[] = {pair(PID, PID), 0, 0, pair(PID, PID), time_ns, cpu, 2};
    (void)snprintf((char *)&words[1], 16, "next");
    put_words(world, RING_SIDEBAND(cpu), PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, words, 7);
}

static void an_exec_in_between_discards_the_stack(void **state)
{
    struct world *world = *state;
    struct loaded_recording loaded;
    put_sample(world, 0, 100, COOKIE);
    put_exec(world, 1, 200);
    put_sample(world, 1, 250, COOKIE);
    put_chain(world, 1, 300, COOKIE);
    put_sample(world, 0, 1100, COOKIE + 2);
    drain_all(world->drain, 1200);
    put_exec(world, 0, 1300);
    put_chain(world, 0, 1400, COOKIE + 2);
    drain_all(world->drain, 2000);
    stop(world, &loaded);
    struct reasons reasons = check_samples(world, &loaded);
    assert_int_equal(reasons.counts[STACK_CLOSED_EXEC], 2);
    assert_int_equal(reasons.counts[STACK_CLOSED_NORMALLY], 1);
    assert_int_equal(drain_counts(world->drain)->orphan_partials, 0);
    loaded_recording_done(&loaded);
}

static void the_books_count_partials_and_chains_without_each_other(void **state)
{
    struct world *world = *state;
    struct loaded_recording loaded;
    put_sample(world, 0, 100, COOKIE);
    put_sample(world, 0, 200, COOKIE);
    put_sample(world, 0, 300, COOKIE + 2);
    put_chain(world, 0, 400, COOKIE + 4);
    drain_all(world->drain, 500);
    drain_all(world->drain, 600 + LATE_STACKS_WAIT_NS - 400);
    put_sample(world, 1, 900 + LATE_STACKS_WAIT_NS, COOKIE + 6);
    drain_all(world->drain, 1000 + LATE_STACKS_WAIT_NS);
    stop(world, &loaded);
    struct reasons reasons = check_samples(world, &loaded);
    assert_int_equal(reasons.counts[STACK_CLOSED_LOST], 3);
    assert_int_equal(reasons.counts[STACK_CLOSED_STOPPED], 1);
    assert_int_equal(drain_counts(world->drain)->orphan_partials, 4);
    assert_int_equal(drain_counts(world->drain)->orphan_completions, 1);
    loaded_recording_done(&loaded);
}

static void the_257th_that_waits_closes_the_first(void **state)
{
    struct world *world = *state;
    struct loaded_recording loaded;
    for (uint64_t i = 0; i < 257; i++) {
        put_sample(world, 0, 100 + i, COOKIE + 2 * i);
    }
    drain_all(world->drain, 1000);
    for (uint64_t i = 0; i < 257; i++) {
        put_chain(world, 1, 1100 + i, COOKIE + 2 * i);
    }
    drain_all(world->drain, 2000);
    world->chains[0].cookie = 0; /* it came too late */
    stop(world, &loaded);
    struct reasons reasons = check_samples(world, &loaded);
    assert_int_equal(reasons.counts[STACK_CLOSED_LIMIT], 1);
    assert_int_equal(reasons.counts[STACK_CLOSED_NORMALLY], 256);
    loaded_recording_done(&loaded);
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(a_real_run_has_every_stack_round_by_round),
        STORY(a_real_run_has_every_stack_in_long_rounds),
        STORY(a_real_run_has_every_stack_all_at_once),
        STORY(a_stop_in_the_middle_closes_what_waits),
        STORY(chains_that_never_come_leave_their_samples_without_a_stack),
        STORY(an_exec_in_between_discards_the_stack),
        STORY(the_books_count_partials_and_chains_without_each_other),
        STORY(the_257th_that_waits_closes_the_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
