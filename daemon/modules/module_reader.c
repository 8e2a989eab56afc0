/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Moves each load from the queue to a worker and back out as a result. A load is in one of the two
 * places. A worker has one request under way. A worker that dies or takes too long fails that load
 * and is replaced after a delay. The load's account is charged the time, whatever the result.
 */
#include "module_reader.h"

#include "cleanup.h"
#include "slow_files.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>

struct module_reader {
    struct opener *opener; /* borrowed */
    struct module_queue *queue;
    struct module_workers workers;
    struct slow_files slow_files;
    int epoll_fd;
    int timer_fd;
    uint64_t timer_ns; /* when it expires; UINT64_MAX: never */
    uint64_t hung_refused_count;
    uint64_t put_back_count;
    uint64_t foreign_clock_count;
    uid_t foreign_clock_uid;
};

static int set_up(struct module_reader *reader, const struct elf_worker_config *configs)
{
    struct epoll_event event = {.events = EPOLLIN};
    reader->timer_ns = UINT64_MAX;
    reader->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    reader->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    reader->queue = module_queue_new();
    if (reader->queue == NULL) {
        return -ENOMEM;
    }
    if (reader->epoll_fd < 0 || reader->timer_fd < 0 ||
        epoll_ctl(reader->epoll_fd, EPOLL_CTL_ADD, reader->timer_fd, &event) < 0) {
        return -errno;
    }
    return module_workers_init(&reader->workers, configs, reader->opener, reader->epoll_fd);
}

int module_reader_new(const struct elf_worker_config configs[MODULE_WORKERS], struct opener *opener,
                      struct module_reader **ret)
{
    struct module_reader *reader = calloc(1, sizeof *reader);
    if (reader == NULL) {
        return -ENOMEM;
    }
    reader->opener = opener;
    int r = set_up(reader, configs);
    if (r < 0) {
        module_reader_free(reader);
        return r;
    }
    *ret = reader;
    return 0;
}

void module_reader_stop(struct module_reader *reader)
{
    module_workers_done(&reader->workers);
}

struct module_load *module_reader_drain(struct module_reader *reader)
{
    static const struct module_turn any = {.busy_count = 0};
    for (size_t i = 0; i < MODULE_WORKERS; i++) {
        if (reader->workers.workers[i].load != NULL) {
            return take_ptr(reader->workers.workers[i].load);
        }
    }
    struct module_load *load = module_queue_first(reader->queue, &any, NULL);
    if (load != NULL) {
        module_queue_remove(reader->queue, load);
    }
    return load;
}

struct module_reader *module_reader_free(struct module_reader *reader)
{
    if (reader != NULL) {
        module_queue_free(reader->queue);
        close_fd(reader->timer_fd);
        close_fd(reader->epoll_fd);
        free(reader);
    }
    return NULL;
}

int module_reader_fd(const struct module_reader *reader)
{
    return reader->epoll_fd;
}

/* False for the kernel: its symbols change, so it has no identity by which to know it again. */
static bool is_known(const struct module_load *load)
{
    return load->request.source != MODULE_KERNEL;
}

int module_reader_claim(struct module_reader *reader, struct module_load *load, uid_t uid)
{
    return module_queue_claim(reader->queue, load, uid);
}

void module_reader_review(struct module_reader *reader, struct module_load *load)
{
    module_queue_review(reader->queue, load);
}

int module_reader_add(struct module_reader *reader, struct module_load *load)
{
    uint64_t known_ns = 0;
    if (is_known(load)) {
        known_ns =
            slow_files_time_ns(&reader->slow_files, load->request.table, &load->file.identity);
    }
    load->expected_ns = module_load_expected_ns(load, known_ns);
    load->is_for_first = load->is_for_first || known_ns > 0;
    return module_queue_add(reader->queue, load);
}

/* Charges the time that a worker took for a table. */
static void charge_table(struct module_reader *reader, struct module_worker *worker,
                         uint64_t now_ns)
{
    const struct module_load *load = worker->load;
    uint64_t time_ns = now_ns - worker->charged_ns;
    worker->charged_ns = now_ns;
    module_queue_charge(reader->queue, worker->uid, time_ns);
    if (is_known(load) && time_ns >= MODULE_SLOW_NS) {
        slow_files_add(&reader->slow_files, load->request.table, &load->file.identity, time_ns);
    }
}

/* Takes the load (returned) of a worker and charges its time. */
static struct module_load *take_load(struct module_reader *reader, struct module_worker *worker,
                                     uint64_t now_ns)
{
    charge_table(reader, worker, now_ns);
    return module_worker_take(worker, now_ns);
}

