/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Leads each ticket to its table: the opener finds the file, the store knows whether there is a
 * table for it, and if not, a load waits for the worker, one for each file however many tickets
 * want it. The worker has one request under way; whose turn it is says module_queue. A worker that
 * dies or takes too long costs the tickets of that one load, and is replaced after a moment.
 *
 * A file that has been read is read again together with its debug file, if there is one, which is
 * known only once its build-id is. Where that fails, what it gave alone is its table.
 *
 * Everything but the requests runs in the main thread, inside module_cache_dispatch(), which never
 * waits: files are opened and closed by the opener's threads, and a killed worker is reaped when it
 * is ready to be.
 */
#include "module_cache.h"

#include "cleanup.h"
#include "limit_clock.h"
#include "module_load.h"
#include "module_queue.h"
#include "module_ticket.h"
#include "module_worker.h"
#include "opener.h"

#include <sys/epoll.h>
#include <sys/mman.h>

#define LOAD_LIMIT_NS    (10 * NS_PER_S)
#define TRIM_INTERVAL_NS NS_PER_S

struct module_cache {
    struct opener *opener;
    struct module_store *store;
    int epoll_fd;
    struct module_worker worker;
    struct module_queue *queue;
    struct module_load *current; /* with the worker */
    struct module_load *parted;  /* read, while the debug file of each is looked for */
    uint64_t current_begin_ns;
    uint64_t trim_ns;
    atomic_uint_least64_t requested_count;
    uint64_t ready_counts[MODULE_TABLES];
    uint64_t failed_counts[MODULE_TABLES];
    atomic_uint_least64_t refused_count;
    uint64_t hung_refused_count;
};

static void fail_ticket(struct module_cache *cache, struct module_ticket *ticket,
                        enum module_failure failure)
{
    cache->failed_counts[ticket->request.table]++;
    module_ticket_fail(ticket, failure);
}

static void finish_ticket(struct module_cache *cache, struct module_ticket *ticket,
                          struct module_entry *entry)
{
    cache->ready_counts[ticket->request.table]++;
    module_ticket_finish(ticket, entry);
}

/* Decides all tickets of a load, by `entry` or, if NULL, by `failure`, and ends it. */
static void end_load(struct module_cache *cache, struct module_load *load,
                     struct module_entry *entry, enum module_failure failure)
{
    while (load->tickets != NULL) {
        struct module_ticket *ticket = load->tickets;
        load->tickets = ticket->next;
        if (entry != NULL) {
            finish_ticket(cache, ticket, entry);
        } else {
            fail_ticket(cache, ticket, failure);
        }
    }
    opener_release(cache->opener, load->file.fd, load->uid);
    if (load->debug_fd >= 0) {
        opener_release(cache->opener, load->debug_fd, OPENER_OWN_UID);
    }
    if (load->first.map != NULL) {
        (void)munmap(load->first.map, load->first.map_bytes);
    }
    free(load);
}

/* The load under way, which is so no more; the time it took is its user's. */
static struct module_load *take_current(struct module_cache *cache)
{
    struct module_load *load = take_ptr(cache->current);
    module_queue_charge(cache->queue, load->uid, limit_clock_ns() - cache->current_begin_ns);
    return load;
}

/* Takes the table, which is what its tickets get. */
static void keep_table(struct module_cache *cache, struct module_load *load,
                       const struct elf_worker_table *table)
{
    struct module_entry *entry = NULL;
    bool kernel = load->request.source == MODULE_KERNEL;
    int r = module_store_add(cache->store, kernel ? NULL : &load->file.identity, load->uid, table,
                             &entry);
    if (r < 0) {
        (void)munmap(table->map, table->map_bytes);
    }
    end_load(cache, load, entry, MODULE_FAILURE_LIMIT);
}

/* What was read of the file alone. */
static void keep_first_table(struct module_cache *cache, struct module_load *load)
{
    const struct elf_worker_table first = load->first;
    load->first.map = NULL;
    keep_table(cache, load, &first);
}

/* The load under way has no table, or no other than it had: remembered, where it is the file's
 * doing, but for the kernel, which has no identity. */
static void fail_current(struct module_cache *cache, enum module_failure failure, uint64_t now_ns)
{
    struct module_load *load = take_current(cache);
    if (load->first.map != NULL) {
        keep_first_table(cache, load);
        return;
    }
    if (load->request.source != MODULE_KERNEL && failure != MODULE_FAILURE_LIMIT) {
        module_store_fail(cache->store, load->request.table, &load->file.identity, failure, now_ns);
    }
    end_load(cache, load, NULL, failure);
}

