/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Connects the filter with the trace. Whose samples are is gathered and told to the trace in the
 * order of time, since the samples of one CPU are handled before those of the next. Samples whose
 * chains the kernel delivers later go through deferred_write.c, which the kernel of the source
 * decides. The quality of stacks is counted here, since that of a deferred one is known only when
 * it is written.
 */
#include "sink.h"

#include "deferred_write.h"

#include "capacity.h"
#include "compare.h"

#include <stdlib.h>

#define NOTES_MAX   CAPACITY(8192)
#define PARENTS_MAX 64 /* of a process, that are written with it */

struct sunk {
    uint64_t received;
    uint64_t filtered;
    uint64_t weight; /* of the received */
};

/* By event. */
struct sunk_cpu {
    struct sunk events[SAMPLE_EVENTS_MAX];
};

/* Whose a sample is. */
struct owner_note {
    uint64_t time_ns;
    struct process *process;
    const struct cgroup *cgroup;
};

struct sink {
    struct sink_config config;
    struct deferred_write *late; /* NULL where no chains come later */
    struct sunk_cpu *cpus;       /* owned; samples, by what the trace does not count */
    struct owner_note *notes;    /* owned; note_count of NOTES_MAX, that are not told yet */
    size_t note_count;
    struct counters counters;
    struct counters ended; /* as of the last end of a round */
};

struct sink *sink_new(const struct sink_config *config)
{
    struct sink *sink = calloc(1, sizeof *sink);
    if (sink == NULL) {
        return NULL;
    }
    sink->config = *config;
    sink->cpus = calloc(config->source->cpu_count, sizeof *sink->cpus);
    if (config->source->deferring) {
        sink->late = deferred_write_new(&(struct deferred_write_config){
            .processes = config->processes,
            .trace = config->trace,
            .stack = config->stack,
            .cpus = config->source->cpus,
            .cpu_count = config->source->cpu_count,
        });
    }
    sink->notes = calloc(NOTES_MAX, sizeof *sink->notes);
    bool ok = sink->cpus != NULL && sink->notes != NULL &&
              (sink->late != NULL || !config->source->deferring);
    return ok ? sink : sink_free(sink);
}

struct sink *sink_free(struct sink *sink)
{
    if (sink != NULL) {
        (void)deferred_write_free(sink->late);
        free(sink->cpus);
        free(sink->notes);
        free(sink);
    }
    return NULL;
}

void sink_fork(struct sink *sink, const struct perf_record *record)
{
    (void)filter_fork(sink->config.filter, record->task.pid, record->task.parent_pid,
                      record->task.tid);
}

void sink_add_chain(struct sink *sink, const struct perf_record *record)
{
    if (sink->late != NULL) {
        struct process *process =
            process_table_find(sink->config.processes, record->pid, record->time_ns);
        /* The record does not say the control group: of a unit none is expected. */
        bool expected = filter_matches(sink->config.filter, process, NULL, record->pid, record->tid,
                                       record->time_ns);
        deferred_write_add(sink->late, record, expected);
    }
}

bool sink_wants(const struct sink *sink, const struct sample *sample, struct process *process)
{
    return filter_matches(sink->config.filter, process, sample->cgroup, sample->pid, sample->tid,
                          sample->time_ns);
}

static int compare_notes(const void *left, const void *right)
{
    const struct owner_note *a = left;
    const struct owner_note *b = right;
    return compare_u64(a->time_ns, b->time_ns);
}

/* Has what a process descends from written as well, once in each log, since no sample of it may
 * come. What ended long before the process's first sample is not known any more. */
static void tell_parents(struct sink *sink, const struct process *process)
{
    bool are_due = trace_take_parents(sink->config.trace, process);
    for (size_t i = 0; i < PARENTS_MAX && are_due; i++) {
        struct process *parent =
            process_table_find(sink->config.processes, process->parent_pid, process->from_ns);
        are_due = parent != NULL && trace_note_parent(sink->config.trace, parent, process->from_ns);
        process = parent;
    }
}

void sink_tell_owners(struct sink *sink)
{
    qsort(sink->notes, sink->note_count, sizeof *sink->notes, compare_notes);
    for (size_t i = 0; i < sink->note_count; i++) {
        const struct owner_note *note = &sink->notes[i];
        trace_note(sink->config.trace, note->process, note->cgroup, note->time_ns);
        tell_parents(sink, note->process);
    }
    sink->note_count = 0;
}

void sink_tell_command(struct sink *sink, const struct process *process)
{
    trace_note_command(sink->config.trace, process);
}

struct command_right sinks_commands(const struct sinks *sinks)
{
    struct command_right right = {.is_given = false};
    for (size_t i = 0; i < sinks->count; i++) {
        const struct command_right *own = &sinks->commands[i];
        bool are_several = right.is_given && own->is_given && own->uid != right.uid;
        right.uid = are_several ? 0 : own->is_given ? own->uid : right.uid;
        right.is_given = right.is_given || own->is_given;
    }
    return right;
}

