/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A second and a half of the rings of a real kernel with deferred callchains
 * (tests/vm/ring_recording.sh) through the whole way of a sample: rings, drain, trace, and what the
 * client makes of the file. Each sample must have the stack that its cookie names, wherever and
 * whenever that came. What did not happen in that second is made of a few records by hand.
 */
#include "ring_world.h"
#include "unit_test.h"

#include "deferred_write.h"
#include "loaded_recording.h"
#include "ring_recording.h"

#define RECORDING       TEST_DATA_DIR "/rings/deferred.rings"
#define RECORDING_BYTES ((size_t)1 << 20) /* at most */
#define RECORDED_CPUS   2
#define DEPTH           6 /* less than the deepest of the recording */
#define SAMPLES_MAX     2048
#define CHAINS_MAX      1024
#define EXECS_MAX       64
#define MAPPINGS_MAX    2048
#define USER_SPACE_END  UINT64_C(0x7ffffffff000)
#define PID             4100000
#define CODE            UINT64_C(0x5000) /* a page of the task by hand */
#define DATA            UINT64_C(0x9000) /* one that is not executable */
#define SECRET          UINT64_C(0x5ec2e70000c0ffee)
#define READ_WRITE      3 /* bits of a protection */
#define READ_EXECUTE    5
#define COOKIE          UINT64_C(0x18900000001)

struct known_sample {
    uint64_t time_ns;
    uint32_t cpu;
    int32_t pid, tid;
    uint64_t cookie; /* 0: not deferred */
    size_t user_count;
    uint64_t user_chain[DEPTH]; /* no more is to come out */
    bool met;
};

struct known_chain {
    uint64_t time_ns;
    int32_t tid;
    uint64_t cookie;
    size_t count;
    uint64_t chain[DEPTH];
};

struct world {
    uint8_t *bytes; /* the recording */
    size_t size_bytes;
    struct ring_world *rings;
    struct drain *drain; /* theirs */
    uint8_t *file;       /* what came out */

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
    struct {
        int32_t pid;
        uint64_t start, end;
    } mappings[MAPPINGS_MAX]; /* executable ones */
    size_t mapping_count;
    size_t ended_count; /* chains that end before an entry that is no code */
};

static void read_recording(struct world *world)
{
    FILE *file = fopen(RECORDING, "re");
    assert_non_null(file);
    world->bytes = malloc(RECORDING_BYTES);
    assert_non_null(world->bytes);
    world->size_bytes = fread(world->bytes, 1, RECORDING_BYTES, file);
    (void)fclose(file);
    const struct ring_recording *head = (const void *)world->bytes;
    assert_true(world->size_bytes > sizeof *head && world->size_bytes < RECORDING_BYTES);
    assert_int_equal(head->magic, RING_RECORDING_MAGIC);
    assert_int_equal(head->sample_type, RING_SAMPLE_TYPE);
    assert_int_equal(head->cpu_count, RECORDED_CPUS);
}

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof *world);
    assert_non_null(world);
    read_recording(world);
    world->rings = ring_world_new(&(struct ring_world_options){.unwind = SESSION_UNWIND_FP,
                                                               .cpu_count = RECORDED_CPUS,
                                                               .max_stack_depth = DEPTH,
                                                               .deferring = true});
    assert_non_null(world->rings);
    world->drain = world->rings->drain;
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    (void)ring_world_free(world->rings);
    free(world->file);
    free(world->bytes);
    free(world);
    return 0;
}

static size_t copy_chain(uint64_t *chain, const uint64_t *from, size_t count)
{
    size_t copied = 0;
    for (; copied < count && copied < DEPTH; copied++) {
        chain[copied] = from[copied];
    }
    return copied;
}

static void note_sample(struct world *world, const struct perf_record *record)
{
    assert_true(world->sample_count < SAMPLES_MAX);
    struct known_sample *sample = &world->samples[world->sample_count++];
    *sample = (struct known_sample){
        .time_ns = record->time_ns,
        .cpu = record->cpu,
        .pid = record->pid,
        .tid = record->tid,
        .cookie = record->sample.deferred ? record->sample.deferred_cookie : 0,
    };
    sample->user_count =
        copy_chain(sample->user_chain, record->sample.user_chain, record->sample.user_count);
}

