/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Nothing is made up. A thread of which no record tells is in a state that is assumed: blocked
 * since the start, until its first record shows what it was. Where records of a CPU were lost, any
 * thread that was on no CPU may have had that one meanwhile, and a thread that was on that one may
 * have left it: such a time is in no sum, and such a wait is counted and not handed out. When a
 * thread began or ended meanwhile, other records tell, as far as they can.
 *
 * Threads of the sampler run when a sample wakes them: so their switches are those behind a sample,
 * which hardly ever have one. Chance does not choose among them, and no estimate would be true.
 */
#include "wait_table.h"

#include "extremes.h"
#include "wait_estimate.h"
#include "wait_lives.h"

#include <stdlib.h>

#define SETTLED_MAX ((size_t)8192) /* threads at a time */

struct wait_table *wait_table_new(const struct wait_table_config *config)
{
    struct wait_table *table = calloc(1, sizeof *table + config->cpu_count * sizeof table->cpus[0]);
    if (table == NULL) {
        return NULL;
    }
    table->config = *config;
    table->waits = wait_pool_new(config->cpu_count);
    bool has_threads = tracked_threads_init(&table->threads);
    return has_threads && table->waits != NULL ? table : wait_table_free(table);
}

struct wait_table *wait_table_free(struct wait_table *table)
{
    if (table != NULL) {
        tracked_threads_done(&table->threads);
        (void)wait_pool_free(table->waits);
        free(table);
    }
    return NULL;
}

/* ---- waits ---- */

uint64_t wait_table_begin(struct wait_table *table, uint32_t factor)
{
    return wait_pool_begin(table->waits, factor);
}

void wait_table_cancel(struct wait_table *table, uint64_t ticket)
{
    struct wait_entry *entry = wait_pool_find(table->waits, ticket);
    if (entry != NULL && entry->state == WAIT_BEGUN) {
        wait_pool_drop(table->waits, entry, 0);
    }
}

bool wait_table_resolve(struct wait_table *table, uint64_t ticket, const struct wait_origin *origin)
{
    return wait_pool_resolve(table->waits, ticket, origin);
}

/* Counts a wait that is over, and has it handed out if that is due. */
static void end_wait(struct wait_table *table, struct tracked *thread, size_t cpu_index,
                     enum wait_kind kind, uint64_t time_ns)
{
    struct wait_counts *counts = &table->cpus[cpu_index].counts[kind];
    struct wait_entry *entry = thread->wait == 0 ? NULL : wait_pool_get(table->waits, thread->wait);
    const uint64_t from_ns = thread->since_ns;
    const uint64_t length_ns = time_ns > from_ns ? time_ns - from_ns : 0;
    thread->wait = 0;
    if (length_ns == 0) { /* it was over when the run began */
        if (entry != NULL) {
            wait_pool_drop(table->waits, entry, cpu_index);
        }
        return;
    }
    counts->counted_ns += length_ns;
    bool is_short = length_ns < table->config.min_wait_ns;
    bool is_sure = wait_lives_is_certain(table, thread);
    bool is_long = length_ns >= thread->long_ns;
    if (is_sure && !is_short && !is_long) {
        const uint64_t others_ns = length_ns * (thread->period - 1);
        counts->variance += (double)length_ns * (double)others_ns;
        counts->largest_ns = max_u64(counts->largest_ns, others_ns);
    }
    if (is_sure && !is_short && !is_long && entry == NULL) {
        counts->thinned_count++;
        counts->thinned_ns += length_ns;
        if (!wait_estimate_skip(&thread->estimates[kind], length_ns)) {
            (void)wait_estimate_skip(&table->estimates[kind], length_ns);
        }
        return;
    }
    if (is_sure && !is_short && entry == NULL) {
        entry = wait_pool_take(table->waits);
        is_sure = entry != NULL;
        /* Of the CPU that was left, which decides from which length on a wait is long. */
        table->cpus[thread->cpu_index].counts[kind].long_count += thread->long_ns > 0;
    }
    if (!is_sure || is_short) {
        *(is_sure ? &counts->short_count : &counts->uncertain_count) += 1;
        *(is_sure ? &counts->short_ns : &counts->uncertain_ns) += length_ns;
        if (entry != NULL) {
            wait_pool_drop(table->waits, entry, cpu_index);
        }
        return;
    }
    const uint64_t own_ns = length_ns > entry->sampling_ns ? length_ns - entry->sampling_ns : 0;
    entry->wait.pid = thread->pid;
    entry->wait.tid = thread->tid;
    entry->wait.kind = kind;
    entry->wait.from_ns = from_ns;
    entry->wait.to_ns = time_ns;
    entry->wait.others_ns =
        is_long ? 0
                : wait_estimate_add(&thread->estimates[kind], &table->estimates[kind], own_ns,
                                    entry->factor - 1);
    thread->line.wanted |= entry->wait.has_origin ? entry->wait.origin.wanted : 0;
    counts->bare_count += !entry->is_awaited && !entry->wait.has_origin;
    wait_pool_end(table->waits, entry, cpu_index);
}

