/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A file may take the worker over, and a worker that was taken over may say anything of the files
 * that come after. So one that has read what an unprivileged user wrote reads nothing but that
 * user's files from then on: for any other, there is a new one.
 *
 * It may also send descriptors, which it should not. The socket with them is closed by an opener's
 * thread, on the account for which the worker read last; until that is through nothing is read for
 * that account (module_cache.c).
 */
#include "module_worker.h"

#include "cleanup.h"
#include "limit_clock.h"

#include <sys/epoll.h>

#define RESTART_DELAY_NS  (100 * NS_PER_MS)
#define RESTART_DELAY_MAX NS_PER_S

static int start(struct module_worker *worker)
{
    struct elf_worker *started = NULL;
    struct epoll_event event = {.events = EPOLLIN};
    int r = elf_worker_start(&worker->config, &started);
    if (r < 0) {
        return r;
    }
    if (epoll_ctl(worker->epoll_fd, EPOLL_CTL_ADD, elf_worker_fd(started), &event) < 0) {
        r = -errno;
        elf_worker_free(started);
        return r;
    }
    worker->current = started;
    worker->author = 0;
    return 0;
}

int module_worker_init(struct module_worker *worker, struct opener *opener, int epoll_fd)
{
    worker->opener = opener;
    worker->epoll_fd = epoll_fd;
    return start(worker);
}

void module_worker_done(struct module_worker *worker)
{
    worker->current = elf_worker_free(worker->current);
    dying_workers_done(&worker->dying);
}

/* There is a place for it: none is started without one. A socket that is closed may be open still
 * in another process, so that it would stay readable here. */
static void end(struct module_worker *worker, const uid_t *uid)
{
    struct elf_worker *ended = take_ptr(worker->current);
    (void)epoll_ctl(worker->epoll_fd, EPOLL_CTL_DEL, elf_worker_fd(ended), NULL);
    (void)dying_workers_have_room(&worker->dying);
    dying_workers_add(&worker->dying, ended, uid);
    int socket_fd = elf_worker_take_socket(ended);
    if (socket_fd >= 0) {
        opener_discard(worker->opener, socket_fd, worker->uid);
    }
}

void module_worker_drop(struct module_worker *worker, const struct module_load *load,
                        uint64_t now_ns)
{
    end(worker, load == NULL ? NULL : &load->uid);
    worker->restart_ns = now_ns + worker->restart_delay_ns;
    uint64_t longer_ns = 2 * worker->restart_delay_ns + RESTART_DELAY_NS;
    worker->restart_delay_ns = longer_ns < RESTART_DELAY_MAX ? longer_ns : RESTART_DELAY_MAX;
}

void module_worker_replace(struct module_worker *worker, uint64_t now_ns)
{
    if (!dying_workers_have_room(&worker->dying) || worker->current != NULL ||
        now_ns < worker->restart_ns) {
        return;
    }
    if (start(worker) == 0) {
        worker->restart_count++;
    } else {
        worker->restart_ns = now_ns + RESTART_DELAY_MAX;
    }
}

void module_worker_works(struct module_worker *worker)
{
    worker->restart_delay_ns = 0;
}

/* Whether it has not read the file of a user other than the load's author. */
static bool may_read(const struct module_worker *worker, const struct module_load *load)
{
    return worker->author == 0 ||
           (worker->author == load->file.author && worker->author != MODULE_AUTHOR_UNKNOWN);
}

/* Another one takes the place of one that has seen too much, as soon as there is a place. */
static void renew(struct module_worker *worker)
{
    if (!dying_workers_have_room(&worker->dying)) {
        return;
    }
    end(worker, NULL);
    if (dying_workers_have_room(&worker->dying) && start(worker) == 0) {
        worker->renewal_count++;
    }
}

bool module_worker_prepare(struct module_worker *worker, const struct module_load *load)
{
    if (!may_read(worker, load)) {
        renew(worker);
    }
    return worker->current != NULL && may_read(worker, load);
}

void module_worker_reads(struct module_worker *worker, const struct module_load *load)
{
    worker->author = load->file.author;
    worker->uid = load->uid;
}
