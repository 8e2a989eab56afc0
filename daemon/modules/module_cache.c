/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Gives each ticket its table. The opener opens the file, and the store may have the table already.
 * If not, the reader gets one load for the file, however many tickets want it. A table that cannot
 * be made fails its tickets, and no others.
 *
 * Call frames and symbols of a file are wanted together, by two tickets of one opening, and one
 * load has both, the call frames first: a stack waits for these. Symbols that are wanted while a
 * load has the call frames of their file join that load; the reverse never happens. To make the
 * rows of all code takes several times as long, so it is a load of its own.
 *
 * The first reading of a file finds its build-id, and by that its debug file. If there is one, the
 * file is read again together with it. If that fails, the table of the first reading is kept.
 *
 * All but the requests run in the main thread, in module_cache_dispatch(), which never waits: the
 * opener's threads open and close files, and a killed worker is reaped after its exit.
 */
#include "module_cache.h"

#include "cleanup.h"
#include "limit_clock.h"
#include "module_reader.h"
#include "module_ticket.h"

#include <sys/epoll.h>
#include <sys/mman.h>

#define TRIM_INTERVAL_NS   NS_PER_S
#define PREFETCH_BYTES_MAX ((uint64_t)16 << 20)

_Static_assert(MODULE_CACHE_WORKERS == MODULE_WORKERS, "the reader has that many");

struct module_cache {
    struct opener *opener;
    struct module_store *store;
    struct module_reader *reader;
    int epoll_fd;
    struct module_load *parted; /* read, while the debug file of each is looked for */
    uint64_t trim_ns;
    atomic_uint_least64_t requested_count;
    uint64_t ready_counts[MODULE_TABLES];
    uint64_t failed_counts[MODULE_TABLES];
    atomic_uint_least64_t refused_count;
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

/* Ends a load, and fails the tickets that it still has. */
static void end_load(struct module_cache *cache, struct module_load *load,
                     enum module_failure failure)
{
    while (load->tickets != NULL) {
        struct module_ticket *ticket = load->tickets;
        load->tickets = ticket->next;
        fail_ticket(cache, ticket, failure);
    }
    opener_release(cache->opener, load->file.fd, load->uid);
    if (load->debug_fd >= 0) {
        opener_release(cache->opener, load->debug_fd, OPENER_OWN_UID);
    }
    if (load->first.map != NULL) {
        (void)munmap(load->first.map, load->first.map_bytes);
    }
    module_load_free_claims(load);
    free(load);
}

/* The tickets for the table that a load was about get `entry` or, if that is NULL, `failure`. */
static void settle_table(struct module_cache *cache, struct module_load *load,
                         struct module_entry *entry, enum module_failure failure)
{
    struct module_ticket **link = &load->tickets;
    while (*link != NULL) {
        struct module_ticket *ticket = *link;
        if (ticket->request.table != load->request.table) {
            link = &ticket->next;
            continue;
        }
        *link = ticket->next;
        if (entry != NULL) {
            finish_ticket(cache, ticket, entry);
        } else {
            fail_ticket(cache, ticket, failure);
        }
    }
}

/* A table of the load was settled: the next one is, or will be, read, if there is one. */
static void go_on(struct module_cache *cache, struct module_load *load, bool is_at_worker)
{
    bool goes_on = module_load_go_on(load);
    if (goes_on) {
        module_reader_review(cache->reader, load);
    }
    if (!goes_on || (!is_at_worker && module_reader_add(cache->reader, load) < 0)) {
        end_load(cache, load, MODULE_FAILURE_LIMIT);
    }
}

/* Settles the table that a load was about with it (taken). */
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
    settle_table(cache, load, entry, MODULE_FAILURE_LIMIT);
}

/* Ends a load with the table that was made without its debug file. */
static void keep_first_table(struct module_cache *cache, struct module_load *load)
{
    const struct elf_worker_table first = load->first;
    load->first.map = NULL;
    keep_table(cache, load, &first);
    end_load(cache, load, MODULE_FAILURE_LIMIT);
}

/* Settles the table that a load was about without one. A failure that is the file's own is
 * remembered, except for the kernel, which has no identity. */
