/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What readers get, whatever happens: samples of processes that come, go and lend each other their
 * pids, files that are read late or not at all, logs that fill up, readers that read twice, die
 * before they acknowledge, and come again. Everything that one reader acknowledged is one valid
 * file, in which each sample has its names, or none where a log had no room for them; over all of
 * them each sample that was kept is there once.
 */
#include "fake_tickets.h"
#include "fxt_reader.h"
#include "loaded_recording.h"
#include "process_owner.h"
#include "process_table.h"
#include "trace.h"
#include "trace_cursor.h"
#include "unit_test.h"

#define LOG_BYTES    ((size_t)128 << 10)
#define LANE_BYTES   ((size_t)32 << 10)
#define FILE_BYTES   ((size_t)8 << 20)
#define PATHS        8 /* the last of which cannot be read */
#define PIDS         12
#define SAMPLES_MAX  8192
#define SEGMENTS_MAX 4096
#define STEPS        4000
#define ROUNDS       12
#define TEXT_START   UINT64_C(0x10000)

uint32_t process_owner(int32_t pid)
{
    return (uint32_t)pid;
}

static const struct symbol functions[] = {{0x1000, 0x100, 0}, {0x1100, 0x100, 3}};
static const struct symbol_segment segment = {0, 0x1000, 0x10000};
static char function_names[PATHS][8];
static struct module modules[PATHS];

/* Every file has functions of its own, and the build-id of all others. */
static void make_modules(void)
{
    static const uint8_t build_id[] = {0xab};
    for (size_t i = 0; i < PATHS; i++) {
        (void)snprintf(function_names[i], sizeof function_names[i], "a%zu%cb%zu", i, '\0', i);
        modules[i] = (struct module){
            .identity.inode = i + 1,
            .symbols = {.symbols = functions,
                        .symbol_count = 2,
                        .segments = &segment,
                        .segment_count = 1,
                        .names = function_names[i],
                        .names_bytes = sizeof function_names[i],
                        .build_id = build_id,
                        .build_id_bytes = sizeof build_id},
        };
    }
}

/* A sample; its time is its number. */
struct expected {
    uint64_t time_ns;
    int32_t pid;
    char process[8];
    char function[16];
    unsigned seen_count;
};

struct world {
    uint64_t seed;
    uint64_t time_ns;
    struct trace_buffer *buffer;
    struct address_cache *addresses;
    struct trace *trace;
    struct process_table *processes;
    struct trace_cursor *reader;
    bool alive[PIDS];
    size_t paths[PIDS]; /* what the process shows at TEXT_START */
    struct expected expected[SAMPLES_MAX];
    size_t taken_count;
    uint8_t *file; /* what the present reader acknowledged */
    size_t file_bytes;
    uint8_t *unacknowledged;
    size_t unacknowledged_bytes;
    uint64_t sequence;
    uint32_t providers[SEGMENTS_MAX];
    size_t provider_count;
    size_t nameless_count;   /* samples */
    size_t second_log_count; /* segments in one reader's file, but the first */
};

static struct world *new_world(uint64_t seed)
{
    static const uint32_t cpus[] = {0, 1};
    struct world *world = calloc(1, sizeof *world);
    *world = (struct world){.seed = seed, .time_ns = 1000};
    fake_tickets_reset();
    make_modules();
    world->file = malloc(FILE_BYTES);
    world->unacknowledged = malloc(TRACE_CHUNK_BYTES_MAX);
    world->buffer = trace_buffer_new(2, LOG_BYTES, LANE_BYTES);
    world->addresses = address_cache_new();
    assert_non_null(world->addresses);
    struct trace_config config = {.buffer = world->buffer,
                                  .addresses = world->addresses,
                                  .cpus = cpus,
                                  .cpu_count = 2,
                                  .session_json = "{\"session\":\"s\"}",
                                  .hold_ns = UINT64_MAX,
                                  .short_ns = seed % 2 == 0 ? 0 : UINT64_MAX};
    assert_int_equal(trace_cursor_new(world->buffer, &world->reader), 0);
    assert_int_equal(trace_new(&config, &world->trace), 0);
    world->processes = process_table_new(trace_file_gone, world->trace);
    return world;
}

static void free_world(struct world *world)
{
    (void)process_table_free(world->processes);
    (void)trace_free(world->trace);
    (void)trace_cursor_free(world->reader);
    (void)trace_buffer_free(world->buffer);
    (void)address_cache_free(world->addresses);
    free(world->file);
    free(world->unacknowledged);
    free(world);
    fake_tickets_check();
}

