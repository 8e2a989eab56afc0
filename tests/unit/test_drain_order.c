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
#include "ring_world.h"

#include "loaded_recording.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SEED_COUNT   40
#define EVENT_COUNT  ((size_t)700)
#define STORM_COUNT  ((size_t)6000)
#define FIRST_PID    4100000
#define PID_COUNT    5U
#define THREAD_COUNT 3U
#define PAGE_COUNT   UINT64_C(12)
#define PAGE         UINT64_C(0x1000)
#define BASE         UINT64_C(0x500000)
#define FILE_COUNT   5U
#define TICK_NS      UINT64_C(10000000) /* of start times in /proc */
#define BORN_NS      UINT64_C(1000000000)
#define STEP_NS      UINT64_C(3000000)
#define WORDS_MAX    24
#define TEXT_BYTES   256

static const char *const paths[FILE_COUNT] = {"", "/a", "/b", "/c", "//anon"};

struct page {
    unsigned file; /* 0: nothing is mapped */
    uint64_t offset;
};

struct life {
    bool alive;
    uint64_t start_ns;
    bool threads[THREAD_COUNT];
    char comms[THREAD_COUNT][COMM_BYTES];
    struct page pages[PAGE_COUNT];
};

struct machine {
    struct life lives[PID_COUNT];
};

struct event {
    uint64_t time_ns;
    size_t cpu;
    enum ring_kind kind;
    uint32_t type;
    uint16_t misc;
    uint64_t words[WORDS_MAX];
    size_t word_count;
    char expected[TEXT_BYTES]; /* of a sample */
    struct machine after;
};

struct story {
    uint64_t seed;
    uint64_t random;
    uint64_t now_ns;
    struct machine machine;
    bool storm; /* mappings and names change all the time */
    struct event *events;
    size_t event_count;
    size_t event_capacity;
    uint64_t lost_count;
    /* What a round sees. */
    struct ring_world *world;
    size_t next[RING_CPU_COUNT][RING_KIND_COUNT]; /* the event that the ring is waiting for */
    struct mapping_description mappings[PID_COUNT][PAGE_COUNT]; /* as /proc showed them last */
    struct scanned_thread threads[PID_COUNT][THREAD_COUNT];
};

static uint64_t draw(struct story *story, uint64_t below)
{
    story->random = story->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (story->random >> 33) % below;
}

static uint64_t pair(uint32_t low, uint32_t high)
{
    return (uint64_t)high << 32 | low;
}

static uint32_t pid_of(unsigned index)
{
    return FIRST_PID + index;
}

static uint32_t tid_of(unsigned index, unsigned thread)
{
    return thread == 0 ? pid_of(index) : FIRST_PID + 100 + index * THREAD_COUNT + thread;
}

static struct event *add_event(struct story *story, enum ring_kind kind, uint32_t type)
{
    assert_true(story->event_count < story->event_capacity);
    struct event *event = &story->events[story->event_count++];
    *event = (struct event){.time_ns = story->now_ns,
                            .cpu = draw(story, RING_CPU_COUNT),
                            .kind = kind,
                            .type = type,
                            .misc = PERF_RECORD_MISC_USER};
    return event;
}

static void add_word(struct event *event, uint64_t word)
{
    assert_true(event->word_count < WORDS_MAX);
    event->words[event->word_count++] = word;
}

static void add_text(struct event *event, const char *text, size_t bytes)
{
    assert_true(strlen(text) < bytes && event->word_count + bytes / 8 <= WORDS_MAX);
    memcpy(&event->words[event->word_count], text, strlen(text));
    event->word_count += bytes / 8;
}

/* The ids that end every record but a sample. */
static void end_event(struct story *story, struct event *event, uint32_t pid, uint32_t tid)
{
    add_word(event, pair(pid, tid));
    add_word(event, event->time_ns);
    add_word(event, event->cpu);
    add_word(event, 7);
    event->after = story->machine;
}

static void tell_task(struct story *story, uint32_t type, uint32_t pid, uint32_t parent_pid,
                      uint32_t tid, uint32_t parent_tid)
{
    struct event *event = add_event(story, RING_OF_SIDEBAND, type);
    add_word(event, pair(pid, parent_pid));
    add_word(event, pair(tid, parent_tid));
    add_word(event, event->time_ns);
    end_event(story, event, parent_pid, parent_tid);
}

