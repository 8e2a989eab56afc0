/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What waits for the opener's threads, by the uid that it is for, and whose turn it is. Only
 * opener.c includes this, and holds its lock around every call but those of job_new() and
 * job_weight().
 */

#include "opener.h"
#include "spent_memory.h"

#define OPENER_BUCKETS 256

enum job_kind {
    JOB_OPEN,
    JOB_OPEN_KERNEL,
    JOB_OPEN_VDSO,
    JOB_OPEN_VDSO_32BIT,
    JOB_OPEN_PERF_MAP,
    JOB_OPEN_JITDUMP,
    JOB_OPEN_DEBUG,
    JOB_CLOSE,
};

struct job {
    struct job *next;
    enum job_kind kind;
    enum module_urgency urgency;
    struct opener_user *user;
    struct module_query query; /* its path is that at the end */
    bool is_discarded;         /* nothing that was opened here */
    bool is_careful;           /* to be done without anything that may hang */
    struct module_place place; /* that may be hanging; its device is 0: not known yet */
    bool asks_process;         /* the query's process may be hanging */
    uint64_t process_start_ns; /* of the query's process */
    bool is_remembered;        /* the query's process is in hung_processes.h */
    struct opener_answer answer;
    char path[];
};

/* Begins as zero bytes. */
struct job_list {
    struct job *first;
    struct job *last; /* of no meaning while there is no first */
};

struct opener_queue {
    struct opener_user *buckets[OPENER_BUCKETS];
    struct opener_user *turn; /* of a ring of all users; NULL: there are none */
    uint64_t weight;          /* of the requests that are not answered */
    uint32_t file_count;
    struct spent_memory spent; /* jobs that the collector made, for it to free */
};

void job_list_append(struct job_list *list, struct job *job);
/* The first job; there is one. */
struct job *job_list_take(struct job_list *list);

/* Copies the request and finds out whose it is. Returned (free()); NULL: no memory. */
struct job *job_new(const struct opener_request *request);
/* As how many requests it counts. */
uint64_t job_weight(const struct job *job);

/* Frees the memory; files that are still to be closed stay open. */
void opener_queue_done(struct opener_queue *queue);

/* Takes the job (on success). Returns 0, -EAGAIN when it is beyond the uid's share, -ENOMEM. What
 * closes a file always finds its place. */
int opener_queue_add(struct opener_queue *queue, struct job *job);
/*
 * A job that may be done now, or NULL: files are closed first, then what is wanted is opened, then
 * the rest; among equals the users take turns. A user all of whose threads hang has one that is
 * careful, and so has each when `only_careful` says that no more may hang.
 */
struct job *opener_queue_take(struct opener_queue *queue, bool may_open, bool only_careful);
/* Its thread hangs; it counts as answered. */
void opener_queue_give_up(struct opener_queue *queue, struct job *job);
/* Its thread has come back. */
void opener_queue_leave(struct opener_queue *queue, struct job *job, bool was_given_up);
/* A job (returned) that will not be done, or NULL. */
struct job *opener_queue_refuse(struct opener_queue *queue);
/* Takes a job whose answer is handed out, and keeps it while its file is open. */
void opener_queue_answered(struct opener_queue *queue, struct job *job);
/* Takes a job of which nothing is left. */
void opener_queue_forget(struct opener_queue *queue, struct job *job);
/* Frees a job that is in no queue: the one of the collector is left for it to free. */
void opener_queue_free(struct opener_queue *queue, struct job *job);
/* A file that was handed out is to be closed. */
void opener_queue_release(struct opener_queue *queue, int fd, uid_t uid);
/* A descriptor of unknown kind is to be closed, which counts as a file of that user. Returns 0, or
 * -ENOMEM. */
int opener_queue_discard(struct opener_queue *queue, int fd, uid_t uid);
/* How many of these are not closed yet. */
uint32_t opener_queue_discarded_count(struct opener_queue *queue, uid_t uid);
