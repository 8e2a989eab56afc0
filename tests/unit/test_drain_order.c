/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Whatever the rounds, the recording is the same. A small machine lives a random life: processes
 * and threads come, execute, map, are renamed and go, pids are used again. What the kernel would
 * write goes to the rings of three CPUs, and is drained in rounds cut anywhere. Only this is given,
 * as the kernel gives it: a ring is in order, and what is not newer than a round's horizon is there
 * to be seen. Each sample must come out as the machine was at its time, through the client's eyes.
 *
 * DRAIN_ORDER_SEED=N runs that seed alone.
 */
#include "machine_story.h"
#include "unit_test.h"

#include <errno.h>
#include <linux/perf_event.h>

#define SEED_COUNT  40
#define EVENT_COUNT ((size_t)700)

/* /proc, at the round's own time. */
static int read_proc(int32_t pid, struct process_scan *reading, void *userdata)
{
    struct story *story = userdata;
    size_t last = 0;
    while (last + 1 < story->event_count && story->events[last + 1].time_ns <= story->now_ns) {
        last++;
    }
    unsigned index = (unsigned)pid - FIRST_PID;
    const struct life *life = &story->events[last].after.lives[index];
    reading->begin_ns = reading->end_ns = story->now_ns;
    if (index >= PID_COUNT || !life->alive) {
        return -ESRCH;
    }
    *reading = (struct process_scan){.pid = pid,
                                     .parent_pid = 1,
                                     .start_time_ns = life->start_ns / TICK_NS * TICK_NS,
                                     .threads = story->threads[index],
                                     .mappings = story->mappings[index],
                                     .begin_ns = story->now_ns,
                                     .end_ns = story->now_ns};
    for (unsigned i = 0; i < THREAD_COUNT; i++) {
        if (life->threads[i]) {
            struct scanned_thread *thread = &story->threads[index][reading->thread_count++];
            thread->tid = (int32_t)tid_of(index, i);
            memcpy(thread->comm, life->comms[i], COMM_BYTES);
        }
    }
    for (uint64_t i = 0; i < PAGE_COUNT; i++) {
        const struct page *page = &life->pages[i];
        bool anonymous = page->file == FILE_COUNT - 1;
        if (page->file != 0) {
            story->mappings[index][reading->mapping_count++] = (struct mapping_description){
                .start = BASE + i * PAGE,
                .end = BASE + (i + 1) * PAGE,
                .file_offset = page->offset,
                .path = anonymous ? "" : paths[page->file],
                .device_major = anonymous ? 0 : 8,
                .device_minor = anonymous ? 0 : 1,
                .inode = anonymous ? 0 : page->file,
            };
        }
    }
    return 0;
}

/* Lets a ring have its records up to and with `time_ns`. False: it has no room for them. */
static bool write_ring(struct story *story, size_t cpu, enum perf_stream_kind kind,
                       uint64_t time_ns)
{
    size_t *next = &story->next[cpu][kind];
    for (; *next < story->event_count && story->events[*next].time_ns <= time_ns; (*next)++) {
        const struct event *event = &story->events[*next];
        if (event->cpu == cpu && event->kind == kind &&
            !ring_world_put(story->world, cpu, kind, event->type, event->misc, event->words,
                            event->word_count)) {
            return false;
        }
    }
    return true;
}

/* Every ring has what is up to the horizon, and any beginning of what has come since. */
static void write_rings(struct story *story, uint64_t horizon_ns)
{
    for (size_t cpu = 0; cpu < RING_CPU_COUNT; cpu++) {
        for (enum perf_stream_kind kind = 0; kind < STORY_RINGS; kind++) {
            uint64_t shown_ns =
                horizon_ns + draw_below(&story->random, story->now_ns - horizon_ns + 1);
            assert_true(write_ring(story, cpu, kind, shown_ns));
        }
    }
}

/* Rounds of any length, to the story's end. */
static void drain_at_random(struct story *story)
{
    uint64_t end_ns = story->events[story->event_count - 1].time_ns;
    uint64_t horizon_ns = 0;
    for (story->now_ns = BORN_NS + 10 * TICK_NS; story->now_ns < end_ns;) {
        story->now_ns +=
            1 + draw_below(&story->random, (draw_below(&story->random, 3) == 0 ? 40 : 2) * STEP_NS);
        uint64_t lag_ns =
            draw_below(&story->random, (draw_below(&story->random, 3) == 0 ? 10 : 1) * STEP_NS);
        uint64_t next_ns = story->now_ns - (lag_ns < story->now_ns ? lag_ns : 0);
        horizon_ns = next_ns > horizon_ns ? next_ns : horizon_ns;
        write_rings(story, horizon_ns);
        if (draw_below(&story->random, 3) == 0) {
            drain_sideband(story->world->drain, horizon_ns);
            continue;
        }
        drain_all(story->world->drain, horizon_ns);
        if (draw_below(&story->random, 2) == 0) {
            process_table_prune(story->world->processes, horizon_ns);
        }
    }
    write_rings(story, story->now_ns);
    drain_all(story->world->drain, UINT64_MAX);
}