static bool fail_load(struct module_load *load, enum module_failure failure,
                      struct module_reading *ret)
{
    *ret = (struct module_reading){.load = load, .failure = failure};
    return true;
}

/* Ends the reading of a table: of the first of two, the load stays at its worker. */
static bool end_table(struct module_reader *reader, struct module_worker *worker, uint64_t now_ns,
                      enum module_failure failure, struct module_reading *ret)
{
    if (!worker->reads_both) {
        return fail_load(take_load(reader, worker, now_ns), failure, ret);
    }
    charge_table(reader, worker, now_ns);
    worker->reads_both = false;
    *ret = (struct module_reading){.load = worker->load, .failure = failure, .goes_on = true};
    return true;
}

/* Queues the second worker's load again, for the first worker alone. */
static bool put_back(struct module_reader *reader, uint64_t now_ns, struct module_reading *ret)
{
    struct module_worker *second = &reader->workers.workers[MODULE_SECOND];
    struct module_load *load = take_load(reader, second, now_ns);
    load->is_for_first = true;
    reader->put_back_count++;
    return module_reader_add(reader, load) < 0 && fail_load(load, MODULE_FAILURE_LIMIT, ret);
}

/* Notes a refusal that the file's user can mend. */
static void note_refusal(struct module_reader *reader, const struct module_load *load, int error)
{
    if (error == -ENOTSUP && load->request.source == MODULE_JITDUMP) {
        reader->foreign_clock_count++;
        reader->foreign_clock_uid = load->file.owner;
    }
}

/* Takes a worker's answer, or its death. True: `*ret` is set. */
static bool receive_answer(struct module_reader *reader, enum module_worker_name name,
                           uint64_t now_ns, struct module_reading *ret)
{
    struct module_worker *worker = &reader->workers.workers[name];
    if (worker->current == NULL) {
        return false;
    }
    struct elf_worker_table table;
    int r = elf_worker_receive(worker->current, &table);
    bool late = worker->load != NULL && now_ns - worker->since_ns >= MODULE_LOAD_LIMIT_NS;
    if (r == -EPIPE || (r == -EAGAIN && late)) {
        module_worker_drop(worker, now_ns);
        return worker->load != NULL &&
               fail_load(take_load(reader, worker, now_ns), MODULE_FAILURE_WORKER, ret);
    }
    if (r == -EAGAIN) {
        return false;
    }
    module_worker_works(worker);
    /* What was opened is not in a file that was written since: it is to be opened again. */
    if (r == -ENOBUFS || r == -ESTALE) {
        return end_table(reader, worker, now_ns, MODULE_FAILURE_LIMIT, ret);
    }
    if (r < 0 && name == MODULE_SECOND) {
        return put_back(reader, now_ns, ret);
    }
    if (r < 0) {
        note_refusal(reader, worker->load, r);
        return end_table(reader, worker, now_ns, MODULE_FAILURE_UNREADABLE, ret);
    }
    (void)end_table(reader, worker, now_ns, MODULE_FAILURE_NONE, ret);
    ret->table = table;
    return true;
}

/* Takes the second worker's load away if others wait for that worker. True: `*ret` is set. */
static bool clear_the_way(struct module_reader *reader, uint64_t now_ns, struct module_reading *ret)
{
    if (!module_workers_is_in_the_way(&reader->workers, reader->queue, now_ns)) {
        return false;
    }
    module_worker_retire(&reader->workers.workers[MODULE_SECOND]);
    return put_back(reader, now_ns, ret);
}

/* True while workers or descriptors of this account's earlier files hang. */
static bool is_forbidden(struct module_reader *reader, const struct module_load *load, uid_t uid)
{
    return dying_workers_forbid(&reader->workers.dying, uid, load->file.is_local) ||
           opener_is_discarding(reader->opener, uid);
}

/* Whether a worker is asked for both tables at once. What the second worker cannot read is given
 * back, so that is one table. */
static bool is_asked_for_both(const struct module_reader *reader, enum module_worker_name name,
                              const struct module_load *load)
{
    return name == MODULE_FIRST && module_load_may_be_both(load) &&
           slow_files_time_ns(&reader->slow_files, MODULE_SYMBOLS, &load->file.identity) == 0;
}

