/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Sorts samples for formats that list them by process or thread. Only their numbers are sorted. A
 * recording has few tasks and millions of samples: so the tasks are sorted, and samples dealt out
 * to them in the order of the file, which is that of time as a rule. Only the samples of a task
 * that are not in that order are sorted themselves.
 */
#include "sample_order.h"

#include "cleanup.h"
#include "compare.h"
#include "grow.h"

#include <stdlib.h>

struct sorting {
    const struct profile *profile; /* borrowed */
    enum sample_order_by by;
};

static int compare_tasks(const struct profile_sample *a, const struct profile_sample *b,
                         enum sample_order_by by)
{
    if (by == SAMPLE_ORDER_TIME) {
        return 0;
    }
    if (by == SAMPLE_ORDER_PID) {
        return compare_u64(a->pid, b->pid);
    }
    int r = compare_u64(a->segment, b->segment);
    r = r == 0 ? compare_u64(a->pid, b->pid) : r;
    if (r == 0 && by == SAMPLE_ORDER_THREAD) {
        return compare_u64(a->tid, b->tid);
    }
    return r == 0 ? compare_u64(a->process_name, b->process_name) : r;
}

static int compare_times(const void *left, const void *right, void *userdata)
{
    const struct sorting *sorting = userdata;
    uint32_t a_number = *(const uint32_t *)left;
    uint32_t b_number = *(const uint32_t *)right;
    int r = compare_u64(sorting->profile->samples[a_number].time_ns,
                        sorting->profile->samples[b_number].time_ns);
    return r == 0 ? compare_u64(a_number, b_number) : r;
}

/* What tells tasks apart. Padded by hand, since its bytes are a key. */
struct task_key {
    uint64_t pid;
    uint64_t tid;
    uint32_t segment;
    uint32_t name;
};

struct task {
    uint32_t first; /* a sample of it */
    uint32_t number;
    size_t count; /* of its samples */
    size_t at;    /* where in the order its samples begin */
};

struct tasks {
    const struct sorting *sorting;
    struct intern keys; /* struct task_key */
    struct task *tasks; /* owned; by item of `keys`, or sorted */
    size_t capacity;
    uint32_t *task_of; /* owned; by sample: its task */
};

static void tasks_done(struct tasks *tasks)
{
    intern_done(&tasks->keys);
    free(tasks->tasks);
    free(tasks->task_of);
}

static struct task_key task_key(const struct profile_sample *sample, enum sample_order_by by)
{
    struct task_key key = {.pid = by == SAMPLE_ORDER_TIME ? 0 : sample->pid};
    if (by == SAMPLE_ORDER_PROCESS || by == SAMPLE_ORDER_THREAD) {
        key.segment = sample->segment;
        key.tid = by == SAMPLE_ORDER_THREAD ? sample->tid : 0;
        key.name = by == SAMPLE_ORDER_PROCESS ? sample->process_name : 0;
    }
    return key;
}

/* Gives each sample its task, and counts those of each. Returns 0, or -ENOMEM. */
static int find_tasks(struct tasks *tasks)
{
    const struct profile *profile = tasks->sorting->profile;
    tasks->task_of = calloc(profile->sample_count + 1, sizeof *tasks->task_of);
    if (tasks->task_of == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < profile->sample_count; i++) {
        const struct task_key key = task_key(&profile->samples[i], tasks->sorting->by);
        size_t known_count = tasks->keys.item_count;
        uint32_t item = 0;
        if (intern_add(&tasks->keys, &key, sizeof key, &item) < 0 ||
            grow(tasks->tasks, tasks->capacity, (size_t)item + 1) < 0) {
            return -ENOMEM;
        }
        if (item == known_count) {
            tasks->tasks[item] = (struct task){.first = (uint32_t)i, .number = item};
        }
        tasks->tasks[item].count++;
        tasks->task_of[i] = item;
    }
    return 0;
}

static int compare_firsts(const void *left, const void *right, void *userdata)
{
    const struct sorting *sorting = userdata;
    const struct task *a = left;
    const struct task *b = right;
    return compare_tasks(&sorting->profile->samples[a->first], &sorting->profile->samples[b->first],
                         sorting->by);
}

/* Sorts the tasks, and says where the samples of each begin, in an array by number (returned:
 * free(); NULL when there is no memory). */
static size_t *place_tasks(struct tasks *tasks)
{
    size_t count = tasks->keys.item_count;
    size_t *places = calloc(count + 1, sizeof *places);
    size_t at = 0;
    if (places != NULL && count > 0) {
        qsort_r(tasks->tasks, count, sizeof *tasks->tasks, compare_firsts,
                (void *)(uintptr_t)tasks->sorting);
    }
    for (size_t i = 0; places != NULL && i < count; i++) {
        tasks->tasks[i].at = at;
        places[tasks->tasks[i].number] = at;
        at += tasks->tasks[i].count;
    }
    return places;
}

/* Brings the samples of a task into the order of time, if they are not in it. */
static void sort_task(const struct sorting *sorting, uint32_t *order, size_t count)
{
    const struct profile_sample *samples = sorting->profile->samples;
    for (size_t i = 1; i < count; i++) {
        if (samples[order[i]].time_ns < samples[order[i - 1]].time_ns) {
            qsort_r(order, count, sizeof *order, compare_times, (void *)(uintptr_t)sorting);
            return;
        }
    }
}

uint32_t *sample_order(const struct profile *profile, enum sample_order_by by)
{
    const struct sorting sorting = {.profile = profile, .by = by};
    cleanup_(tasks_done) struct tasks tasks = {.sorting = &sorting};
    if (find_tasks(&tasks) < 0) {
        return NULL;
    }
    cleanup_(freep) size_t *places = place_tasks(&tasks);
    cleanup_(freep) uint32_t *order = calloc(profile->sample_count + 1, sizeof *order);
    if (places == NULL || order == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < profile->sample_count; i++) {
        order[places[tasks.task_of[i]]++] = (uint32_t)i;
    }
    for (size_t i = 0; i < tasks.keys.item_count; i++) {
        sort_task(&sorting, order + tasks.tasks[i].at, tasks.tasks[i].count);
    }
    return take_ptr(order);
}

size_t sample_order_end(const struct profile *profile, const uint32_t *order,
                        enum sample_order_by by, size_t first)
{
    size_t end = first + 1;
    while (end < profile->sample_count &&
           compare_tasks(&profile->samples[order[first]], &profile->samples[order[end]], by) == 0) {
        end++;
    }
    return end;
}
