/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From samples through groups into lanes, and back with the strict reader and with the client: what
 * comes out is what went in, whatever was grouped with what, and the ids keep their rules.
 */
#include "fxt_reader.h"
#include "fxt_writer.h"
#include "loaded_recording.h"
#include "trace_cursor.h"
#include "trace_lanes.h"
#include "unit_test.h"

#define LANE_BYTES  ((size_t)1 << 20)
#define FILE_BYTES  ((size_t)4 << 20)
#define SAMPLES_MAX 2000
#define DEPTH_MAX   ((size_t)12)
#define KERNEL_MAX  3
#define ROUNDS      30
#define IDS_MAX     4096

static const uint32_t cpus[] = {2, 7};

struct made {
    struct sample sample;
    enum stack_closed closed;
    uint64_t user_stack[DEPTH_MAX];
    uint64_t kernel_stack[KERNEL_MAX];
    /* As far as the file has been walked: */
    uint64_t id; /* that is to be completed; 0: none */
    bool has_quality;
};

struct world {
    uint64_t seed;
    struct trace_buffer *buffer;
    struct trace_lanes *lanes;
    struct trace_groups *groups;
    struct trace_cursor *reader;
    struct made made[SAMPLES_MAX]; /* by time */
    size_t made_count;
    size_t dropped_count;
    uint8_t *file;
    size_t file_bytes;
    uint64_t completed_ids[IDS_MAX];
    size_t completed_count;
};

static struct world *new_world(uint64_t seed, size_t lane_bytes)
{
    struct world *world = calloc(1, sizeof *world);
    world->seed = seed;
    world->buffer = trace_buffer_new(2, 4096, lane_bytes);
    world->groups = trace_groups_new();
    world->lanes = trace_lanes_new(&(struct trace_lanes_config){
        .buffer = world->buffer, .cpus = cpus, .cpu_count = 2, .stack_count_max = DEPTH_MAX});
    world->file = malloc(FILE_BYTES);
    assert_int_equal(trace_cursor_new(world->buffer, &world->reader), 0);
    return world;
}

static void free_world(struct world *world)
{
    (void)trace_cursor_free(world->reader);
    (void)trace_lanes_free(world->lanes);
    (void)trace_groups_free(world->groups);
    (void)trace_buffer_free(world->buffer);
    free(world->file);
    free(world);
}

#define STORY(name, seed, lane_bytes)                                                              \
    TEST_MADE(struct world *world, name, new_world(seed, lane_bytes), free_world)

static struct made *make_sample(struct world *world, size_t cpu_index)
{
    assert_true(world->made_count < SAMPLES_MAX);
    struct made *made = &world->made[world->made_count];
    size_t count = draw_below(&world->seed, DEPTH_MAX + 1);
    made->sample = (struct sample){
        .time_ns = 1 + world->made_count++,
        .weight = 1 + draw_below(&world->seed, 2),
        .cpu = cpus[cpu_index],
        .pid = (int32_t)draw_below(&world->seed, 3) - 1,
        .tid = (int32_t)draw_below(&world->seed, 4),
        .quality = count == 0 ? STACK_NONE : (enum stack_quality)(1 + draw_below(&world->seed, 2)),
        .cfi_frame_count = (uint16_t)count,
        .fp_frame_count = (uint16_t)draw_below(&world->seed, 2),
        .user_stack = made->user_stack,
        .user_count = count,
        .kernel_stack = made->kernel_stack,
        .kernel_mode = draw_below(&world->seed, 3) == 0,
    };
    made->sample.kernel_count =
        made->sample.kernel_mode ? draw_below(&world->seed, KERNEL_MAX + 1) : 0;
    for (size_t i = 0; i < count; i++) {
        made->user_stack[i] = 0x1000 + draw_below(&world->seed, 2);
    }
    for (size_t i = 0; i < KERNEL_MAX; i++) {
        made->kernel_stack[i] = 0xffffffff81000000 + draw_below(&world->seed, 2);
    }
    return made;
}

