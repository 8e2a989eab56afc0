/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Decides which of the two workers of the module cache reads what. The first worker reads any file,
 * for at most MODULE_LOAD_LIMIT_NS each. The second worker is started when the first has read one
 * file for MODULE_SLOW_NS, and ends after MODULE_SECOND_IDLE_NS without a file.
 *
 * An account whose file is at a worker comes after the others, and only with files that a sample
 * waits for: a slow file at the first worker leaves the second to the others. Several slow files
 * are bounded by time. While the first worker is slow, the second gives a file back after
 * MODULE_SLOW_NS if another file waits as urgently; from then on only the first worker reads that
 * file. The same holds for a file that the second, which has less memory, cannot read.
 *
 * The decisions depend on the loads at both workers and on the queue alone. Belongs to the main
 * thread.
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

/* Starts the first worker; `workers` is zeroed, `configs` has one for each. Returns 0 or -errno. */
int module_workers_init(struct module_workers *workers,
                        const struct elf_worker_config configs[MODULE_WORKERS],
                        struct opener *opener, int epoll_fd);
/* Ends all workers, the dying ones too, and waits a moment for each. */
void module_workers_done(struct module_workers *workers);

/* True when the worker has read its file for MODULE_SLOW_NS. */
bool module_worker_is_slow(const struct module_worker *worker, uint64_t now_ns);

/* Sets which loads a worker may begin; false: none. */
bool module_workers_turn(const struct module_workers *workers, enum module_worker_name name,
                         uint64_t now_ns, struct module_turn *ret);
/* True when the second worker must give its file back for a load of this queue. */
bool module_workers_is_in_the_way(const struct module_workers *workers, struct module_queue *queue,
                                  uint64_t now_ns);
/* Starts the first worker if it is missing and the second if there is a load for it; ends a second
 * worker that is idle. */
void module_workers_keep(struct module_workers *workers, struct module_queue *queue,
                         uint64_t now_ns);
/* The time at which one of these answers changes if no event does before; UINT64_MAX: never. */
uint64_t module_workers_next_look_ns(const struct module_workers *workers, uint64_t now_ns);