void sink_note_owner(struct sink *sink, const struct sample *sample, struct process *process)
{
    if (sink->note_count == NOTES_MAX) {
        sink_tell_owners(sink);
    }
    sink->notes[sink->note_count++] = (struct owner_note){sample->time_ns, process, sample->cgroup};
}

static struct sunk *receive(struct sink *sink, size_t cpu_index, const struct sample *sample)
{
    struct sunk *sunk = &sink->cpus[cpu_index].events[sample->event];
    sunk->received++;
    sunk->weight += sample->weight;
    return sunk;
}

static struct sink_doubts write_one(struct sink *sink, size_t cpu_index,
                                    const struct perf_record *record, bool is_open,
                                    struct sample *sample, struct process *process)
{
    struct sink_doubts doubts = {0};
    receive(sink, cpu_index, sample);
    if (is_open && sink->late != NULL) {
        doubts.unmapped = deferred_write_sample(sink->late, cpu_index, record, sample, process,
                                                &doubts.uncertain);
    } else {
        trace_sample(sink->config.trace, cpu_index, sample, process, &doubts.uncertain);
    }
    return doubts;
}

/* The sample of the leader's follower `i`. False: it has counted nothing since the sample before.
 */
static bool make_follower(const struct perf_record *record, uint32_t i, const struct sample *leader,
                          struct sample *ret)
{
    const struct perf_followed *followed = &record->sample.followed;
    *ret = *leader;
    ret->event = followed->first + i;
    ret->weight = followed->values[i];
    return ret->weight > 0;
}

static uint32_t follower_count(const struct perf_record *record)
{
    return record == NULL ? 0 : record->sample.followed.count;
}

struct sink_doubts sink_write(struct sink *sink, size_t cpu_index, const struct perf_record *record,
                              bool is_open, struct sample *sample, struct process *process)
{
    if (sink->note_count > 0 && trace_is_full(sink->config.trace)) {
        sink_tell_owners(sink);
    }
    const struct sample before = *sample;
    struct sink_doubts doubts = write_one(sink, cpu_index, record, is_open, sample, process);
    for (uint32_t i = 0; i < follower_count(record); i++) {
        struct sample follower;
        if (make_follower(record, i, &before, &follower)) {
            (void)write_one(sink, cpu_index, record, is_open, &follower, process);
        }
    }
    sink->counters.stitched_stacks += sample->quality == STACK_STITCHED;
    sink->counters.unproved_stacks += sample->quality == STACK_UNPROVED;
    sink->counters.truncated_stacks += stack_is_truncated(sample->quality);
    return doubts;
}

bool sink_write_lines(struct sink *sink, const char *name, const char *text, size_t text_bytes)
{
    sink_tell_owners(sink);
    return trace_write_lines(sink->config.trace, name, text, text_bytes);
}

void sink_pass(struct sink *sink, size_t cpu_index, const struct perf_record *record,
               const struct sample *sample)
{
    receive(sink, cpu_index, sample)->filtered++;
    for (uint32_t i = 0; i < follower_count(record); i++) {
        struct sample follower;
        if (make_follower(record, i, sample, &follower)) {
            receive(sink, cpu_index, &follower)->filtered++;
        }
    }
}

void sink_end_round(struct sink *sink, uint64_t horizon_ns)
{
    if (sink->late != NULL) {
        sink->counters.truncated_stacks += deferred_write_end_round(sink->late, horizon_ns);
        sink->ended = deferred_write_counters(sink->late);
    }
}

void sink_count(const struct sink *sink, size_t cpu_index, struct books_cpu *books)
{
    struct trace_lane_counts written = trace_lane_counts(sink->config.trace, cpu_index, 0);
    const struct sunk *sunk = sink->cpus[cpu_index].events;
    books->received = sunk[0].received;
    books->filtered = sunk[0].filtered;
    books->kept = written.kept;
    books->dropped = written.dropped;
    books->held = books->held > sunk[0].received ? books->held - sunk[0].received : 0;
    const uint32_t event_count = perf_source_sample_events(sink->config.source);
    for (uint32_t event = 1; event <= event_count; event++) {
        struct books_event *line = &books->events[event - 1];
        written = trace_lane_counts(sink->config.trace, cpu_index, event);
        line->received = sunk[event].received;
        line->weight = sunk[event].weight;
        /* Of waits it is known what is held, of other events what has come. */
        const bool is_wait = event > sink->config.source->config.event_count;
        const uint64_t taken = is_wait ? 0 : line->weight;
        line->held_weight -= line->held_weight > taken ? taken : line->held_weight;
        line->filtered = sunk[event].filtered;
        line->kept = written.kept;
        line->dropped = written.dropped;
    }
}

struct counters sink_counters(const struct sink *sink)
{
    struct counters sum = sink->counters;
    counters_add(&sum, &sink->ended);
    return sum;
}