static void tell_comm(struct story *story, unsigned index, unsigned thread, bool exec)
{
    struct life *life = &story->machine.lives[index];
    char *comm = life->comms[thread];
    memset(comm, 0, COMM_BYTES);
    (void)snprintf(comm, COMM_BYTES, "n%u", (unsigned)draw(story, 10000));
    struct event *event = add_event(story, RING_OF_SIDEBAND, PERF_RECORD_COMM);
    event->misc = exec ? PERF_RECORD_MISC_COMM_EXEC : 0;
    add_word(event, pair(pid_of(index), tid_of(index, thread)));
    add_text(event, comm, COMM_BYTES);
    end_event(story, event, pid_of(index), tid_of(index, thread));
}

static void map_pages(struct story *story, unsigned index)
{
    struct life *life = &story->machine.lives[index];
    uint64_t first = draw(story, PAGE_COUNT);
    uint64_t count = 1 + draw(story, PAGE_COUNT - first < 4 ? PAGE_COUNT - first : 4);
    unsigned file = 1 + (unsigned)draw(story, FILE_COUNT - 1);
    uint64_t offset = draw(story, 16) * PAGE;
    for (uint64_t i = 0; i < count; i++) {
        life->pages[first + i] = (struct page){file, offset + i * PAGE};
    }
    bool anonymous = file == FILE_COUNT - 1;
    struct event *event = add_event(story, RING_OF_SIDEBAND, PERF_RECORD_MMAP2);
    add_word(event, pair(pid_of(index), pid_of(index)));
    add_word(event, BASE + first * PAGE);
    add_word(event, count * PAGE);
    add_word(event, offset);
    add_word(event, anonymous ? 0 : pair(8, 1));
    add_word(event, anonymous ? 0 : file);
    add_word(event, 0);
    add_word(event, pair(5, 0)); /* PROT_READ | PROT_EXEC */
    add_text(event, paths[file], 8);
    end_event(story, event, pid_of(index), pid_of(index));
}

/* The threads but one exit; it goes on as the leader of another program, without its old tid. */
static void execute(struct story *story, unsigned index, unsigned thread)
{
    struct life *life = &story->machine.lives[index];
    for (unsigned i = 0; i < THREAD_COUNT; i++) {
        if (life->threads[i] && i != thread) {
            life->threads[i] = false;
            tell_task(story, PERF_RECORD_EXIT, pid_of(index), pid_of(index), tid_of(index, i),
                      pid_of(index));
            story->now_ns++;
        }
    }
    life->threads[thread] = false;
    life->threads[0] = true;
    memset(life->pages, 0, sizeof life->pages);
    tell_comm(story, index, 0, true);
}

static void fork_process(struct story *story, unsigned index, unsigned thread, unsigned child)
{
    struct life *parent = &story->machine.lives[index];
    struct life *life = &story->machine.lives[child];
    *life = (struct life){.alive = true, .start_ns = story->now_ns, .threads = {true}};
    memcpy(life->comms[0], parent->comms[thread], COMM_BYTES);
    memcpy(life->pages, parent->pages, sizeof life->pages);
    tell_task(story, PERF_RECORD_FORK, pid_of(child), pid_of(index), pid_of(child),
              tid_of(index, thread));
}

static void fork_thread(struct story *story, unsigned index, unsigned thread, unsigned other)
{
    struct life *life = &story->machine.lives[index];
    life->threads[other] = true;
    memcpy(life->comms[other], life->comms[thread], COMM_BYTES);
    tell_task(story, PERF_RECORD_FORK, pid_of(index), pid_of(index), tid_of(index, other),
              tid_of(index, thread));
}

static void exit_thread(struct story *story, unsigned index, unsigned thread)
{
    struct life *life = &story->machine.lives[index];
    life->threads[thread] = false;
    life->alive = false;
    for (unsigned i = 0; i < THREAD_COUNT; i++) {
        life->alive = life->alive || life->threads[i];
    }
    tell_task(story, PERF_RECORD_EXIT, pid_of(index), 1, tid_of(index, thread), 1);
}

static void print_frame(const struct life *life, uint64_t address, char *text)
{
    const struct page *page = &life->pages[(address - BASE) / PAGE];
    size_t used = strlen(text);
    if (page->file == 0) {
        (void)snprintf(text + used, TEXT_BYTES - used, "[unknown] ");
    } else if (page->file == FILE_COUNT - 1) {
        (void)snprintf(text + used, TEXT_BYTES - used, "[anon] ");
    } else {
        (void)snprintf(text + used, TEXT_BYTES - used, "%s+0x%x ", paths[page->file] + 1,
                       (unsigned)(page->offset + address % PAGE));
    }
}