/* One stream: every event by itself, as soon as it is there. */
static void drain_in_order(struct story *story)
{
    for (size_t i = 0; i < story->event_count; i++) {
        story->now_ns = story->events[i].time_ns;
        write_rings(story, story->now_ns);
        drain_all(story->world->drain, story->now_ns);
    }
}

/* One round for everything: far more than is kept of each process. */
static void drain_at_once(struct story *story)
{
    story->now_ns = story->events[story->event_count - 1].time_ns;
    write_rings(story, story->now_ns);
    drain_all(story->world->drain, UINT64_MAX);
}

static void check_recording(struct story *story)
{
    struct loaded_recording loaded;
    size_t at = 0;
    ring_world_load(story->world, &loaded);
    loaded_recording_sort(&loaded);
    for (size_t i = 0; i < story->event_count; i++) {
        char text[2 * TEXT_BYTES];
        char frames[TEXT_BYTES];
        if (story->events[i].type != PERF_RECORD_SAMPLE) {
            continue;
        }
        assert_true(at < loaded.sample_count);
        const struct loaded_sample *sample = &loaded.samples[at++];
        loaded_recording_frames(&loaded, sample, frames, sizeof frames);
        (void)snprintf(text, sizeof text, "%llu %d %d %s/%s: %s",
                       (unsigned long long)sample->time_ns, (int)sample->pid, (int)sample->tid,
                       sample->process, sample->thread, frames);
        if (strcmp(text, story->events[i].expected) != 0) {
            fail_msg("seed %llu: expected '%s' is '%s'", (unsigned long long)story->seed,
                     story->events[i].expected, text);
        }
    }
    assert_int_equal(at, loaded.sample_count);
    loaded_recording_done(&loaded);
}

static void check_counts(const struct story *story)
{
    trace_poll(story->world->trace);
    uint64_t received = 0;
    uint64_t kept = 0;
    uint64_t lost = 0;
    uint64_t samples = 0;
    for (size_t i = 0; i < story->event_count; i++) {
        samples += story->events[i].type == PERF_RECORD_SAMPLE;
    }
    for (size_t i = 0; i < RING_CPU_COUNT; i++) {
        const struct books_cpu counts = drain_books(story->world->drain, 0, i);
        received += counts.received;
        kept += counts.kept;
        lost += counts.lost;
    }
    assert_int_equal(received, samples);
    assert_int_equal(kept, samples);
    assert_int_equal(lost, story->lost_count);
    assert_int_equal(drain_counters(story->world->drain, 0).bad_records, 0);
    assert_int_equal(drain_counters(story->world->drain, 0).sideband_lost, 0);
}

/* The same story, drained in one way. */
static void run(uint64_t seed, size_t event_count, void (*drain)(struct story *story))
{
    struct story *story = story_new(seed, event_count);
    story->world = ring_world_new(&(struct ring_world_options){.unwind = SESSION_UNWIND_FP});
    assert_non_null(story->world);
    fake_proc_set(read_proc, story);
    story->now_ns = BORN_NS + 10 * TICK_NS;
    for (unsigned i = 0; i < 2; i++) {
        struct process_scan reading;
        assert_int_equal(read_proc((int32_t)pid_of(i), &reading, story), 0);
        process_table_scan(story->world->processes, &reading);
    }
    drain(story);
    check_counts(story);
    check_recording(story);
    (void)ring_world_free(story->world);
    free(story->events);
    free(story);
}

static void run_seeds(size_t event_count, void (*drain)(struct story *story))
{
    const char *only = getenv("DRAIN_ORDER_SEED");
    uint64_t first = only == NULL ? 1 : strtoull(only, NULL, 10);
    uint64_t last = only == NULL ? SEED_COUNT * EVENT_COUNT / event_count : first;
    for (uint64_t seed = first; seed <= last; seed++) {
        run(seed, event_count, drain);
    }
}

TEST(one_ordered_stream_is_as_the_machine_was)
{
    run_seeds(EVENT_COUNT, drain_in_order);
}

TEST(any_rounds_give_what_one_ordered_stream_gives)
{
    run_seeds(EVENT_COUNT, drain_at_random);
}

TEST(a_storm_is_followed_step_by_step)
{
    run_seeds(STORM_COUNT, drain_at_once);
}
