/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A small machine and its random life: processes and threads come, execute, map, are renamed and
 * go, pids are used again. What the kernel would write of it, in the order of time, and after each
 * record what the machine is then.
 */
#include "process_table.h"
#include "ring_world.h"
#include "unit_test.h"

#include <linux/perf_event.h>

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
#define STORY_RINGS  2 /* of a CPU: samples and sideband */
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
    enum perf_stream_kind kind;
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
    size_t next[RING_CPU_COUNT][STORY_RINGS]; /* the event that the ring is waiting for */
    struct mapping_description mappings[PID_COUNT][PAGE_COUNT]; /* as /proc showed them last */
    struct scanned_thread threads[PID_COUNT][THREAD_COUNT];
};

static inline uint32_t pid_of(unsigned index)
{
    return FIRST_PID + index;
}

static inline uint32_t tid_of(unsigned index, unsigned thread)
{
    return thread == 0 ? pid_of(index) : FIRST_PID + 100 + index * THREAD_COUNT + thread;
}

static inline struct event *add_event(struct story *story, enum perf_stream_kind kind,
                                      uint32_t type)
{
    assert_true(story->event_count < story->event_capacity);
    struct event *event = &story->events[story->event_count++];
    *event = (struct event){.time_ns = story->now_ns,
                            .cpu = draw_below(&story->random, RING_CPU_COUNT),
                            .kind = kind,
                            .type = type,
                            .misc = PERF_RECORD_MISC_USER};
    return event;
}

static inline void add_word(struct event *event, uint64_t word)
{
    assert_true(event->word_count < WORDS_MAX);
    event->words[event->word_count++] = word;
}

static inline void add_text(struct event *event, const char *text, size_t bytes)
{
    assert_true(strlen(text) < bytes && event->word_count + bytes / 8 <= WORDS_MAX);
    memcpy(&event->words[event->word_count], text, strlen(text));
    event->word_count += bytes / 8;
}

/* The ids that end every record but a sample. */
static inline void end_event(struct story *story, struct event *event, uint32_t pid, uint32_t tid)
{
    add_word(event, pair(pid, tid));
    add_word(event, event->time_ns);
    add_word(event, event->cpu);
    add_word(event, 7);
    event->after = story->machine;
}

static inline void tell_task(struct story *story, uint32_t type, uint32_t pid, uint32_t parent_pid,
                             uint32_t tid, uint32_t parent_tid)
{
    struct event *event = add_event(story, PERF_STREAM_SIDEBAND, type);
    add_word(event, pair(pid, parent_pid));
    add_word(event, pair(tid, parent_tid));
    add_word(event, event->time_ns);
    end_event(story, event, parent_pid, parent_tid);
}

static inline void tell_comm(struct story *story, unsigned index, unsigned thread, bool exec)
{
    struct life *life = &story->machine.lives[index];
    char *comm = life->comms[thread];
    memset(comm, 0, COMM_BYTES);
    (void)snprintf(comm, COMM_BYTES, "n%u", (unsigned)draw_below(&story->random, 10000));
    struct event *event = add_event(story, PERF_STREAM_SIDEBAND, PERF_RECORD_COMM);
    event->misc = exec ? PERF_RECORD_MISC_COMM_EXEC : 0;
    add_word(event, pair(pid_of(index), tid_of(index, thread)));
    add_text(event, comm, COMM_BYTES);
    end_event(story, event, pid_of(index), tid_of(index, thread));
}

