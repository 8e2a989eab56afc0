/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A wait ends long after the sample of the switch that began it. What it needs of that sample is
 * kept meanwhile: its stack, and which sinks want it. A wait whose beginning had no sample is
 * filtered by its end, and has no stack.
 */
#include "wait_writer.h"

#include "wait_stacks.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINES_BYTES  ((size_t)32000)
#define THREADS_NAME "cpu-profilerd.threads"

bool wait_writer_init(struct wait_writer *writer, const struct wait_writer_config *config)
{
    *writer = (struct wait_writer){
        .config = *config,
        .stacks = wait_stacks_new(),
        .text = malloc(LINES_BYTES),
        .own_pid = (int32_t)getpid(),
    };
    return writer->stacks != NULL && writer->text != NULL;
}

void wait_writer_done(struct wait_writer *writer)
{
    (void)wait_stacks_free(writer->stacks);
    free(writer->text);
}

static uint32_t account_of(const struct process *process)
{
    return process != NULL && process->owner_known ? process->owner : PROCESS_ACCOUNT_UNKNOWN;
}

/* The daemon and its children, the workers. */
struct wait_owner wait_writer_owner(int32_t pid, uint64_t time_ns, void *userdata)
{
    const struct wait_writer *writer = userdata;
    const struct process *process = process_table_find(writer->config.processes, pid, time_ns);
    const int32_t own_pid = writer->own_pid;
    return (struct wait_owner){
        .account = account_of(process),
        .is_sampler = pid == own_pid || (process != NULL && process->parent_pid == own_pid),
    };
}

/* By the records of forks and exits, which come also while those of switches do not. */
struct wait_life wait_writer_life(int32_t pid, int32_t tid, uint64_t time_ns, void *userdata)
{
    const struct wait_writer *writer = userdata;
    struct process *process = process_table_find(writer->config.processes, pid, time_ns);
    const struct thread *thread =
        process == NULL ? NULL : process_find_thread(process, tid, time_ns);
    return thread == NULL
               ? (struct wait_life){.to_ns = UINT64_MAX}
               : (struct wait_life){.from_ns = thread->from_ns,
                                    .to_ns =
                                        thread->to_ns == TIME_OPEN_NS ? UINT64_MAX : thread->to_ns};
}

/* The sinks whose filters want a sample, a bit for each. */
static unsigned wanting_sinks(const struct wait_writer *writer, const struct sample *sample,
                              struct process *process)
{
    unsigned wanted = 0;
    for (size_t i = 0; i < writer->config.sinks->count; i++) {
        wanted |= sink_wants(writer->config.sinks->all[i], sample, process) ? 1U << i : 0;
    }
    return wanted;
}

/* ---- waits ---- */

void wait_writer_resolve(struct wait_writer *writer, struct wait_table *table,
                         const struct perf_record *record, const struct resolved *resolved)
{
    struct wait_origin origin = {
        .wanted = resolved->wanted,
        .cgroup = resolved->sample.cgroup,
    };
    if (resolved->wanted != 0) {
        origin.stack =
            wait_stacks_add(writer->stacks, &resolved->sample, account_of(resolved->process));
    }
    if (!wait_table_resolve(table, record->sample.wait, &origin)) {
        wait_stacks_release(writer->stacks, origin.stack);
    }
}

/* The process of a wait, and, where its switch had no sample, the sinks that want it. */
static struct process *find_process(struct wait_writer *writer, const struct wait *wait,
                                    const struct sample *sample, unsigned *ret_wanted)
{
    bool awaited = false;
    *ret_wanted = wait->origin.wanted;
    if (wait->has_origin) {
        return wait->origin.wanted == 0
                   ? NULL
                   : process_table_find(writer->config.processes, wait->pid, wait->to_ns);
    }
    struct process *process = sideband_feed_find(writer->config.feed, sample, true, &awaited);
    *ret_wanted = wanting_sinks(writer, sample, process);
    return process;
}