/* The thread that a CPU was switched to last, whatever became of it; NULL: none. */
static struct tracked *last_on(struct wait_table *table, size_t cpu_index)
{
    const uint32_t place = table->cpus[cpu_index].running;
    return place != 0 ? &table->threads.all[place] : NULL;
}

static bool runs_on(const struct tracked *thread, size_t cpu_index)
{
    return thread->state == STATE_RUNNING && thread->cpu_index == cpu_index;
}

/* The thread that runs on a CPU, as far as is known; NULL: none. */
static struct tracked *running_on(struct wait_table *table, size_t cpu_index)
{
    struct tracked *thread = last_on(table, cpu_index);
    return thread != NULL && runs_on(thread, cpu_index) ? thread : NULL;
}

/* The leader of a process that has exited; NULL: it has not, or is not known. */
static struct tracked *find_ended_leader(struct wait_table *table, int32_t pid, uint64_t time_ns)
{
    struct tracked *leader =
        pid > 0 && table->is_running ? wait_lives_find(table, pid, pid, time_ns) : NULL;
    return leader != NULL && leader->state == STATE_ENDED ? leader : NULL;
}

/* The thread that executes a program has its leader's tid from now on, and no record says so: the
 * one that was switched to here is over, if it is one of the process. All others of it are.
 * Returns the new one, NULL: there is no place. */
static struct tracked *succeed_leader(struct wait_table *table, struct tracked *leader,
                                      size_t cpu_index, uint64_t time_ns)
{
    const int32_t pid = leader->pid;
    struct tracked *before = last_on(table, cpu_index);
    if (before != NULL && before->pid == pid && before->state != STATE_ENDED) {
        wait_lives_end(table, before, time_ns);
    }
    tracked_threads_unlink(&table->threads, leader);
    struct tracked *thread = wait_lives_add(table, pid, pid, STATE_RUNNING, time_ns);
    if (thread != NULL) {
        thread->run.is_seen = true;
        thread->cpu_index = (uint32_t)cpu_index;
        thread->losses = table->cpus[cpu_index].losses;
        table->cpus[cpu_index].running = tracked_threads_place(&table->threads, thread);
    }
    return thread;
}

/* Whether a switch away from a thread that runs elsewhere is that of its dead leader, which has the
 * tid of the thread that has taken its own: it leaves its CPU for the last time. */
static bool is_dead_leader(struct wait_table *table, size_t cpu_index, const struct tracked *thread)
{
    if (thread->state != STATE_RUNNING || thread->cpu_index == cpu_index) {
        return false;
    }
    const struct tracked *last = last_on(table, cpu_index);
    return wait_lives_is_certain(table, thread) && last != NULL && last->state == STATE_ENDED &&
           last->pid == thread->pid && last->tid == last->pid;
}