/* Has the debug file of what has just been read looked for. False: it has none. */
static bool part_load(struct module_cache *cache, struct module_load *load,
                      const struct elf_worker_table *table)
{
    char path[MODULE_DEBUG_PATH_BYTES];
    if (!module_load_debug_path(load, table, path)) {
        return false;
    }
    const struct module_query query = {.path = path};
    const struct opener_request request = {
        .source = MODULE_DEBUG, .urgency = MODULE_WANTED, .query = &query, .userdata = load};
    if (opener_submit(cache->opener, &request) < 0) {
        return false;
    }
    load->first = *table;
    load->next = cache->parted;
    cache->parted = load;
    return true;
}

static void take_table(struct module_cache *cache, const struct elf_worker_table *table)
{
    struct module_load *load = take_current(cache);
    if (!part_load(cache, load, table)) {
        keep_table(cache, load, table);
    }
}

/* The debug file is there, or is not: the file is read again with it, or not. */
static void take_debug_file(struct module_cache *cache, const struct opener_answer *answer)
{
    struct module_load *load = answer->userdata;
    struct module_load **link = &cache->parted;
    while (*link != load) {
        link = &(*link)->next;
    }
    *link = load->next;
    load->next = NULL;
    load->debug_fd = answer->failure == MODULE_FAILURE_NONE ? answer->file.fd : -1;
    load->debug_bytes = answer->file.identity.size_bytes;
    if (load->debug_fd < 0 || module_queue_add(cache->queue, load) < 0) {
        keep_first_table(cache, load);
    }
}

static void receive_answer(struct module_cache *cache, uint64_t now_ns)
{
    if (cache->worker.current == NULL) {
        return;
    }
    struct elf_worker_table table;
    int r = elf_worker_receive(cache->worker.current, &table);
    bool late = cache->current != NULL && now_ns - cache->current_begin_ns >= LOAD_LIMIT_NS;
    if (r == -EPIPE || (r == -EAGAIN && late)) {
        module_worker_drop(&cache->worker, cache->current, now_ns);
        if (cache->current != NULL) {
            fail_current(cache, MODULE_FAILURE_WORKER, now_ns);
        }
        return;
    }
    if (r == -EAGAIN) {
        return;
    }
    module_worker_works(&cache->worker);
    if (r == 0) {
        take_table(cache, &table);
        return;
    }
    bool no_room = r == -ENOBUFS;
    fail_current(cache, no_room ? MODULE_FAILURE_LIMIT : MODULE_FAILURE_UNREADABLE, now_ns);
}

/* The load whose turn it is, or NULL: what is only likely to be needed does not come between the
 * two readings of what a sample waits for. */
static struct module_load *next_load(struct module_cache *cache)
{
    struct module_load *load = module_queue_first(cache->queue);
    const struct module_load *parted = cache->parted;
    while (parted != NULL && parted->request.urgency != MODULE_WANTED) {
        parted = parted->next;
    }
    bool waits = parted != NULL && load != NULL && load->request.urgency != MODULE_WANTED;
    return waits ? NULL : load;
}

/* Whether what such files did before stands in the way of another one. */
static bool is_forbidden(struct module_cache *cache, const struct module_load *load)
{
    return dying_workers_forbid(&cache->worker.dying, load->uid, load->file.is_local) ||
           opener_is_discarding(cache->opener, load->uid);
}

/* The same, of those that may be read. */
static struct module_load *next_allowed_load(struct module_cache *cache)
{
    struct module_load *load = next_load(cache);
    while (load != NULL && is_forbidden(cache, load)) {
        module_queue_remove(cache->queue, load);
        cache->hung_refused_count++;
        if (load->first.map != NULL) {
            keep_first_table(cache, load);
        } else {
            end_load(cache, load, NULL, MODULE_FAILURE_LIMIT);
        }
        load = next_load(cache);
    }
    return load;
}

static void send_load(struct module_cache *cache, uint64_t now_ns)
{
    struct module_load *load = next_allowed_load(cache);
    if (cache->worker.current == NULL || cache->current != NULL || load == NULL ||
        !module_worker_prepare(&cache->worker, load)) {
        return;
    }
    int r = module_load_ask(load, cache->worker.current);
    if (r == -EAGAIN) {
        return;
    }
    if (r < 0) {
        /* It was dead before it saw this one. */
        module_worker_drop(&cache->worker, cache->current, now_ns);
        return;
    }
    module_queue_remove(cache->queue, load);
    cache->current = load;
    cache->current_begin_ns = now_ns;
    module_worker_reads(&cache->worker, load);
}

