/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which process had a pid when. A bucket holds all processes of its pids; of one pid the newest
 * comes first, and their times do not overlap. What has something to forget (it ended, or a thread
 * or a mapping of it did) is on one list, so that a prune costs what has changed.
 *
 * What is inside a process is process_threads.c's and process_mappings.c's.
 */
#include "process_table.h"

#include "cleanup.h"
#include "mapping_set.h"
#include "process_parts.h"
#include "seeded_hash.h"

#define BUCKET_COUNT     PROCESS_TABLE_PROCESSES_MAX /* a power of two */
#define KTHREADD_PID     2
#define START_UNKNOWN_NS TIME_OPEN_NS

struct process_table {
    struct process_totals totals;
    struct process *listed;
    struct process **pruned; /* where the next prune goes on; NULL: at the first that is listed */
    size_t inherit_left;     /* mappings that may be copied in this round */
    uint64_t walk_number;    /* of the walk that goes on, or of the last one */
    size_t place_count;      /* that were used so far, */
    size_t free_count;       /* and of them are free: */
    uint32_t free_places[PROCESS_TABLE_PROCESSES_MAX];
    struct process *buckets[BUCKET_COUNT];
};

struct process_table *process_table_new(mapped_file_free_fn on_file_free, void *userdata)
{
    struct process_table *table = calloc(1, sizeof *table);
    if (table != NULL) {
        table->totals.on_file_free = on_file_free;
        table->totals.userdata = userdata;
        table->totals.command_bytes.max = PROCESS_TABLE_COMMANDS_MAX;
        table->totals.command_bytes.parts = 2;
        process_table_begin_round(table);
    }
    return table;
}

void process_table_reach(struct process_table *table, uint64_t time_ns)
{
    table->totals.reached_ns = time_ns;
}

void process_table_begin_round(struct process_table *table)
{
    table->inherit_left = PROCESS_INHERIT_ROUND;
}

static void free_process(struct process_table *table, struct process *process)
{
    process_threads_done(&table->totals, process);
    process_mappings_done(&table->totals, process);
    process_command_forget(&table->totals, process);
    table->free_places[table->free_count++] = (uint32_t)process->place;
    table->totals.counts.process_count--;
    process->share->process_count--;
    process_share_put(&table->totals, process->share);
    free(process);
}

struct process_table *process_table_free(struct process_table *table)
{
    for (size_t i = 0; table != NULL && table->totals.counts.process_count > 0; i++) {
        while (table->buckets[i] != NULL) {
            struct process *process = table->buckets[i];
            table->buckets[i] = process->next_in_bucket;
            free_process(table, process);
        }
    }
    if (table != NULL) {
        path_set_done(&table->totals.paths);
    }
    free(table);
    return NULL;
}

static struct process **bucket_of(struct process_table *table, int32_t pid)
{
    return &table->buckets[seeded_hash(&pid, sizeof pid) & (BUCKET_COUNT - 1)];
}

struct process *process_table_find(struct process_table *table, int32_t pid, uint64_t time_ns)
{
    struct process *process = *bucket_of(table, pid);
    while (process != NULL && (process->pid != pid || process->from_ns > time_ns)) {
        process = process->next_in_bucket;
    }
    return process;
}

/* Only one that lived at `time_ns`. */
static struct process *find_living(struct process_table *table, int32_t pid, uint64_t time_ns)
{
    struct process *process = process_table_find(table, pid, time_ns);
    return process != NULL && time_ns < process->to_ns ? process : NULL;
}

static struct process *find_newest(struct process_table *table, int32_t pid)
{
    struct process *process = *bucket_of(table, pid);
    while (process != NULL && process->pid != pid) {
        process = process->next_in_bucket;
    }
    return process;
}