static void note_chain(struct world *world, const struct perf_record *record)
{
    assert_true(world->chain_count < CHAINS_MAX);
    struct known_chain *chain = &world->chains[world->chain_count++];
    *chain = (struct known_chain){
        .time_ns = record->time_ns, .tid = record->tid, .cookie = record->deferred.cookie};
    chain->count = copy_chain(chain->chain, record->deferred.chain, record->deferred.count);
}

/* Keeps what a test needs of a record. */
static void note(struct world *world, const uint8_t *bytes, size_t size_bytes)
{
    struct perf_record record;
    assert_int_equal(perf_record_parse(&world->rings->source.layout, bytes, size_bytes, &record),
                     0);
    if (record.kind == PERF_KIND_SAMPLE) {
        note_sample(world, &record);
    } else if (record.kind == PERF_KIND_DEFERRED_CALLCHAIN) {
        note_chain(world, &record);
    } else if (record.kind == PERF_KIND_COMM && record.comm.exec) {
        assert_true(world->exec_count < EXECS_MAX);
        world->execs[world->exec_count].pid = record.pid;
        world->execs[world->exec_count++].time_ns = record.time_ns;
    } else if (record.kind == PERF_KIND_MMAP && record.mmap.executable) {
        assert_true(world->mapping_count < MAPPINGS_MAX);
        world->mappings[world->mapping_count].pid = record.pid;
        world->mappings[world->mapping_count].start = record.mmap.start;
        world->mappings[world->mapping_count++].end = record.mmap.start + record.mmap.size_bytes;
    }
}

/* Appends a record as the kernel would. */
static void put(struct world *world, uint32_t ring, const uint64_t *record, size_t size_bytes)
{
    struct perf_event_header header;
    memcpy(&header, record, sizeof header);
    assert_int_equal(header.size, size_bytes);
    assert_true(ring_world_put(world->rings, ring / 2,
                               RING_IS_SIDEBAND(ring) ? PERF_STREAM_SIDEBAND : PERF_STREAM_CLOCK,
                               header.type, header.misc, record + 1, size_bytes / 8 - 1));
    note(world, (const uint8_t *)record, size_bytes);
}

/* A process that was there before the recording: all of its memory is code. What it forks has the
 * same, and what executes has what the recording says. */
static void scan(struct world *world, int32_t pid)
{
    static const struct mapping_description memory = {
        .start = 0x1000, .end = USER_SPACE_END, .path = ""};
    process_table_scan(world->rings->processes, &(struct process_scan){.pid = pid,
                                                                       .parent_pid = 1,
                                                                       .mappings = &memory,
                                                                       .mapping_count = 1,
                                                                       .begin_ns = 1,
                                                                       .end_ns = 1});
}

/* A pid that the recording gives out anew is another process then. */
static void scan_older_processes(struct world *world)
{
    for (size_t at = sizeof(struct ring_recording); at < world->size_bytes;) {
        const struct ring_block *block = (const void *)(world->bytes + at);
        struct perf_record record = {.kind = PERF_KIND_OTHER};
        at += sizeof *block + block->size_bytes;
        assert_true(at <= world->size_bytes);
        if (block->ring != RING_ROUND_END) {
            (void)perf_record_parse(&world->rings->source.layout, (const uint8_t *)(block + 1),
                                    block->size_bytes, &record);
        }
        if (record.kind == PERF_KIND_SAMPLE) {
            scan(world, record.pid);
        } else if (record.kind == PERF_KIND_FORK) {
            scan(world, record.task.parent_pid);
        }
    }
}

/*
 * Plays the recording up to `round_limit` rounds, `at_once` of them in one. Records of `left_out`
 * stay away. Returns the last horizon.
 */
static uint64_t play(struct world *world, size_t round_limit, size_t at_once, uint32_t left_out)
{
    size_t round = 0;
    uint64_t horizon_ns = 0;
    scan_older_processes(world);
    for (size_t at = sizeof(struct ring_recording);
         at < world->size_bytes && round < round_limit;) {
        const struct ring_block *block = (const void *)(world->bytes + at);
        const uint64_t *record = (const void *)(block + 1);
        at += sizeof *block + block->size_bytes;
        assert_true(at <= world->size_bytes);
        if (block->ring == RING_ROUND_END) {
            round++;
            if (round % at_once == 0 && block->horizon_ns != UINT64_MAX) {
                horizon_ns = block->horizon_ns;
                drain_all(world->drain, horizon_ns);
                trace_poll(world->rings->trace);
            }
        } else if (((const struct perf_event_header *)record)->type != left_out) {
            put(world, block->ring, record, block->size_bytes);
        }
    }
    return horizon_ns;
}