/* The thread that leaves its CPU; NULL: there is no place for it, or it has ended. One that
 * executes a program may leave it under its leader's tid, before the record of the exec. The leader
 * itself, on its way out, does not leave a CPU on which another thread of the process runs. */
static struct tracked *meet_leaving(struct wait_table *table, size_t cpu_index,
                                    const struct wait_switch *away)
{
    struct tracked *thread = wait_lives_meet(table, away->pid, away->tid, away->time_ns);
    if (thread != NULL && is_dead_leader(table, cpu_index, thread)) {
        return NULL;
    }
    if (thread != NULL || away->tid != away->pid) {
        return thread;
    }
    struct tracked *leader = find_ended_leader(table, away->pid, away->time_ns);
    const struct tracked *before = running_on(table, cpu_index);
    const bool executes = leader != NULL && before != NULL && before->pid == away->pid &&
                          wait_lives_is_certain(table, before);
    return executes ? succeed_leader(table, leader, cpu_index, away->time_ns) : NULL;
}

void wait_table_out(struct wait_table *table, size_t cpu_index, const struct wait_switch *away)
{
    struct tracked *thread = meet_leaving(table, cpu_index, away);
    struct wait_entry *entry = wait_pool_find(table->waits, away->ticket);
    if (thread == NULL) {
        wait_table_cancel(table, away->ticket);
        return;
    }
    if (thread->state == STATE_ASSUMED && wait_lives_is_certain(table, thread)) {
        wait_lives_correct(thread, cpu_index);
    } else if (thread->state != STATE_RUNNING || thread->cpu_index != cpu_index) {
        thread->losses = UINT64_MAX; /* the switch to it was lost */
    }
    if (thread->wait != 0) {
        wait_pool_drop(table->waits, wait_pool_get(table->waits, thread->wait), cpu_index);
        thread->wait = 0;
    }
    thread->run.is_seen = true;
    wait_lives_enter(table, thread, away->kind == WAIT_PREEMPTED ? STATE_PREEMPTED : STATE_BLOCKED,
                     away->time_ns);
    thread->cpu_index = (uint32_t)cpu_index;
    thread->period = away->period;
    thread->long_ns = thread->is_sampler ? 0 : away->long_ns;
    thread->line.voluntary += away->kind == WAIT_BLOCKED;
    thread->line.involuntary += away->kind == WAIT_PREEMPTED;
    if (entry != NULL && entry->state == WAIT_BEGUN) {
        entry->state = WAIT_OPEN;
        entry->sampling_ns = away->sampling_ns;
        thread->wait = wait_pool_number(table->waits, entry);
    }
}

static void end_open_wait(struct wait_table *table, struct tracked *thread, size_t cpu_index,
                          uint64_t time_ns)
{
    if (thread->state == STATE_BLOCKED || thread->state == STATE_ASSUMED) {
        end_wait(table, thread, cpu_index, WAIT_BLOCKED, time_ns);
    } else if (thread->state == STATE_PREEMPTED) {
        end_wait(table, thread, cpu_index, WAIT_PREEMPTED, time_ns);
    }
}

/* One that is there still has left the CPU unseen: when, and for what, is not known. */
static void replace_running(struct wait_table *table, size_t cpu_index,
                            const struct tracked *thread)
{
    struct tracked *before = running_on(table, cpu_index);
    if (before != NULL && before != thread) {
        before->losses = UINT64_MAX;
    }
    table->cpus[cpu_index].running = tracked_threads_place(&table->threads, thread);
}

