/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Sums up samples by segment, thread and event as they come, and by session and thread once
 * sessions are known. A pid that was used again has several lines in a session: the samples of all
 * are judged together.
 */
#include "wait_sums.h"

#include "cleanup.h"
#include "grow.h"
#include "json.h"
#include "profile.h"
#include "recorded_books.h"

#include <errno.h>
#include <stdlib.h>

#define NUMBER_NONE  0 /* the clock's, which is no wait's */
#define SLACK_PARTS  100
#define SLACK_MIN_NS 1000000

/* Padded by hand, since their bytes are keys. */
struct wait_sum_key {
    uint64_t event;
    uint64_t pid;
    uint64_t tid;
    uint64_t segment;
};

struct thread_key {
    uint64_t pid;
    uint64_t tid;
    uint64_t session;
};

/* Which events of a session are waits. */
struct wait_numbers {
    uint64_t off_cpu;
    uint64_t preempted;
};

/* Sums of a thread in a session. */
struct thread_waits {
    struct wait_sum all;
    uint64_t preempted_ns;
    bool is_whole;
};

struct settling {
    const struct recorded_books *recorded;
    struct wait_numbers *numbers; /* owned; by session */
    struct intern threads;        /* struct thread_key */
    struct thread_waits *waits;   /* owned; by item of `threads` */
    size_t wait_capacity;
};

static void settling_done(struct settling *settling)
{
    free(settling->numbers);
    intern_done(&settling->threads);
    free(settling->waits);
}

void wait_sums_done(struct wait_sums *sums)
{
    intern_done(&sums->keys);
    free(sums->sums);
    *sums = (struct wait_sums){0};
}

static void add_to(uint64_t *sum, uint64_t value)
{
    if (__builtin_add_overflow(*sum, value, sum) || *sum > PROFILE_TOTAL_MAX) {
        *sum = PROFILE_TOTAL_MAX;
    }
}

int wait_sums_add(struct wait_sums *sums, uint32_t segment, const struct fxt_sample *record)
{
    const struct wait_sum_key key = {
        .event = record->event, .pid = record->pid, .tid = record->tid, .segment = segment};
    const size_t known_count = sums->keys.item_count;
    uint32_t item = 0;
    if (intern_add(&sums->keys, &key, sizeof key, &item) < 0 ||
        grow(sums->sums, sums->sum_capacity, (size_t)item + 1) < 0) {
        return -ENOMEM;
    }
    if (item == known_count) {
        sums->sums[item] = (struct wait_sum){0};
    }
    add_to(&sums->sums[item].time_ns,
           (record->fields & FXT_SAMPLE_WEIGHT) != 0 ? record->weight : 1);
    sums->sums[item].count++;
    return 0;
}

static struct wait_numbers find_numbers(const char *session_json)
{
    cleanup_(json_freep) cJSON *session = cJSON_Parse(session_json);
    struct wait_numbers numbers = {NUMBER_NONE, NUMBER_NONE};
    const cJSON *event = NULL;
    uint64_t number = 0;
    cJSON_ArrayForEach(event, cJSON_GetObjectItemCaseSensitive(session, "events"))
    {
        const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(event, "event"));
        if (name != NULL && strcmp(name, PROFILE_EVENT_OFF_CPU) == 0) {
            numbers.off_cpu = number;
        } else if (name != NULL && strcmp(name, PROFILE_EVENT_PREEMPTED) == 0) {
            numbers.preempted = number;
        }
        number++;
    }
    return numbers;
}

static int begin(struct settling *settling, const struct profile *profile)
{
    const size_t count = settling->recorded->sessions.item_count;
    settling->numbers = calloc(count + 1, sizeof *settling->numbers);
    for (size_t i = 0; i < count && settling->numbers != NULL; i++) {
        if (profile->session_times[i].session_json != NULL) {
            settling->numbers[i] = find_numbers(profile->session_times[i].session_json);
        }
    }
    return settling->numbers == NULL ? -ENOMEM : 0;
}

/* Adds the samples of a thread in a segment to those in its session, if they are of waits. */
static int take_sum(struct settling *settling, const struct wait_sum_key *key,
                    const struct wait_sum *sum)
{
    const uint32_t session = key->segment < settling->recorded->segment_count
                                 ? settling->recorded->of_segments[key->segment]
                                 : INTERN_NONE;
    if (session == INTERN_NONE) {
        return 0;
    }
    const struct wait_numbers *numbers = &settling->numbers[session];
    const bool is_preempted = key->event == numbers->preempted;
    if (key->event == NUMBER_NONE || (key->event != numbers->off_cpu && !is_preempted)) {
        return 0;
    }
    const struct thread_key thread = {.pid = key->pid, .tid = key->tid, .session = session};
    const size_t known_count = settling->threads.item_count;
    uint32_t item = 0;
    if (intern_add(&settling->threads, &thread, sizeof thread, &item) < 0 ||
        grow(settling->waits, settling->wait_capacity, (size_t)item + 1) < 0) {
        return -ENOMEM;
    }
    struct thread_waits *waits = &settling->waits[item];
    if (item == known_count) {
        *waits = (struct thread_waits){0};
    }
    add_to(&waits->all.time_ns, sum->time_ns);
    add_to(&waits->preempted_ns, is_preempted ? sum->time_ns : 0);
    waits->all.count += sum->count;
    return 0;
}

