/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Keeps a user for each uid that has requests, open files or threads at work. The users form a ring
 * and take turns. A user is freed with its last request, file and thread.
 *
 * A job whose file was handed out stays with its user until the file is returned, so that the
 * return needs no memory.
 */
#include "opener_queue.h"

#include "cleanup.h"
#include "process_owner.h"
#include "quota.h"
#include "seeded_hash.h"

#include <assert.h>
#include <string.h>

#define SHARE_PARTS 2

struct opener_user {
    uid_t uid;
    struct opener_user *next_in_bucket;
    struct opener_user *next; /* in the ring */
    struct opener_user *previous;
    struct job_list waiting[MODULE_URGENCIES];
    struct job_list closing;       /* to be closed, where that may hang */
    struct job_list closing_local; /* to be closed, where that does not hang */
    struct job *handed_out;
    uint64_t weight; /* of the requests that are not answered */
    uint32_t file_count;
    uint32_t discarded_count; /* of them */
    uint32_t busy_count;      /* threads that may hang, also given up ones */
    uint32_t given_up_count;
    uint32_t careful_count; /* threads that cannot */
};

void job_list_append(struct job_list *list, struct job *job)
{
    job->next = NULL;
    if (list->first == NULL) {
        list->first = job;
    } else {
        list->last->next = job;
    }
    list->last = job;
}

struct job *job_list_take(struct job_list *list)
{
    struct job *job = list->first;
    list->first = job->next;
    return job;
}

/* The uid that a request is charged to: that of the process or, after its exit, of its parent. */
static uid_t uid_of(const struct module_query *query)
{
    uint32_t uid = process_owner(query->pid);
    return uid == PROCESS_OWNER_UNKNOWN ? process_owner(query->parent_pid) : uid;
}

static enum job_kind kind_of(enum module_source source)
{
    switch (source) {
    case MODULE_FILE:
        return JOB_OPEN;
    case MODULE_KERNEL:
        return JOB_OPEN_KERNEL;
    case MODULE_VDSO:
        return JOB_OPEN_VDSO;
    case MODULE_VDSO_32BIT:
        return JOB_OPEN_VDSO_32BIT;
    case MODULE_PERF_MAP:
        return JOB_OPEN_PERF_MAP;
    case MODULE_JITDUMP:
        return JOB_OPEN_JITDUMP;
    case MODULE_DEBUG:
        return JOB_OPEN_DEBUG;
    }
    return JOB_OPEN;
}

struct job *job_new(const struct opener_request *request)
{
    size_t path_bytes = request->query == NULL ? 0 : strlen(request->query->path) + 1;
    struct job *job = calloc(1, sizeof *job + path_bytes);
    if (job == NULL) {
        return NULL;
    }
    job->kind = kind_of(request->source);
    job->urgency = request->urgency;
    job->answer.source = request->source;
    job->answer.userdata = request->userdata;
    job->answer.file.fd = -1;
    if (request->query != NULL) {
        job->query = *request->query;
        job->query.path = memcpy(job->path, request->query->path, path_bytes);
    }
    bool is_of_process = request->query != NULL && request->source != MODULE_DEBUG;
    job->answer.uid = is_of_process ? uid_of(request->query) : OPENER_OWN_UID;
    return job;
}

uint64_t job_weight(const struct job *job)
{
    return 1 + (job->query.path == NULL ? 0 : strlen(job->query.path) / OPENER_REQUEST_BYTES);
}

static struct opener_user **find_user(struct opener_queue *queue, uid_t uid)
{
    struct opener_user **link = &queue->buckets[seeded_hash(&uid, sizeof uid) % OPENER_BUCKETS];
    while (*link != NULL && (*link)->uid != uid) {
        link = &(*link)->next_in_bucket;
    }
    return link;
}

static struct opener_user *get_user(struct opener_queue *queue, uid_t uid)
{
    struct opener_user **link = find_user(queue, uid);
    if (*link != NULL) {
        return *link;
    }
    struct opener_user *user = calloc(1, sizeof *user);
    if (user == NULL) {
        return NULL;
    }
    user->uid = uid;
    if (queue->turn == NULL) {
        user->next = user->previous = user;
        queue->turn = user;
    } else {
        user->next = queue->turn;
        user->previous = queue->turn->previous;
        user->previous->next = user->next->previous = user;
    }
    *link = user;
    return user;
}

