/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One process's threads and their names over time. The array is sorted by (tid, from_ns); the times
 * of threads with one tid do not overlap, and at most the last of them is live. The end of the
 * whole process is process_table.c's to decide.
 */
#include "process_parts.h"

#include "cleanup.h"

#include <string.h>

#define THREADS_CAPACITY_MIN ((size_t)1)

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

static bool grow(struct process *process)
{
    if (process->thread_count < process->thread_capacity) {
        return true;
    }
    size_t capacity =
        process->thread_capacity == 0 ? THREADS_CAPACITY_MIN : process->thread_capacity * 2;
    struct thread **threads = reallocarray(process->threads, capacity, sizeof(struct thread *));
    if (threads == NULL) {
        return false;
    }
    process->threads = threads;
    process->thread_capacity = capacity;
    return true;
}

static struct thread *add(struct process_account *account, struct process *process, int32_t tid,
                          uint64_t from_ns, uint64_t known_ns)
{
    struct thread *thread = NULL;
    if (account->counts.thread_count < PROCESS_TABLE_THREADS_MAX && grow(process)) {
        thread = calloc(1, sizeof *thread);
    }
    if (thread == NULL) {
        account->counts.refused_count++;
        return NULL;
    }
    thread->tid = tid;
    thread->from_ns = from_ns;
    thread->to_ns = TIME_OPEN_NS;
    thread->known_ns = known_ns;

    size_t at = find_above(process, tid, from_ns);
    memmove(&process->threads[at + 1], &process->threads[at],
            (process->thread_count - at) * sizeof(struct thread *));
    process->threads[at] = thread;
    process->thread_count++;
    process->live_thread_count++;
    account->counts.thread_count++;
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
}

struct thread *process_threads_get(struct process_account *account, struct process *process,
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
    return add(account, process, tid, last == NULL ? process->from_ns : last->to_ns, time_ns);
}

static void push_name(struct thread *thread, const char *text, uint64_t from_ns)
{
    size_t place = thread->name_count % NAMES_KEPT;
    struct name *name = &thread->names[place];
    *name = (struct name){.from_ns = from_ns};
    thread->judged_names &= (uint8_t) ~(1U << place);
    memcpy(name->text, text, strnlen(text, COMM_BYTES - 1));
    thread->name_count++;
}

static const struct name *last_name(const struct thread *thread)
{
    return thread->name_count == 0 ? NULL : &thread->names[(thread->name_count - 1) % NAMES_KEPT];
}

void process_threads_rename(struct thread *thread, const char *comm, uint64_t time_ns)
{
    const struct name *last = last_name(thread);
    if (last != NULL &&
        (last->from_ns > time_ns || strncmp(last->text, comm, COMM_BYTES - 1) == 0)) {
        return;
    }
    push_name(thread, comm, time_ns);
}

struct name *thread_name_at(struct thread *thread, uint64_t time_ns)
{
    struct name *found = NULL;
    uint32_t kept = thread->name_count < NAMES_KEPT ? thread->name_count : NAMES_KEPT;
    for (uint32_t i = 1; i <= kept; i++) {
        found = &thread->names[(thread->name_count - i) % NAMES_KEPT];
        if (found->from_ns <= time_ns) {
            break;
        }
    }
    return found;
}

void process_threads_fork(struct process_account *account, struct process *process, int32_t tid,
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
        thread = add(account, process, tid, time_ns, time_ns);
    }
    const struct name *name = parent == NULL ? NULL : thread_name_at(parent, time_ns);
    if (thread != NULL && thread->name_count == 0 && name != NULL) {
        push_name(thread, name->text, time_ns);
    }
}

void process_threads_exit(struct process_account *account, struct process *process, int32_t tid,
                          uint64_t time_ns)
{
    struct thread *thread = process_threads_find(process, tid, time_ns);
    if (thread == NULL && find_last(process, tid, TIME_OPEN_NS) == NULL) {
        thread = add(account, process, tid, process->from_ns, time_ns);
    }
    if (thread != NULL) {
        end(process, thread, time_ns);
    }
}

void process_threads_end_others(struct process *process, int32_t kept_tid, uint64_t time_ns)
{
    for (size_t i = 0; i < process->thread_count; i++) {
        struct thread *thread = process->threads[i];
        bool older = thread->tid != kept_tid && thread->from_ns < time_ns;
        if (older || kept_tid == 0) {
            end(process, thread, time_ns);
        }
    }
}

void process_threads_scan(struct process_account *account, struct process *process,
                          const struct process_scan *scan)
{
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
            thread = add(account, process, scanned->tid, from_ns, scan->begin_ns);
        }
        if (thread != NULL) {
            bool named = thread->name_count > 0;
            process_threads_rename(thread, scanned->comm, named ? scan->begin_ns : thread->from_ns);
        }
    }
}

bool process_threads_prune(struct process_account *account, struct process *process,
                           uint64_t horizon_ns)
{
    if (process->thread_count == process->live_thread_count) {
        return false;
    }
    size_t kept = 0;
    for (size_t i = 0; i < process->thread_count; i++) {
        if (process->threads[i]->to_ns <= horizon_ns) {
            free(process->threads[i]);
            account->counts.thread_count--;
        } else {
            process->threads[kept] = process->threads[i];
            kept++;
        }
    }
    process->thread_count = kept;
    return process->thread_count != process->live_thread_count;
}

void process_threads_done(struct process_account *account, struct process *process)
{
    for (size_t i = 0; i < process->thread_count; i++) {
        free(process->threads[i]);
    }
    account->counts.thread_count -= process->thread_count;
    process->thread_count = 0;
    process->live_thread_count = 0;
    free(take_ptr(process->threads));
}