static void fail_table(struct module_cache *cache, struct module_load *load,
                       enum module_failure failure, uint64_t now_ns)
{
    if (load->request.source != MODULE_KERNEL && failure != MODULE_FAILURE_LIMIT) {
        module_store_fail(cache->store, load->request.table, &load->file.identity, failure, now_ns);
    }
    settle_table(cache, load, NULL, failure);
}

/* Has the opener look for the debug file of a file that was read. False: it has none. */
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

static void take_reading(struct module_cache *cache, const struct module_reading *reading,
                         uint64_t now_ns)
{
    struct module_load *load = reading->load;
    bool failed = reading->failure != MODULE_FAILURE_NONE;
    if (failed && load->first.map != NULL) {
        keep_first_table(cache, load);
        return;
    }
    if (!failed && part_load(cache, load, &reading->table)) {
        return;
    }
    if (failed) {
        fail_table(cache, load, reading->failure, now_ns);
    } else {
        keep_table(cache, load, &reading->table);
    }
    /* The file stays at no worker that it may have taken over, and is let go of at once. Its
     * symbols are asked for again. */
    if (reading->failure == MODULE_FAILURE_WORKER) {
        end_load(cache, load, MODULE_FAILURE_LIMIT);
    } else {
        go_on(cache, load, reading->goes_on);
    }
}

/* Takes the answer for a debug file: the file is read again with it, or keeps its first table. */
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
    if (load->debug_fd < 0 || module_reader_add(cache->reader, load) < 0) {
        keep_first_table(cache, load);
    }
}

/* True when a sample waits for the second reading of a file. Then no file is read ahead before
 * it. */
static bool is_wanted_parted(const struct module_cache *cache)
{
    const struct module_load *parted = cache->parted;
    while (parted != NULL && parted->request.urgency != MODULE_WANTED) {
        parted = parted->next;
    }
    return parted != NULL;
}

static void read_on(struct module_cache *cache, uint64_t now_ns)
{
    struct module_reading reading;
    while (module_reader_next(cache->reader, now_ns, is_wanted_parted(cache), &reading)) {
        take_reading(cache, &reading, now_ns);
    }
}

/* The load (borrowed) that will have this table of this file, queued or at a worker, or NULL. One
 * for its call frames gets its symbols to read as well. */
static struct module_load *find_load(struct module_cache *cache, enum module_table table,
                                     const struct file_identity *identity)
{
    struct module_load *load = cache->parted;
    while (load != NULL && !module_load_is(load, table, identity)) {
        load = load->next;
    }
    load = load != NULL ? load : module_reader_find(cache->reader, table, identity);
    if (load == NULL && table == MODULE_SYMBOLS) {
        load = module_reader_find(cache->reader, MODULE_CFI, identity);
        if (load != NULL) {
            load->then_symbols = true;
        }
    }
    return load;
}

/* A load that has the answer's file from now on, unless an earlier one has it. */
static struct module_load *new_load(struct module_cache *cache, const struct module_ticket *ticket,
                                    struct opener_answer *answer)
{
    if (answer->file.fd < 0) {
        return NULL;
    }
    struct module_load *load = calloc(1, sizeof *load);
    if (load == NULL) {
        return NULL;
    }
    load->request = ticket->request;
    load->file = answer->file;
    load->uid = answer->uid;
    load->debug_fd = -1;
    load->arrived_ns = limit_clock_ns();
    if (module_reader_claim(cache->reader, load, load->uid) < 0 ||
        module_reader_add(cache->reader, load) < 0) {
        module_load_free_claims(load);
        free(load);
        return NULL;
    }
    answer->file.fd = -1;
    return load;
}

/* Makes a load urgent, wherever it is: a sample waits for it. */
static void want_load(struct module_cache *cache, struct module_load *load)
{
    bool parted = load->first.map != NULL && load->debug_fd < 0;
    if (parted) {
        load->request.urgency = MODULE_WANTED;
    } else {
        module_reader_want(cache->reader, load);
    }
}

/* A large file occupies a worker for seconds. So it is not read ahead, but when a sample falls in
 * it. */