static void put_groups(struct world *world, size_t cpu_index)
{
    struct trace_group group;
    trace_groups_form(world->groups);
    while (trace_groups_next(world->groups, &group)) {
        uint64_t before = trace_lanes_counts(world->lanes, cpu_index, 0).dropped;
        trace_lanes_put(world->lanes, cpu_index, &group);
        if (trace_lanes_counts(world->lanes, cpu_index, 0).dropped > before) {
            for (size_t i = 0; i < group.count; i++) {
                world->made[group.members[i]->time_ns - 1].sample.time_ns = 0;
            }
            world->dropped_count += group.count;
        }
    }
    trace_groups_clear(world->groups);
}

static void read_all(struct world *world)
{
    struct trace_chunk chunk;
    trace_buffer_mark(world->buffer);
    trace_buffer_show(world->buffer);
    do {
        trace_cursor_read(world->reader, TRACE_CHUNK_BYTES_MAX, &chunk);
        assert_true(world->file_bytes + chunk.size_bytes <= FILE_BYTES);
        memcpy(world->file + world->file_bytes, chunk.bytes, chunk.size_bytes);
        world->file_bytes += chunk.size_bytes;
        assert_true(trace_cursor_acknowledge(world->reader, chunk.sequence));
    } while (chunk.size_bytes > 0);
}

static uint64_t quality_of(const struct made *made)
{
    return (uint64_t)made->sample.quality | (uint64_t)made->closed << 8 |
           (uint64_t)made->sample.cfi_frame_count << 16 |
           (uint64_t)made->sample.fp_frame_count << 32;
}

/* Neither dropped nor seen before. */
static struct made *find_made(struct world *world, uint64_t time_ns)
{
    assert_in_range(time_ns, 1, world->made_count);
    struct made *made = &world->made[time_ns - 1];
    assert_int_equal(made->sample.time_ns, time_ns);
    return made;
}

/* A whole sample, or what a partial has for itself: the id comes before its completion. */
static void check_sample(struct world *world, const struct fxt_sample *record)
{
    struct made *made = find_made(world, record->boot_ts_ns);
    const bool is_partial = (record->fields & FXT_SAMPLE_CONTINUATION) != 0;
    assert_int_equal((record->fields & FXT_SAMPLE_CPU) != 0, !is_partial);
    assert_true(is_partial || (record->fields & FXT_SAMPLE_QUALITY) != 0);
    assert_int_equal(is_partial ? record->continuation >> 48 : record->cpu, made->sample.cpu);
    assert_int_equal((record->fields & FXT_SAMPLE_KERNEL_STACK) != 0, made->sample.kernel_mode);
    assert_int_equal((record->fields & FXT_SAMPLE_WEIGHT) != 0, made->sample.weight != 1);
    assert_int_equal(record->weight, made->sample.weight == 1 ? 0 : made->sample.weight);
    made->has_quality = (record->fields & FXT_SAMPLE_QUALITY) != 0;
    assert_int_equal(record->quality, made->has_quality ? quality_of(made) : 0);
    made->id = is_partial ? record->continuation : 0;
    for (size_t i = 0; is_partial && i < world->completed_count; i++) {
        assert_int_not_equal(world->completed_ids[i], made->id);
    }
}

/* Of an id that was open, once, with the quality of all who have none. */
static void check_completion(struct world *world, const struct fxt_sample *record)
{
    const uint64_t id = record->continuation_completion;
    size_t member_count = 0;
    assert_int_equal(record->fields & ~(FXT_SAMPLE_CONTINUATION_COMPLETION | FXT_SAMPLE_USER_STACK |
                                        FXT_SAMPLE_QUALITY),
                     0);
    for (size_t i = 0; i < world->made_count; i++) {
        struct made *made = &world->made[i];
        if (made->id == id) {
            assert_int_equal(made->has_quality, (record->fields & FXT_SAMPLE_QUALITY) == 0);
            assert_int_equal(record->quality, made->has_quality ? 0 : quality_of(made));
            made->id = 0;
            member_count++;
        }
    }
    assert_true(member_count > 0);
    assert_true(world->completed_count < IDS_MAX);
    world->completed_ids[world->completed_count++] = id;
}

