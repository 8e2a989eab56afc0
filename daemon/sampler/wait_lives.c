/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is known of a thread's life: the state it is in and since when, its time in each, its
 * beginning and its end. A state in which something may have happened unseen is not certain, and
 * its time is in no sum. Which record changes a state is wait_table.c's.
 */
#include "wait_lives.h"

#include "extremes.h"

uint64_t wait_lives_losses(const struct wait_table *table, const struct tracked *thread)
{
    return thread->state == STATE_RUNNING ? table->cpus[thread->cpu_index].losses : table->losses;
}

bool wait_lives_is_certain(const struct wait_table *table, const struct tracked *thread)
{
    return thread->losses == wait_lives_losses(table, thread);
}

static uint64_t *sum_of(struct thread_sums *sums, enum thread_state state)
{
    switch (state) {
    case STATE_RUNNING:
        return &sums->running_ns;
    case STATE_BLOCKED:
    case STATE_ASSUMED:
        return &sums->blocked_ns;
    case STATE_PREEMPTED:
    case STATE_NEW:
        return &sums->preempted_ns;
    case STATE_ENDED:
        break;
    }
    return NULL;
}

struct thread_sums wait_lives_sums(const struct wait_table *table, const struct tracked *thread,
                                   uint64_t time_ns)
{
    struct thread_sums sums = thread->run.sums;
    uint64_t *sum = sum_of(&sums, thread->state);
    if (sum != NULL && time_ns > thread->since_ns && wait_lives_is_certain(table, thread)) {
        *sum += time_ns - thread->since_ns;
    }
    return sums;
}

/* Records come from a moment before the run begins. */
static uint64_t within_run(const struct wait_table *table, uint64_t time_ns)
{
    return time_ns < table->start_ns ? table->start_ns : time_ns;
}

void wait_lives_enter(struct wait_table *table, struct tracked *thread, enum thread_state state,
                      uint64_t time_ns)
{
    time_ns = within_run(table, time_ns);
    thread->run.sums = wait_lives_sums(table, thread, time_ns);
    thread->state = state;
    thread->since_ns = time_ns;
    thread->losses = wait_lives_losses(table, thread);
    if (table->blind_count > 0 && state != STATE_RUNNING) {
        thread->losses = UINT64_MAX;
    }
}

void wait_lives_correct(struct tracked *thread, size_t cpu_index)
{
    struct thread_run *run = &thread->run;
    thread->state = STATE_RUNNING;
    thread->cpu_index = (uint32_t)cpu_index;
    thread->losses = 0; /* the caller has seen that there were none */
    if (run->has_first) {
        const uint64_t at_ns = max_u64(run->first.at_ns, thread->since_ns);
        run->first_sums = (struct thread_sums){.running_ns = at_ns - thread->since_ns};
    }
}

/* What is assumed is so since the run began, when nothing had been lost. */
void wait_lives_begin_run(struct wait_table *table, struct tracked *thread, enum thread_state state,
                          uint64_t time_ns)
{
    thread->run = (struct thread_run){.from_ns = time_ns};
    thread->state = state;
    thread->since_ns = time_ns;
    thread->wait = 0;
    thread->is_there = false;
    thread->period = 1;
    thread->long_ns = 0;
    thread->losses = state == STATE_ASSUMED ? 0 : table->losses;
    if (table->blind_count > 0 && state != STATE_ASSUMED) {
        thread->losses = UINT64_MAX;
    }
}

struct tracked *wait_lives_add(struct wait_table *table, int32_t pid, int32_t tid,
                               enum thread_state state, uint64_t time_ns)
{
    const struct wait_owner owner = table->config.owner(pid, time_ns, table->config.userdata);
    struct tracked *thread = tracked_threads_add(&table->threads, owner.account, pid, tid);
    if (thread != NULL) {
        thread->is_sampler = owner.is_sampler;
        wait_lives_begin_run(table, thread, state, within_run(table, time_ns));
    }
    return thread;
}