static bool is_read_ahead(const struct module_ticket *ticket, const struct opener_answer *answer)
{
    return ticket->request.urgency == MODULE_WANTED ||
           answer->file.identity.size_bytes <= PREFETCH_BYTES_MAX;
}

/* Adds the ticket to the load of its file, which is made if there is none. */
static void add_load(struct module_cache *cache, struct module_ticket *ticket,
                     struct opener_answer *answer)
{
    struct module_load *load =
        ticket->request.source == MODULE_KERNEL
            ? NULL
            : find_load(cache, ticket->request.table, &answer->file.identity);
    if (load != NULL) {
        (void)module_reader_claim(cache->reader, load, answer->uid);
    } else if (is_read_ahead(ticket, answer)) {
        load = new_load(cache, ticket, answer);
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

/* Takes a ticket whose file was opened: its table may be in the store. */
static void take_ticket(struct module_cache *cache, struct module_ticket *ticket,
                        struct opener_answer *answer, uint64_t now_ns)
{
    const struct file_identity *identity = &answer->file.identity;
    struct module_entry *entry = NULL;
    enum module_failure failure = MODULE_FAILURE_NONE;
    ticket->uid = answer->uid;
    ticket->shown_ns = answer->file.shown_ns;
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
        add_load(cache, ticket, answer);
    }
}

/* Takes the answer to an opening, for the one or two tickets that it is for. */
static void take_file(struct module_cache *cache, struct opener_answer *answer, uint64_t now_ns)
{
    struct module_ticket *tickets[] = {answer->userdata, NULL};
    tickets[1] = tickets[0]->names;
    for (size_t i = 0; i < 2 && tickets[i] != NULL; i++) {
        if (answer->failure != MODULE_FAILURE_NONE) {
            fail_ticket(cache, tickets[i], answer->failure);
        } else {
            take_ticket(cache, tickets[i], answer, now_ns);
        }
    }
    if (answer->failure == MODULE_FAILURE_NONE && answer->file.fd >= 0) {
        opener_release(cache->opener, answer->file.fd, answer->uid);
    }
}

static void take_answers(struct module_cache *cache, uint64_t now_ns)
{
    struct opener_answer answer;
    while (opener_next(cache->opener, &answer)) {
        if (answer.is_refused) {
            atomic_fetch_add(&cache->refused_count, 1);
        }
        if (answer.source == MODULE_DEBUG) {
            take_debug_file(cache, &answer);
        } else {
            answer.file.identity.account = answer.file.is_forgeable ? answer.uid : 0;
            take_file(cache, &answer, now_ns);
        }
    }
}

/* Adds the descriptor (borrowed) to those that wake the cache's caller. Returns 0 or -errno. */
static int watch(struct module_cache *cache, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};
    return epoll_ctl(cache->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static int set_up(struct module_cache *cache, const struct module_cache_config *config)
{
    cache->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    cache->store = module_store_new(config->table_bytes_max);
    int r = cache->epoll_fd < 0 ? -errno : 0;
    if (r == 0 && cache->store == NULL) {
        r = -ENOMEM;
    }
    if (r == 0) {
        r = opener_new(OPENER_HANG_NS, &cache->opener);
    }
    if (r == 0) {
        r = watch(cache, opener_fd(cache->opener));
    }
    if (r < 0) {
        return r;
    }
    struct elf_worker_config workers[MODULE_WORKERS] = {config->worker, config->worker};
    workers[MODULE_SECOND].memory_bytes = config->second_memory_bytes;
    r = module_reader_new(workers, cache->opener, &cache->reader);
    return r < 0 ? r : watch(cache, module_reader_fd(cache->reader));
}

int module_cache_new(const struct module_cache_config *config, struct module_cache **ret)
{
    struct module_cache *cache = calloc(1, sizeof *cache);
    if (cache == NULL) {
        return -ENOMEM;
    }
    int r = set_up(cache, config);
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
    if (cache->reader != NULL) {
        module_reader_stop(cache->reader);
    }
    if (cache->opener != NULL) {
        opener_stop(cache->opener);
        take_answers(cache, limit_clock_ns());
        for (struct module_load *load;
             cache->reader != NULL && (load = module_reader_drain(cache->reader)) != NULL;) {
            end_load(cache, load, MODULE_FAILURE_WORKER);
        }
        opener_free(cache->opener);
    }
    module_reader_free(cache->reader);
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
    read_on(cache, now_ns);
    if (now_ns - cache->trim_ns >= TRIM_INTERVAL_NS) {
        cache->trim_ns = now_ns;
        module_store_trim(cache->store, now_ns);
    }
}

struct module_cache_counts module_cache_counts(struct module_cache *cache)
{
    const struct module_reader_counts reader = module_reader_counts(cache->reader);
    struct module_cache_counts counts = {
        .requested_count = atomic_load(&cache->requested_count),
        .refused_count = atomic_load(&cache->refused_count),
        .worker_restart_count = reader.restart_count,
        .worker_renewal_count = reader.renewal_count,
        .hung_refused_count = reader.hung_refused_count,
        .put_back_count = reader.put_back_count,
        .worker_troubles = reader.troubles,
        .foreign_clock_count = reader.foreign_clock_count,
        .foreign_clock_uid = reader.foreign_clock_uid,
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

int module_cache_worker_pid(const struct module_cache *cache, size_t index)
{
    return module_reader_worker_pid(cache->reader, (enum module_worker_name)index);
}

/* Drops both holds of a ticket to which no answer will come. */
static void drop_ticket(struct module_ticket *ticket)
{
    module_ticket_release(ticket);
    module_ticket_release(ticket);
}

/* Has a file opened for a ticket, and for that of its names. Without success they are freed. */
static bool open_for(struct module_cache *cache, struct module_ticket *ticket,
                     const struct module_query *query)
{
    const struct opener_request opening = {
        .source = ticket->request.source,
        .urgency = ticket->request.urgency,
        .query = query,
        .userdata = ticket,
    };
    if (opener_submit(cache->opener, &opening) == 0) {
        atomic_fetch_add(&cache->requested_count, 1);
        return true;
    }
    atomic_fetch_add(&cache->refused_count, 1);
    drop_ticket(ticket->names);
    drop_ticket(ticket);
    return false;
}

static struct module_ticket *submit(struct module_cache *cache,
                                    const struct module_request *request,
                                    const struct module_query *query)
{
    struct module_ticket *ticket = module_ticket_new(request);
    return ticket != NULL && open_for(cache, ticket, query) ? ticket : NULL;
}

struct module_ticket *module_cache_request_both(struct module_cache *cache,
                                                const struct module_query *query,
                                                struct module_ticket **ret_names)
{
    const struct module_request cfi = {.source = MODULE_FILE, .table = MODULE_CFI};
    const struct module_request symbols = {.source = MODULE_FILE, .table = MODULE_SYMBOLS};
    struct module_ticket *ticket = module_ticket_new(&cfi);
    struct module_ticket *names = module_ticket_new(&symbols);
    if (ticket == NULL || names == NULL) {
        drop_ticket(ticket);
        drop_ticket(names);
        return NULL;
    }
    ticket->names = names;
    if (!open_for(cache, ticket, query)) {
        return NULL;
    }
    *ret_names = names;
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

struct module_ticket *module_cache_request_vdso(struct module_cache *cache, enum module_table table,
                                                bool is_32bit)
{
    const struct module_request request = {.source = is_32bit ? MODULE_VDSO_32BIT : MODULE_VDSO,
                                           .table = table};
    return submit(cache, &request, NULL);
}

struct module_ticket *module_cache_request_perf_map(struct module_cache *cache,
                                                    const struct module_query *query,
                                                    uint32_t known_bytes)
{
    const struct module_request request = {.source = MODULE_PERF_MAP, .known_bytes = known_bytes};
    return submit(cache, &request, query);
}

struct module_ticket *module_cache_request_jitdump(struct module_cache *cache,
                                                   const struct module_query *query,
                                                   uint32_t known_bytes)
{
    const struct module_request request = {.source = MODULE_JITDUMP, .known_bytes = known_bytes};
    return submit(cache, &request, query);
}
