/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The way of a sample into the file. For each frame the address cache says whether its address has
 * been dealt with in this process's present state (its generation); only what has not is looked up
 * and defined, so an ordinary sample costs a few cache hits and one copy.
 *
 * Samples are gathered as long as they are of one CPU and near in time, at the longest until the
 * next poll; so no group is awaited, and the counts are whole after each round. What finds no
 * room in its CPU's lane is dropped and counted, and so is a sample that cannot do without
 * something for which its user's share of the log has no room.
 *
 * When a log is nearly full the next one is opened, and all is defined anew as it is met: what has
 * been written of a process, a mapping, a function holds for the log of that time. This is done
 * between samples, when all that were gathered are in their lanes, if possible at a moment when no
 * file is being read, so that what is learnt of a file goes to the same log as the samples that
 * fell in it. Samples are shown to the reader when the files they fell in have been read: a reader
 * of a part has the names for it.
 */
#include "trace.h"

#include "cleanup.h"
#include "clock.h"
#include "fxt_writer.h"
#include "process_notes.h"
#include "process_owner.h"
#include "trace_cgroups.h"
#include "trace_groups.h"
#include "trace_modules.h"
#include "trace_names.h"
#include "trace_symbols.h"

#include <stdio.h>
#include <string.h>

/* What is left of a log when a new one is opened: where it is convenient, and in any case. */
#define LOG_ROOM_WANTED(log_bytes) ((log_bytes) / 8)
#define LOG_ROOM_NEEDED(log_bytes) ((log_bytes) / 16)

/* What is known of a process's owner. */
struct owner_note {
    uint32_t log; /* it was looked for last in this one, */
    uint64_t ns;  /* and in the program that began then */
};

struct trace {
    struct trace_config config;
    struct process_notes *owners;
    struct definition_log *definitions;
    struct trace_symbols *symbols;
    struct trace_modules *modules;
    struct trace_names *names;
    struct trace_cgroups *cgroups;
    struct trace_lanes *lanes;
    struct trace_groups *groups; /* what is gathered */
    size_t gathered_cpu_index;   /* whose samples these are */
    char *session_json;          /* owned */
    uint32_t log;                /* its number */
    uint64_t log_begin_ns;
    size_t log_bytes;
    uint64_t marked_met_count; /* files that had been met at the last mark */
    uint64_t marked_ns;
    uint64_t marked_boot_ns; /* the same moment, as samples have it */
    bool is_finished;        /* the open log has the books */
};

/* A JSON text as a Data blob of one line. */
static bool write_json(struct trace *trace, enum fxt_known_string name, const char *json)
{
    struct fxt_writer writer;
    size_t capacity_bytes = FXT_DATA_BYTES_MAX + 64;
    cleanup_(freep) uint64_t *group = malloc(capacity_bytes);
    cleanup_(freep) char *line = NULL;
    int bytes = asprintf(&line, "%s\n", json);
    if (group == NULL || bytes < 0 || (size_t)bytes > FXT_DATA_BYTES_MAX) {
        return false;
    }
    fxt_writer_init(&writer, group, capacity_bytes);
    fxt_write_data(&writer, name, line, (size_t)bytes);
    return fxt_writer_ok(&writer) &&
           definition_log_put_paid(trace->definitions, group, writer.used_bytes);
}

/* In the log that has just been opened nothing is written yet. */
static bool begin_log(struct trace *trace)
{
    if (trace->log++ > 0) {
        address_cache_forget_frames(trace->config.addresses);
    }
    trace->log_begin_ns = clock_ns(CLOCK_MONOTONIC);
    definition_log_begin(trace->definitions);
    trace_cgroups_begin(trace->cgroups);
    trace_symbols_begin(trace->symbols);
    trace_modules_begin(trace->modules, trace->log);
    return write_json(trace, FXT_STRING_SESSION, trace->session_json) &&
           trace_names_begin(trace->names);
}

/* Divides what is gathered into groups and puts them into their CPU's lane. */
static void put_gathered(struct trace *trace)
{
    struct trace_group group;
    trace_groups_form(trace->groups);
    while (trace_groups_next(trace->groups, &group)) {
        trace_lanes_put(trace->lanes, trace->gathered_cpu_index, &group);
    }
    trace_groups_clear(trace->groups);
}

/* Goes on to another log, if there is one. */
static void change_log(struct trace *trace)
{
    if (!trace_buffer_has_log(trace->config.buffer)) {
        return;
    }
    put_gathered(trace);
    trace_modules_close(trace->modules);
    trace_close_partials(trace, UINT64_MAX, STACK_CLOSED_LIMIT);
    (void)trace_symbols_flush(trace->symbols);
    trace_buffer_next_log(trace->config.buffer);
    (void)begin_log(trace);
}