/* The load for what a ticket wants of that file which is under way or waiting, or NULL. */
static struct module_load *find_load(struct module_cache *cache, enum module_table table,
                                     const struct file_identity *identity)
{
    if (cache->current != NULL && module_load_is(cache->current, table, identity)) {
        return cache->current;
    }
    struct module_load *load = cache->parted;
    while (load != NULL && !module_load_is(load, table, identity)) {
        load = load->next;
    }
    return load != NULL ? load : module_queue_find(cache->queue, table, identity);
}

static struct module_load *new_load(struct module_cache *cache, const struct opener_answer *answer)
{
    const struct module_ticket *ticket = answer->userdata;
    struct module_load *load = calloc(1, sizeof *load);
    if (load == NULL) {
        return NULL;
    }
    load->request = ticket->request;
    load->file = answer->file;
    load->uid = answer->uid;
    load->debug_fd = -1;
    if (module_queue_add(cache->queue, load) < 0) {
        free(load);
        return NULL;
    }
    return load;
}

/* A sample waits for it now, wherever it is. */
static void want_load(struct module_cache *cache, struct module_load *load)
{
    bool parted = load->first.map != NULL && load->debug_fd < 0;
    if (parted) {
        load->request.urgency = MODULE_WANTED;
    } else if (load != cache->current) {
        module_queue_want(cache->queue, load);
    }
}

/* Has the ticket wait for the load of its file, which is made if there is none. */
static void add_load(struct module_cache *cache, const struct opener_answer *answer)
{
    struct module_ticket *ticket = answer->userdata;
    struct module_load *load =
        ticket->request.source == MODULE_KERNEL
            ? NULL
            : find_load(cache, ticket->request.table, &answer->file.identity);
    bool joins = load != NULL;
    if (!joins) {
        load = new_load(cache, answer);
    }
    if (joins || load == NULL) {
        opener_release(cache->opener, answer->file.fd, answer->uid);
    }
    if (load == NULL) {
        fail_ticket(cache, ticket, MODULE_FAILURE_LIMIT);
        return;
    }
    if (ticket->request.urgency == MODULE_WANTED) {
        want_load(cache, load);
    }
    ticket->next = load->tickets;
    load->tickets = ticket;
}

/* A file has been opened: is it known? */
static void take_file(struct module_cache *cache, const struct opener_answer *answer,
                      uint64_t now_ns)
{
    struct module_ticket *ticket = answer->userdata;
    const struct file_identity *identity = &answer->file.identity;
    struct module_entry *entry = NULL;
    enum module_failure failure = MODULE_FAILURE_NONE;
    if (ticket->request.source != MODULE_KERNEL) {
        entry = module_store_find(cache->store, ticket->request.table, identity);
        failure = module_store_failure(cache->store, ticket->request.table, identity, now_ns);
    }
    if (entry != NULL) {
        finish_ticket(cache, ticket, entry);
        module_entry_release(entry);
    } else if (failure != MODULE_FAILURE_NONE) {
        fail_ticket(cache, ticket, failure);
    } else {
        add_load(cache, answer);
        return;
    }
    opener_release(cache->opener, answer->file.fd, answer->uid);
}

static void take_answers(struct module_cache *cache, uint64_t now_ns)
{
    struct opener_answer answer;
    while (opener_next(cache->opener, &answer)) {
        if (answer.source == MODULE_DEBUG) {
            take_debug_file(cache, &answer);
        } else if (answer.failure != MODULE_FAILURE_NONE) {
            fail_ticket(cache, answer.userdata, answer.failure);
        } else {
            take_file(cache, &answer, now_ns);
        }
    }
}

int module_cache_new(const struct elf_worker_config *worker_config, struct module_cache **ret)
{
    struct module_cache *cache = calloc(1, sizeof *cache);
    if (cache == NULL) {
        return -ENOMEM;
    }
    cache->worker.config = *worker_config;
    cache->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    cache->store = module_store_new();
    cache->queue = module_queue_new();
    int r = cache->epoll_fd < 0 ? -errno : 0;
    if (r == 0 && (cache->store == NULL || cache->queue == NULL)) {
        r = -ENOMEM;
    }
    if (r == 0) {
        r = opener_new(OPENER_HANG_NS, &cache->opener);
    }
    if (r == 0) {
        struct epoll_event event = {.events = EPOLLIN};
        r = epoll_ctl(cache->epoll_fd, EPOLL_CTL_ADD, opener_fd(cache->opener), &event);
        r = r < 0 ? -errno : 0;
    }
    if (r == 0) {
        r = module_worker_init(&cache->worker, cache->opener, cache->epoll_fd);
    }
    if (r < 0) {
        module_cache_free(cache);
        return r;
    }
    *ret = cache;
    return 0;
}

