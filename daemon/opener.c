/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The queue and the threads; how a file is found is module_file.c's. A job is in exactly one place:
 * queue, a thread's slot, or the answers; under the lock always. What may hang happens outside the
 * lock. A slot given up keeps its job until the thread comes back, but its answer has been handed
 * out; the thread then cleans up after itself. So a thread may outlive opener_free(), and the
 * object goes with its last holder.
 */
#include "opener.h"

#include "cleanup.h"
#include "limit_clock.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/sysmacros.h>

enum job_kind {
    JOB_OPEN,
    JOB_OPEN_KERNEL,
    JOB_CLOSE,
};

struct job {
    struct job *next;
    enum job_kind kind;
    struct module_query query; /* its path is owned */
    bool uid_known;
    uint64_t device; /* that may be hanging, 0: not known yet */
    struct opener_answer answer;
};

struct job_list {
    struct job *first;
    struct job **end;
};

struct slot {
    struct opener *opener;
    struct job *job; /* at work on it */
    uint64_t begin_ns;
    bool given_up;
};

struct uid_files {
    uid_t uid;
    uint32_t count;
};

struct opener {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int event_fd;
    uint32_t holder_count; /* threads, and the owner */
    bool stopping;
    struct job_list queue;
    struct job_list closing;
    struct job_list done;
    uint32_t request_count; /* whose answer has not been taken */
    uint32_t file_count;
    struct uid_files uid_files[OPENER_FILES_MAX];
    uint32_t uid_count;
    uint64_t hang_count;
    struct slot slots[OPENER_THREADS];
};

static void list_append(struct job_list *list, struct job *job)
{
    job->next = NULL;
    *list->end = job;
    list->end = &job->next;
}

static void list_prepend(struct job_list *list, struct job *job)
{
    job->next = list->first;
    if (list->first == NULL) {
        list->end = &job->next;
    }
    list->first = job;
}

/* Takes out the job to which `link` points. */
static struct job *list_take(struct job_list *list, struct job **link)
{
    struct job *job = *link;
    *link = job->next;
    if (job->next == NULL) {
        list->end = link;
    }
    return job;
}

static struct job *job_free(struct job *job)
{
    if (job != NULL) {
        free((void *)(uintptr_t)job->query.path);
        free(job);
    }
    return NULL;
}

static struct uid_files *find_uid(struct opener *opener, uid_t uid)
{
    for (uint32_t i = 0; i < opener->uid_count; i++) {
        if (opener->uid_files[i].uid == uid) {
            return &opener->uid_files[i];
        }
    }
    return NULL;
}

static bool has_room(struct opener *opener, const struct job *job)
{
    const struct uid_files *files = job->uid_known ? find_uid(opener, job->answer.uid) : NULL;
    return files == NULL || files->count < OPENER_UID_FILES_MAX;
}

/* There are never more uids than files, so there is room. */
static void count_file(struct opener *opener, uid_t uid)
{
    struct uid_files *files = find_uid(opener, uid);
    if (files == NULL) {
        files = &opener->uid_files[opener->uid_count++];
        *files = (struct uid_files){.uid = uid};
    }
    files->count++;
    opener->file_count++;
}

static void uncount_file(struct opener *opener, uid_t uid)
{
    struct uid_files *files = find_uid(opener, uid);
    files->count--;
    if (files->count == 0) {
        *files = opener->uid_files[--opener->uid_count];
    }
    opener->file_count--;
    (void)pthread_cond_broadcast(&opener->changed);
}

static struct job *take_job(struct opener *opener)
{
    if (opener->closing.first != NULL) {
        return list_take(&opener->closing, &opener->closing.first);
    }
    for (struct job **link = &opener->queue.first; *link != NULL; link = &(*link)->next) {
        if (opener->file_count < OPENER_FILES_MAX && has_room(opener, *link)) {
            return list_take(&opener->queue, link);
        }
    }
    return NULL;
}

/* A filesystem on which a thread hangs is left alone until it lets go. */
static bool on_device(uint64_t device, void *userdata)
{
    struct slot *slot = userdata;
    struct opener *opener = slot->opener;
    bool hangs = false;
    (void)pthread_mutex_lock(&opener->lock);
    for (size_t i = 0; i < OPENER_THREADS; i++) {
        const struct slot *other = &opener->slots[i];
        hangs = hangs || (other->given_up && other->job->device == device);
    }
    slot->job->device = device;
    (void)pthread_mutex_unlock(&opener->lock);
    return !hangs;
}

/* Does what may hang; without the lock. */
static void do_job(struct slot *slot, struct job *job)
{
    struct opener_answer *answer = &job->answer;
    switch (job->kind) {
    case JOB_OPEN:
        answer->failure = module_file_open(&job->query, on_device, slot, &answer->file);
        return;
    case JOB_OPEN_KERNEL:
        answer->failure = module_file_open_kernel(&answer->file);
        return;
    case JOB_CLOSE:
        answer->file.fd = close_fd(answer->file.fd);
        return;
    }
}