static int32_t pid_of(size_t process)
{
    return 100 + (int32_t)process;
}

/* A new program in an old process, or a new process with an old pid. */
static void run_program(struct world *world, size_t process)
{
    char path[16];
    char comm[16];
    int32_t pid = pid_of(process);
    if (world->alive[process] && draw_below(&world->seed, 2) == 0) {
        process_table_exit(world->processes, pid, pid, world->time_ns++);
    }
    world->alive[process] = true;
    world->paths[process] = draw_below(&world->seed, PATHS);
    (void)snprintf(path, sizeof path, "/bin/p%zu", world->paths[process]);
    (void)snprintf(comm, sizeof comm, "c%zu", world->paths[process]);
    struct mapping_description mapping = {
        .start = TEXT_START, .end = TEXT_START + 0x10000, .path = path};
    process_table_comm(world->processes, pid, pid, comm, true, world->time_ns++);
    process_table_mmap(world->processes, pid, &mapping, world->time_ns++);
}

/* Lets some files be read, or all. */
static void answer(struct world *world, bool all)
{
    for (size_t i = 0; i < ticket_count; i++) {
        if (tickets[i].state == MODULE_PENDING && (all || draw_below(&world->seed, 3) == 0)) {
            const size_t path = (size_t)(tickets[i].path[strlen("/bin/p")] - '0');
            fake_tickets_ready(i, &modules[path]);
            if (path == PATHS - 1) {
                tickets[i].failure = MODULE_FAILURE_UNREADABLE;
                tickets[i].state = MODULE_FAILED;
            }
        }
    }
}

static void take_sample(struct world *world, size_t process)
{
    bool second = draw_below(&world->seed, 2) == 1;
    size_t path = world->paths[process];
    uint64_t stack[] = {TEXT_START + (second ? 0x110 : 0x10)};
    struct sample sample = {
        .weight = 1,
        .time_ns = world->time_ns++,
        .cpu = 1,
        .pid = pid_of(process),
        .tid = pid_of(process),
        .quality = STACK_COMPLETE,
        .user_stack = stack,
        .user_count = 1,
    };
    bool uncertain = false;
    trace_sample(world->trace, draw_below(&world->seed, 2), &sample,
                 process_table_find(world->processes, sample.pid, sample.time_ns), &uncertain);
    assert_true(world->taken_count < SAMPLES_MAX);
    struct expected *expected = &world->expected[world->taken_count++];
    *expected = (struct expected){.time_ns = sample.time_ns, .pid = sample.pid};
    (void)snprintf(expected->process, sizeof expected->process, "c%zu", path);
    if (path == PATHS - 1) { /* by its file offset */
        (void)snprintf(expected->function, sizeof expected->function, "p%zu+0x%x", path,
                       second ? 0x110 : 0x10);
    } else {
        (void)snprintf(expected->function, sizeof expected->function, "%c%zu", second ? 'b' : 'a',
                       path);
    }
}

static void poll_trace(struct world *world)
{
    /* A log that ends while a file is being read may end without its names: not this test's. */
    if (!trace_buffer_has_room(world->buffer, TRACE_LANE_DEFINITIONS, LOG_BYTES / 2)) {
        answer(world, true);
    }
    trace_poll(world->trace);
}

static int compare_expected(const void *left, const void *right)
{
    const uint64_t *time_ns = left;
    const struct expected *expected = right;
    return (*time_ns > expected->time_ns) - (*time_ns < expected->time_ns);
}

/* Unknown, or by its address in the file that it is of, and something was refused. */
static bool may_be_nameless(const struct world *world, const char *function, const char *expected)
{
    struct counters counts = trace_counters(world->trace);
    char prefix[8];
    (void)snprintf(prefix, sizeof prefix, "p%c+0x", expected[1]);
    return counts.names_refused + counts.mappings_refused > 0 &&
           (strcmp(function, "[unknown]") == 0 || strncmp(function, prefix, strlen(prefix)) == 0) &&
           strcmp(function, expected) != 0;
}