/* Ends the recording, and loads what a reader has of it. */
static void stop(struct world *world, struct loaded_recording *loaded)
{
    size_t file_bytes = 0;
    drain_all(world->drain, UINT64_MAX);
    world->file = ring_world_file(world->rings, &file_bytes);
    loaded_recording_init(loaded, world->file, file_bytes);
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

static bool is_mapped(const struct world *world, uint64_t pid, uint64_t address)
{
    for (size_t i = 0; i < world->mapping_count; i++) {
        if (world->mappings[i].pid == (int32_t)pid && world->mappings[i].start <= address &&
            address < world->mappings[i].end) {
            return true;
        }
    }
    return false;
}

/* All of the chain, or what comes before an entry that is no code. */
static void expect_stack(struct world *world, const struct loaded_sample *loaded,
                         const uint64_t *chain, size_t count)
{
    size_t kept = loaded->user_count;
    count = count < DEPTH ? count : DEPTH;
    assert_int_equal(loaded->closed, STACK_CLOSED_NORMALLY);
    assert_in_range(kept, count == 0 ? 0 : 1, count);
    assert_memory_equal(loaded->user_stack, chain, kept * sizeof *chain);
    if (kept < count) {
        world->ended_count++;
        assert_false(is_mapped(world, loaded->pid, chain[kept] - 1));
        assert_int_equal(loaded->quality, chain[kept] == 0 ? STACK_NO_RULE : STACK_BAD_MEMORY);
    } else if (count == 0) {
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
            expect_stack(world, told, sample->user_chain, sample->user_count);
        } else if (chain == NULL) {
            assert_int_not_equal(told->closed, STACK_CLOSED_NORMALLY);
            expect_none(told);
        } else if (has_exec_between(world, sample->pid, sample->time_ns, chain->time_ns)) {
            assert_int_equal(told->closed, STACK_CLOSED_EXEC);
            expect_none(told);
        } else if (told->closed != STACK_CLOSED_EXEC) {
            expect_stack(world, told, chain->chain, chain->count);
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
    assert_in_range(world->ended_count, 1, loaded.sample_count / 20);
    assert_int_equal(reasons.counts[STACK_CLOSED_LOST], 0);
    assert_int_equal(reasons.counts[STACK_CLOSED_LIMIT], 0);
    assert_true(reasons.counts[STACK_CLOSED_NORMALLY] > loaded.sample_count * 9 / 10);
    assert_int_equal(drain_counters(world->drain, 0).orphan_partials,
                     reasons.counts[STACK_CLOSED_STOPPED] + reasons.counts[STACK_CLOSED_GONE]);
    assert_int_equal(drain_counters(world->drain, 0).orphan_completions, 0);
    assert_int_equal(drain_counters(world->drain, 0).bad_records, 0);
    loaded_recording_done(&loaded);
}

#define STORY(name) TEST_WITH(name, set_up, tear_down)

STORY(a_real_run_has_every_stack_round_by_round)
{
    check_play(*state, 1);
}

STORY(a_real_run_has_every_stack_in_long_rounds)
{
    check_play(*state, 7);
}

STORY(a_real_run_has_every_stack_all_at_once)
{
    check_play(*state, SIZE_MAX);
}

STORY(a_stop_in_the_middle_closes_what_waits)
{
    struct world *world = *state;
    struct loaded_recording loaded;
    (void)play(world, 25, 1, 0);
    stop(world, &loaded);
    struct reasons reasons = check_samples(world, &loaded);
    assert_int_equal(drain_counters(world->drain, 0).orphan_partials,
                     reasons.counts[STACK_CLOSED_STOPPED] + reasons.counts[STACK_CLOSED_GONE]);
    loaded_recording_done(&loaded);
}

STORY(chains_that_never_come_leave_their_samples_without_a_stack)
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
    assert_int_equal(drain_counters(world->drain, 0).orphan_partials,
                     loaded.sample_count - reasons.counts[STACK_CLOSED_NORMALLY]);
    loaded_recording_done(&loaded);
}

/* By hand, all of one task. */
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
    uint64_t words[] = {cookie, 2, CODE, CODE + 0x100, pair(PID, PID), time_ns, cpu, 2};
    put_words(world, RING_SIDEBAND(cpu), PERF_RECORD_CALLCHAIN_DEFERRED, PERF_RECORD_MISC_USER,
              words, 8);
}