static void drop_user(struct opener_queue *queue, struct opener_user *user)
{
    if (user->weight > 0 || user->file_count > 0 || user->busy_count > 0 ||
        user->careful_count > 0) {
        return;
    }
    struct opener_user **link = find_user(queue, user->uid);
    *link = user->next_in_bucket;
    user->next->previous = user->previous;
    user->previous->next = user->next;
    if (queue->turn == user) {
        queue->turn = user->next == user ? NULL : user->next;
    }
    free(user);
}

static void free_jobs(struct job_list *list)
{
    while (list->first != NULL) {
        free(job_list_take(list));
    }
}

void opener_queue_done(struct opener_queue *queue)
{
    spent_memory_free(&queue->spent);
    while (queue->turn != NULL) {
        struct opener_user *user = queue->turn;
        for (size_t i = 0; i < MODULE_URGENCIES; i++) {
            free_jobs(&user->waiting[i]);
        }
        free_jobs(&user->closing);
        free_jobs(&user->closing_local);
        struct job_list handed_out = {.first = user->handed_out};
        free_jobs(&handed_out);
        user->weight = user->file_count = user->busy_count = user->careful_count = 0;
        drop_user(queue, user);
    }
}

static void append_closing(struct opener_user *user, struct job *job)
{
    job_list_append(job->answer.file.is_local ? &user->closing_local : &user->closing, job);
}

int opener_queue_add(struct opener_queue *queue, struct job *job)
{
    struct opener_user *user = get_user(queue, job->answer.uid);
    if (user == NULL) {
        return -ENOMEM;
    }
    if (job->kind == JOB_CLOSE) {
        append_closing(user, job);
        return 0;
    }
    uint64_t weight = job_weight(job);
    if (!quota_rule_allows(OPENER_REQUESTS_MAX, SHARE_PARTS, queue->weight, user->weight, weight)) {
        drop_user(queue, user);
        return -EAGAIN;
    }
    job->user = user;
    user->weight += weight;
    queue->weight += weight;
    job_list_append(&user->waiting[job->urgency], job);
    return 0;
}

/* Debug files have a limit of their own: their loads hold a file while they wait. */
static bool may_have_file(const struct opener_queue *queue, const struct opener_user *user)
{
    return user->file_count < OPENER_UID_FILES_MAX &&
           (queue->file_count < OPENER_FILES_MAX || user->uid == OPENER_OWN_UID);
}

/* True when one more thread may hang for this user. */
static bool may_hang(const struct opener_user *user, bool only_careful)
{
    return !only_careful && user->busy_count < OPENER_UID_THREADS_MAX;
}

/* True when the user may have a careful thread, because no other is allowed. */
static bool may_be_careful(const struct opener_user *user, bool only_careful)
{
    return user->careful_count == 0 &&
           (only_careful || user->given_up_count >= OPENER_UID_THREADS_MAX);
}

/* The next file to close. */
static struct job *take_closing(struct opener_queue *queue, bool only_careful)
{
    struct opener_user *user = queue->turn;
    do {
        struct job_list *list = &user->closing_local;
        bool careful = list->first != NULL && user->careful_count == 0;
        list = careful ? list : &user->closing;
        if (list->first != NULL && (careful || may_hang(user, only_careful))) {
            struct job *job = job_list_take(list);
            job->is_careful = careful;
            return job;
        }
        user = user->next;
    } while (user != queue->turn);
    return NULL;
}

static struct job *take_opening(struct opener_queue *queue, size_t urgency, bool only_careful)
{
    struct opener_user *user = queue->turn;
    do {
        struct job_list *list = &user->waiting[urgency];
        bool careful = !may_hang(user, only_careful);
        if (list->first != NULL && may_have_file(queue, user) &&
            (!careful || may_be_careful(user, only_careful))) {
            struct job *job = job_list_take(list);
            job->is_careful = careful;
            return job;
        }
        user = user->next;
    } while (user != queue->turn);
    return NULL;
}