static struct process *add_process(struct process_table *table, int32_t pid, uint32_t account,
                                   uint64_t from_ns, uint64_t known_ns)
{
    struct process *process = NULL;
    struct process_share *share = process_share_get(&table->totals, account);
    if (share != NULL &&
        process_share_allows(&table->totals, share, PROCESS_TABLE_PROCESSES_MAX,
                             table->totals.counts.process_count, share->process_count, 1)) {
        process = calloc(1, sizeof *process);
    }
    if (process == NULL) {
        if (share != NULL) {
            process_share_put(&table->totals, share);
        }
        table->totals.counts.counters.table_refused++;
        return NULL;
    }
    process->share = share;
    share->process_count++;
    struct process **bucket = bucket_of(table, pid);
    process->place =
        table->free_count > 0 ? table->free_places[--table->free_count] : table->place_count++;
    process->number = ++table->totals.last_number;
    process->pid = pid;
    process->from_ns = from_ns;
    process->to_ns = TIME_OPEN_NS;
    process->known_ns = known_ns;
    process->met_walk = table->walk_number;
    process->start_time_ns = START_UNKNOWN_NS;
    process->generation = ++table->totals.last_generation;
    process->next_in_bucket = *bucket;
    *bucket = process;
    table->totals.counts.process_count++;
    return process;
}

/* Puts a process that has something to forget on prune's list. */
static void list(struct process_table *table, struct process *process)
{
    bool forgets = process->to_ns != TIME_OPEN_NS || process->history_count > 0 ||
                   process->live_thread_count < process->thread_count ||
                   process->older_name_count > 0;
    if (forgets && !process->listed) {
        process->listed = true;
        process->next_listed = table->listed;
        table->listed = process;
    }
}

static void end_process(struct process_table *table, struct process *process, uint64_t time_ns)
{
    if (process->to_ns <= time_ns) {
        return;
    }
    process->to_ns = time_ns > process->from_ns ? time_ns : process->from_ns;
    process_threads_end_others(process, 0, process->to_ns);
    list(table, process);
}

/* The process that a record of this time is about, made when it was not known. NULL when there is
 * no such pid, no place, or the record is too late to say anything. */
static struct process *process_of_record(struct process_table *table, int32_t pid, uint64_t time_ns)
{
    if (pid <= 0) {
        return NULL;
    }
    struct process *process = find_living(table, pid, time_ns);
    if (process != NULL) {
        return process;
    }
    const struct process *newest = find_newest(table, pid);
    if (newest != NULL && newest->from_ns > time_ns) {
        return NULL;
    }
    return add_process(table, pid, PROCESS_ACCOUNT_UNKNOWN, newest == NULL ? 0 : newest->to_ns,
                       time_ns);
}

/* A late word of a thread that lives on: its process had not ended. */
static void revive(struct process_table *table, struct process *process)
{
    if (process->to_ns != TIME_OPEN_NS && process->live_thread_count > 0) {
        if (find_newest(table, process->pid) == process) {
            process->to_ns = TIME_OPEN_NS;
        } else {
            process_threads_end_others(process, 0, process->to_ns);
        }
    }
}

/* The process that a fork at this time made. One of which nothing older is known is this one: its
 * own first record, or a scan, came before its fork. */
static struct process *bear(struct process_table *table, int32_t pid, uint32_t account,
                            uint64_t time_ns)
{
    struct process *newest = find_newest(table, pid);
    if (newest != NULL && !newest->forked && newest->known_ns >= time_ns &&
        newest->from_ns <= time_ns) {
        newest->from_ns = time_ns;
        if (newest->share->account == PROCESS_ACCOUNT_UNKNOWN) {
            process_share_move(&table->totals, newest, account);
        }
        return newest;
    }
    if (newest != NULL && newest->from_ns >= time_ns) {
        return NULL;
    }
    if (newest != NULL) {
        end_process(table, newest, time_ns);
    }
    return add_process(table, pid, account, time_ns, time_ns);
}

static bool is_kernel_child(const struct process *parent)
{
    return parent != NULL &&
           (parent->kernel_thread || (parent->pid == KTHREADD_PID && !parent->scanned));
}

/* Gives a child its parent's mappings, unless they are too many for this round. */
static void inherit(struct process_table *table, struct process *child,
                    const struct process *parent, uint64_t time_ns)
{
    const size_t count = parent->mappings.count + parent->history_count;
    bool few = count <= PROCESS_INHERIT_FEW;
    child->kernel_thread = is_kernel_child(parent);
    if (!few && count > table->inherit_left) {
        table->totals.counts.counters.table_refused += count;
        child->scanned = false;
        return;
    }
    table->inherit_left -= few ? 0 : count;
    process_mappings_inherit(&table->totals, child, parent, time_ns);
    child->scanned = parent->scanned;
}