/* Walks the file with the strict reader. Returns the number of samples. */
static size_t check_records(struct world *world)
{
    struct fxt_reader *reader = fxt_reader_new();
    size_t count = 0;
    size_t dropped_count = 0;
    for (size_t at = 0; at < world->file_bytes;) {
        struct fxt_record record;
        assert_int_equal(fxt_reader_next(reader, world->file + at, world->file_bytes - at, &record),
                         1);
        if (record.kind == FXT_RECORD_DROP_STATS) {
            dropped_count += record.drop_stats.record_count;
        } else if (record.kind == FXT_RECORD_SAMPLE &&
                   (record.sample.fields & FXT_SAMPLE_CONTINUATION_COMPLETION) != 0) {
            check_completion(world, &record.sample);
        } else if (record.kind == FXT_RECORD_SAMPLE) {
            check_sample(world, &record.sample);
            count++;
        }
        at += record.size_bytes;
    }
    (void)fxt_reader_free(reader);
    assert_int_equal(dropped_count, world->dropped_count);
    for (size_t i = 0; i < world->made_count; i++) {
        assert_int_equal(world->made[i].id, 0);
    }
    return count;
}

static void check_loaded(struct world *world, const struct loaded_sample *sample)
{
    struct made *made = find_made(world, sample->time_ns);
    assert_int_equal(sample->cpu, made->sample.cpu);
    assert_int_equal((int64_t)sample->pid, made->sample.pid);
    assert_int_equal(sample->tid, made->sample.tid);
    assert_int_equal(sample->quality, made->sample.quality);
    assert_int_equal(sample->closed, made->closed);
    assert_int_equal(sample->user_count, made->sample.user_count);
    assert_memory_equal(sample->user_stack, made->user_stack, 8 * made->sample.user_count);
    assert_int_equal(sample->in_kernel, made->sample.kernel_mode);
    assert_int_equal(sample->kernel_count, made->sample.kernel_count);
    assert_memory_equal(sample->kernel_stack, made->kernel_stack, 8 * made->sample.kernel_count);
    made->sample.time_ns = 0;
}

/* Everything that was not dropped is there once, for a strict reader and for the client. */
static void check_file(struct world *world)
{
    struct loaded_recording loaded;
    read_all(world);
    const size_t count = check_records(world);
    assert_int_equal(count, world->made_count - world->dropped_count);
    loaded_recording_init(&loaded, world->file, world->file_bytes);
    assert_int_equal(loaded.sample_count, count);
    for (size_t i = 0; i < count; i++) {
        check_loaded(world, &loaded.samples[i]);
    }
    loaded_recording_done(&loaded);
    assert_int_equal(trace_lanes_counts(world->lanes, 0, 0).kept +
                         trace_lanes_counts(world->lanes, 1, 0).kept,
                     count);
}

/* Samples of both CPUs in turn, some at a time. */
static void fill(struct world *world, size_t count)
{
    while (world->made_count < count) {
        size_t cpu_index = draw_below(&world->seed, 2);
        for (size_t left = 1 + draw_below(&world->seed, 100); left > 0 && world->made_count < count;
             left--) {
            assert_true(trace_groups_add(world->groups, &make_sample(world, cpu_index)->sample));
        }
        put_groups(world, cpu_index);
    }
}

TEST(what_is_read_is_what_was_sampled)
{
    for (uint64_t round = 0; round < ROUNDS; round++) {
        struct world *world = new_world(round, LANE_BYTES);
        fill(world, 1000);
        assert_int_equal(world->dropped_count, 0);
        check_file(world);
        assert_true(world->completed_count > 20);
        free_world(world);
    }
}

TEST(a_group_that_finds_no_room_is_dropped_and_told_as_a_whole)
{
    size_t dropped_count = 0;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        struct world *world = new_world(round, 16384);
        fill(world, 400);
        read_all(world);
        fill(world, 1000);
        read_all(world);
        assert_true(trace_lanes_settle(world->lanes));
        check_file(world);
        dropped_count += world->dropped_count;
        free_world(world);
    }
    assert_true(dropped_count > 100);
}

STORY(a_sample_that_cannot_be_written_is_told, 1, LANE_BYTES)
{
    struct made *made = make_sample(world, 1);
    trace_lanes_drop(world->lanes, 1, &made->sample);
    made->sample.time_ns = 0;
    world->dropped_count = 1;
    assert_true(trace_lanes_settle(world->lanes));
    check_file(world);
    assert_int_equal(trace_lanes_counts(world->lanes, 1, 0).dropped, 1);
}

static void empty_stack(struct made *made, enum stack_closed closed)
{
    made->sample.user_count = 0;
    made->sample.quality = STACK_NONE;
    made->sample.cfi_frame_count = 0;
    made->sample.fp_frame_count = 0;
    made->closed = closed;
}