static void keep_room(struct trace *trace, size_t room_bytes)
{
    if (!trace_buffer_has_room(trace->config.buffer, TRACE_LANE_DEFINITIONS, room_bytes)) {
        change_log(trace);
    }
}

/* Begins another log when an account's share of this one is used up. It cannot be had at will:
 * all others have to be told again in it. */
static void keep_shares(struct trace *trace)
{
    if (definition_log_is_short(trace->definitions) &&
        clock_ns(CLOCK_MONOTONIC) - trace->log_begin_ns >= trace->config.short_ns) {
        change_log(trace);
    }
}

int trace_new(const struct trace_config *config, struct trace **ret)
{
    struct trace *trace = calloc(1, sizeof *trace);
    if (trace == NULL) {
        return -ENOMEM;
    }
    trace->config = *config;
    trace->log_bytes = trace_buffer_log_bytes(config->buffer);
    trace->owners = process_notes_new(sizeof(struct owner_note));
    trace->groups = trace_groups_new();
    trace->lanes = trace_lanes_new(&(struct trace_lanes_config){
        .buffer = config->buffer,
        .cpus = config->cpus,
        .cpu_count = config->cpu_count,
        .stack_count_max = config->max_stack_depth,
    });
    trace->session_json = strdup(config->session_json);
    trace->definitions = definition_log_new(config->buffer);
    trace->names = trace_names_new(trace->definitions);
    trace->cgroups = trace_cgroups_new(trace->definitions, &config->commands);
    trace->symbols = trace_symbols_new(trace->definitions);
    trace->modules = trace->symbols == NULL ? NULL
                                            : trace_modules_new(trace->definitions, config->cache,
                                                                trace->symbols, config->kernel);
    int r = -ENOMEM;
    if (trace->owners != NULL && trace->definitions != NULL && trace->groups != NULL &&
        trace->lanes != NULL && trace->session_json != NULL && trace->names != NULL &&
        trace->cgroups != NULL && trace->modules != NULL) {
        r = begin_log(trace) ? 0 : -ENOSPC;
    }
    if (r < 0) {
        (void)trace_free(trace);
        return r;
    }
    *ret = trace;
    return 0;
}

struct trace *trace_free(struct trace *trace)
{
    if (trace == NULL) {
        return NULL;
    }
    (void)trace_modules_free(trace->modules);
    (void)trace_symbols_free(trace->symbols);
    (void)trace_names_free(trace->names);
    (void)trace_cgroups_free(trace->cgroups);
    (void)definition_log_free(trace->definitions);
    (void)trace_lanes_free(trace->lanes);
    (void)trace_groups_free(trace->groups);
    (void)process_notes_free(trace->owners);
    free(trace->session_json);
    free(trace);
    return NULL;
}

/*
 * One frame. `address` is where the function is looked up: a caller's is inside its call. False
 * when there is no room; `*ret_known` says whether it is in a mapping that is known.
 */
static bool define_frame(struct trace *trace, struct process *process, uint64_t address,
                         uint64_t time_ns, bool *ret_known)
{
    /* Processes' count from 1 on. */
    uint64_t generation = process == NULL ? UINT64_MAX - trace_modules_kernel_epoch(trace->modules)
                                          : process->generation;
    struct address_place *place = address_cache_place(trace->config.addresses, generation, address);
    uint32_t made_epoch = trace_modules_made_epoch(trace->modules);
    if (!address_place_is(place, generation, address, time_ns) || !place->has_frame ||
        (place->made_epoch != 0 && place->made_epoch != made_epoch)) {
        uint64_t from_ns = 0;
        enum frame_outcome outcome =
            process == NULL
                ? trace_modules_kernel_frame(trace->modules, address, time_ns, &from_ns)
                : trace_modules_frame(trace->modules, process, address, time_ns, &from_ns);
        *ret_known = outcome != FRAME_UNKNOWN;
        if (outcome != FRAME_RETRY && from_ns != TIME_OPEN_NS) {
            address_place_take(place, generation, address, from_ns);
            place->made_epoch = outcome == FRAME_MADE ? made_epoch : 0;
            place->has_frame = true;
            place->is_unknown = outcome == FRAME_UNKNOWN;
        }
        return outcome != FRAME_RETRY;
    }
    *ret_known = !place->is_unknown;
    return true;
}

/* Finds the account that pays for what is written of the process: once for each program in each
 * log, since no record reports a new uid. A process that has exited before counts as its parent's.
 */