static void fork_process(struct process_table *table, int32_t pid, int32_t parent_pid, int32_t tid,
                         int32_t parent_tid, uint64_t time_ns)
{
    struct process *parent = process_of_record(table, parent_pid, time_ns);
    uint32_t account = parent == NULL ? PROCESS_ACCOUNT_UNKNOWN : parent->share->account;
    struct process *child = bear(table, pid, account, time_ns);
    if (child == NULL) {
        return;
    }
    child->forked = true;
    child->parent_pid = parent_pid;
    if (child->start_time_ns == START_UNKNOWN_NS) {
        child->start_time_ns = time_ns;
    }
    if (parent != NULL && child->identity_ns == 0) {
        child->identity_matches = parent->identity_matches;
    }
    if (parent != NULL && !child->owner_known) {
        child->owner = parent->owner;
        child->owner_known = parent->owner_known;
    }
    if (child->exec_ns == 0 && !child->scanned && parent != NULL) {
        inherit(table, child, parent, time_ns);
        process_command_inherit(child, parent);
    }
    process_threads_fork(&table->totals, child, tid,
                         parent == NULL ? NULL : process_threads_find(parent, parent_tid, time_ns),
                         time_ns);
    revive(table, child);
}

void process_table_fork(struct process_table *table, int32_t pid, int32_t parent_pid, int32_t tid,
                        int32_t parent_tid, uint64_t time_ns)
{
    if (pid <= 0 || tid <= 0) {
        return;
    }
    if (pid != parent_pid) {
        fork_process(table, pid, parent_pid, tid, parent_tid, time_ns);
        return;
    }
    struct process *process = process_of_record(table, pid, time_ns);
    if (process != NULL) {
        process_threads_fork(&table->totals, process, tid,
                             process_threads_find(process, parent_tid, time_ns), time_ns);
        revive(table, process);
        list(table, process);
    }
}

static void exec_process(struct process_table *table, struct process *process, int32_t tid,
                         uint64_t time_ns)
{
    if (time_ns < process->exec_ns) {
        return;
    }
    process_threads_end_others(process, tid, time_ns);
    process_mappings_exec(&table->totals, process, time_ns);
    process_command_forget(&table->totals, process);
    process->exec_ns = time_ns;
    if (process->anew_ns < table->totals.lost_ns) {
        process->anew_ns = time_ns;
    }
    process->identity_ns = 0; /* it may be setuid */
    process->scanned = true;
    process->starts = true;
    process->leader_exited = false;
    process->kernel_thread = false;
}

void process_table_comm(struct process_table *table, int32_t pid, int32_t tid, const char *comm,
                        bool exec, uint64_t time_ns)
{
    struct process *process = tid <= 0 ? NULL : process_of_record(table, pid, time_ns);
    if (process == NULL) {
        return;
    }
    struct thread *thread = process_threads_get(&table->totals, process, tid, time_ns);
    if (exec) {
        exec_process(table, process, tid, time_ns);
    }
    if (thread != NULL) {
        process_threads_rename(&table->totals, process, thread, comm, time_ns);
    }
    revive(table, process);
    list(table, process);
}

void process_table_exit(struct process_table *table, int32_t pid, int32_t tid, uint64_t time_ns)
{
    struct process *process = tid <= 0 ? NULL : process_of_record(table, pid, time_ns);
    if (process == NULL) {
        return;
    }
    process_threads_exit(&table->totals, process, tid, time_ns);
    process->leader_exited = process->leader_exited || tid == pid;
    if (time_ns > process->last_exit_ns) {
        process->last_exit_ns = time_ns;
    }
    if (process->live_thread_count == 0 && (process->threads_known || process->leader_exited)) {
        end_process(table, process, process->last_exit_ns);
    }
    list(table, process);
}

/*
 * When a program starts with rights that its caller has not (set-user-id, capabilities, a file that
 * may not be read), the kernel ends what others monitor of the task, and writes an exit record
 * between those of the exec and of the first mapping. The mapping shows that the task lives.
 */
static void undo_exit(struct process_table *table, int32_t pid, uint64_t time_ns)
{
    struct process *newest = find_newest(table, pid);
    if (newest != NULL && newest->starts && newest->leader_exited &&
        newest->last_exit_ns <= time_ns && newest->exec_ns > table->totals.lost_ns) {
        newest->leader_exited = false;
        process_threads_undo_exit(newest, pid);
        revive(table, newest);
    }
}