void wait_lives_close_run(struct wait_table *table, struct tracked *thread, uint64_t time_ns)
{
    struct thread_run *run = &thread->run;
    run->sums = wait_lives_sums(table, thread, time_ns);
    run->to_ns = time_ns;
    if (run->is_seen || run->has_first) {
        thread_line_add(&thread->line, run);
        table->config.describe(&thread->line, time_ns, table->config.userdata);
    }
}

void wait_lives_end(struct wait_table *table, struct tracked *thread, uint64_t time_ns)
{
    if (thread->wait != 0) {
        wait_pool_drop(table->waits, wait_pool_get(table->waits, thread->wait), 0);
        thread->wait = 0;
    }
    wait_lives_close_run(table, thread, time_ns);
    thread->state = STATE_ENDED;
    tracked_threads_end(&table->threads, thread);
}

void wait_lives_replace(struct wait_table *table, struct tracked *thread, uint64_t time_ns)
{
    if (thread->state != STATE_ENDED) {
        thread->losses = UINT64_MAX;
        wait_lives_end(table, thread, time_ns);
    }
    tracked_threads_unlink(&table->threads, thread);
}

struct tracked *wait_lives_find(struct wait_table *table, int32_t pid, int32_t tid,
                                uint64_t time_ns)
{
    struct tracked *thread = tracked_threads_find(&table->threads, tid);
    if (thread != NULL && thread->pid != pid) {
        wait_lives_replace(table, thread, time_ns);
        thread = NULL;
    }
    return thread;
}

static struct wait_life told(const struct wait_table *table, int32_t pid, int32_t tid,
                             uint64_t time_ns)
{
    return table->config.life(pid, tid, time_ns, table->config.userdata);
}

/* A thread of which no record told is there since the run began or, where its beginning may have
 * been lost, since other records say that it is. */
static uint64_t assume_begin(const struct wait_table *table, int32_t pid, int32_t tid,
                             uint64_t time_ns)
{
    const uint64_t from_ns = table->losses > 0 ? told(table, pid, tid, time_ns).from_ns : 0;
    return from_ns > table->start_ns && from_ns <= time_ns ? from_ns : table->start_ns;
}

uint64_t wait_lives_told_end(const struct wait_table *table, const struct tracked *thread)
{
    return told(table, thread->pid, thread->tid, thread->since_ns).to_ns;
}

uint64_t wait_lives_assume_end(const struct wait_table *table, const struct tracked *thread,
                               uint64_t stop_ns)
{
    const uint64_t to_ns = wait_lives_told_end(table, thread);
    const uint64_t end_ns = to_ns == UINT64_MAX ? thread->since_ns : to_ns;
    return end_ns < thread->since_ns ? thread->since_ns : end_ns < stop_ns ? end_ns : stop_ns;
}

/* Whether other records say that another thread has the tid of one that has ended. Where none are
 * missing, that is the one that executes in its leader's place. */
static bool is_reused(const struct wait_table *table, const struct tracked *thread,
                      uint64_t time_ns)
{
    return table->losses > 0 && thread->state == STATE_ENDED &&
           told(table, thread->pid, thread->tid, time_ns).from_ns > thread->run.to_ns;
}

struct tracked *wait_lives_meet(struct wait_table *table, int32_t pid, int32_t tid,
                                uint64_t time_ns)
{
    if (tid <= 0 || !table->is_running) {
        return NULL;
    }
    struct tracked *thread = wait_lives_find(table, pid, tid, time_ns);
    if (thread != NULL && is_reused(table, thread, time_ns)) {
        wait_lives_replace(table, thread, time_ns);
        thread = NULL;
    }
    if (thread == NULL) {
        return wait_lives_add(table, pid, tid, STATE_ASSUMED,
                              assume_begin(table, pid, tid, time_ns));
    }
    return thread->state == STATE_ENDED ? NULL : thread;
}
