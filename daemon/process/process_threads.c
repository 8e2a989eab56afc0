/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One process's threads and their names over time. The array is sorted by (tid, from_ns); the times
 * of threads with one tid do not overlap, and at most the last of them is live. The end of the
 * whole process is process_table.c's to decide.
 *
 * Names are kept for as long as a sample may ask for them. Where there are too many, the older half
 * of a thread's becomes a time without a name: then a sample has none, never another one's.
 */
#include "process_parts.h"

#include "cleanup.h"
#include "grow.h"
#include "quota.h"

#include <assert.h>
#include <string.h>

#define THREADS_CAPACITY_MIN ((size_t)1)
#define NAMES_CAPACITY_MIN   ((size_t)1)
#define SHARE_PARTS          8

/* The index of the first thread whose (tid, from_ns) is above the one asked for. */
static size_t find_above(const struct process *process, int32_t tid, uint64_t from_ns)
{
    size_t low = 0;
    size_t high = process->thread_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct thread *thread = process->threads[middle];
        if (thread->tid > tid || (thread->tid == tid && thread->from_ns > from_ns)) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

/* The last of the tid's threads that began at or before `from_ns`, or NULL. */
static struct thread *find_last(const struct process *process, int32_t tid, uint64_t from_ns)
{
    size_t above = find_above(process, tid, from_ns);
    return above > 0 && process->threads[above - 1]->tid == tid ? process->threads[above - 1]
                                                                : NULL;
}

struct thread *process_find_thread(struct process *process, int32_t tid, uint64_t time_ns)
{
    return find_last(process, tid, time_ns);
}

struct thread *process_threads_find(struct process *process, int32_t tid, uint64_t time_ns)
{
    struct thread *thread = find_last(process, tid, time_ns);
    return thread != NULL && time_ns < thread->to_ns ? thread : NULL;
}

static struct thread *add(struct process_totals *totals, struct process *process, int32_t tid,
                          uint64_t from_ns, uint64_t known_ns)
{
    struct thread *thread = NULL;
    if (process_share_allows(totals, process->share, PROCESS_TABLE_THREADS_MAX,
                             totals->counts.thread_count, process->share->thread_count, 1) &&
        grow_from(process->threads, process->thread_capacity, process->thread_count + 1,
                  THREADS_CAPACITY_MIN) == 0) {
        thread = calloc(1, sizeof *thread);
    }
    if (thread == NULL) {
        totals->counts.counters.table_refused++;
        return NULL;
    }
    thread->tid = tid;
    thread->number = ++totals->last_number;
    thread->from_ns = from_ns;
    thread->to_ns = TIME_OPEN_NS;
    thread->known_ns = known_ns;

    size_t at = find_above(process, tid, from_ns);
    memmove(&process->threads[at + 1], &process->threads[at],
            (process->thread_count - at) * sizeof(struct thread *));
    process->threads[at] = thread;
    process->thread_count++;
    process->live_thread_count++;
    process->share->thread_count++;
    totals->counts.thread_count++;
    return thread;
}

static void end(struct process *process, struct thread *thread, uint64_t time_ns)
{
    if (thread->to_ns <= time_ns) {
        return;
    }
    if (thread->to_ns == TIME_OPEN_NS) {
        process->live_thread_count--;
    }
    thread->to_ns = time_ns > thread->from_ns ? time_ns : thread->from_ns;
    process->last_end_ns =
        thread->to_ns > process->last_end_ns ? thread->to_ns : process->last_end_ns;
}

struct thread *process_threads_get(struct process_totals *totals, struct process *process,
                                   int32_t tid, uint64_t time_ns)
{
    struct thread *thread = process_threads_find(process, tid, time_ns);
    if (thread != NULL) {
        return thread;
    }
    const struct thread *last = find_last(process, tid, TIME_OPEN_NS);
    if (last != NULL && last->from_ns > time_ns) {
        return NULL;
    }
    return add(totals, process, tid, last == NULL ? process->from_ns : last->to_ns, time_ns);
}

static size_t older_names(const struct thread *thread)
{
    return thread->name_count == 0 ? 0 : thread->name_count - 1;
}

/* Takes `count` names away that end before index `first + count`. */
static void drop_names(struct process_totals *totals, struct process *process,
                       struct thread *thread, uint32_t first, uint32_t count)
{
    thread->name_count -= count;
    memmove(&thread->names[first], &thread->names[first + count],
            (thread->name_count - first) * sizeof *thread->names);
    process->older_name_count -= count;
    process->share->older_name_count -= count;
    totals->older_name_count -= count;
}

static bool has_place(struct process_totals *totals, const struct process *process,
                      const struct thread *thread)
{
    return thread->name_count < 2 ||
           (thread->name_count < THREAD_NAMES_MAX &&
            quota_rule_allows(PROCESS_TABLE_NAMES_MAX, SHARE_PARTS, totals->older_name_count,
                              process->older_name_count, 1) &&
            process_share_allows(totals, process->share, PROCESS_TABLE_NAMES_MAX,
                                 totals->older_name_count, process->share->older_name_count, 1));
}

/* Of the older half of a thread's names nothing stays but since when it had one. */
static void forget_names(struct process_totals *totals, struct process *process,
                         struct thread *thread)
{
    uint32_t count = thread->name_count / 2;
    assert(thread->names != NULL);
    totals->counts.counters.table_refused += count;
    thread->names[0] =
        (struct name){.number = ++totals->last_number, .from_ns = thread->names[0].from_ns};
    drop_names(totals, process, thread, 1, count);
}

/* How many names begin at or before a time. */
static uint32_t count_names_until(const struct thread *thread, uint64_t time_ns)
{
    uint32_t count = thread->name_count;
    while (count > 0 && thread->names[count - 1].from_ns > time_ns) {
        count--;
    }
    return count;
}

struct name *process_thread_name(struct thread *thread, uint64_t time_ns)
{
    uint32_t count = count_names_until(thread, time_ns);
    return count == 0 ? NULL : &thread->names[count - 1];
}

static void add_name(struct process_totals *totals, struct process *process, struct thread *thread,
                     const char *text, uint64_t from_ns)
{
    if (!has_place(totals, process, thread)) {
        forget_names(totals, process, thread);
    }
    if (grow_from(thread->names, thread->name_capacity, thread->name_count + 1,
                  NAMES_CAPACITY_MIN) < 0) {
        totals->counts.counters.table_refused++;
        struct name *newest = process_thread_name(thread, UINT64_MAX);
        if (newest != NULL) {
            *newest = (struct name){.number = ++totals->last_number, .from_ns = newest->from_ns};
        }
        return;
    }
    assert(thread->names != NULL);
    uint32_t at = count_names_until(thread, from_ns);
    memmove(&thread->names[at + 1], &thread->names[at],
            (thread->name_count - at) * sizeof *thread->names);
    thread->names[at] = (struct name){.number = ++totals->last_number, .from_ns = from_ns};
    memcpy(thread->names[at].text, text, strnlen(text, COMM_BYTES - 1));
    process->older_name_count += thread->name_count > 0;
    process->share->older_name_count += thread->name_count > 0;
    totals->older_name_count += thread->name_count > 0;
    thread->name_count++;
}

void process_threads_rename(struct process_totals *totals, struct process *process,
                            struct thread *thread, const char *comm, uint64_t time_ns)
{
    const struct name *before = process_thread_name(thread, time_ns);
    const struct name *newest =
        thread->name_count == 0 ? NULL : &thread->names[thread->name_count - 1];
    /* Late, and amid forgotten names: its end is unknown. */
    bool in_gap = before != newest && before != NULL && before->text[0] == '\0';
    if (!in_gap && (before == NULL || strncmp(before->text, comm, COMM_BYTES - 1) != 0)) {
        add_name(totals, process, thread, comm, time_ns);
    }
}

void process_threads_doubt(struct process_totals *totals, struct process *process,
                           struct thread *thread, uint64_t time_ns)
{
    const struct name *name = process_thread_name(thread, time_ns);
    if (name == NULL || name->text[0] == '\0') {
        return;
    }
    const struct name known = *name;
    bool newest = name == &thread->names[thread->name_count - 1];
    process_threads_rename(totals, process, thread, "", time_ns);
    if (newest && process->scan_ns > time_ns) {
        process_threads_rename(totals, process, thread, known.text, process->scan_ns);
    }
}

void process_threads_fork(struct process_totals *totals, struct process *process, int32_t tid,
                          struct thread *parent, uint64_t time_ns)
{
    struct thread *thread = process_threads_find(process, tid, time_ns);
    /* A thread of which nothing older is known is this one; one that is live was not seen to end.
     */
    if (thread != NULL && thread->known_ns < time_ns && thread->to_ns == TIME_OPEN_NS) {
        end(process, thread, time_ns);
        thread = NULL;
    }
    if (thread == NULL) {
        const struct thread *last = find_last(process, tid, TIME_OPEN_NS);
        if (last != NULL && last->from_ns >= time_ns && last->to_ns > time_ns) {
            return;
        }
        thread = add(totals, process, tid, time_ns, time_ns);
    }
    const struct name *name = parent == NULL ? NULL : process_thread_name(parent, time_ns);
    if (thread != NULL && thread->name_count == 0 && name != NULL) {
        add_name(totals, process, thread, name->text, time_ns);
    }
}

void process_threads_exit(struct process_totals *totals, struct process *process, int32_t tid,
                          uint64_t time_ns)
{
    struct thread *thread = process_threads_find(process, tid, time_ns);
    if (thread == NULL && find_last(process, tid, TIME_OPEN_NS) == NULL) {
        thread = add(totals, process, tid, process->from_ns, time_ns);
    }
    if (thread != NULL) {
        end(process, thread, time_ns);
    }
}

void process_threads_undo_exit(struct process *process, int32_t tid)
{
    struct thread *thread = find_last(process, tid, TIME_OPEN_NS);
    if (thread != NULL && thread->to_ns != TIME_OPEN_NS) {
        thread->to_ns = TIME_OPEN_NS;
        process->live_thread_count++;
    }
}

void process_threads_end_others(struct process *process, int32_t kept_tid, uint64_t time_ns)
{
    /* Those that have ended are many at times, and seldom is one of them told of too early. */
    const struct thread *kept =
        kept_tid == 0 ? NULL : process_threads_find(process, kept_tid, TIME_OPEN_NS - 1);
    const size_t live_count = process->live_thread_count - (kept == NULL ? 0 : 1);
    if (live_count == 0 && process->last_end_ns <= time_ns) {
        return;
    }
    for (size_t i = 0; i < process->thread_count; i++) {
        struct thread *thread = process->threads[i];
        bool older = thread->tid != kept_tid && thread->from_ns < time_ns;
        if (older || kept_tid == 0) {
            end(process, thread, time_ns);
        }
    }
}

bool process_threads_scan(struct process_totals *totals, struct process *process,
                          const struct process_scan *scan)
{
    bool renamed = false;
    for (size_t i = 0; i < scan->thread_count; i++) {
        const struct scanned_thread *scanned = &scan->threads[i];
        struct thread *thread = find_last(process, scanned->tid, TIME_OPEN_NS);
        bool zombie = scanned->tid == process->pid && process->leader_exited;
        bool exited =
            thread != NULL && thread->to_ns != TIME_OPEN_NS && thread->to_ns > scan->begin_ns;
        if (scanned->tid <= 0 || zombie || exited) {
            continue;
        }
        if (thread == NULL || thread->to_ns != TIME_OPEN_NS) {
            uint64_t from_ns = thread == NULL ? process->from_ns : thread->to_ns;
            thread = add(totals, process, scanned->tid, from_ns, scan->begin_ns);
        }
        if (thread != NULL) {
            const uint32_t count = thread->name_count;
            process_threads_rename(
                totals, process, thread, scanned->comm,
                count > 0 ? scan->begin_ns
                          : process_held_since_ns(totals, thread->from_ns, scan->begin_ns));
            renamed = renamed || (scanned->tid == process->pid && thread->name_count != count);
        }
    }
    return renamed;
}

static void free_thread(struct process_totals *totals, struct process *process,
                        struct thread *thread)
{
    totals->counts.thread_count--;
    totals->older_name_count -= older_names(thread);
    process->share->thread_count--;
    process->share->older_name_count -= older_names(thread);
    process->older_name_count -= older_names(thread);
    free(thread->names);
    free(thread);
}

/* Forgets the names that a thread had before `horizon_ns`. */
static void prune_names(struct process_totals *totals, struct process *process,
                        struct thread *thread, uint64_t horizon_ns)
{
    uint32_t count = count_names_until(thread, horizon_ns);
    if (count > 1) {
        drop_names(totals, process, thread, 0, count - 1);
    }
    if (thread->name_count == 1 && thread->name_capacity > 1) {
        struct name *names = realloc(thread->names, sizeof *names);
        thread->names = names == NULL ? thread->names : names;
        thread->name_capacity = names == NULL ? thread->name_capacity : 1;
    }
}

/* The leader's name is the process's: the last that there was stays as long as the process. */
static bool is_last_leader(const struct process *process, size_t index)
{
    return process->threads[index]->tid == process->pid &&
           (index + 1 == process->thread_count || process->threads[index + 1]->tid != process->pid);
}

bool process_threads_prune(struct process_totals *totals, struct process *process,
                           uint64_t horizon_ns, size_t steps)
{
    const size_t count = process->thread_count;
    if (count == process->live_thread_count && process->older_name_count == 0) {
        process->prune_at = 0;
        return false;
    }
    const size_t from = process->prune_at < count ? process->prune_at : 0;
    const size_t end = count - from <= steps ? count : from + steps;
    size_t kept = from;
    for (size_t i = from; i < end; i++) {
        struct thread *thread = process->threads[i];
        if (thread->to_ns <= horizon_ns && !is_last_leader(process, i)) {
            free_thread(totals, process, thread);
        } else {
            prune_names(totals, process, thread, horizon_ns);
            process->threads[kept] = thread;
            kept++;
        }
    }
    if (kept < end) {
        memmove(&process->threads[kept], &process->threads[end],
                (count - end) * sizeof(struct thread *));
    }
    process->thread_count = count - (end - kept);
    process->prune_at = end == count ? 0 : kept;
    return process->thread_count != process->live_thread_count || process->older_name_count > 0;
}

void process_threads_done(struct process_totals *totals, struct process *process)
{
    for (size_t i = 0; i < process->thread_count; i++) {
        free_thread(totals, process, process->threads[i]);
    }
    process->thread_count = 0;
    process->live_thread_count = 0;
    free(take_ptr(process->threads));
}