static void find_owner(struct trace *trace, struct process *process)
{
    uint64_t image_ns = process->exec_ns > process->from_ns ? process->exec_ns : process->from_ns;
    struct owner_note *note = process_notes_of(trace->owners, process);
    if (note->log == trace->log && note->ns == image_ns) {
        return;
    }
    *note = (struct owner_note){.log = trace->log, .ns = image_ns};
    if (process->kernel_thread) {
        process->owner = TRACE_OWNER_KERNEL;
        return;
    }
    uint32_t owner = process_owner(process->pid);
    if (owner == PROCESS_OWNER_UNKNOWN && !process->owner_known) {
        owner = process_owner(process->parent_pid);
    }
    if (owner != PROCESS_OWNER_UNKNOWN || !process->owner_known) {
        process->owner = owner;
        process->owner_known = owner != PROCESS_OWNER_UNKNOWN;
    }
}

/*
 * Writes all definitions that the sample refers to. False when there is no room; `*ret_known` is
 * true when the mapping or function of its own address is known.
 */
static bool define_sample(struct trace *trace, const struct sample *sample, struct process *process,
                          bool *ret_known)
{
    bool known = true;
    bool room = true;
    for (size_t i = 0; room && i < sample->kernel_count; i++) {
        room = define_frame(trace, NULL, sample->kernel_stack[i] - (i == 0 ? 0 : 1),
                            sample->time_ns, &known);
    }
    if (process == NULL) {
        *ret_known = sample->user_count == 0;
        return room;
    }
    find_owner(trace, process);
    room = room && trace_names_write(trace->names, process, sample->tid, sample->time_ns);
    if (!process->kernel_thread) {
        room = room && trace_modules_process(trace->modules, process);
    }
    *ret_known = true;
    for (size_t i = 0; room && i < sample->user_count; i++) {
        room = define_frame(trace, process, sample->user_stack[i] - (i == 0 ? 0 : 1),
                            sample->time_ns, i == 0 ? ret_known : &known);
    }
    return room;
}

/* The same for a sample with the time of a tick, which was noted before. */
static bool define_tick(struct trace *trace, const struct sample *sample, struct process *process,
                        bool *ret_known)
{
    return define_sample(trace, sample, process, ret_known) &&
           (process == NULL || trace_cgroups_hold(trace->cgroups, process));
}

static void gather(struct trace *trace, size_t cpu_index, const struct sample *sample)
{
    if (cpu_index != trace->gathered_cpu_index) {
        put_gathered(trace);
        trace->gathered_cpu_index = cpu_index;
    }
    if (trace_groups_add(trace->groups, sample)) {
        return;
    }
    put_gathered(trace);
    if (!trace_groups_add(trace->groups, sample)) {
        trace_lanes_drop(trace->lanes, cpu_index, sample);
    }
}

bool trace_is_full(const struct trace *trace)
{
    return trace_buffer_has_log(trace->config.buffer) &&
           !trace_buffer_has_room(trace->config.buffer, TRACE_LANE_DEFINITIONS,
                                  LOG_ROOM_NEEDED(trace->log_bytes));
}

void trace_note(struct trace *trace, struct process *process, const struct cgroup *cgroup,
                uint64_t time_ns)
{
    find_owner(trace, process);
    trace_cgroups_note(trace->cgroups, process, cgroup, time_ns);
}

void trace_note_command(struct trace *trace, const struct process *process)
{
    trace_cgroups_note_command(trace->cgroups, process);
}

bool trace_take_parents(struct trace *trace, const struct process *process)
{
    return trace_cgroups_take_parents(trace->cgroups, process);
}

bool trace_note_parent(struct trace *trace, struct process *parent, uint64_t time_ns)
{
    if (!parent->owner_known) {
        find_owner(trace, parent);
    }
    trace_names_write_parent(trace->names, parent, time_ns);
    return trace_cgroups_note_parent(trace->cgroups, parent);
}

void trace_sample(struct trace *trace, size_t cpu_index, const struct sample *sample,
                  struct process *process, bool *ret_uncertain)
{
    bool known = true;
    keep_room(trace, LOG_ROOM_NEEDED(trace->log_bytes));
    if (define_tick(trace, sample, process, &known)) {
        gather(trace, cpu_index, sample);
    } else {
        trace_lanes_drop(trace->lanes, cpu_index, sample);
    }
    *ret_uncertain = !known;
}

bool trace_open_partial(struct trace *trace, size_t cpu_index, const struct sample *sample,
                        struct process *process, uint64_t *id)
{
    bool known = true;
    keep_room(trace, LOG_ROOM_NEEDED(trace->log_bytes));
    if (!define_tick(trace, sample, process, &known)) {
        trace_lanes_drop(trace->lanes, cpu_index, sample);
        return false;
    }
    return trace_lanes_open(trace->lanes, cpu_index, sample, id);
}

