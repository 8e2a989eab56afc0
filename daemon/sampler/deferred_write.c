/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Writes samples whose chains the kernel delivers later: connects deferred_match with the trace,
 * which draws the ids and keeps room for completions. A sample whose chain has arrived when it is
 * handled needs no id, and is written as any other. That is most of them: the kernel walks the
 * stack when the task returns to its program, and the round that handles the sample is later.
 * Partials and completions are for samples of tasks that stayed in the kernel.
 *
 * Each id that is opened is closed, with a stack or with the reason why there is none.
 */
#include "deferred_write.h"

#include "cleanup.h"
#include "deferred_match.h"
#include "perf_source.h"

struct deferred_write {
    struct deferred_write_config config;
    struct counters counters;
    struct deferred_match *deferred;
};

struct deferred_write *deferred_write_new(const struct deferred_write_config *config)
{
    struct deferred_write *late = calloc(1, sizeof *late);
    if (late == NULL) {
        return NULL;
    }
    late->config = *config;
    late->deferred = deferred_match_new(config->cpu_count);
    return late->deferred == NULL ? deferred_write_free(late) : late;
}

struct deferred_write *deferred_write_free(struct deferred_write *late)
{
    if (late != NULL) {
        (void)deferred_match_free(late->deferred);
        free(late);
    }
    return NULL;
}

void deferred_write_add(struct deferred_write *late, const struct perf_record *record,
                        bool expected)
{
    const struct process *process =
        process_table_find(late->config.processes, record->pid, record->time_ns);
    deferred_match_add_chain(late->deferred, &(struct deferred_match_chain){
                                                 .tid = record->tid,
                                                 .cookie = record->deferred.cookie,
                                                 .exec_ns = process == NULL ? 0 : process->exec_ns,
                                                 .expected = expected,
                                                 .frames = record->deferred.chain,
                                                 .count = record->deferred.count,
                                             });
}

/* Returns how many samples got a stack that does not reach its root. */
static uint64_t complete(struct deferred_write *late, const struct deferred_match_open *open,
                         const struct deferred_match_chain *chain, enum stack_closed closed)
{
    struct sample sample = {
        .time_ns = open->first_ns,
        .cpu = late->config.cpus[open->cpu_index].cpu,
        .pid = open->pid,
        .tid = open->tid,
    };
    struct process *process = process_table_find(late->config.processes, open->pid, open->first_ns);
    (void)user_stack_take_deferred(late->config.stack, chain->frames, chain->count, process,
                                   &sample);
    bool has_stack =
        trace_complete(late->config.trace, open->cpu_index, open->id, &sample, process, closed);
    /* The trace closes ids by itself where a segment ends. */
    if (!has_stack || (closed != STACK_CLOSED_NORMALLY && closed != STACK_CLOSED_EXEC)) {
        late->counters.orphan_partials += open->sample_count;
        return 0;
    }
    return stack_is_truncated(sample.quality) ? open->sample_count : 0;
}

static bool has_ended(struct deferred_write *late, const struct deferred_match_open *open)
{
    struct process *process = process_table_find(late->config.processes, open->pid, open->first_ns);
    const struct thread *thread =
        process == NULL ? NULL : process_find_thread(process, open->tid, open->first_ns);
    return thread != NULL && thread->to_ns != TIME_OPEN_NS;
}

static void give_up(struct deferred_write *late, const struct deferred_match_open *open,
                    enum stack_closed otherwise)
{
    static const struct deferred_match_chain none = {0};
    enum stack_closed closed = has_ended(late, open) ? STACK_CLOSED_GONE : otherwise;
    (void)complete(late, open, &none, closed);
}

/* Writes the sample as a partial, of the id of its cookie on this CPU. */
static void wait_for_chain(struct deferred_write *late, size_t cpu_index, uint64_t cookie,
                           const struct sample *sample, struct process *process)
{
    struct deferred_match_open open;
    uint64_t id = deferred_match_open_id(late->deferred, cpu_index, sample->tid, cookie);
    if (id == 0 && deferred_match_take_excess(late->deferred, cpu_index, &open)) {
        give_up(late, &open, STACK_CLOSED_LIMIT);
    }
    if (!trace_open_partial(late->config.trace, cpu_index, sample, process, &id)) {
        return;
    }
    late->counters.orphan_partials +=
        deferred_match_wait(late->deferred, &(struct deferred_match_open){
                                                .cpu_index = cpu_index,
                                                .pid = sample->pid,
                                                .tid = sample->tid,
                                                .cookie = cookie,
                                                .id = id,
                                                .first_ns = sample->time_ns,
                                            });
}

bool deferred_write_sample(struct deferred_write *late, size_t cpu_index,
                           const struct perf_record *record, struct sample *sample,
                           struct process *process, bool *ret_uncertain)
{
    uint64_t cookie = record->sample.deferred_cookie;
    struct deferred_match_chain chain;
    if (!deferred_match_find_chain(late->deferred, sample->tid, cookie, sample->time_ns, &chain)) {
        wait_for_chain(late, cpu_index, cookie, sample, process);
        return false;
    }
    bool unmapped =
        user_stack_take_deferred(late->config.stack, chain.frames, chain.count, process, sample);
    trace_sample(late->config.trace, cpu_index, sample, process, ret_uncertain);
    return unmapped;
}

uint64_t deferred_write_end_round(struct deferred_write *late, uint64_t horizon_ns)
{
    bool stopped = horizon_ns == UINT64_MAX;
    uint64_t limit_ns =
        horizon_ns < DEFERRED_WRITE_WAIT_NS ? 0 : horizon_ns - DEFERRED_WRITE_WAIT_NS;
    struct deferred_match_open open;
    struct deferred_match_chain chain;
    uint64_t truncated_count = 0;
    bool exec = false;
    while (deferred_match_take_done(late->deferred, &open, &chain, &exec)) {
        truncated_count +=
            complete(late, &open, &chain, exec ? STACK_CLOSED_EXEC : STACK_CLOSED_NORMALLY);
    }
    deferred_match_end_round(late->deferred);
    while (deferred_match_take_expired(late->deferred, stopped ? UINT64_MAX : limit_ns, &open)) {
        give_up(late, &open, stopped ? STACK_CLOSED_STOPPED : STACK_CLOSED_LOST);
    }
    return truncated_count;
}

struct counters deferred_write_counters(const struct deferred_write *late)
{
    struct counters counters = late->counters;
    counters.orphan_completions = deferred_match_orphan_count(late->deferred);
    return counters;
}
