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

static int compare_tasks(const struct profile_task *a, const struct profile_task *b,
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
    const struct profile_task *first; /* one of those that it is */
    uint32_t number;
    size_t count; /* of its samples */
    size_t at;    /* where in the order its samples begin */
};

struct tasks {
    const struct sorting *sorting;
    struct intern keys; /* struct task_key */
    struct task *tasks; /* owned; by item of `keys`, or sorted */
    size_t capacity;
    uint32_t *number_of; /* owned; by task of the profile: the task's number + 1; 0: not known */
};

static void tasks_done(struct tasks *tasks)
{
    intern_done(&tasks->keys);
    free(tasks->tasks);
    free(tasks->number_of);
}

static struct task_key task_key(const struct profile_task *task, enum sample_order_by by)
{
    struct task_key key = {.pid = by == SAMPLE_ORDER_TIME ? 0 : task->pid};
    if (by == SAMPLE_ORDER_PROCESS || by == SAMPLE_ORDER_THREAD) {
        key.segment = task->segment;
        key.tid = by == SAMPLE_ORDER_THREAD ? task->tid : 0;
        key.name = by == SAMPLE_ORDER_PROCESS ? task->process_name : 0;
    }
    return key;
}

/* Finds the task that a task of the profile is. Returns 0, or -ENOMEM. */
static int find_task(struct tasks *tasks, const struct profile_task *task, uint32_t *ret_item)
{
    const struct task_key key = task_key(task, tasks->sorting->by);
    size_t known_count = tasks->keys.item_count;
    if (intern_add(&tasks->keys, &key, sizeof key, ret_item) < 0 ||
        grow(tasks->tasks, tasks->capacity, (size_t)*ret_item + 1) < 0) {
        return -ENOMEM;
    }
    if (*ret_item == known_count) {
        tasks->tasks[*ret_item] = (struct task){.first = task, .number = *ret_item};
    }
    return 0;
}

/* Finds the tasks of all samples, and counts those of each. Returns 0, or -ENOMEM. */
static int find_tasks(struct tasks *tasks)
{
    const struct profile *profile = tasks->sorting->profile;
    tasks->number_of = calloc(profile->tasks.item_count + 1, sizeof *tasks->number_of);
    if (tasks->number_of == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < profile->sample_count; i++) {
        const struct profile_sample *sample = &profile->samples[i];
        uint32_t *number = &tasks->number_of[sample->task];
        if (*number == 0) {
            if (find_task(tasks, profile_task(profile, sample->task), number) < 0) {
                return -ENOMEM;
            }
            (*number)++;
        }
        tasks->tasks[*number - 1].count++;
    }
    return 0;
}

static int compare_firsts(const void *left, const void *right, void *userdata)
{
    const struct sorting *sorting = userdata;
    const struct task *a = left;
    const struct task *b = right;
    return compare_tasks(a->first, b->first, sorting->by);
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
        order[places[tasks.number_of[profile->samples[i].task] - 1]++] = (uint32_t)i;
    }
    for (size_t i = 0; i < tasks.keys.item_count; i++) {
        sort_task(&sorting, order + tasks.tasks[i].at, tasks.tasks[i].count);
    }
    return take_ptr(order);
}

size_t sample_order_end(const struct profile *profile, const uint32_t *order,
                        enum sample_order_by by, size_t first)
{
    const struct profile_sample *one = &profile->samples[order[first]];
    const struct profile_task *task = profile_task(profile, one->task);
    size_t end = first + 1;
    while (end < profile->sample_count) {
        const struct profile_sample *next = &profile->samples[order[end]];
        if (next->task != one->task &&
            compare_tasks(task, profile_task(profile, next->task), by) != 0) {
            break;
        }
        end++;
    }
    return end;
}