struct module_cache *module_cache_free(struct module_cache *cache)
{
    if (cache == NULL) {
        return NULL;
    }
    module_worker_done(&cache->worker);
    if (cache->opener != NULL) {
        opener_stop(cache->opener);
        take_answers(cache, limit_clock_ns());
        if (cache->current != NULL) {
            end_load(cache, take_ptr(cache->current), NULL, MODULE_FAILURE_WORKER);
        }
        for (struct module_load *load; (load = module_queue_first(cache->queue)) != NULL;) {
            module_queue_remove(cache->queue, load);
            end_load(cache, load, NULL, MODULE_FAILURE_WORKER);
        }
        opener_free(cache->opener);
    }
    module_queue_free(cache->queue);
    module_store_free(cache->store);
    close_fd(cache->epoll_fd);
    free(cache);
    return NULL;
}

int module_cache_fd(const struct module_cache *cache)
{
    return cache->epoll_fd;
}

void module_cache_dispatch(struct module_cache *cache)
{
    uint64_t now_ns = limit_clock_ns();
    take_answers(cache, now_ns);
    receive_answer(cache, now_ns);
    module_worker_replace(&cache->worker, now_ns);
    send_load(cache, now_ns);
    if (now_ns - cache->trim_ns >= TRIM_INTERVAL_NS) {
        cache->trim_ns = now_ns;
        module_store_trim(cache->store, now_ns);
    }
}

struct module_cache_counts module_cache_counts(struct module_cache *cache)
{
    struct module_cache_counts counts = {
        .requested_count = atomic_load(&cache->requested_count),
        .refused_count = atomic_load(&cache->refused_count),
        .worker_restart_count = cache->worker.restart_count,
        .worker_renewal_count = cache->worker.renewal_count,
        .hung_refused_count = cache->hung_refused_count,
        .worker_troubles = cache->worker.dying.troubles,
        .hang_count = opener_hang_count(cache->opener),
    };
    for (enum module_table table = MODULE_SYMBOLS; table < MODULE_TABLES; table++) {
        counts.tables[table] = (struct module_table_counts){
            .ready_count = cache->ready_counts[table],
            .failed_count = cache->failed_counts[table],
            .module_count = module_store_count(cache->store, table),
            .table_bytes = module_store_bytes(cache->store, table),
        };
    }
    return counts;
}

int module_cache_worker_pid(const struct module_cache *cache)
{
    return cache->worker.current == NULL ? 0 : elf_worker_pid(cache->worker.current);
}

static struct module_ticket *submit(struct module_cache *cache,
                                    const struct module_request *request,
                                    const struct module_query *query)
{
    struct module_ticket *ticket = module_ticket_new(request);
    if (ticket == NULL) {
        return NULL;
    }
    const struct opener_request opening = {
        .source = request->source,
        .urgency = request->urgency,
        .query = query,
        .userdata = ticket,
    };
    if (opener_submit(cache->opener, &opening) < 0) {
        /* Nobody will decide it: both holds are ours. */
        atomic_fetch_add(&cache->refused_count, 1);
        module_ticket_release(ticket);
        module_ticket_release(ticket);
        return NULL;
    }
    atomic_fetch_add(&cache->requested_count, 1);
    return ticket;
}

struct module_ticket *module_cache_request(struct module_cache *cache, enum module_table table,
                                           enum module_urgency urgency,
                                           const struct module_query *query)
{
    const struct module_request request = {
        .source = MODULE_FILE, .table = table, .urgency = urgency};
    return submit(cache, &request, query);
}

struct module_ticket *module_cache_request_kernel(struct module_cache *cache)
{
    const struct module_request request = {.source = MODULE_KERNEL};
    return submit(cache, &request, NULL);
}

struct module_ticket *module_cache_request_vdso(struct module_cache *cache, enum module_table table)
{
    const struct module_request request = {.source = MODULE_VDSO, .table = table};
    return submit(cache, &request, NULL);
}

struct module_ticket *module_cache_request_perf_map(struct module_cache *cache,
                                                    const struct module_query *query)
{
    const struct module_request request = {.source = MODULE_PERF_MAP};
    return submit(cache, &request, query);
}
