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
#include "ring_recording.h"

#define RECORDING       TEST_DATA_DIR "/rings/deferred.rings"
#define RECORDING_BYTES ((size_t)1 << 20) /* at most */
#define RECORDED_CPUS   2
#define DEPTH           6 /* less than the deepest of the recording: no more is to come out */
#define RECORDS_MAX     8192
#define WORDS_MAX       8192
#define USER_SPACE_END  UINT64_C(0x7ffffffff000)
#define PID             4100000
#define CODE            UINT64_C(0x5000) /* a page of the task by hand */
#define DATA            UINT64_C(0x9000) /* one that is not executable */
#define SECRET          UINT64_C(0x5ec2e70000c0ffee)
#define READ_WRITE      3 /* bits of a protection */
#define READ_EXECUTE    5
#define COOKIE          UINT64_C(0x18900000001)

/* A record that was put into the rings, as a plain reading of it has it. */
struct known {
    struct perf_record record;
    bool met;
};

struct world {
    uint8_t *bytes; /* the recording */
    size_t size_bytes;
    struct ring_world *rings;
    struct drain *drain; /* theirs */
    uint64_t words[WORDS_MAX];
    size_t word_count; /* of records by hand */
    struct known known[RECORDS_MAX];
    size_t known_count;
    size_t sample_count;
    size_t frame_count; /* that came out */
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
    free(world->bytes);
    free(world);
    return 0;
}