void process_table_mmap(struct process_table *table, int32_t pid,
                        const struct mapping_description *mapping, uint64_t time_ns)
{
    undo_exit(table, pid, time_ns);
    struct process *process = process_of_record(table, pid, time_ns);
    if (process != NULL) {
        process->starts = false;
        process_mappings_mmap(&table->totals, process, mapping, time_ns);
        list(table, process);
    }
}

/* The process that a scan is about, or NULL when what it read is no longer so. */
static struct process *process_of_scan(struct process_table *table, const struct process_scan *scan)
{
    struct process *newest = find_newest(table, scan->pid);
    uint32_t account = scan->account_known ? scan->account : PROCESS_ACCOUNT_UNKNOWN;
    if (newest == NULL) {
        return add_process(table, scan->pid, account, 0, scan->begin_ns);
    }
    if (scan->start_time_ns > newest->start_time_ns || scan->start_time_ns >= newest->to_ns) {
        uint64_t from_ns = scan->start_time_ns;
        if (newest->to_ns == TIME_OPEN_NS) {
            end_process(table, newest, from_ns);
        }
        /* It is the older one by a clock tick at the most. */
        from_ns = newest->to_ns > from_ns ? newest->to_ns : from_ns;
        return add_process(table, scan->pid, account, from_ns, scan->begin_ns);
    }
    bool overtaken = newest->to_ns != TIME_OPEN_NS || newest->exec_ns > scan->begin_ns ||
                     newest->from_ns > scan->begin_ns;
    return overtaken ? NULL : newest;
}

void process_table_charge(struct process_table *table, struct process *process)
{
    if (process->owner_known && !process->kernel_thread &&
        process->owner != process->share->account) {
        process_share_move(&table->totals, process, process->owner);
    }
}

bool process_table_take_root_refused(struct process_table *table)
{
    bool refused = table->totals.root_refused;
    table->totals.root_refused = false;
    return refused;
}

static void take_account(struct process_table *table, struct process *process,
                         const struct process_scan *scan)
{
    if (scan->account_known && scan->kernel_thread) {
        process_share_move(&table->totals, process, scan->account);
    } else if (scan->account_known) {
        process->owner = scan->account;
        process->owner_known = true;
        process_table_charge(table, process);
    }
}

/* Another user's process may have executed a set-user-id program unseen, and have been executed by
 * that anew, with all that it had mapped. */
static bool is_roots(const struct process_scan *scan)
{
    return scan->kernel_thread || (scan->account_known && scan->account == 0);
}

void process_table_scan(struct process_table *table, const struct process_scan *scan)
{
    struct process *process = scan->pid <= 0 ? NULL : process_of_scan(table, scan);
    if (process == NULL) {
        return;
    }
    if (process->start_time_ns == START_UNKNOWN_NS) {
        process->start_time_ns = scan->start_time_ns;
    }
    if (process->parent_pid == 0) {
        process->parent_pid = scan->parent_pid;
    }
    process->kernel_thread = scan->kernel_thread;
    take_account(table, process, scan);
    process_command_take(&table->totals, process, scan);
    if (scan->identity_read) {
        process->identity_ns = scan->end_ns;
        process->identity_matches = scan->identity_matches;
    }
    process->threads_known =
        process->threads_known || (scan->thread_count > 0 && !scan->threads_cut);
    const uint64_t generation = process->generation;
    bool renamed = process_threads_scan(&table->totals, process, scan);
    process_mappings_scan(&table->totals, process, scan);
    process->scan_differs = process->scan_differs || renamed || process->generation != generation;
    if (!scan->mappings_missing) {
        process->scanned = true;
        process->scan_ns = scan->begin_ns;
        if (!process->scan_differs && is_roots(scan)) {
            process->agreed_ns = scan->begin_ns;
        }
        process->scan_differs = false;
    }
    list(table, process);
}

struct process *process_table_command(struct process_table *table, const struct process_scan *scan)
{
    struct process *newest = scan->pid <= 0 ? NULL : find_newest(table, scan->pid);
    if (newest == NULL || newest->to_ns != TIME_OPEN_NS || newest->exec_ns > scan->begin_ns ||
        newest->from_ns > scan->begin_ns || scan->start_time_ns > newest->start_time_ns) {
        return NULL;
    }
    process_command_take(&table->totals, newest, scan);
    return newest;
}