/* The samples of a thread that the profile has a line of; NULL: it has none. */
static struct thread_waits *find_waits(struct settling *settling,
                                       const struct profile_thread *thread)
{
    const struct thread_key key = {
        .pid = thread->task.pid,
        .tid = thread->task.tid,
        .session = settling->recorded->of_segments[thread->task.segment],
    };
    const uint32_t item = intern_find(&settling->threads, &key, sizeof key);
    return item == INTERN_NONE ? NULL : &settling->waits[item];
}

/* Gives the lines of a thread, one mostly, what its samples say. */
static void give(struct thread_waits *waits, struct profile_thread *threads, size_t count)
{
    uint64_t left_ns = waits->preempted_ns;
    uint64_t off_cpu_ns = waits->all.time_ns - left_ns;
    uint64_t switch_count = 0;
    uint64_t exact_ns = 0;
    for (size_t i = 0; i < count; i++) {
        struct thread_split *times = &threads[i].times;
        const uint64_t ready_ns = times->ready_ns > 0 ? (uint64_t)times->ready_ns : 0;
        const uint64_t part_ns = left_ns < ready_ns ? left_ns : ready_ns;
        times->preempted_ns = (int64_t)part_ns;
        left_ns -= part_ns;
        const uint64_t blocked_ns = times->blocked_ns > 0 ? (uint64_t)times->blocked_ns : 0;
        const uint64_t room_ns = blocked_ns + ready_ns - part_ns;
        threads[i].off_cpu_ns = i + 1 < count && room_ns < off_cpu_ns ? room_ns : off_cpu_ns;
        off_cpu_ns -= threads[i].off_cpu_ns;
        add_to(&exact_ns, ready_ns);
        add_to(&exact_ns, blocked_ns);
        add_to(&switch_count, threads[i].voluntary_count);
        add_to(&switch_count, threads[i].involuntary_count);
    }
    waits->is_whole = waits->all.count >= switch_count &&
                      waits->all.time_ns <= exact_ns + exact_ns / SLACK_PARTS + SLACK_MIN_NS;
}

static void give_all(struct settling *settling, struct profile *profile)
{
    for (size_t i = 0; i < profile->thread_count;) {
        struct thread_waits *waits = find_waits(settling, &profile->threads[i]);
        size_t count = 1;
        while (waits != NULL && i + count < profile->thread_count &&
               find_waits(settling, &profile->threads[i + count]) == waits) {
            count++;
        }
        if (waits != NULL) {
            give(waits, &profile->threads[i], count);
        }
        i += count;
    }
}

/* Keeps the keys of whole threads, as samples have them. */
static int keep_whole(struct settling *settling, const struct wait_sums *sums,
                      struct profile *profile)
{
    for (size_t i = 0; i < sums->keys.item_count; i++) {
        size_t bytes = 0;
        uint32_t item = 0;
        struct wait_sum_key key =
            *(const struct wait_sum_key *)intern_bytes(&sums->keys, (uint32_t)i, &bytes);
        const struct profile_thread thread = {
            .task = {.pid = key.pid, .tid = key.tid, .segment = (uint32_t)key.segment}};
        const struct thread_waits *waits =
            key.segment < settling->recorded->segment_count ? find_waits(settling, &thread) : NULL;
        key.event = NUMBER_NONE;
        if (waits != NULL && waits->is_whole &&
            intern_add(&profile->whole_waits, &key, sizeof key, &item) < 0) {
            return -ENOMEM;
        }
    }
    return 0;
}

int wait_sums_settle(const struct wait_sums *sums, const struct recorded_books *recorded,
                     struct profile *profile)
{
    cleanup_(settling_done) struct settling settling = {.recorded = recorded};
    int r = 0;
    if (profile->thread_count == 0 || sums->keys.item_count == 0) {
        return 0;
    }
    r = begin(&settling, profile);
    for (size_t i = 0; i < sums->keys.item_count && r == 0; i++) {
        size_t bytes = 0;
        r = take_sum(&settling, intern_bytes(&sums->keys, (uint32_t)i, &bytes), &sums->sums[i]);
    }
    if (r < 0) {
        return r;
    }
    give_all(&settling, profile);
    return keep_whole(&settling, sums, profile);
}

bool wait_sums_are_whole(const struct profile *profile, const struct profile_task *task)
{
    const struct wait_sum_key key = {.pid = task->pid, .tid = task->tid, .segment = task->segment};
    return intern_find(&profile->whole_waits, &key, sizeof key) != INTERN_NONE;
}

bool wait_sums_stand_for_others(const struct profile *profile, const struct profile_sample *sample)
{
    const bool has_stack = sample->quality != 0 || sample->kernel_stack != 0;
    return has_stack && !wait_sums_are_whole(profile, profile_task(profile, sample->task));
}