/* Keeps a record, whose bytes stay. */
static void note(struct world *world, const uint8_t *bytes, size_t size_bytes)
{
    assert_true(world->known_count < RECORDS_MAX);
    struct perf_record *record = &world->known[world->known_count++].record;
    assert_int_equal(perf_record_parse(&world->rings->source.layout, bytes, size_bytes, record), 0);
    world->sample_count += record->kind == PERF_KIND_SAMPLE;
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

/* The next record of a kind behind `known`, or the first; NULL: none. */
static struct known *next_known(struct world *world, struct known *known,
                                enum perf_record_kind kind)
{
    for (known = known == NULL ? world->known : known + 1;
         known < world->known + world->known_count; known++) {
        if (known->record.kind == kind) {
            return known;
        }
    }
    return NULL;
}

#define EACH_KNOWN(known, world, kind)                                                             \
    struct known *known = next_known(world, NULL, kind);                                           \
    known != NULL;                                                                                 \
    known = next_known(world, known, kind)

static struct perf_record *find_chain(struct world *world, int32_t tid, uint64_t cookie)
{
    for (EACH_KNOWN(known, world, PERF_KIND_DEFERRED_CALLCHAIN)) {
        if (known->record.tid == tid && known->record.deferred.cookie == cookie) {
            return &known->record;
        }
    }
    return NULL;
}

static bool has_exec_between(struct world *world, int32_t pid, uint64_t from_ns, uint64_t to_ns)
{
    for (EACH_KNOWN(known, world, PERF_KIND_COMM)) {
        const struct perf_record *record = &known->record;
        if (record->comm.exec && record->pid == pid && record->time_ns > from_ns &&
            record->time_ns <= to_ns) {
            return true;
        }
    }
    return false;
}

static bool is_mapped(struct world *world, uint64_t pid, uint64_t address)
{
    for (EACH_KNOWN(known, world, PERF_KIND_MMAP)) {
        const struct perf_record *record = &known->record;
        if (record->mmap.executable && record->pid == (int32_t)pid &&
            address - record->mmap.start < record->mmap.size_bytes) {
            return true;
        }
    }
    return false;
}

/* Which is met no more. */
static const struct perf_record *find_sample(struct world *world,
                                             const struct loaded_sample *loaded)
{
    for (EACH_KNOWN(known, world, PERF_KIND_SAMPLE)) {
        if (!known->met && known->record.time_ns == loaded->time_ns &&
            known->record.cpu == loaded->cpu) {
            known->met = true;
            return &known->record;
        }
    }
    return NULL;
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
    world->frame_count += kept;
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

/* Samples, and how many have no stack for which reason. */
struct reasons {
    size_t sample_count;
    size_t counts[STACK_CLOSED_LIMIT + 1];
};

static void check_sample(struct world *world, const struct loaded_sample *told)
{
    const struct perf_record *sample = find_sample(world, told);
    assert_non_null(sample);
    assert_int_equal((int32_t)told->tid, sample->tid);
    assert_int_equal((int32_t)told->pid, sample->pid);
    if (!sample->sample.deferred) {
        expect_stack(world, told, sample->sample.user_chain, sample->sample.user_count);
        return;
    }
    const struct perf_record *chain =
        find_chain(world, sample->tid, sample->sample.deferred_cookie);
    if (chain == NULL) {
        assert_int_not_equal(told->closed, STACK_CLOSED_NORMALLY);
        expect_none(told);
    } else if (has_exec_between(world, sample->pid, sample->time_ns, chain->time_ns)) {
        assert_int_equal(told->closed, STACK_CLOSED_EXEC);
        expect_none(told);
    } else if (told->closed != STACK_CLOSED_EXEC) {
        expect_stack(world, told, chain->deferred.chain, chain->deferred.count);
    }
}

/* Ends the recording. Every sample that the kernel wrote is there once, with the stack that belongs
 * to it. */
static struct reasons finish(struct world *world)
{
    struct loaded_recording loaded;
    drain_all(world->drain, UINT64_MAX);
    ring_world_load(world->rings, &loaded);
    assert_int_equal(loaded.sample_count, world->sample_count);
    struct reasons reasons = {.sample_count = loaded.sample_count};
    for (size_t i = 0; i < loaded.sample_count; i++) {
        assert_in_range(loaded.samples[i].closed, 0, STACK_CLOSED_LIMIT);
        reasons.counts[loaded.samples[i].closed]++;
        check_sample(world, &loaded.samples[i]);
    }
    loaded_recording_done(&loaded);
    return reasons;
}

#define STORY(name) TEST_OF(struct world *world, name, set_up, tear_down)

static struct counters counted(const struct world *world)
{
    return drain_counters(world->drain, 0);
}

/* However many rounds the kernel's records are drained in. */
static void check_play(struct world *world, size_t at_once)
{
    (void)play(world, SIZE_MAX, at_once, 0);
    const struct reasons reasons = finish(world);
    assert_true(reasons.sample_count > 500);
    assert_in_range(world->ended_count, 1, reasons.sample_count / 20);
    assert_int_equal(reasons.counts[STACK_CLOSED_LOST], 0);
    assert_int_equal(reasons.counts[STACK_CLOSED_LIMIT], 0);
    assert_true(reasons.counts[STACK_CLOSED_NORMALLY] > reasons.sample_count * 9 / 10);
    assert_int_equal(counted(world).orphan_partials,
                     reasons.counts[STACK_CLOSED_STOPPED] + reasons.counts[STACK_CLOSED_GONE]);
    assert_int_equal(counted(world).orphan_completions, 0);
    assert_int_equal(counted(world).bad_records, 0);
}

STORY(a_real_run_has_every_stack_round_by_round)
{
    check_play(world, 1);
}

STORY(a_real_run_has_every_stack_in_long_rounds)
{
    check_play(world, 7);
}

STORY(a_real_run_has_every_stack_all_at_once)
{
    check_play(world, SIZE_MAX);
}

STORY(a_stop_in_the_middle_closes_what_waits)
{
    (void)play(world, 25, 1, 0);
    struct reasons reasons = finish(world);
    assert_int_equal(counted(world).orphan_partials,
                     reasons.counts[STACK_CLOSED_STOPPED] + reasons.counts[STACK_CLOSED_GONE]);
}

STORY(chains_that_never_come_leave_their_samples_without_a_stack)
{
    uint64_t horizon_ns = play(world, SIZE_MAX, 1, PERF_RECORD_CALLCHAIN_DEFERRED);
    drain_all(world->drain, horizon_ns + 3 * UINT64_C(1000000000));
    struct reasons reasons = finish(world);
    assert_true(reasons.counts[STACK_CLOSED_LOST] > 10);
    assert_true(reasons.counts[STACK_CLOSED_GONE] > 50);
    assert_int_equal(reasons.counts[STACK_CLOSED_STOPPED], 0);
    assert_int_equal(counted(world).orphan_partials,
                     reasons.sample_count - reasons.counts[STACK_CLOSED_NORMALLY]);
}

/* By hand, all of one task. */
static void put_words(struct world *world, uint32_t ring, uint32_t type, uint16_t misc,
                      const uint64_t *words, size_t word_count)
{
    uint64_t *record = world->words + world->word_count;
    struct perf_event_header header = {
        .type = type, .misc = misc, .size = (uint16_t)(8 + 8 * word_count)};
    assert_true(world->word_count + 1 + word_count <= WORDS_MAX);
    world->word_count += 1 + word_count;
    memcpy(record, &header, sizeof header);
    memcpy(record + 1, words, word_count * sizeof *words);
    put(world, ring, record, header.size);
}

#define TASK pair(PID, PID)
#define PUT(ring, type, misc, ...)                                                                 \
    put_words(world, ring, PERF_RECORD_##type, PERF_RECORD_MISC_##misc,                            \
              ROWS_OF(uint64_t, __VA_ARGS__))

static void put_sample(struct world *world, uint32_t cpu, uint64_t time_ns, uint64_t cookie)
{
    PUT(RING_SAMPLES(cpu), SAMPLE, KERNEL, 1, TASK, time_ns, cpu, 2, PERF_CONTEXT_USER_DEFERRED,
        cookie);
}

static void put_chain(struct world *world, uint32_t cpu, uint64_t time_ns, uint64_t cookie)
{
    PUT(RING_SIDEBAND(cpu), CALLCHAIN_DEFERRED, USER, cookie, 2, CODE, CODE + 0x100, TASK, time_ns,
        cpu, 2);
}

/* Behind a frame and its caller words of data, among them one that would pass. */
static void put_hostile_chain(struct world *world, uint64_t time_ns, uint64_t cookie)
{
    PUT(RING_SIDEBAND(0), CALLCHAIN_DEFERRED, USER, cookie, 5, CODE, CODE + 0x100, SECRET,
        CODE + 0x200, DATA, TASK, time_ns, 0, 2);
}

/* A page of the task's memory, from `start` on, with the protection `bits`. */
static void put_mmap(struct world *world, uint64_t time_ns, uint64_t start, uint32_t bits)
{
    PUT(RING_SIDEBAND(0), MMAP2, USER, TASK, start, 0x1000, 0, 0, 0, 0, pair(bits, 0), 0, TASK,
        time_ns, 0, 2);
}

static void put_exec(struct world *world, uint32_t cpu, uint64_t time_ns)
{
    PUT(RING_SIDEBAND(cpu), COMM, COMM_EXEC, TASK, 'n', 0, TASK, time_ns, cpu, 2);
}

STORY(an_exec_in_between_discards_the_stack)
{
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
    struct reasons reasons = finish(world);
    assert_int_equal(reasons.counts[STACK_CLOSED_EXEC], 2);
    assert_int_equal(reasons.counts[STACK_CLOSED_NORMALLY], 1);
    assert_int_equal(world->ended_count, 0);
    assert_int_equal(counted(world).orphan_partials, 0);
}

STORY(the_books_count_partials_and_chains_without_each_other)
{
    put_sample(world, 0, 100, COOKIE);
    put_sample(world, 0, 200, COOKIE);
    put_sample(world, 0, 300, COOKIE + 2);
    put_chain(world, 0, 400, COOKIE + 4);
    drain_all(world->drain, 500);
    drain_all(world->drain, 600 + DEFERRED_WRITE_WAIT_NS - 400);
    put_sample(world, 1, 900 + DEFERRED_WRITE_WAIT_NS, COOKIE + 6);
    drain_all(world->drain, 1000 + DEFERRED_WRITE_WAIT_NS);
    struct reasons reasons = finish(world);
    assert_int_equal(reasons.counts[STACK_CLOSED_LOST], 3);
    assert_int_equal(reasons.counts[STACK_CLOSED_STOPPED], 1);
    assert_int_equal(counted(world).orphan_partials, 4);
    assert_int_equal(counted(world).orphan_completions, 1);
}

STORY(the_257th_that_waits_closes_the_first)
{
    put_mmap(world, 50, CODE, READ_EXECUTE);
    for (uint64_t i = 0; i < 257; i++) {
        put_sample(world, 0, 100 + i, COOKIE + 2 * i);
    }
    drain_all(world->drain, 1000);
    for (uint64_t i = 0; i < 257; i++) {
        put_chain(world, 1, 1100 + i, COOKIE + 2 * i);
    }
    drain_all(world->drain, 2000);
    find_chain(world, PID, COOKIE)->deferred.cookie = 0; /* it came too late */
    struct reasons reasons = finish(world);
    assert_int_equal(reasons.counts[STACK_CLOSED_LIMIT], 1);
    assert_int_equal(reasons.counts[STACK_CLOSED_NORMALLY], 256);
    assert_int_equal(world->ended_count, 0);
}

STORY(no_chain_that_comes_later_brings_data)
{
    put_mmap(world, 50, CODE, READ_EXECUTE);
    put_mmap(world, 60, DATA, READ_WRITE);
    put_hostile_chain(world, 90, COOKIE);
    put_sample(world, 0, 100, COOKIE); /* whole, as its chain is here */
    put_sample(world, 0, 200, COOKIE + 2);
    drain_all(world->drain, 300);
    put_hostile_chain(world, 400, COOKIE + 2);
    drain_all(world->drain, 500);
    assert_int_equal(finish(world).counts[STACK_CLOSED_NORMALLY], 2);
    assert_int_equal(world->ended_count, 2);
    assert_int_equal(world->frame_count, 2 * 2); /* each ends before the first word of data */
    assert_int_equal(counted(world).truncated_stacks, 2);
}