struct process *process_table_meet(struct process_table *table, int32_t pid, uint64_t time_ns)
{
    return process_of_record(table, pid, time_ns);
}

void process_table_lost(struct process_table *table, uint64_t time_ns)
{
    if (time_ns > table->totals.lost_ns) {
        table->totals.lost_ns = time_ns;
    }
}

void process_table_doubt(struct process_table *table, struct process *process, int32_t tid,
                         uint64_t time_ns)
{
    const int32_t tids[] = {process->pid, tid};
    const size_t count = tid == process->pid ? 1 : 2;
    for (size_t i = 0; i < count; i++) {
        struct thread *thread = process_find_thread(process, tids[i], time_ns);
        if (thread != NULL) {
            process_threads_doubt(&table->totals, process, thread, time_ns);
        }
    }
    list(table, process);
}

void process_table_gone(struct process_table *table, int32_t pid, uint64_t time_ns)
{
    struct process *newest = pid <= 0 ? NULL : find_newest(table, pid);
    if (newest != NULL && newest->to_ns == TIME_OPEN_NS && newest->from_ns <= time_ns) {
        end_process(table, newest, time_ns);
    }
}

void process_table_walk_begin(struct process_table *table)
{
    table->walk_number++;
}

void process_table_walk_meet(struct process_table *table, int32_t pid)
{
    struct process *newest = pid <= 0 ? NULL : find_newest(table, pid);
    if (newest != NULL) {
        newest->met_walk = table->walk_number;
    }
}

void process_table_walk_end(struct process_table *table, uint64_t begin_ns, uint64_t end_ns)
{
    for (size_t i = 0; i < BUCKET_COUNT; i++) {
        for (struct process *process = table->buckets[i]; process != NULL;
             process = process->next_in_bucket) {
            if (process->met_walk != table->walk_number && process->to_ns == TIME_OPEN_NS &&
                process->known_ns < begin_ns && process->from_ns < begin_ns) {
                end_process(table, process, end_ns);
            }
        }
    }
}

static void unlink_process(struct process_table *table, const struct process *process)
{
    struct process **link = bucket_of(table, process->pid);
    while (*link != process) {
        link = &(*link)->next_in_bucket;
    }
    *link = process->next_in_bucket;
}

void process_table_each_mapping(struct process_table *table, mapping_visit_fn visit, void *userdata)
{
    for (size_t i = 0; i < BUCKET_COUNT; i++) {
        for (struct process *process = table->buckets[i]; process != NULL;
             process = process->next_in_bucket) {
            struct mapping_place place = mapping_set_seek(&process->mappings, 0);
            struct mapping *mapping = mapping_set_at(&process->mappings, place);
            while (process->to_ns == TIME_OPEN_NS && mapping != NULL) {
                visit(process, mapping, userdata);
                place = mapping_set_next(&process->mappings, place);
                mapping = mapping_set_at(&process->mappings, place);
            }
        }
    }
}

/* What forgetting a process, or its past, costs beside its threads. */
static size_t prune_steps(const struct process *process, uint64_t horizon_ns)
{
    return 1 + process->history_count +
           (process->to_ns <= horizon_ns ? process->mappings.count : 0);
}

void process_table_prune(struct process_table *table, uint64_t horizon_ns)
{
    struct process **link = table->pruned != NULL ? table->pruned : &table->listed;
    size_t steps = PROCESS_PRUNE_STEPS;
    while (*link != NULL && steps > 0) {
        struct process *process = *link;
        const size_t thread_count = process->thread_count;
        bool threads = process_threads_prune(&table->totals, process, horizon_ns, steps);
        const size_t cost = thread_count + prune_steps(process, horizon_ns);
        steps -= cost < steps ? cost : steps;
        if (process->prune_at != 0) {
            break; /* here, next time */
        }
        if (process->to_ns <= horizon_ns) {
            *link = process->next_listed;
            unlink_process(table, process);
            free_process(table, process);
            continue;
        }
        bool history = process_mappings_prune(&table->totals, process, horizon_ns);
        if (history || threads || process->to_ns != TIME_OPEN_NS) {
            link = &process->next_listed;
        } else {
            *link = process->next_listed;
            process->listed = false;
        }
    }
    table->pruned = *link == NULL ? NULL : link;
}

struct process_table_counts process_table_counts(const struct process_table *table)
{
    return table->totals.counts;
}
