/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Starts, ends and renews one worker. A hostile file may take the worker over, and such a worker
 * may answer falsely for later files. So a worker that has read a file of an unprivileged user
 * reads only that user's files from then on; any other file gets a new worker.
 *
 * A worker that was taken over may also send descriptors. An opener's thread closes the socket that
 * holds them, charged to the account for which the worker read last. Until it is closed no file is
 * read for that account (is_forbidden() in module_reader.c).
 */
#include "module_worker.h"

#include "cleanup.h"
#include "limit_clock.h"

#include <sys/epoll.h>

#define RESTART_DELAY_NS  (100 * NS_PER_MS)
#define RESTART_DELAY_MAX NS_PER_S

static int start(struct module_worker *worker, uint64_t now_ns)
{
    struct elf_worker *started = NULL;
    struct epoll_event event = {.events = EPOLLIN};
    int r = elf_worker_start(&worker->config, &started);
    if (r < 0) {
        return r;
    }
    if (epoll_ctl(worker->place.epoll_fd, EPOLL_CTL_ADD, elf_worker_fd(started), &event) < 0) {
        r = -errno;
        elf_worker_free(started);
        return r;
    }
    worker->current = started;
    worker->since_ns = now_ns;
    worker->author = 0;
    return 0;
}

/* Starts a worker after a place for its end was reserved. */
static int start_with_place(struct module_worker *worker, uint64_t now_ns)
{
    if (!dying_workers_reserve(worker->place.dying)) {
        return -EBUSY;
    }
    int r = start(worker, now_ns);
    if (r < 0) {
        dying_workers_unreserve(worker->place.dying);
    }
    return r;
}

void module_worker_init(struct module_worker *worker, const struct elf_worker_config *config,
                        const struct module_worker_place *place)
{
    worker->config = *config;
    worker->place = *place;
}

void module_worker_done(struct module_worker *worker)
{
    worker->current = elf_worker_free(worker->current);
}

/* Ends the worker. Its socket leaves the epoll set first: another process may keep it open. */
static void end(struct module_worker *worker)
{
    struct elf_worker *ended = take_ptr(worker->current);
    (void)epoll_ctl(worker->place.epoll_fd, EPOLL_CTL_DEL, elf_worker_fd(ended), NULL);
    dying_workers_add(worker->place.dying, ended, worker->load == NULL ? NULL : &worker->uid);
    int socket_fd = elf_worker_take_socket(ended);
    if (socket_fd >= 0) {
        opener_discard(worker->place.opener, socket_fd, worker->uid);
    }
}

void module_worker_drop(struct module_worker *worker, uint64_t now_ns)
{
    end(worker);
    worker->was_lost = true;
    worker->restart_ns = now_ns + worker->restart_delay_ns;
    uint64_t longer_ns = 2 * worker->restart_delay_ns + RESTART_DELAY_NS;
    worker->restart_delay_ns = longer_ns < RESTART_DELAY_MAX ? longer_ns : RESTART_DELAY_MAX;
}

void module_worker_retire(struct module_worker *worker)
{
    end(worker);
}

int module_worker_start(struct module_worker *worker, uint64_t now_ns)
{
    if (worker->current != NULL || now_ns < worker->restart_ns) {
        return 0;
    }
    int r = start_with_place(worker, now_ns);
    if (r == 0) {
        worker->restart_count += worker->was_lost;
        worker->was_lost = false;
    } else if (r != -EBUSY) {
        worker->restart_ns = now_ns + RESTART_DELAY_MAX;
    }
    return r;
}

void module_worker_works(struct module_worker *worker)
{
    worker->restart_delay_ns = 0;
}

/* True unless the worker has read a file of another user than the load's author. */
static bool may_read(const struct module_worker *worker, const struct module_load *load)
{
    return worker->author == 0 ||
           (worker->author == load->file.author && worker->author != MODULE_AUTHOR_UNKNOWN);
}

/* Replaces the worker, if there is a place for the old one. */
static void renew(struct module_worker *worker, uint64_t now_ns)
{
    if (!dying_workers_reserve(worker->place.dying)) {
        return;
    }
    end(worker);
    if (start(worker, now_ns) == 0) {
        worker->renewal_count++;
    } else {
        dying_workers_unreserve(worker->place.dying);
    }
}

bool module_worker_prepare(struct module_worker *worker, const struct module_load *load,
                           uint64_t now_ns)
{
    if (worker->current != NULL && !may_read(worker, load)) {
        renew(worker, now_ns);
    }
    return worker->current != NULL && may_read(worker, load);
}

void module_worker_reads(struct module_worker *worker, struct module_load *load, bool both,
                         uid_t uid, uint64_t now_ns)
{
    worker->load = load;
    worker->reads_both = both;
    worker->since_ns = now_ns;
    worker->charged_ns = now_ns;
    worker->author = load->file.author;
    worker->uid = uid;
}

struct module_load *module_worker_take(struct module_worker *worker, uint64_t now_ns)
{
    worker->since_ns = now_ns;
    worker->reads_both = false;
    return take_ptr(worker->load);
}
