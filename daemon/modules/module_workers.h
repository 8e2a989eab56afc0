/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The two workers of the module cache. The first reads everything, up to MODULE_LOAD_LIMIT_NS a
 * file. The second reads beside it once the first has been at one file for MODULE_SLOW_NS, is
 * started for that, and ends when nothing has come for MODULE_SECOND_IDLE_NS.
 *
 * An account with a file at a worker comes after the others, and with no more than what a sample
 * waits for, so a slow file at the first leaves the second to them. What slow files can do together
 * is bounded by time: while the first is slow, a file that has been at the second for
 * MODULE_SLOW_NS is put back when another one waits as urgently, and is then for the first alone.
 * So is a file that the second cannot read, since it may use less memory.
 *
 * Which file a worker may begin, and when to look again, follows from what both read and from the
 * queue alone. Belongs to the main thread.
 */

#include "module_worker.h"

#define MODULE_SLOW_NS        (300 * NS_PER_MS)
#define MODULE_SECOND_IDLE_NS (10 * NS_PER_S)

enum module_worker_name {
    MODULE_FIRST,
    MODULE_SECOND,
    MODULE_WORKERS,
};

struct module_workers {
    struct module_worker workers[MODULE_WORKERS];
    struct dying_workers dying;
};

/* Of zero bytes: starts the first one. `configs`: of each. Returns 0, or -errno. */
int module_workers_init(struct module_workers *workers,
                        const struct elf_worker_config configs[MODULE_WORKERS],
                        struct opener *opener, int epoll_fd);
/* Ends all, also the dying ones, and waits a moment for each. */
void module_workers_done(struct module_workers *workers);

/* Whether one of them has been at its file for long. */
bool module_worker_is_slow(const struct module_worker *worker, uint64_t now_ns);

/* What a worker may begin now; false: nothing. */
bool module_workers_turn(const struct module_workers *workers, enum module_worker_name name,
                         uint64_t now_ns, struct module_turn *ret);
/* Whether the second has been at its file for too long, now that this queue waits. */
bool module_workers_is_in_the_way(const struct module_workers *workers, struct module_queue *queue,
                                  uint64_t now_ns);
/* Starts the first if there is none, the second if there is something for it, and ends the second
 * when it has been idle for long. */
void module_workers_keep(struct module_workers *workers, struct module_queue *queue,
                         uint64_t now_ns);
/* When one of these answers will change, if nothing happens before; UINT64_MAX: never. */
uint64_t module_workers_next_look_ns(const struct module_workers *workers, uint64_t now_ns);