static void write_wait(struct wait_writer *writer, size_t cpu_index, const struct wait *wait)
{
    struct sample sample = {
        .time_ns = wait->to_ns,
        .weight = wait_weight_ns(wait),
        .event = (uint32_t)(writer->config.source->config.event_count + 1 + wait->kind),
        .cpu = writer->config.source->cpus[cpu_index].cpu,
        .pid = wait->pid,
        .tid = wait->tid,
        .kernel_mode = true,
        .cgroup = wait->origin.cgroup,
    };
    unsigned wanted = 0;
    struct process *process = find_process(writer, wait, &sample, &wanted);
    if (wait->has_origin && wait->origin.stack != 0) {
        wait_stacks_show(writer->stacks, wait->origin.stack, &sample);
    }
    if (wanted != 0 && process != NULL) {
        (void)sideband_feed_disown(writer->config.feed, process, &sample);
    }
    for (size_t i = 0; i < writer->config.sinks->count; i++) {
        struct sink *sink = writer->config.sinks->all[i];
        if ((wanted >> i & 1) == 0) {
            sink_pass(sink, cpu_index, NULL, &sample);
            continue;
        }
        if (process != NULL) {
            sink_note_owner(sink, &sample, process);
        }
        struct sink_doubts doubts = sink_write(sink, cpu_index, NULL, false, &sample, process);
        writer->uncertain_count += doubts.uncertain;
    }
}

void wait_writer_write(struct wait_writer *writer, struct wait_table *table)
{
    for (size_t i = 0; i < writer->config.source->cpu_count; i++) {
        const struct wait *wait;
        while ((wait = wait_table_next(table, i)) != NULL) {
            if (wait->to_ns > wait->from_ns) {
                write_wait(writer, i, wait);
            }
            wait_stacks_release(writer->stacks, wait_table_release(table, wait));
        }
    }
}

/* ---- lines of threads ---- */

void wait_writer_describe(struct thread_line *line, uint64_t time_ns, void *userdata)
{
    const struct wait_writer *writer = userdata;
    struct process *process = process_table_find(writer->config.processes, line->pid, time_ns);
    struct thread *thread =
        process == NULL ? NULL : process_find_thread(process, line->tid, time_ns);
    const struct name *name = thread == NULL ? NULL : process_thread_name(thread, time_ns);
    const struct sample sample = {.time_ns = time_ns, .pid = line->pid, .tid = line->tid};
    _Static_assert(THREAD_LINE_NAME_BYTES == COMM_BYTES, "names are as long");
    if (name != NULL) {
        memcpy(line->name, name->text, sizeof line->name);
    }
    line->wanted |= wanting_sinks(writer, &sample, process);
}

/* As many lines as a blob holds. */
static size_t gather_lines(struct wait_writer *writer, const struct wait_table *table, size_t sink)
{
    size_t used = 0;
    while (writer->has_line || wait_table_line(table, &writer->line_place, &writer->line)) {
        writer->has_line = (writer->line.wanted >> sink & 1) != 0;
        if (writer->has_line && used + THREAD_LINE_BYTES > LINES_BYTES) {
            return used;
        }
        used += writer->has_line ? thread_line_print(&writer->line, writer->text + used) : 0;
        writer->has_line = false;
    }
    return used;
}

bool wait_writer_write_threads(struct wait_writer *writer, const struct wait_table *table,
                               size_t sink)
{
    for (;;) {
        const uint32_t place = writer->line_place;
        const bool has_line = writer->has_line;
        const struct thread_line line = writer->line;
        const size_t bytes = gather_lines(writer, table, sink);
        if (bytes == 0) {
            return true;
        }
        if (!sink_write_lines(writer->config.sinks->all[sink], THREADS_NAME, writer->text, bytes)) {
            writer->line_place = place;
            writer->has_line = has_line;
            writer->line = line;
            return false;
        }
    }
}

void wait_writer_rewind(struct wait_writer *writer)
{
    writer->line_place = 0;
    writer->has_line = false;
}

void wait_writer_count(const struct wait_writer *writer, struct counters *sum)
{
    sum->mapping_uncertain += writer->uncertain_count;
    sum->wait_stacks_refused += wait_stacks_refused(writer->stacks);
}