static void send_load(struct module_reader *reader, enum module_worker_name name,
                      struct module_load *load, uid_t uid, uint64_t now_ns)
{
    struct module_worker *worker = &reader->workers.workers[name];
    if (!module_worker_prepare(worker, load, now_ns)) {
        return;
    }
    bool both = is_asked_for_both(reader, name, load);
    int r = module_load_ask(load, worker->current, both);
    if (r == -EAGAIN) {
        return;
    }
    if (r < 0) {
        /* The worker died before it got this load. */
        module_worker_drop(worker, now_ns);
        return;
    }
    module_queue_serve(reader->queue, load, uid);
    module_worker_reads(worker, load, both, uid, now_ns);
}

/* Sends the next load to a worker. True: `*ret` is a load that is not to be read. */
static bool begin_load(struct module_reader *reader, enum module_worker_name name, uint64_t now_ns,
                       bool only_wanted, struct module_reading *ret)
{
    struct module_turn turn;
    if (!module_workers_turn(&reader->workers, name, now_ns, &turn)) {
        return false;
    }
    uid_t uid = 0;
    struct module_load *load = module_queue_first(reader->queue, &turn, &uid);
    while (load != NULL && is_forbidden(reader, load, uid)) {
        if (module_queue_unclaim(reader->queue, load, uid)) {
            load->is_waiting = false;
            reader->hung_refused_count++;
            return fail_load(load, MODULE_FAILURE_LIMIT, ret);
        }
        load = module_queue_first(reader->queue, &turn, &uid);
    }
    if (load == NULL || (only_wanted && load->request.urgency != MODULE_WANTED)) {
        return false;
    }
    if (module_load_is_abandoned(load)) {
        module_queue_remove(reader->queue, load);
        return fail_load(load, MODULE_FAILURE_LIMIT, ret);
    }
    send_load(reader, name, load, uid, now_ns);
    return false;
}

/* Sets the timer to the next time at which something is due. */
static void set_timer(struct module_reader *reader, uint64_t now_ns)
{
    uint64_t at_ns = module_workers_next_look_ns(&reader->workers, now_ns);
    if (at_ns == reader->timer_ns) {
        return;
    }
    reader->timer_ns = at_ns;
    struct itimerspec time = {.it_value.tv_sec = 0};
    if (at_ns != UINT64_MAX) {
        time.it_value = clock_timespec(at_ns);
    }
    (void)timerfd_settime(reader->timer_fd, TFD_TIMER_ABSTIME, &time, NULL);
}

bool module_reader_next(struct module_reader *reader, uint64_t now_ns, bool only_wanted,
                        struct module_reading *ret)
{
    if (receive_answer(reader, MODULE_FIRST, now_ns, ret) ||
        receive_answer(reader, MODULE_SECOND, now_ns, ret) || clear_the_way(reader, now_ns, ret)) {
        return true;
    }
    module_workers_keep(&reader->workers, reader->queue, now_ns);
    if (begin_load(reader, MODULE_FIRST, now_ns, only_wanted, ret) ||
        begin_load(reader, MODULE_SECOND, now_ns, only_wanted, ret)) {
        return true;
    }
    set_timer(reader, now_ns);
    return false;
}

struct module_load *module_reader_find(struct module_reader *reader, enum module_table table,
                                       const struct file_identity *identity)
{
    for (size_t i = 0; i < MODULE_WORKERS; i++) {
        struct module_load *load = reader->workers.workers[i].load;
        if (load != NULL && module_load_is(load, table, identity)) {
            return load;
        }
    }
    return module_queue_find(reader->queue, table, identity);
}

void module_reader_want(struct module_reader *reader, struct module_load *load)
{
    bool waits = true;
    for (size_t i = 0; i < MODULE_WORKERS; i++) {
        waits = waits && load != reader->workers.workers[i].load;
    }
    if (waits) {
        module_queue_want(reader->queue, load);
    } else {
        load->request.urgency = MODULE_WANTED;
    }
}

struct module_reader_counts module_reader_counts(const struct module_reader *reader)
{
    struct module_reader_counts counts = {
        .hung_refused_count = reader->hung_refused_count,
        .put_back_count = reader->put_back_count,
        .foreign_clock_count = reader->foreign_clock_count,
        .foreign_clock_uid = reader->foreign_clock_uid,
        .troubles = reader->workers.dying.troubles,
    };
    for (size_t i = 0; i < MODULE_WORKERS; i++) {
        counts.restart_count += reader->workers.workers[i].restart_count;
        counts.renewal_count += reader->workers.workers[i].renewal_count;
    }
    return counts;
}

int module_reader_worker_pid(const struct module_reader *reader, enum module_worker_name name)
{
    const struct module_worker *worker = &reader->workers.workers[name];
    return worker->current == NULL ? 0 : elf_worker_pid(worker->current);
}