static uint64_t open_partial(struct world *world, size_t cpu_index, struct made *made)
{
    uint64_t id = 0;
    assert_true(trace_lanes_open(world->lanes, cpu_index, &made->sample, &id));
    assert_int_equal(id >> 48, cpus[cpu_index]);
    return id;
}

STORY(a_stack_that_comes_later_belongs_to_all_partials_of_its_id, 3, LANE_BYTES)
{
    struct made *first = make_sample(world, 1);
    struct made *other = make_sample(world, 1);
    uint64_t id = open_partial(world, 1, first);
    uint64_t other_id = open_partial(world, 1, other);
    assert_int_not_equal(id, other_id);
    fill(world, 100); /* groups in between */
    struct made *second = make_sample(world, 1);
    uint64_t same = id;
    assert_true(trace_lanes_open(world->lanes, 1, &second->sample, &same));
    assert_int_equal(same, id);
    second->sample.user_count = first->sample.user_count;
    second->sample.quality = first->sample.quality;
    second->sample.cfi_frame_count = first->sample.cfi_frame_count;
    second->sample.fp_frame_count = first->sample.fp_frame_count;
    memcpy(second->user_stack, first->user_stack, sizeof second->user_stack);
    assert_true(trace_lanes_complete(world->lanes, 1, id, &first->sample, STACK_CLOSED_NORMALLY));
    assert_false(trace_lanes_complete(world->lanes, 1, id, &first->sample, STACK_CLOSED_NORMALLY));
    empty_stack(other, STACK_CLOSED_EXEC);
    assert_true(trace_lanes_complete(world->lanes, 1, other_id, &other->sample, STACK_CLOSED_EXEC));
    check_file(world);
    /* What asks for it now gets another id. */
    assert_true(trace_lanes_open(world->lanes, 1, &first->sample, &same));
    assert_int_not_equal(same, id);
}

STORY(the_oldest_is_closed_when_too_many_wait_or_wait_too_long, 4, LANE_BYTES)
{
    for (size_t i = 0; i < TRACE_OPEN_MAX + 3; i++) {
        struct made *made = make_sample(world, 0);
        (void)open_partial(world, 0, made);
        empty_stack(made, i < 3    ? STACK_CLOSED_LIMIT
                          : i < 10 ? STACK_CLOSED_LOST
                                   : STACK_CLOSED_STOPPED);
    }
    trace_lanes_close(world->lanes, 10, STACK_CLOSED_LOST);
    trace_lanes_close(world->lanes, UINT64_MAX, STACK_CLOSED_STOPPED);
    check_file(world);
}

/* However full the lane is, what is open can be completed. */
STORY(no_partial_is_written_without_room_for_its_completion, 5, 8192)
{
    static uint64_t ids[TRACE_OPEN_MAX];
    struct made *opened[TRACE_OPEN_MAX];
    size_t count = 0;
    for (; count < TRACE_OPEN_MAX; count++) {
        opened[count] = make_sample(world, 0);
        if (!trace_lanes_open(world->lanes, 0, &opened[count]->sample, &ids[count])) {
            assert_int_equal(ids[count], 0);
            opened[count]->sample.time_ns = 0;
            world->dropped_count++;
            break;
        }
    }
    assert_in_range(count, 30, 60);
    fill(world, 200);
    for (size_t i = 0; i < count; i++) {
        assert_true(trace_lanes_complete(world->lanes, 0, ids[i], &opened[i]->sample,
                                         STACK_CLOSED_NORMALLY));
    }
    read_all(world);
    assert_true(trace_lanes_settle(world->lanes));
    check_file(world);
}

STORY(a_stack_that_is_too_long_completes_without, 6, LANE_BYTES)
{
    static uint64_t stack[3000];
    static const size_t counts[] = {DEPTH_MAX + 1, COUNT_OF(stack)};
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        struct made *made = make_sample(world, 0);
        uint64_t id = open_partial(world, 0, made);
        struct sample longer = made->sample;
        longer.user_stack = stack;
        longer.user_count = counts[i];
        assert_true(trace_lanes_complete(world->lanes, 0, id, &longer, STACK_CLOSED_NORMALLY));
        empty_stack(made, STACK_CLOSED_LOST);
    }
    check_file(world);
}