void wait_table_in(struct wait_table *table, size_t cpu_index, int32_t pid, int32_t tid,
                   uint64_t time_ns)
{
    struct tracked *thread = wait_lives_meet(table, pid, tid, time_ns);
    if (thread == NULL) {
        return;
    }
    if (thread->state == STATE_RUNNING) {
        thread->losses = UINT64_MAX; /* the switch from it was lost */
    }
    replace_running(table, cpu_index, thread);
    end_open_wait(table, thread, cpu_index, time_ns);
    thread->run.is_seen = true;
    wait_lives_enter(table, thread, STATE_RUNNING, time_ns);
    thread->cpu_index = (uint32_t)cpu_index;
    thread->losses = table->cpus[cpu_index].losses;
}

void wait_table_fork(struct wait_table *table, int32_t pid, int32_t tid, uint64_t time_ns)
{
    if (tid <= 0 || !table->is_running) {
        return;
    }
    struct tracked *thread = wait_lives_find(table, pid, tid, time_ns);
    if (thread != NULL) {
        wait_lives_replace(table, thread, time_ns);
    }
    thread = wait_lives_add(table, pid, tid, STATE_NEW, time_ns);
    if (thread != NULL) {
        thread->run.is_seen = true;
        thread->run.has_first = true;
        thread->run.first.at_ns = time_ns;
    }
}

void wait_table_exit(struct wait_table *table, size_t cpu_index, int32_t pid, int32_t tid,
                     uint64_t time_ns)
{
    struct tracked *thread = wait_lives_meet(table, pid, tid, time_ns);
    if (thread == NULL) {
        return;
    }
    if (thread->state == STATE_ASSUMED && wait_lives_is_certain(table, thread)) {
        wait_lives_correct(thread, cpu_index);
    }
    thread->run.is_seen = true;
    wait_lives_end(table, thread, time_ns);
}

void wait_table_exec(struct wait_table *table, size_t cpu_index, int32_t pid, uint64_t time_ns)
{
    struct tracked *leader = find_ended_leader(table, pid, time_ns);
    if (leader != NULL) {
        (void)succeed_leader(table, leader, cpu_index, time_ns);
    }
}

void wait_table_blind(struct wait_table *table, size_t cpu_index, bool is_blind)
{
    struct wait_cpu *cpu = &table->cpus[cpu_index];
    table->losses++;
    cpu->losses++;
    table->blind_count += (size_t)is_blind;
    table->blind_count -= (size_t)cpu->is_blind;
    cpu->is_blind = is_blind;
}

void wait_table_settle(struct wait_table *table, uint64_t time_ns)
{
    for (size_t i = 0; i < SETTLED_MAX && table->losses > 0; i++) {
        table->settled = table->settled + 1 < table->threads.end ? table->settled + 1 : 0;
        struct tracked *thread = &table->threads.all[table->settled];
        if (table->settled == 0) {
            break;
        }
        if (thread->state == STATE_ENDED || wait_lives_is_certain(table, thread)) {
            continue;
        }
        const uint64_t to_ns = wait_lives_told_end(table, thread);
        if (to_ns <= time_ns) {
            wait_lives_end(table, thread, max_u64(to_ns, thread->since_ns));
        }
    }
}

static void note_rest(struct wait_table *table, int32_t pid)
{
    if (table->rest_count < WAIT_LIVES_RESTS_MAX) {
        table->rests[table->rest_count] = pid;
    }
    table->rest_count++;
}

/* Whether a thread may be one of those that were not read. */
static bool may_be_rest(const struct wait_table *table, int32_t pid)
{
    bool may = table->rest_count > WAIT_LIVES_RESTS_MAX;
    for (size_t i = 0; i < table->rest_count && i < WAIT_LIVES_RESTS_MAX; i++) {
        may = may || table->rests[i] == pid;
    }
    return may;
}