/* A page of the task's memory, from `start` on, with the protection `bits`. */
static void put_mmap(struct world *world, uint64_t time_ns, uint64_t start, uint32_t bits)
{
    uint64_t words[] = {pair(PID, PID), start, 0x1000,         0,       0, 0, 0,
                        pair(bits, 0),  0,     pair(PID, PID), time_ns, 0, 2};
    put_words(world, RING_SIDEBAND(0), PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, words, 13);
}

static void put_exec(struct world *world, uint32_t cpu, uint64_t time_ns)
{
    uint64_t words[] = {pair(PID, PID), 0, 0, pair(PID, PID), time_ns, cpu, 2};
    (void)snprintf((char *)&words[1], 16, "next");
    put_words(world, RING_SIDEBAND(cpu), PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, words, 7);
}

STORY(an_exec_in_between_discards_the_stack)
{
    struct world *world = *state;
    struct loaded_recording loaded;
    put_sample(world, 0, 100, COOKIE);
    put_exec(world, 1, 200);
    put_mmap(world, 210, CODE, READ_EXECUTE);
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
    assert_int_equal(world->ended_count, 0);
    assert_int_equal(drain_counters(world->drain, 0).orphan_partials, 0);
    loaded_recording_done(&loaded);
}

STORY(the_books_count_partials_and_chains_without_each_other)
{
    struct world *world = *state;
    struct loaded_recording loaded;
    put_sample(world, 0, 100, COOKIE);
    put_sample(world, 0, 200, COOKIE);
    put_sample(world, 0, 300, COOKIE + 2);
    put_chain(world, 0, 400, COOKIE + 4);
    drain_all(world->drain, 500);
    drain_all(world->drain, 600 + DEFERRED_WRITE_WAIT_NS - 400);
    put_sample(world, 1, 900 + DEFERRED_WRITE_WAIT_NS, COOKIE + 6);
    drain_all(world->drain, 1000 + DEFERRED_WRITE_WAIT_NS);
    stop(world, &loaded);
    struct reasons reasons = check_samples(world, &loaded);
    assert_int_equal(reasons.counts[STACK_CLOSED_LOST], 3);
    assert_int_equal(reasons.counts[STACK_CLOSED_STOPPED], 1);
    assert_int_equal(drain_counters(world->drain, 0).orphan_partials, 4);
    assert_int_equal(drain_counters(world->drain, 0).orphan_completions, 1);
    loaded_recording_done(&loaded);
}

STORY(the_257th_that_waits_closes_the_first)
{
    struct world *world = *state;
    struct loaded_recording loaded;
    put_mmap(world, 50, CODE, READ_EXECUTE);
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
    assert_int_equal(world->ended_count, 0);
    loaded_recording_done(&loaded);
}

/* Behind a frame and its caller words of data, among them one that would pass. */
static void put_hostile_chain(struct world *world, uint64_t time_ns, uint64_t cookie)
{
    uint64_t words[] = {cookie,  5, CODE, CODE + 0x100, SECRET, CODE + 0x200, DATA, pair(PID, PID),
                        time_ns, 0, 2};
    put_words(world, RING_SIDEBAND(0), PERF_RECORD_CALLCHAIN_DEFERRED, PERF_RECORD_MISC_USER, words,
              11);
}

STORY(no_chain_that_comes_later_brings_data)
{
    struct world *world = *state;
    struct loaded_recording loaded;
    put_mmap(world, 50, CODE, READ_EXECUTE);
    put_mmap(world, 60, DATA, READ_WRITE);
    put_hostile_chain(world, 90, COOKIE);
    put_sample(world, 0, 100, COOKIE); /* whole, as its chain is here */
    put_sample(world, 0, 200, COOKIE + 2);
    drain_all(world->drain, 300);
    put_hostile_chain(world, 400, COOKIE + 2);
    drain_all(world->drain, 500);
    stop(world, &loaded);
    struct reasons reasons = check_samples(world, &loaded);
    assert_int_equal(reasons.counts[STACK_CLOSED_NORMALLY], 2);
    assert_int_equal(world->ended_count, 2);
    for (size_t i = 0; i < loaded.sample_count; i++) {
        assert_int_equal(loaded.samples[i].user_count, 2);
        assert_int_equal(loaded.samples[i].quality, STACK_BAD_MEMORY);
    }
    assert_int_equal(drain_counters(world->drain, 0).truncated_stacks, 2);
    loaded_recording_done(&loaded);
}
