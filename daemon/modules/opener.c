/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Runs the opener's threads. opener_queue.c orders the jobs, module_file.c finds the files. A job
 * is in exactly one place, under the lock: the queue, a thread's slot, or the answers. Calls that
 * may hang run without the lock. A slot that was given up keeps its job until its thread returns;
 * the answer has been handed out by then, and the thread frees what it got. So a thread may outlive
 * opener_free(), and the last holder frees the object.
 *
 * A thread that takes a job starts another one if no thread is idle and a slot is free. A thread is
 * slow after a while, and then does not count as one at work. All slots but one may have jobs that
 * can hang; the last slot takes only careful jobs, so that one thread always returns.
 */
#include "opener.h"

#include "cleanup.h"
#include "hung_processes.h"
#include "limit_clock.h"
#include "opener_queue.h"
#include "threads.h"

#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>

#define SLOW_PART 20 /* of the time after which a thread is given up */

struct slot {
    struct opener *opener;
    bool is_running; /* it has a thread */
    struct job *job; /* at work on it */
    uint64_t begin_ns;
    bool given_up;
};

struct opener {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int event_fd;
    uint64_t hang_ns;      /* so long a thread may take */
    uint32_t holder_count; /* threads, and the owner */
    bool stopping;         /* nothing is opened any more */
    bool ending;           /* threads end when there is nothing to close */
    struct opener_queue queue;
    struct job_list done;
    uint64_t hang_count;
    struct slot slots[OPENER_THREADS_MAX];
};

static bool is_slow(const struct slot *slot, uint64_t now_ns)
{
    return slot->given_up || now_ns - slot->begin_ns >= slot->opener->hang_ns / SLOW_PART;
}

/* Refuses a filesystem while a thread hangs on it. */
static bool on_device(uint64_t device, void *userdata)
{
    struct slot *slot = userdata;
    struct opener *opener = slot->opener;
    bool hangs = false;
    (void)pthread_mutex_lock(&opener->lock);
    for (size_t i = 0; i < OPENER_THREADS_MAX; i++) {
        const struct slot *other = &opener->slots[i];
        hangs = hangs || (other->given_up && other->job->device == device);
    }
    slot->job->device = device;
    slot->job->asks_process = false;
    (void)pthread_mutex_unlock(&opener->lock);
    return !hangs;
}