/* Makes an opened job an answer, or forgets it if that has been given already. */
static void finish_job(struct slot *slot)
{
    struct opener *opener = slot->opener;
    struct job *job = take_ptr(slot->job);
    bool given_up = slot->given_up;
    slot->given_up = false;
    if (job->kind == JOB_CLOSE) {
        uncount_file(opener, job->answer.uid);
        job_free(job);
        return;
    }
    bool opened = job->answer.failure == MODULE_FAILURE_NONE;
    if (given_up && opened && !opener->stopping) {
        job->kind = JOB_CLOSE;
        list_append(&opener->closing, job);
        return;
    }
    if (!opened) {
        uncount_file(opener, job->answer.uid);
    }
    if (given_up) {
        if (opened) {
            close_fd(job->answer.file.fd);
        }
        job_free(job);
        return;
    }
    list_append(&opener->done, job);
    (void)eventfd_write(opener->event_fd, 1);
}

/* Counts the file that a job will open; false when its owner, now known, has too many. */
static bool admit_job(struct opener *opener, struct job *job)
{
    if (job->kind == JOB_CLOSE) {
        return true;
    }
    if (!job->uid_known) {
        (void)pthread_mutex_unlock(&opener->lock);
        job->answer.uid = job->kind == JOB_OPEN ? module_file_owner(job->query.pid) : 0;
        (void)pthread_mutex_lock(&opener->lock);
        job->uid_known = true;
        if (opener->stopping || opener->file_count == OPENER_FILES_MAX || !has_room(opener, job)) {
            list_prepend(&opener->queue, job);
            return false;
        }
    }
    count_file(opener, job->answer.uid);
    return true;
}

static void drop_holder(struct opener *opener)
{
    opener->holder_count--;
    bool last = opener->holder_count == 0;
    (void)pthread_cond_broadcast(&opener->changed);
    (void)pthread_mutex_unlock(&opener->lock);
    if (last) {
        close_fd(opener->event_fd);
        (void)pthread_cond_destroy(&opener->changed);
        (void)pthread_mutex_destroy(&opener->lock);
        free(opener);
    }
}

static void *run_thread(void *userdata)
{
    struct slot *slot = userdata;
    struct opener *opener = slot->opener;
    (void)pthread_mutex_lock(&opener->lock);
    while (!opener->stopping) {
        struct job *job = take_job(opener);
        if (job == NULL) {
            (void)pthread_cond_wait(&opener->changed, &opener->lock);
            continue;
        }
        if (!admit_job(opener, job)) {
            continue;
        }
        slot->job = job;
        slot->begin_ns = limit_clock_ns();
        (void)pthread_mutex_unlock(&opener->lock);
        do_job(slot, job);
        (void)pthread_mutex_lock(&opener->lock);
        finish_job(slot);
    }
    drop_holder(opener);
    return NULL;
}

/* Signals are the main thread's business. */
static int start_thread(struct slot *slot)
{
    sigset_t all;
    sigset_t before;
    pthread_t thread;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int r = -pthread_create(&thread, NULL, run_thread, slot);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return r < 0 ? r : -pthread_detach(thread);
}

static int init_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    int r = -pthread_condattr_init(&attributes);
    if (r == 0) {
        (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        r = -pthread_cond_init(condition, &attributes);
        (void)pthread_condattr_destroy(&attributes);
    }
    return r;
}

int opener_new(struct opener **ret)
{
    cleanup_(freep) struct opener *opener = calloc(1, sizeof *opener);
    cleanup_(closep) int event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (opener == NULL) {
        return -ENOMEM;
    }
    if (event_fd < 0) {
        return -errno;
    }
    int r = init_condition(&opener->changed);
    if (r < 0) {
        return r;
    }
    (void)pthread_mutex_init(&opener->lock, NULL);
    opener->queue.end = &opener->queue.first;
    opener->closing.end = &opener->closing.first;
    opener->done.end = &opener->done.first;
    opener->event_fd = take_fd(event_fd);
    opener->holder_count = 1;

    struct opener *held = take_ptr(opener);
    for (size_t i = 0; i < OPENER_THREADS && r == 0; i++) {
        (void)pthread_mutex_lock(&held->lock);
        held->slots[i].opener = held;
        held->holder_count++;
        r = start_thread(&held->slots[i]);
        held->holder_count -= r < 0;
        (void)pthread_mutex_unlock(&held->lock);
    }
    if (r < 0) {
        opener_stop(held);
        opener_free(held);
        return r;
    }
    *ret = held;
    return 0;
}

