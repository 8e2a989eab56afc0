/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the opener's threads do. opener_queue.c orders the jobs, module_file.c finds the files,
 * thread_pool.c runs the threads. A job comes in without the lock, since the holder of the lock may
 * have no CPU for long, and the collector cannot wait. From then on it is in exactly one place,
 * under the pool's lock: the queue, a thread's slot, or the answers. Calls that may hang run
 * without the lock. A slot that was given up keeps its job until its thread returns; the answer has
 * been handed out by then, and the thread frees what it got.
 *
 * All slots but one may have jobs that can hang; the last slot takes only careful jobs, which
 * return unless a user holds the lock of a folder on their way.
 */
#include "opener.h"

#include "cleanup.h"
#include "hung_processes.h"
#include "limit_clock.h"
#include "mount_table.h"
#include "opener_queue.h"
#include "thread_pool.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/eventfd.h>

_Static_assert(OPENER_THREADS_MAX == THREAD_POOL_SLOTS, "each slot may have a thread");

struct opener {
    struct thread_pool pool;
    int event_fd;
    bool stopping;                  /* nothing is opened any more */
    _Atomic(struct job *) incoming; /* the last one first */
    atomic_uint_least64_t incoming_weight;
    struct opener_queue queue;
    struct job_list done;
    struct job_list refused; /* counted for no user */
    uint64_t hang_count;
    struct job *jobs[OPENER_THREADS_MAX]; /* of the slots that are busy */
};

/* What a guard is asked for. */
struct opening {
    struct opener *opener;
    struct job *job;
};

static void lock(struct opener *opener)
{
    (void)pthread_mutex_lock(&opener->pool.lock);
}

static void unlock(struct opener *opener)
{
    (void)pthread_mutex_unlock(&opener->pool.lock);
}

/* Refuses a filesystem while a thread hangs on it. Of a local one it refuses only the folder or
 * file where the thread hangs: a step there waits for nothing but a lock on that one, which a user
 * holds.
 */
static bool on_place(const struct module_place *place, void *userdata)
{
    const struct opening *opening = userdata;
    struct opener *opener = opening->opener;
    bool hangs_here = false;
    bool hangs_beside = false;
    lock(opener);
    for (size_t i = 0; i < OPENER_THREADS_MAX; i++) {
        const struct job *job = opener->jobs[i];
        if (opener->pool.slots[i].is_given_up && job->place.device == place->device) {
            bool is_here = job->place.inode == place->inode || job->place.inode == 0;
            hangs_here = hangs_here || is_here;
            hangs_beside = hangs_beside || !is_here;
        }
    }
    opening->job->place = *place;
    opening->job->asks_process = false;
    unlock(opener);
    return !hangs_here &&
           (!hangs_beside || mount_table_is_local(MOUNTS_OF_INIT, place->mount_id, place->device));
}

/* Refuses a process that hung, until a thread returns from it. */
static bool on_process(int32_t pid, uint64_t start_time_ns, void *userdata)
{
    const struct opening *opening = userdata;
    bool hangs = hung_processes_have(pid, start_time_ns);
    lock(opening->opener);
    opening->job->asks_process = !hangs;
    opening->job->process_start_ns = start_time_ns;
    unlock(opening->opener);
    return !hangs;
}

static enum module_failure open_job(const struct module_guard *guard, struct job *job)
{
    struct module_file *file = &job->answer.file;
    switch (job->kind) {
    case JOB_OPEN:
        return module_file_open(&job->query, guard, file);
    case JOB_OPEN_KERNEL:
        return module_file_open_kernel(file);
    case JOB_OPEN_VDSO:
        return module_file_open_vdso(file);
    case JOB_OPEN_VDSO_32BIT:
        return module_file_open_vdso_32bit(file);
    case JOB_OPEN_PERF_MAP:
        return module_file_open_perf_map(&job->query, guard, file);
    case JOB_OPEN_JITDUMP:
        return module_file_open_jitdump(&job->query, guard, file);
    case JOB_OPEN_DEBUG:
        return module_file_open_own(job->query.path, guard, file);
    case JOB_CLOSE:
        break;
    }
    return MODULE_FAILURE_NOT_FILE;
}

/* Does the part of a job that may hang. */
static void work(void *owner, size_t slot)
{
    struct opener *opener = owner;
    struct job *job = opener->jobs[slot];
    struct opening opening = {opener, job};
    const struct module_guard guard = {on_place, on_process, &opening, job->is_careful};
    struct opener_answer *answer = &job->answer;
    if (job->kind == JOB_CLOSE) {
        answer->file.fd = close_fd(answer->file.fd);
        return;
    }
    enum module_failure failure = open_job(&guard, job);
    bool missed = failure == MODULE_FAILURE_NOT_FOUND || failure == MODULE_FAILURE_IDENTITY;
    /* Another way may lead to the file, once a thread may try it. */
    answer->failure = job->is_careful && missed ? MODULE_FAILURE_LIMIT : failure;
}