bool trace_complete(struct trace *trace, size_t cpu_index, uint64_t id, const struct sample *sample,
                    struct process *process, enum stack_closed closed)
{
    bool known = true;
    keep_room(trace, LOG_ROOM_NEEDED(trace->log_bytes));
    if (!define_sample(trace, sample, process, &known)) {
        const struct sample none = {.quality = STACK_NONE};
        (void)trace_lanes_complete(trace->lanes, cpu_index, id, &none, STACK_CLOSED_LOST);
        return false;
    }
    return trace_lanes_complete(trace->lanes, cpu_index, id, sample, closed);
}

void trace_close_partials(struct trace *trace, uint64_t time_ns, enum stack_closed closed)
{
    trace_lanes_close(trace->lanes, time_ns, closed);
}

struct trace_lane_counts trace_lane_counts(const struct trace *trace, size_t cpu_index,
                                           uint32_t event)
{
    return trace_lanes_counts(trace->lanes, cpu_index, event);
}

/* Shows the samples up to the last mark when their names are written or have taken too long. */
static bool show_marked(struct trace *trace, bool written)
{
    bool settled = written && trace_modules_settled(trace->modules, trace->marked_met_count) &&
                   trace_modules_proved(trace->modules, trace->marked_boot_ns);
    if (settled || clock_ns(CLOCK_MONOTONIC) - trace->marked_ns >= trace->config.hold_ns) {
        trace_buffer_show(trace->config.buffer);
        return true;
    }
    return false;
}

static void mark(struct trace *trace)
{
    trace_buffer_mark(trace->config.buffer);
    trace->marked_met_count = trace_modules_met_count(trace->modules);
    trace->marked_ns = clock_ns(CLOCK_MONOTONIC);
    trace->marked_boot_ns = clock_ns(CLOCK_BOOTTIME);
}

void trace_poll(struct trace *trace)
{
    put_gathered(trace);
    bool written = trace_modules_poll(trace->modules);
    if (!trace->is_finished) {
        keep_room(trace, trace_modules_pending(trace->modules) ? LOG_ROOM_NEEDED(trace->log_bytes)
                                                               : LOG_ROOM_WANTED(trace->log_bytes));
        keep_shares(trace);
    }
    if (show_marked(trace, written)) {
        mark(trace);
        (void)show_marked(trace, written);
    }
}

bool trace_write_lines(struct trace *trace, const char *name, const char *text, size_t text_bytes)
{
    struct fxt_writer writer;
    const size_t capacity_bytes = text_bytes + strlen(name) + 64;
    const struct fxt_string string = {.text = name, .text_bytes = strlen(name)};
    cleanup_(freep) uint64_t *group = malloc(capacity_bytes);
    if (group == NULL) {
        return false;
    }
    put_gathered(trace);
    keep_room(trace, LOG_ROOM_NEEDED(trace->log_bytes));
    fxt_writer_init(&writer, group, capacity_bytes);
    fxt_write_named_data(&writer, &string, text, text_bytes);
    return fxt_writer_ok(&writer) &&
           definition_log_put_paid(trace->definitions, group, writer.used_bytes);
}

bool trace_names_pending(const struct trace *trace)
{
    return trace_modules_pending(trace->modules);
}

void trace_ask_again(struct trace *trace)
{
    trace_modules_ask_again(trace->modules);
}

bool trace_finish(struct trace *trace, const char *books_json)
{
    put_gathered(trace);
    trace_modules_close(trace->modules);
    trace_close_partials(trace, UINT64_MAX, STACK_CLOSED_STOPPED);
    bool settled = trace_lanes_settle(trace->lanes);
    mark(trace);
    trace_buffer_show(trace->config.buffer);
    trace->is_finished = settled && trace_symbols_flush(trace->symbols) &&
                         write_json(trace, FXT_STRING_BOOKS, books_json);
    return trace->is_finished;
}

void trace_resume(struct trace *trace)
{
    trace->is_finished = false;
}

void trace_file_gone(struct mapped_file *file, void *userdata)
{
    struct trace *trace = userdata;
    trace_modules_file_gone(trace->modules, file);
}

struct counters trace_counters(const struct trace *trace)
{
    const struct definition_log *log = trace->definitions;
    return (struct counters){
        .modules_unread = trace_modules_unread_count(trace->modules),
        .mappings_refused = definition_log_refused_count(log, DEFINITION_MAPPING),
        .names_refused = definition_log_refused_count(log, DEFINITION_NAME),
        .addresses_refused = trace_modules_refused_count(trace->modules),
        .tasks_refused = definition_log_refused_count(log, DEFINITION_TASK),
    };
}
