/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A session that was stopped more than once has lines of each thread at every stop, each of all
 * runs together. So of a thread, which is its session, pid, tid and beginning, the last line holds.
 * A name of the process is that of its own records, since its leader may have no line, and of a
 * leader without one its own.
 */
#include "profile_threads.h"

#include "compare.h"
#include "grow.h"
#include "tables.h"

#include <string.h>

struct taking {
    struct profile *profile;
    uint32_t segment;
};

static int take_line(const struct cJSON *line, void *userdata)
{
    const struct taking *taking = userdata;
    struct profile *profile = taking->profile;
    struct thread_books books;
    if (!thread_books_read(line, &books)) {
        return 0;
    }
    struct profile_thread thread = {
        .task = {.pid = (uint64_t)books.pid,
                 .tid = (uint64_t)books.tid,
                 .segment = taking->segment,
                 .process_name = INTERN_NONE,
                 .thread_name = INTERN_NONE,
                 .owner = INTERN_NONE},
        .begin_ns = books.begin_ns,
        .voluntary_count = books.voluntary_count,
        .involuntary_count = books.involuntary_count,
        .is_unread = books.is_unread,
        .times = books.times,
    };
    int r = books.name == NULL ? 0
                               : intern_add(&profile->texts, books.name, strlen(books.name),
                                            &thread.task.thread_name);
    r = r < 0 ? r : grow(profile->threads, profile->thread_capacity, profile->thread_count + 1);
    if (r == 0) {
        profile->threads[profile->thread_count++] = thread;
    }
    return r;
}

int profile_threads_take(struct profile *profile, uint32_t segment, const struct fxt_data *data)
{
    struct taking taking = {profile, segment};
    return data_each_line(data, take_line, &taking);
}

struct order {
    const struct recorded_books *recorded;
};

static uint32_t session_of(const struct recorded_books *recorded,
                           const struct profile_thread *thread)
{
    return recorded->of_segments[thread->task.segment];
}

/* By thread. Sorting keeps no order, so the segment tells which line came later, and in one segment
 * the times, which only grow. */
static int compare_threads(const void *left, const void *right, void *userdata)
{
    const struct profile_thread *a = left;
    const struct profile_thread *b = right;
    const struct order *order = userdata;
    int r = compare_u64(session_of(order->recorded, a), session_of(order->recorded, b));
    r = r == 0 ? compare_u64(a->task.pid, b->task.pid) : r;
    r = r == 0 ? compare_u64(a->task.tid, b->task.tid) : r;
    r = r == 0 ? compare_u64(a->begin_ns, b->begin_ns) : r;
    r = r == 0 ? compare_u64(a->task.segment, b->task.segment) : r;
    return r == 0 ? (a->times.wall_ns > b->times.wall_ns) - (a->times.wall_ns < b->times.wall_ns)
                  : r;
}

static bool is_same(const struct recorded_books *recorded, const struct profile_thread *a,
                    const struct profile_thread *b)
{
    return session_of(recorded, a) == session_of(recorded, b) && a->task.pid == b->task.pid &&
           a->task.tid == b->task.tid && a->begin_ns == b->begin_ns;
}

static void find_owner(const struct profile_tables *tables, struct profile_thread *thread)
{
    struct profile_task *task = &thread->task;
    struct names_span span;
    const uint64_t wall_ns = thread->times.wall_ns > 0 ? (uint64_t)thread->times.wall_ns : 0;
    const uint64_t end_ns =
        thread->begin_ns > UINT64_MAX - wall_ns ? UINT64_MAX : thread->begin_ns + wall_ns;
    task->process_name =
        names_find(&tables->names, task->segment, task->pid, NAMES_PROCESS, end_ns);
    if (task->process_name == INTERN_NONE && task->tid == task->pid) {
        task->process_name = task->thread_name;
    }
    task->owner = owners_find(&tables->owners, task->segment, task->pid, end_ns, &span);
}

void profile_threads_settle(struct profile *profile, const struct recorded_books *recorded)
{
    struct order order = {recorded};
    size_t count = 0;
    if (profile->thread_count == 0) {
        return;
    }
    qsort_r(profile->threads, profile->thread_count, sizeof *profile->threads, compare_threads,
            &order);
    for (size_t i = 0; i < profile->thread_count; i++) {
        if (count > 0 && is_same(recorded, &profile->threads[count - 1], &profile->threads[i])) {
            count--;
        }
        profile->threads[count++] = profile->threads[i];
    }
    profile->thread_count = count;
    for (size_t i = 0; i < count; i++) {
        find_owner(profile->tables, &profile->threads[i]);
    }
}

struct thread_split profile_threads_sum(const struct profile *profile)
{
    struct thread_split sum = {0};
    for (size_t i = 0; i < profile->thread_count; i++) {
        thread_split_add(&sum, &profile->threads[i].times);
    }
    return sum;
}