/* Moves a finished job to the answers, or drops it if it was given up. */
static void finish(void *owner, size_t slot, bool was_given_up)
{
    struct opener *opener = owner;
    struct job *job = take_ptr(opener->jobs[slot]);
    opener_queue_leave(&opener->queue, job, was_given_up);
    if (job->is_remembered) {
        hung_processes_remove(job->query.pid, job->process_start_ns);
    }
    if (was_given_up && job->kind != JOB_CLOSE && job->answer.failure == MODULE_FAILURE_NONE) {
        job->kind = JOB_CLOSE;
        (void)opener_queue_add(&opener->queue, job);
    } else if (was_given_up || job->kind == JOB_CLOSE) {
        opener_queue_forget(&opener->queue, job);
    } else {
        job_list_append(&opener->done, job);
        (void)eventfd_write(opener->event_fd, 1);
    }
    thread_news_tell(&opener->pool.changed, INT_MAX);
}

/* The number of threads that may never return. */
static size_t count_at_risk(const struct opener *opener)
{
    size_t count = 0;
    for (size_t i = 0; i < OPENER_THREADS_MAX; i++) {
        const struct thread_pool_slot *slot = &opener->pool.slots[i];
        count += slot->is_busy && (!opener->jobs[i]->is_careful || slot->is_given_up);
    }
    return count;
}

/* Puts what has come in into the queue; what is beyond its user's share is answered. */
static void take_incoming(struct opener *opener)
{
    struct job *last = atomic_exchange(&opener->incoming, NULL);
    struct job *first = NULL;
    while (last != NULL) {
        struct job *job = last;
        last = job->next;
        job->next = first;
        first = job;
    }
    while (first != NULL) {
        struct job *job = first;
        first = job->next;
        atomic_fetch_sub(&opener->incoming_weight, job_weight(job));
        if (opener_queue_add(&opener->queue, job) < 0) {
            job->answer.failure = MODULE_FAILURE_LIMIT;
            job->answer.is_refused = true;
            job_list_append(&opener->refused, job);
            (void)eventfd_write(opener->event_fd, 1);
        }
    }
}

/* Takes the next job, unless enough threads are at work. */
static bool begin(void *owner, size_t slot)
{
    struct opener *opener = owner;
    take_incoming(opener);
    if (thread_pool_working_count(&opener->pool) >= OPENER_THREADS) {
        return false;
    }
    bool only_careful = count_at_risk(opener) >= OPENER_THREADS_MAX - 1;
    opener->jobs[slot] = opener_queue_take(&opener->queue, !opener->stopping, only_careful);
    return opener->jobs[slot] != NULL;
}

/* Files that no thread could close stay open until the process ends. */
static void free_opener(void *owner)
{
    struct opener *opener = owner;
    opener_queue_done(&opener->queue);
    close_fd(opener->event_fd);
    free(opener);
}

int opener_new(uint64_t hang_ns, struct opener **ret)
{
    static const struct thread_pool_calls calls = {
        .begin = begin, .work = work, .finish = finish, .free = free_opener};
    struct opener *opener = calloc(1, sizeof *opener);
    if (opener == NULL) {
        return -ENOMEM;
    }
    thread_pool_init(&opener->pool, &calls, opener, hang_ns, OPENER_THREADS, false);
    opener->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int r = opener->event_fd < 0 ? -errno : 0;
    lock(opener);
    r = r == 0 ? thread_pool_keep_one_idle(&opener->pool) : r;
    unlock(opener);
    if (r < 0) {
        opener_stop(opener);
        opener_free(opener);
        return r;
    }
    *ret = opener;
    return 0;
}

static bool is_opening(const struct opener *opener)
{
    bool opening = false;
    for (size_t i = 0; i < OPENER_THREADS_MAX; i++) {
        const struct thread_pool_slot *slot = &opener->pool.slots[i];
        opening =
            opening || (slot->is_busy && opener->jobs[i]->kind != JOB_CLOSE && !slot->is_given_up);
    }
    return opening;
}

void opener_stop(struct opener *opener)
{
    const struct timespec deadline = clock_timespec(limit_clock_ns() + opener->pool.hang_ns);
    bool has_time = true;
    lock(opener);
    opener->stopping = true;
    while (is_opening(opener) && has_time) {
        unsigned int news = thread_news_number(&opener->pool.changed);
        has_time = thread_news_wait(&opener->pool.changed, news, &opener->pool.lock, &deadline);
    }
    unlock(opener);
}

struct opener *opener_free(struct opener *opener)
{
    if (opener != NULL) {
        lock(opener);
        thread_pool_end(&opener->pool, opener->pool.hang_ns);
        thread_pool_release(&opener->pool);
    }
    return NULL;
}