/* Refuses a process that hung, until a thread returns from it. */
static bool on_process(int32_t pid, uint64_t start_time_ns, void *userdata)
{
    struct slot *slot = userdata;
    struct opener *opener = slot->opener;
    bool hangs = hung_processes_have(pid, start_time_ns);
    (void)pthread_mutex_lock(&opener->lock);
    slot->job->asks_process = !hangs;
    slot->job->process_start_ns = start_time_ns;
    (void)pthread_mutex_unlock(&opener->lock);
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

/* Does the part of a job that may hang. Called without the lock. */
static void do_job(struct slot *slot, struct job *job)
{
    const struct module_guard guard = {on_device, on_process, slot, job->is_careful};
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

/* Moves a finished job to the answers, or drops it if its slot was given up. */
static void finish_job(struct slot *slot)
{
    struct opener *opener = slot->opener;
    struct job *job = take_ptr(slot->job);
    bool given_up = slot->given_up;
    slot->given_up = false;
    opener_queue_leave(&opener->queue, job, given_up);
    if (job->is_remembered && job->answer.failure == MODULE_FAILURE_NONE) {
        hung_processes_remove(job->query.pid, job->process_start_ns);
    }
    if (given_up && job->kind != JOB_CLOSE && job->answer.failure == MODULE_FAILURE_NONE) {
        job->kind = JOB_CLOSE;
        (void)opener_queue_add(&opener->queue, job);
    } else if (given_up || job->kind == JOB_CLOSE) {
        opener_queue_forget(&opener->queue, job);
    } else {
        job_list_append(&opener->done, job);
        (void)eventfd_write(opener->event_fd, 1);
    }
    (void)pthread_cond_broadcast(&opener->changed);
}

/* Frees the object with its last holder. Unlocks. Files that no thread could close stay open until
 * the process ends. */
static void drop_holder(struct opener *opener)
{
    opener->holder_count--;
    bool last = opener->holder_count == 0;
    (void)pthread_cond_broadcast(&opener->changed);
    (void)pthread_mutex_unlock(&opener->lock);
    if (last) {
        opener_queue_done(&opener->queue);
        close_fd(opener->event_fd);
        (void)pthread_cond_destroy(&opener->changed);
        (void)pthread_mutex_destroy(&opener->lock);
        free(opener);
    }
}

static size_t count_idle(const struct opener *opener)
{
    size_t count = 0;
    for (size_t i = 0; i < OPENER_THREADS_MAX; i++) {
        count += opener->slots[i].is_running && opener->slots[i].job == NULL;
    }
    return count;
}

/* The number of threads at work that are not slow. */
static size_t count_working(const struct opener *opener)
{
    const uint64_t now_ns = limit_clock_ns();
    size_t count = 0;
    for (size_t i = 0; i < OPENER_THREADS_MAX; i++) {
        const struct slot *slot = &opener->slots[i];
        count += slot->job != NULL && !is_slow(slot, now_ns);
    }
    return count;
}

/* The number of threads that may never return. */
static size_t count_at_risk(const struct opener *opener)
{
    size_t count = 0;
    for (size_t i = 0; i < OPENER_THREADS_MAX; i++) {
        const struct slot *slot = &opener->slots[i];
        count += slot->job != NULL && (!slot->job->is_careful || slot->given_up);
    }
    return count;
}

/* Takes the next job; NULL: there is none, or enough threads are at work. */
static struct job *begin(struct slot *slot)
{
    struct opener *opener = slot->opener;
    if (count_working(opener) >= OPENER_THREADS) {
        return NULL;
    }
    bool only_careful = count_at_risk(opener) >= OPENER_THREADS_MAX - 1;
    slot->job = opener_queue_take(&opener->queue, !opener->stopping, only_careful);
    slot->begin_ns = limit_clock_ns();
    return slot->job;
}

static void *run_thread(void *userdata);

/* Starts a thread unless one is idle or all slots have theirs. Unlocks meanwhile. Returns 0, or
 * -errno. */
static int keep_one_idle(struct opener *opener)
{
    size_t i = 0;
    while (i < OPENER_THREADS_MAX && opener->slots[i].is_running) {
        i++;
    }
    if (i == OPENER_THREADS_MAX || count_idle(opener) > 0 || opener->ending) {
        return 0;
    }
    opener->slots[i] = (struct slot){.opener = opener};
    return threads_start_holder(&opener->lock, &opener->holder_count, &opener->slots[i].is_running,
                                run_thread, &opener->slots[i]);
}

/* Waits for a job. While enough threads work, it looks again after a while: one may be slow then.
 */
static void wait_for_work(struct opener *opener)
{
    if (count_working(opener) < OPENER_THREADS) {
        (void)pthread_cond_wait(&opener->changed, &opener->lock);
        return;
    }
    const struct timespec look = clock_timespec(limit_clock_ns() + opener->hang_ns / SLOW_PART);
    (void)pthread_cond_timedwait(&opener->changed, &opener->lock, &look);
}

static void *run_thread(void *userdata)
{
    struct slot *slot = userdata;
    struct opener *opener = slot->opener;
    (void)pthread_mutex_lock(&opener->lock);
    for (;;) {
        struct job *job = begin(slot);
        if (job == NULL && (opener->ending || count_idle(opener) > OPENER_THREADS)) {
            break;
        }
        if (job == NULL) {
            wait_for_work(opener);
            continue;
        }
        (void)keep_one_idle(opener);
        (void)pthread_mutex_unlock(&opener->lock);
        do_job(slot, job);
        (void)pthread_mutex_lock(&opener->lock);
        finish_job(slot);
    }
    slot->is_running = false;
    drop_holder(opener);
    return NULL;
}

/* Allocates the object, without descriptors and threads; NULL: no memory. */
static struct opener *allocate(void)
{
    struct opener *opener = calloc(1, sizeof *opener);
    if (opener == NULL || threads_init_condition(&opener->changed) < 0) {
        free(opener);
        return NULL;
    }
    (void)pthread_mutex_init(&opener->lock, NULL);
    opener->holder_count = 1;
    return opener;
}

int opener_new(uint64_t hang_ns, struct opener **ret)
{
    struct opener *opener = allocate();
    if (opener == NULL) {
        return -ENOMEM;
    }
    opener->hang_ns = hang_ns;
    opener->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int r = opener->event_fd < 0 ? -errno : 0;
    (void)pthread_mutex_lock(&opener->lock);
    r = r == 0 ? keep_one_idle(opener) : r;
    (void)pthread_mutex_unlock(&opener->lock);
    if (r < 0) {
        opener_stop(opener);
        opener_free(opener);
        return r;
    }
    *ret = opener;
    return 0;
}

static struct timespec give_up_time(const struct opener *opener)
{
    return clock_timespec(limit_clock_ns() + opener->hang_ns);
}

static bool is_opening(const struct opener *opener)
{
    bool opening = false;
    for (size_t i = 0; i < OPENER_THREADS_MAX; i++) {
        const struct slot *slot = &opener->slots[i];
        opening = opening || (slot->job != NULL && slot->job->kind != JOB_CLOSE && !slot->given_up);
    }
    return opening;
}

void opener_stop(struct opener *opener)
{
    const struct timespec deadline = give_up_time(opener);
    int r = 0;
    (void)pthread_mutex_lock(&opener->lock);
    opener->stopping = true;
    while (is_opening(opener) && r == 0) {
        r = pthread_cond_timedwait(&opener->changed, &opener->lock, &deadline);
    }
    (void)pthread_mutex_unlock(&opener->lock);
}

struct opener *opener_free(struct opener *opener)
{
    if (opener == NULL) {
        return NULL;
    }
    const struct timespec deadline = give_up_time(opener);
    int r = 0;
    (void)pthread_mutex_lock(&opener->lock);
    opener->ending = true;
    (void)pthread_cond_broadcast(&opener->changed);
    while (opener->holder_count > 1 && r == 0) {
        r = pthread_cond_timedwait(&opener->changed, &opener->lock, &deadline);
    }
    drop_holder(opener);
    return NULL;
}

int opener_fd(const struct opener *opener)
{
    return opener->event_fd;
}

int opener_submit(struct opener *opener, const struct opener_request *request)
{
    struct job *job = job_new(request);
    if (job == NULL) {
        return -ENOMEM;
    }
    (void)pthread_mutex_lock(&opener->lock);
    int r = opener->stopping ? -EAGAIN : opener_queue_add(&opener->queue, job);
    if (r == 0) {
        (void)pthread_cond_signal(&opener->changed);
    }
    (void)pthread_mutex_unlock(&opener->lock);
    if (r < 0) {
        job_free(job);
    }
    return r;
}

/* Gives an answer for a job that hangs; its thread keeps the job. */
static bool give_up_slot(struct opener *opener, struct opener_answer *ret)
{
    uint64_t now_ns = limit_clock_ns();
    for (size_t i = 0; i < OPENER_THREADS_MAX; i++) {
        struct slot *slot = &opener->slots[i];
        bool overdue = slot->job != NULL && !slot->given_up &&
                       (opener->stopping || now_ns - slot->begin_ns >= opener->hang_ns);
        if (!overdue) {
            continue;
        }
        slot->given_up = true;
        opener->hang_count++;
        opener_queue_give_up(&opener->queue, slot->job);
        if (slot->job->asks_process && !opener->stopping) {
            slot->job->is_remembered = true;
            hung_processes_add(slot->job->query.pid, slot->job->process_start_ns);
        }
        (void)pthread_cond_broadcast(&opener->changed);
        if (slot->job->kind != JOB_CLOSE) {
            *ret = (struct opener_answer){
                .source = slot->job->answer.source,
                .userdata = slot->job->answer.userdata,
                .failure = MODULE_FAILURE_NOT_FOUND,
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
        usable = usable || (opener->slots[i].is_running && !opener->slots[i].given_up);
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
    (void)pthread_mutex_lock(&opener->lock);
    (void)eventfd_read(opener->event_fd, &ignored);
    if (opener->done.first != NULL) {
        struct job *job = job_list_take(&opener->done);
        *ret = job->answer;
        opener_queue_answered(&opener->queue, job);
        found = true;
    }
    found = found || give_up_slot(opener, ret);
    (void)keep_one_idle(opener);
    found = found || refuse_queued(opener, ret);
    (void)pthread_mutex_unlock(&opener->lock);
    return found;
}

void opener_release(struct opener *opener, int fd, uid_t uid)
{
    (void)pthread_mutex_lock(&opener->lock);
    opener_queue_release(&opener->queue, fd, uid);
    (void)pthread_cond_signal(&opener->changed);
    (void)pthread_mutex_unlock(&opener->lock);
}

void opener_discard(struct opener *opener, int fd, uid_t uid)
{
    (void)pthread_mutex_lock(&opener->lock);
    (void)opener_queue_discard(&opener->queue, fd, uid);
    (void)pthread_cond_signal(&opener->changed);
    (void)pthread_mutex_unlock(&opener->lock);
}

bool opener_is_discarding(struct opener *opener, uid_t uid)
{
    (void)pthread_mutex_lock(&opener->lock);
    uint32_t count = opener_queue_discarded_count(&opener->queue, uid);
    (void)pthread_mutex_unlock(&opener->lock);
    return count > 0;
}

uint64_t opener_hang_count(struct opener *opener)
{
    (void)pthread_mutex_lock(&opener->lock);
    uint64_t count = opener->hang_count;
    (void)pthread_mutex_unlock(&opener->lock);
    return count;
}