/* A sample that somebody else's event may come before or after, as long as its time tells. */
static void sample(struct story *story, uint32_t pid, uint32_t tid, const char *names,
                   const struct life *life)
{
    struct event *event = add_event(story, RING_OF_SAMPLES, PERF_RECORD_SAMPLE);
    uint64_t count = life == NULL ? 0 : 1 + draw(story, 3);
    (void)snprintf(event->expected, TEXT_BYTES,
                   "%llu %d %d %s: ", (unsigned long long)event->time_ns, (int)pid, (int)tid,
                   names);
    add_word(event, 7);
    add_word(event, pair(pid, tid));
    add_word(event, event->time_ns);
    add_word(event, event->cpu);
    add_word(event, count == 0 ? 0 : 1 + count);
    if (count > 0) {
        add_word(event, PERF_CONTEXT_USER);
    }
    for (uint64_t i = 0; i < count; i++) {
        uint64_t page = draw(story, PAGE_COUNT);
        uint64_t address = BASE + page * PAGE + 16 + draw(story, PAGE - 32);
        add_word(event, address);
        print_frame(life, address, event->expected);
    }
    event->after = story->machine;
}

static void sample_thread(struct story *story, unsigned index, unsigned thread)
{
    const struct life *life = &story->machine.lives[index];
    char names[64];
    (void)snprintf(names, sizeof names, "%s/%s", life->comms[0], life->comms[thread]);
    sample(story, pid_of(index), tid_of(index, thread), names, life);
}

/* What has nobody's name, and is no sample. */
static void tell_other(struct story *story)
{
    struct event *event = NULL;
    switch (draw(story, 4)) {
    case 0:
        sample(story, 0, 0, "[outside]/", NULL);
        break;
    case 1:
        sample(story, UINT32_MAX, UINT32_MAX, "[exited]/[exited]", NULL);
        break;
    case 2:
        event = add_event(story, RING_OF_SAMPLES, PERF_RECORD_LOST);
        add_word(event, 7);
        add_word(event, 3);
        story->lost_count += 3;
        end_event(story, event, 0, 0);
        break;
    default:
        event = add_event(story, draw(story, RING_KIND_COUNT), PERF_RECORD_THROTTLE);
        add_word(event, event->time_ns);
        add_word(event, 7);
        add_word(event, 7);
        end_event(story, event, 0, 0);
    }
}

/* A live one; `*ret_thread` a live thread of it. */
static unsigned draw_living(struct story *story, unsigned *ret_thread)
{
    unsigned index = (unsigned)draw(story, PID_COUNT);
    while (!story->machine.lives[index].alive) {
        index = (index + 1) % PID_COUNT;
    }
    unsigned thread = (unsigned)draw(story, THREAD_COUNT);
    while (!story->machine.lives[index].threads[thread]) {
        thread = (thread + 1) % THREAD_COUNT;
    }
    *ret_thread = thread;
    return index;
}

static void step(struct story *story)
{
    unsigned thread = 0;
    unsigned index = draw_living(story, &thread);
    unsigned other = (unsigned)draw(story, PID_COUNT);
    unsigned other_thread = (unsigned)draw(story, THREAD_COUNT);
    uint64_t what = draw(story, 100);
    if (story->storm && what >= 74) {
        what = what % 2 == 0 ? 50 : 68; /* a mapping, or a name */
    }
    story->now_ns += 1 + draw(story, story->storm ? STEP_NS / 1000 : STEP_NS);
    if (what < 50) {
        sample_thread(story, index, thread);
    } else if (what < 68) {
        map_pages(story, index);
    } else if (what < 74) {
        tell_comm(story, index, thread, false);
    } else if (what < 80) {
        execute(story, index, thread);
    } else if (what < 88 && !story->machine.lives[other].alive) {
        fork_process(story, index, thread, other);
    } else if (what < 92 && !story->machine.lives[index].threads[other_thread] &&
               other_thread != 0) {
        fork_thread(story, index, thread, other_thread);
    } else if (what < 97 && index != 0) {
        exit_thread(story, index, thread);
    } else {
        tell_other(story);
    }
}