static void check_sample(struct world *world, const struct loaded_sample *sample)
{
    struct expected *expected = bsearch(&sample->time_ns, world->expected, world->taken_count,
                                        sizeof *expected, compare_expected);
    assert_non_null(expected);
    assert_int_equal(sample->pid, expected->pid);
    assert_string_equal(sample->process, expected->process);
    if (may_be_nameless(world, sample->function, expected->function)) {
        world->nameless_count++;
    } else {
        assert_string_equal(sample->function, expected->function);
    }
    expected->seen_count++;
}

/* In each segment a process begins with what lies beneath all that it maps. */
static void check_first_module(bool seen[PIDS], const struct fxt_module *module)
{
    size_t process = (size_t)module->pid - 100;
    if (process < PIDS && !seen[process]) {
        assert_memory_equal(module->name, "[unknown]", module->name_bytes);
        seen[process] = true;
    }
}

/* Takes note of the providers, each of which is another. */
static void check_segments(struct world *world)
{
    struct fxt_reader *reader = fxt_reader_new();
    size_t segment_count = 0;
    bool seen[PIDS] = {false};
    for (size_t at = 0; at < world->file_bytes;) {
        struct fxt_record record;
        if (fxt_reader_next(reader, world->file + at, world->file_bytes - at, &record) != 1) {
            fail_msg("the reader refuses: %s", fxt_reader_error(reader));
        }
        if (record.kind == FXT_RECORD_MAGIC) {
            segment_count++;
            memset(seen, 0, sizeof seen);
        } else if (record.kind == FXT_RECORD_MODULE) {
            check_first_module(seen, &record.module);
        }
        if (record.kind == FXT_RECORD_PROVIDER && record.string.text_bytes > 0) {
            for (size_t i = 0; i < world->provider_count; i++) {
                assert_int_not_equal(world->providers[i], record.provider_id);
            }
            assert_true(world->provider_count < SEGMENTS_MAX);
            world->providers[world->provider_count++] = record.provider_id;
        }
        at += record.size_bytes;
    }
    world->second_log_count += segment_count - 1;
    (void)fxt_reader_free(reader);
}

/* The reader is gone; what it acknowledged must stand for itself. */
static void check_file(struct world *world)
{
    struct loaded_recording loaded;
    if (world->file_bytes == 0) {
        return;
    }
    check_segments(world);
    loaded_recording_init(&loaded, world->file, world->file_bytes);
    assert_string_equal(loaded.session_json, "{\"session\":\"s\"}");
    for (size_t i = 0; i < loaded.sample_count; i++) {
        check_sample(world, &loaded.samples[i]);
    }
    loaded_recording_done(&loaded);
    world->file_bytes = 0;
}

static void read_chunk(struct world *world)
{
    struct trace_chunk chunk;
    trace_cursor_read(world->reader, 40000 + draw_below(&world->seed, 40000), &chunk);
    if (world->unacknowledged_bytes > 0) {
        /* The same again; nothing, where it does not fit. */
        assert_true(chunk.size_bytes == 0 || chunk.sequence == world->sequence);
        assert_true(chunk.size_bytes == 0 || chunk.size_bytes == world->unacknowledged_bytes);
        assert_memory_equal(world->unacknowledged, chunk.bytes, chunk.size_bytes);
        return;
    }
    assert_true(chunk.size_bytes == 0 || chunk.sequence == world->sequence + 1);
    world->unacknowledged_bytes = chunk.size_bytes;
    world->sequence += chunk.size_bytes > 0;
    memcpy(world->unacknowledged, chunk.bytes, chunk.size_bytes);
}

static void acknowledge(struct world *world)
{
    assert_true(world->file_bytes + world->unacknowledged_bytes <= FILE_BYTES);
    memcpy(world->file + world->file_bytes, world->unacknowledged, world->unacknowledged_bytes);
    world->file_bytes += world->unacknowledged_bytes;
    assert_true(trace_cursor_acknowledge(world->reader,
                                         world->unacknowledged_bytes > 0 ? world->sequence : 0));
    world->unacknowledged_bytes = 0;
    assert_false(trace_cursor_acknowledge(world->reader, world->sequence + 1));
}

static void change_readers(struct world *world)
{
    if (draw_below(&world->seed, 4) ==
        0) { /* the old one's acknowledgement, brought by the new one */
        trace_cursor_begin_segment(world->reader);
        acknowledge(world);
    }
    check_file(world);
    world->unacknowledged_bytes = 0;
    trace_cursor_begin_segment(world->reader);
}