void opener_stop(struct opener *opener)
{
    uint64_t deadline_ns = limit_clock_ns() + OPENER_HANG_NS;
    const struct timespec deadline = {
        .tv_sec = (time_t)(deadline_ns / NS_PER_S),
        .tv_nsec = (long)(deadline_ns % NS_PER_S),
    };
    int r = 0;
    (void)pthread_mutex_lock(&opener->lock);
    opener->stopping = true;
    (void)pthread_cond_broadcast(&opener->changed);
    while (opener->holder_count > 1 && r == 0) {
        r = pthread_cond_timedwait(&opener->changed, &opener->lock, &deadline);
    }
    (void)pthread_mutex_unlock(&opener->lock);
}

struct opener *opener_free(struct opener *opener)
{
    if (opener == NULL) {
        return NULL;
    }
    (void)pthread_mutex_lock(&opener->lock);
    while (opener->closing.first != NULL) {
        struct job *job = list_take(&opener->closing, &opener->closing.first);
        close_fd(job->answer.file.fd);
        job_free(job);
    }
    drop_holder(opener);
    return NULL;
}

int opener_fd(const struct opener *opener)
{
    return opener->event_fd;
}

int opener_submit(struct opener *opener, const struct module_query *query, void *userdata)
{
    struct job *job = calloc(1, sizeof *job);
    if (job == NULL) {
        return -ENOMEM;
    }
    job->kind = query == NULL ? JOB_OPEN_KERNEL : JOB_OPEN;
    job->answer.userdata = userdata;
    if (query != NULL) {
        job->query = *query;
        job->query.path = strdup(query->path);
        if (job->query.path == NULL) {
            job_free(job);
            return -ENOMEM;
        }
    }

    (void)pthread_mutex_lock(&opener->lock);
    bool full = opener->stopping || opener->request_count == OPENER_REQUESTS_MAX;
    if (!full) {
        opener->request_count++;
        list_append(&opener->queue, job);
        (void)pthread_cond_signal(&opener->changed);
    }
    (void)pthread_mutex_unlock(&opener->lock);
    if (full) {
        job_free(job);
        return -EAGAIN;
    }
    return 0;
}

/* An answer for what hangs: the job stays with its thread. */
static bool give_up_slot(struct opener *opener, struct opener_answer *ret)
{
    uint64_t now_ns = limit_clock_ns();
    for (size_t i = 0; i < OPENER_THREADS; i++) {
        struct slot *slot = &opener->slots[i];
        bool overdue = slot->job != NULL && !slot->given_up &&
                       (opener->stopping || now_ns - slot->begin_ns >= OPENER_HANG_NS);
        if (!overdue) {
            continue;
        }
        slot->given_up = true;
        opener->hang_count++;
        if (slot->job->kind != JOB_CLOSE) {
            *ret = (struct opener_answer){
                .userdata = slot->job->answer.userdata,
                .failure = MODULE_FAILURE_NOT_FOUND,
            };
            return true;
        }
    }
    return false;
}

/* An answer for what waits while nobody is left to do it. */
static bool refuse_queued(struct opener *opener, struct opener_answer *ret)
{
    bool usable = false;
    for (size_t i = 0; i < OPENER_THREADS; i++) {
        usable = usable || !opener->slots[i].given_up;
    }
    if ((usable && !opener->stopping) || opener->queue.first == NULL) {
        return false;
    }
    struct job *job = list_take(&opener->queue, &opener->queue.first);
    *ret = (struct opener_answer){
        .userdata = job->answer.userdata,
        .failure = MODULE_FAILURE_LIMIT,
    };
    job_free(job);
    return true;
}

bool opener_next(struct opener *opener, struct opener_answer *ret)
{
    eventfd_t ignored = 0;
    bool found = false;
    (void)pthread_mutex_lock(&opener->lock);
    (void)eventfd_read(opener->event_fd, &ignored);
    if (opener->done.first != NULL) {
        struct job *job = list_take(&opener->done, &opener->done.first);
        *ret = job->answer;
        job_free(job);
        found = true;
    }
    found = found || give_up_slot(opener, ret) || refuse_queued(opener, ret);
    if (found) {
        opener->request_count--;
    }
    (void)pthread_mutex_unlock(&opener->lock);
    return found;
}

void opener_release(struct opener *opener, int fd, uid_t uid)
{
    struct job *job = calloc(1, sizeof *job);
    if (job == NULL) {
        /* Better to wait here once than to keep the file open for ever. */
        close_fd(fd);
        (void)pthread_mutex_lock(&opener->lock);
        uncount_file(opener, uid);
        (void)pthread_mutex_unlock(&opener->lock);
        return;
    }
    job->kind = JOB_CLOSE;
    job->answer.file.fd = fd;
    job->answer.uid = uid;
    (void)pthread_mutex_lock(&opener->lock);
    list_append(&opener->closing, job);
    (void)pthread_cond_signal(&opener->changed);
    (void)pthread_mutex_unlock(&opener->lock);
}

uint64_t opener_hang_count(struct opener *opener)
{
    (void)pthread_mutex_lock(&opener->lock);
    uint64_t count = opener->hang_count;
    (void)pthread_mutex_unlock(&opener->lock);
    return count;
}