static struct story *story_new(uint64_t seed, size_t event_count)
{
    struct story *story = calloc(1, sizeof *story);
    assert_non_null(story);
    story->event_capacity = event_count;
    story->events = calloc(event_count, sizeof *story->events);
    assert_non_null(story->events);
    story->storm = event_count == STORM_COUNT;
    story->seed = seed;
    story->random = seed;
    story->now_ns = BORN_NS;
    for (unsigned i = 0; i < 2; i++) {
        struct life *life = &story->machine.lives[i];
        *life = (struct life){.alive = true, .start_ns = BORN_NS, .threads = {true, i == 1}};
        (void)snprintf(life->comms[0], COMM_BYTES, "old%u", i);
        (void)snprintf(life->comms[1], COMM_BYTES, "old%u.1", i);
        life->pages[2 * i + 1] = (struct page){1 + i, PAGE};
    }
    story->now_ns += 10 * TICK_NS;
    tell_other(story); /* the state before all else */
    while (story->event_count < event_count - 2 * THREAD_COUNT) {
        step(story);
    }
    return story;
}

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
static bool write_ring(struct story *story, size_t cpu, enum ring_kind kind, uint64_t time_ns)
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
        for (enum ring_kind kind = 0; kind < RING_KIND_COUNT; kind++) {
            uint64_t shown_ns = horizon_ns + draw(story, story->now_ns - horizon_ns + 1);
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
        story->now_ns += 1 + draw(story, (draw(story, 3) == 0 ? 40 : 2) * STEP_NS);
        uint64_t lag_ns = draw(story, (draw(story, 3) == 0 ? 10 : 1) * STEP_NS);
        uint64_t next_ns = story->now_ns - (lag_ns < story->now_ns ? lag_ns : 0);
        horizon_ns = next_ns > horizon_ns ? next_ns : horizon_ns;
        write_rings(story, horizon_ns);
        if (draw(story, 3) == 0) {
            drain_sideband(story->world->drain, horizon_ns);
            continue;
        }
        drain_all(story->world->drain, horizon_ns);
        if (draw(story, 2) == 0) {
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

static int compare_samples(const void *a, const void *b)
{
    const struct loaded_sample *left = a;
    const struct loaded_sample *right = b;
    return left->time_ns < right->time_ns ? -1 : left->time_ns > right->time_ns;
}

static void check_recording(struct story *story)
{
    struct loaded_recording loaded;
    size_t size_bytes = 0;
    size_t at = 0;
    uint8_t *file = ring_world_file(story->world, &size_bytes);
    loaded_recording_init(&loaded, file, size_bytes);
    qsort(loaded.samples, loaded.sample_count, sizeof loaded.samples[0], compare_samples);
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
    free(file);
}

static void check_counts(const struct story *story)
{
    uint64_t received = 0;
    uint64_t kept = 0;
    uint64_t lost = 0;
    uint64_t samples = 0;
    for (size_t i = 0; i < story->event_count; i++) {
        samples += story->events[i].type == PERF_RECORD_SAMPLE;
    }
    for (size_t i = 0; i < RING_CPU_COUNT; i++) {
        const struct drain_cpu_counts *counts = &drain_cpu_counts(story->world->drain)[i];
        received += counts->received;
        kept += counts->kept;
        lost += counts->lost;
    }
    assert_int_equal(received, samples);
    assert_int_equal(kept, samples);
    assert_int_equal(lost, story->lost_count);
    assert_int_equal(drain_counts(story->world->drain)->bad_records, 0);
    assert_int_equal(drain_counts(story->world->drain)->sideband_lost, 0);
}

/* The same story, drained in one way. */
static void run(uint64_t seed, size_t event_count, void (*drain)(struct story *story))
{
    struct story *story = story_new(seed, event_count);
    story->world = ring_world_new(SESSION_UNWIND_FP);
    assert_non_null(story->world);
    fake_proc_scan_set(read_proc, story);
    story->now_ns = BORN_NS + 10 * TICK_NS;
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(
            proc_scan_process(story->world->scan, story->world->processes, (int32_t)pid_of(i)), 0);
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

static void one_ordered_stream_is_as_the_machine_was(void **state)
{
    (void)state;
    run_seeds(EVENT_COUNT, drain_in_order);
}

static void any_rounds_give_what_one_ordered_stream_gives(void **state)
{
    (void)state;
    run_seeds(EVENT_COUNT, drain_at_random);
}

static void a_storm_is_followed_step_by_step(void **state)
{
    (void)state;
    run_seeds(STORM_COUNT, drain_at_once);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_ordered_stream_is_as_the_machine_was),
        cmocka_unit_test(any_rounds_give_what_one_ordered_stream_gives),
        cmocka_unit_test(a_storm_is_followed_step_by_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