void wait_table_read(struct wait_table *table, const struct thread_reading *reading, bool is_last)
{
    if (reading->tid == 0) {
        if (is_last) {
            note_rest(table, reading->pid);
        }
        return;
    }
    struct tracked *thread = wait_lives_meet(table, reading->pid, reading->tid, reading->at_ns);
    if (thread == NULL) {
        return;
    }
    struct thread_run *run = &thread->run;
    thread->is_there = thread->is_there || is_last;
    if (thread->state != STATE_ASSUMED && reading->at_ns < thread->since_ns) {
        return; /* it comes too late: records of a later time were taken */
    }
    struct thread_sums sums = wait_lives_sums(table, thread, reading->at_ns);
    if (!is_last && !run->has_first) {
        run->has_first = true;
        run->first = *reading;
        run->first_sums = sums;
    } else if (is_last && run->has_first) {
        run->has_last = true;
        run->last = *reading;
        run->last_sums = sums;
    }
}

/* ---- runs ---- */

void wait_table_start(struct wait_table *table, uint64_t time_ns)
{
    table->start_ns = time_ns;
    table->is_running = true;
    table->losses = 0;
    table->blind_count = 0;
    table->rest_count = 0;
    for (size_t i = 0; i < table->config.cpu_count; i++) {
        table->cpus[i].losses = 0;
        table->cpus[i].is_blind = false;
        table->cpus[i].running = 0;
    }
    for (uint32_t i = 1; i < table->threads.end; i++) {
        struct tracked *thread = &table->threads.all[i];
        if (thread->state != STATE_ENDED) {
            wait_lives_begin_run(table, thread, STATE_ASSUMED, time_ns);
        } else if (thread->is_hashed) {
            /* Another may have got the tid in the pause. */
            tracked_threads_unlink(&table->threads, thread);
        }
    }
}

void wait_table_stop(struct wait_table *table, uint64_t time_ns, uint64_t read_ns)
{
    for (uint32_t i = 1; i < table->threads.end; i++) {
        struct tracked *thread = &table->threads.all[i];
        const struct thread_run *run = &thread->run;
        if (thread->state == STATE_ENDED) {
            continue;
        }
        bool has_gone = read_ns != UINT64_MAX && !thread->is_there && thread->since_ns < read_ns &&
                        !may_be_rest(table, thread->pid);
        bool never_ran = run->has_last && run->last.run_count == run->first.run_count &&
                         run->last.run_ns == run->first.run_ns;
        uint64_t end_ns = time_ns;
        if (has_gone) {
            thread->losses = UINT64_MAX;
            end_ns = wait_lives_assume_end(table, thread, time_ns);
        }
        if (never_ran) {
            thread->losses = wait_lives_losses(table, thread); /* whatever was lost */
        }
        if (run->is_seen || never_ran) {
            end_open_wait(table, thread, thread->cpu_index, end_ns);
        }
        if (has_gone) {
            wait_lives_end(table, thread, end_ns);
        } else {
            wait_lives_close_run(table, thread, end_ns);
        }
    }
    table->is_running = false;
}

/* ---- what comes of it ---- */

const struct wait *wait_table_next(struct wait_table *table, size_t cpu_index)
{
    return wait_pool_next(table->waits, cpu_index);
}

uint32_t wait_table_release(struct wait_table *table, const struct wait *wait)
{
    return wait_pool_release(table->waits, wait);
}

struct wait_counts wait_table_counts(const struct wait_table *table, size_t cpu_index,
                                     enum wait_kind kind)
{
    struct wait_counts counts = table->cpus[cpu_index].counts[kind];
    counts.held_ns = wait_pool_held_ns(table->waits, cpu_index, kind);
    return counts;
}

struct wait_thread_counts wait_table_thread_counts(const struct wait_table *table)
{
    return (struct wait_thread_counts){
        .refused = table->threads.refused_count,
        .forgotten = table->threads.forgotten_count,
    };
}

bool wait_table_line(const struct wait_table *table, uint32_t *place, struct thread_line *ret)
{
    while (++*place < table->threads.end) {
        if (table->threads.all[*place].line.has_runs) {
            *ret = table->threads.all[*place].line;
            return true;
        }
    }
    return false;
}