int opener_fd(const struct opener *opener)
{
    return opener->event_fd;
}

int opener_submit(struct opener *opener, const struct opener_request *request)
{
    if (request->source != MODULE_DEBUG) {
        spent_memory_free(&opener->queue.spent);
    }
    struct job *job = job_new(request);
    if (job == NULL) {
        return -ENOMEM;
    }
    uint64_t weight = job_weight(job);
    if (atomic_fetch_add(&opener->incoming_weight, weight) + weight > OPENER_REQUESTS_MAX) {
        atomic_fetch_sub(&opener->incoming_weight, weight);
        free(job);
        return -EAGAIN;
    }
    job->next = atomic_load(&opener->incoming);
    while (!atomic_compare_exchange_weak(&opener->incoming, &job->next, job)) {
    }
    thread_pool_tell(&opener->pool);
    return 0;
}

/* True when a slot's job is to be waited for no longer. */
static bool is_overdue(const struct opener *opener, size_t slot)
{
    const struct thread_pool_slot *at = &opener->pool.slots[slot];
    bool is_left = opener->stopping && at->is_busy && !at->is_given_up &&
                   opener->jobs[slot]->kind != JOB_CLOSE;
    return is_left || thread_pool_is_hung(&opener->pool, slot);
}

/* Gives an answer for a job that hangs; its thread keeps the job. */
static bool give_up(struct opener *opener, struct opener_answer *ret)
{
    thread_pool_look(&opener->pool);
    for (size_t i = 0; i < OPENER_THREADS_MAX; i++) {
        struct job *job = opener->jobs[i];
        if (!is_overdue(opener, i)) {
            continue;
        }
        thread_pool_give_up(&opener->pool, i);
        opener->hang_count++;
        opener_queue_give_up(&opener->queue, job);
        if (job->asks_process && !opener->stopping) {
            job->is_remembered = true;
            hung_processes_add(job->query.pid, job->process_start_ns);
        }
        if (job->kind != JOB_CLOSE) {
            *ret = (struct opener_answer){
                .source = job->answer.source,
                .userdata = job->answer.userdata,
                .failure = MODULE_FAILURE_LIMIT,
            };
            return true;
        }
    }
    return false;
}

static bool is_usable(const struct opener *opener)
{
    bool usable = false;
    for (size_t i = 0; i < OPENER_THREADS_MAX; i++) {
        const struct thread_pool_slot *slot = &opener->pool.slots[i];
        usable = usable || (slot->is_running && !slot->is_given_up);
    }
    return usable && !opener->stopping;
}

/* Gives an answer for a queued job when all threads hang. */
static bool refuse_queued(struct opener *opener, struct opener_answer *ret)
{
    struct job *job = is_usable(opener) ? NULL : opener_queue_refuse(&opener->queue);
    if (job == NULL) {
        return false;
    }
    *ret = (struct opener_answer){
        .source = job->answer.source,
        .userdata = job->answer.userdata,
        .failure = MODULE_FAILURE_LIMIT,
    };
    opener_queue_answered(&opener->queue, job);
    return true;
}

bool opener_next(struct opener *opener, struct opener_answer *ret)
{
    eventfd_t ignored = 0;
    bool found = false;
    lock(opener);
    (void)eventfd_read(opener->event_fd, &ignored);
    take_incoming(opener);
    if (opener->refused.first != NULL) {
        struct job *job = job_list_take(&opener->refused);
        *ret = job->answer;
        opener_queue_free(&opener->queue, job);
        found = true;
    } else if (opener->done.first != NULL) {
        struct job *job = job_list_take(&opener->done);
        *ret = job->answer;
        opener_queue_answered(&opener->queue, job);
        found = true;
    }
    found = found || give_up(opener, ret);
    (void)thread_pool_keep_one_idle(&opener->pool);
    found = found || refuse_queued(opener, ret);
    unlock(opener);
    return found;
}

void opener_release(struct opener *opener, int fd, uid_t uid)
{
    lock(opener);
    opener_queue_release(&opener->queue, fd, uid);
    unlock(opener);
    thread_pool_tell(&opener->pool);
}

void opener_discard(struct opener *opener, int fd, uid_t uid)
{
    lock(opener);
    (void)opener_queue_discard(&opener->queue, fd, uid);
    unlock(opener);
    thread_pool_tell(&opener->pool);
}

bool opener_is_discarding(struct opener *opener, uid_t uid)
{
    lock(opener);
    uint32_t count = opener_queue_discarded_count(&opener->queue, uid);
    unlock(opener);
    return count > 0;
}

uint64_t opener_hang_count(struct opener *opener)
{
    lock(opener);
    uint64_t count = opener->hang_count;
    unlock(opener);
    return count;
}