struct job *opener_queue_take(struct opener_queue *queue, bool may_open, bool only_careful)
{
    struct job *job = queue->turn == NULL ? NULL : take_closing(queue, only_careful);
    for (size_t i = 0; i < MODULE_URGENCIES && may_open && job == NULL && queue->turn != NULL;
         i++) {
        job = take_opening(queue, i, only_careful);
    }
    if (job == NULL) {
        return NULL;
    }
    struct opener_user *user = job->user;
    if (job->kind != JOB_CLOSE) {
        user->file_count++;
        queue->file_count++;
    }
    user->busy_count += !job->is_careful;
    user->careful_count += job->is_careful;
    queue->turn = user->next;
    return job;
}

/* Counts the request as answered. */
static void uncount_request(struct opener_queue *queue, struct job *job)
{
    uint64_t weight = job_weight(job);
    job->user->weight -= weight;
    queue->weight -= weight;
}

void opener_queue_give_up(struct opener_queue *queue, struct job *job)
{
    job->user->given_up_count++;
    if (job->kind != JOB_CLOSE) {
        uncount_request(queue, job);
    }
}

void opener_queue_leave(struct opener_queue *queue, struct job *job, bool was_given_up)
{
    struct opener_user *user = job->user;
    user->busy_count -= !job->is_careful;
    user->careful_count -= job->is_careful;
    user->given_up_count -= was_given_up;
    if (job->kind == JOB_CLOSE || job->answer.failure != MODULE_FAILURE_NONE) {
        user->file_count--;
        queue->file_count--;
        user->discarded_count -= job->is_discarded;
    }
}

struct job *opener_queue_refuse(struct opener_queue *queue)
{
    struct opener_user *user = queue->turn;
    if (user == NULL) {
        return NULL;
    }
    do {
        for (size_t i = 0; i < MODULE_URGENCIES; i++) {
            if (user->waiting[i].first != NULL) {
                return job_list_take(&user->waiting[i]);
            }
        }
        user = user->next;
    } while (user != queue->turn);
    return NULL;
}

void opener_queue_answered(struct opener_queue *queue, struct job *job)
{
    uncount_request(queue, job);
    if (job->answer.file.fd >= 0) {
        job->next = job->user->handed_out;
        job->user->handed_out = job;
    } else {
        opener_queue_forget(queue, job);
    }
}

void opener_queue_forget(struct opener_queue *queue, struct job *job)
{
    drop_user(queue, job->user);
    opener_queue_free(queue, job);
}

void opener_queue_free(struct opener_queue *queue, struct job *job)
{
    /* The main thread made it: all others are the collector's. */
    bool is_of_main = job->is_discarded || job->answer.source == MODULE_DEBUG;
    if (is_of_main) {
        free(job);
    } else {
        spent_memory_add(&queue->spent, job);
    }
}

void opener_queue_release(struct opener_queue *queue, int fd, uid_t uid)
{
    struct opener_user *user = *find_user(queue, uid);
    assert(user != NULL);
    struct job **link = &user->handed_out;
    while (*link != NULL && (*link)->answer.file.fd != fd) {
        link = &(*link)->next;
    }
    struct job *job = *link;
    assert(job != NULL);
    *link = job->next;
    job->kind = JOB_CLOSE;
    append_closing(user, job);
}

int opener_queue_discard(struct opener_queue *queue, int fd, uid_t uid)
{
    struct opener_user *user = get_user(queue, uid);
    struct job *job = user == NULL ? NULL : calloc(1, sizeof *job);
    if (job == NULL) {
        if (user != NULL) {
            drop_user(queue, user);
        }
        return -ENOMEM;
    }
    job->kind = JOB_CLOSE;
    job->user = user;
    job->is_discarded = true;
    job->answer.uid = uid;
    job->answer.file.fd = fd;
    user->file_count++;
    user->discarded_count++;
    queue->file_count++;
    append_closing(user, job);
    return 0;
}

uint32_t opener_queue_discarded_count(struct opener_queue *queue, uid_t uid)
{
    const struct opener_user *user = *find_user(queue, uid);
    return user == NULL ? 0 : user->discarded_count;
}