static inline void map_pages(struct story *story, unsigned index)
{
    struct life *life = &story->machine.lives[index];
    uint64_t first = draw_below(&story->random, PAGE_COUNT);
    uint64_t count =
        1 + draw_below(&story->random, PAGE_COUNT - first < 4 ? PAGE_COUNT - first : 4);
    unsigned file = 1 + (unsigned)draw_below(&story->random, FILE_COUNT - 1);
    uint64_t offset = draw_below(&story->random, 16) * PAGE;
    for (uint64_t i = 0; i < count; i++) {
        life->pages[first + i] = (struct page){file, offset + i * PAGE};
    }
    bool anonymous = file == FILE_COUNT - 1;
    struct event *event = add_event(story, PERF_STREAM_SIDEBAND, PERF_RECORD_MMAP2);
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
static inline void execute(struct story *story, unsigned index, unsigned thread)
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

static inline void fork_process(struct story *story, unsigned index, unsigned thread,
                                unsigned child)
{
    struct life *parent = &story->machine.lives[index];
    struct life *life = &story->machine.lives[child];
    *life = (struct life){.alive = true, .start_ns = story->now_ns, .threads = {true}};
    memcpy(life->comms[0], parent->comms[thread], COMM_BYTES);
    memcpy(life->pages, parent->pages, sizeof life->pages);
    tell_task(story, PERF_RECORD_FORK, pid_of(child), pid_of(index), pid_of(child),
              tid_of(index, thread));
}

static inline void fork_thread(struct story *story, unsigned index, unsigned thread, unsigned other)
{
    struct life *life = &story->machine.lives[index];
    life->threads[other] = true;
    memcpy(life->comms[other], life->comms[thread], COMM_BYTES);
    tell_task(story, PERF_RECORD_FORK, pid_of(index), pid_of(index), tid_of(index, other),
              tid_of(index, thread));
}

static inline void exit_thread(struct story *story, unsigned index, unsigned thread)
{
    struct life *life = &story->machine.lives[index];
    life->threads[thread] = false;
    life->alive = false;
    for (unsigned i = 0; i < THREAD_COUNT; i++) {
        life->alive = life->alive || life->threads[i];
    }
    tell_task(story, PERF_RECORD_EXIT, pid_of(index), 1, tid_of(index, thread), 1);
}

static inline void print_frame(const struct life *life, uint64_t address, char *text)
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

/* A sample that somebody else's event may come before or after, as long as its time tells. Its
 * stack ends before the first caller that is in no mapping. */
static inline void sample(struct story *story, uint32_t pid, uint32_t tid, const char *names,
                          const struct life *life)
{
    struct event *event = add_event(story, PERF_STREAM_CLOCK, PERF_RECORD_SAMPLE);
    uint64_t count = life == NULL ? 0 : 1 + draw_below(&story->random, 3);
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
    bool passes = true;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t page = draw_below(&story->random, PAGE_COUNT);
        uint64_t address = BASE + page * PAGE + 16 + draw_below(&story->random, PAGE - 32);
        add_word(event, address);
        passes = passes && (i == 0 || life->pages[page].file != 0);
        if (passes) {
            print_frame(life, address, event->expected);
        }
    }
    event->after = story->machine;
}

static inline void sample_thread(struct story *story, unsigned index, unsigned thread)
{
    const struct life *life = &story->machine.lives[index];
    char names[64];
    (void)snprintf(names, sizeof names, "%s/%s", life->comms[0], life->comms[thread]);
    sample(story, pid_of(index), tid_of(index, thread), names, life);
}

/* A record without a process's name, which is no sample. */
static inline void tell_other(struct story *story)
{
    struct event *event = NULL;
    switch (draw_below(&story->random, 4)) {
    case 0:
        sample(story, 0, 0, "[outside]/", NULL);
        break;
    case 1:
        sample(story, UINT32_MAX, UINT32_MAX, "[exited]/[exited]", NULL);
        break;
    case 2:
        event = add_event(story, PERF_STREAM_CLOCK, PERF_RECORD_LOST);
        add_word(event, 7);
        add_word(event, 3);
        story->lost_count += 3;
        end_event(story, event, 0, 0);
        break;
    default:
        event = add_event(story, draw_below(&story->random, STORY_RINGS), PERF_RECORD_THROTTLE);
        add_word(event, event->time_ns);
        add_word(event, 7);
        add_word(event, 7);
        end_event(story, event, 0, 0);
    }
}

/* A live one; `*ret_thread` a live thread of it. */
static inline unsigned draw_living(struct story *story, unsigned *ret_thread)
{
    unsigned index = (unsigned)draw_below(&story->random, PID_COUNT);
    while (!story->machine.lives[index].alive) {
        index = (index + 1) % PID_COUNT;
    }
    unsigned thread = (unsigned)draw_below(&story->random, THREAD_COUNT);
    while (!story->machine.lives[index].threads[thread]) {
        thread = (thread + 1) % THREAD_COUNT;
    }
    *ret_thread = thread;
    return index;
}

static inline void step(struct story *story)
{
    unsigned thread = 0;
    unsigned index = draw_living(story, &thread);
    unsigned other = (unsigned)draw_below(&story->random, PID_COUNT);
    unsigned other_thread = (unsigned)draw_below(&story->random, THREAD_COUNT);
    uint64_t what = draw_below(&story->random, 100);
    if (story->storm && what >= 74) {
        what = what % 2 == 0 ? 50 : 68; /* a mapping, or a name */
    }
    story->now_ns += 1 + draw_below(&story->random, story->storm ? STEP_NS / 1000 : STEP_NS);
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

static inline struct story *story_new(uint64_t seed, size_t event_count)
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