/* `busy`: of 64 steps, how many are samples. The more, the more are dropped. */
static void take_step(struct world *world, uint64_t busy)
{
    size_t process = draw_below(&world->seed, PIDS);
    uint64_t choice = draw_below(&world->seed, 64);
    if (!world->alive[process]) {
        run_program(world, process);
    }
    if (choice < busy) {
        take_sample(world, process);
    } else if (choice < 52) {
        run_program(world, process);
    } else if (choice < 54) {
        answer(world, false);
    } else if (choice < 57) {
        process_table_prune(world->processes, world->time_ns - draw_below(&world->seed, 100));
    } else if (choice < 60) {
        poll_trace(world);
    } else if (choice < 62) {
        read_chunk(world);
    } else if (choice == 62) {
        acknowledge(world);
    } else if (draw_below(&world->seed, 8) == 0) {
        change_readers(world);
    }
    if (!trace_buffer_has_room(world->buffer, TRACE_LANE_DEFINITIONS, LOG_BYTES / 2)) {
        poll_trace(world);
    }
}

static void read_to_the_end(struct world *world)
{
    do {
        read_chunk(world);
        acknowledge(world);
    } while (trace_cursor_unread_bytes(world->reader) > 0);
}

static void finish(struct world *world)
{
    answer(world, true);
    trace_poll(world->trace);
    assert_true(trace_finish(world->trace, "{\"books\":1}"));
}

/* How many samples were dropped, in a recording that has been read to its end. */
static size_t check_all_seen(const struct world *world)
{
    struct trace_lane_counts total = {0};
    size_t seen_count = 0;
    for (size_t i = 0; i < world->taken_count; i++) {
        assert_in_range(world->expected[i].seen_count, 0, 1);
        seen_count += world->expected[i].seen_count;
    }
    for (size_t i = 0; i < 2; i++) {
        struct trace_lane_counts counts = trace_lane_counts(world->trace, i, 0);
        total.kept += counts.kept;
        total.dropped += counts.dropped;
    }
    assert_int_equal(seen_count, total.kept);
    assert_int_equal(world->taken_count, total.kept + total.dropped);
    assert_true(seen_count > 500);
    return total.dropped;
}

TEST(each_sample_arrives_once_with_its_names)
{
    size_t dropped_count = 0;
    size_t second_log_count = 0;
    size_t nameless_count = 0;
    size_t taken_count = 0;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        struct world *world = new_world(round);
        for (size_t step = 0; step < STEPS; step++) {
            take_step(world, 20 + 5 * (round % 6));
        }
        finish(world);
        change_readers(world);
        read_to_the_end(world);
        check_file(world);
        dropped_count += check_all_seen(world);
        second_log_count += world->second_log_count;
        nameless_count += world->nameless_count;
        taken_count += world->taken_count;
        free_world(world);
    }
    /* The rounds did come to what they are about. */
    assert_true(dropped_count > 10);
    assert_true(second_log_count > 10);
    assert_in_range(nameless_count, 1, taken_count / 4);
}

/* What a new reader of everything gets: `sample_count` samples, and the books. */
static void expect_all(struct world *world, size_t sample_count)
{
    struct loaded_recording loaded;
    world->unacknowledged_bytes = 0;
    trace_cursor_begin_segment(world->reader);
    read_to_the_end(world);
    loaded_recording_init(&loaded, world->file, world->file_bytes);
    assert_int_equal(loaded.sample_count, sample_count);
    assert_string_equal(loaded.books_json, "{\"books\":1}");
    loaded_recording_done(&loaded);
    check_file(world);
}

TEST(who_comes_late_gets_the_books_and_all_that_is_left)
{
    struct world *world = new_world(1);
    run_program(world, 0);
    take_sample(world, 0);
    finish(world);
    read_chunk(world); /* and dies */
    expect_all(world, 1);
    assert_int_equal(world->expected[0].seen_count, 1);
    expect_all(world, 0);
    free_world(world);
}

TEST(samples_wait_for_their_names)
{
    struct world *world = new_world(1);
    run_program(world, 0);
    take_sample(world, 0);
    trace_poll(world->trace);
    read_chunk(world);
    acknowledge(world);
    check_file(world);
    assert_int_equal(world->expected[0].seen_count, 0);
    answer(world, true);
    trace_poll(world->trace);
    trace_cursor_begin_segment(world->reader);
    read_to_the_end(world);
    check_file(world);
    assert_int_equal(world->expected[0].seen_count, 1);
    free_world(world);
}
