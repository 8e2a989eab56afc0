/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Decides which of the two workers reads a file. How long a file takes is not known before, so only
 * the time that it has taken decides that it is slow.
 */
#include "module_workers.h"

#include "extremes.h"

int module_workers_init(struct module_workers *workers,
                        const struct elf_worker_config configs[MODULE_WORKERS],
                        struct opener *opener, int epoll_fd)
{
    const struct module_worker_place place = {opener, epoll_fd, &workers->dying};
    for (size_t i = 0; i < MODULE_WORKERS; i++) {
        module_worker_init(&workers->workers[i], &configs[i], &place);
    }
    return module_worker_start(&workers->workers[MODULE_FIRST], 0);
}

void module_workers_done(struct module_workers *workers)
{
    for (size_t i = 0; i < MODULE_WORKERS; i++) {
        module_worker_done(&workers->workers[i]);
    }
    dying_workers_done(&workers->dying);
}

bool module_worker_is_slow(const struct module_worker *worker, uint64_t now_ns)
{
    return worker->load != NULL && now_ns - worker->since_ns >= MODULE_SLOW_NS;
}

static void note_busy(struct module_turn *turn, const struct module_worker *worker)
{
    if (worker->load != NULL) {
        turn->busy[turn->busy_count++] = worker->uid;
    }
}

bool module_workers_turn(const struct module_workers *workers, enum module_worker_name name,
                         uint64_t now_ns, struct module_turn *ret)
{
    const struct module_worker *first = &workers->workers[MODULE_FIRST];
    const struct module_worker *second = &workers->workers[MODULE_SECOND];
    bool is_second = name == MODULE_SECOND;
    struct module_turn turn = {.is_for_second = is_second};
    if (workers->workers[name].load != NULL ||
        (is_second && !module_worker_is_slow(first, now_ns))) {
        return false;
    }
    note_busy(&turn, is_second ? first : second);
    *ret = turn;
    return true;
}

bool module_workers_is_in_the_way(const struct module_workers *workers, struct module_queue *queue,
                                  uint64_t now_ns)
{
    const struct module_worker *first = &workers->workers[MODULE_FIRST];
    const struct module_worker *second = &workers->workers[MODULE_SECOND];
    struct module_turn turn = {.is_for_second = true};
    if (!module_worker_is_slow(first, now_ns) || !module_worker_is_slow(second, now_ns)) {
        return false;
    }
    note_busy(&turn, first);
    note_busy(&turn, second);
    const struct module_load *load = module_queue_first(queue, &turn, NULL);
    return load != NULL && load->request.urgency <= second->load->request.urgency;
}

void module_workers_keep(struct module_workers *workers, struct module_queue *queue,
                         uint64_t now_ns)
{
    struct module_worker *second = &workers->workers[MODULE_SECOND];
    struct module_turn turn;
    dying_workers_look(&workers->dying);
    (void)module_worker_start(&workers->workers[MODULE_FIRST], now_ns);
    if (second->current == NULL) {
        if (module_workers_turn(workers, MODULE_SECOND, now_ns, &turn) &&
            module_queue_first(queue, &turn, NULL) != NULL) {
            (void)module_worker_start(second, now_ns);
        }
    } else if (second->load == NULL && now_ns - second->since_ns >= MODULE_SECOND_IDLE_NS) {
        module_worker_retire(second);
    }
}

/* The earlier of two times, of which those that are over do not count. */
static uint64_t earlier(uint64_t a_ns, uint64_t b_ns, uint64_t now_ns)
{
    return b_ns > now_ns ? min_u64(a_ns, b_ns) : a_ns;
}

uint64_t module_workers_next_look_ns(const struct module_workers *workers, uint64_t now_ns)
{
    uint64_t at_ns = UINT64_MAX;
    for (size_t i = 0; i < MODULE_WORKERS; i++) {
        const struct module_worker *worker = &workers->workers[i];
        if (worker->load != NULL) {
            at_ns = earlier(at_ns, worker->since_ns + MODULE_SLOW_NS, now_ns);
            at_ns = earlier(at_ns, worker->since_ns + MODULE_LOAD_LIMIT_NS, now_ns);
        } else if (worker->current == NULL) {
            at_ns = earlier(at_ns, worker->restart_ns, now_ns);
        } else if (i == MODULE_SECOND) {
            at_ns = earlier(at_ns, worker->since_ns + MODULE_SECOND_IDLE_NS, now_ns);
        }
    }
    return at_ns;
}
