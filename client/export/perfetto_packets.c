/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Makes packets of samples, of names of processes and threads, of labels of processes, of clocks,
 * of counters, and of names of functions that come late. A name of a task is written when it is
 * new, or another than before; so are a process's unit and user, as labels of its track.
 */
#include "perfetto_packets.h"

#include "build_id_bytes.h"
#include "cleanup.h"
#include "definitions.h"
#include "export_books.h"
#include "export_cost.h"
#include "grow.h"
#include "json.h"
#include "perfetto_interned.h"
#include "task_number.h"

#include <string.h>

#define BUILD_ID_BYTES ((size_t)64)
#define COUNTER_BITS   8   /* of the number of a session's counter */
#define SAMPLE_FIELD   66  /* of a packet, as the next */
#define STACK_FIELD    135 /* a sample with what it stands for */
#define RECENT_COUNT   ((size_t)256)
#define SOURCE_PREFIX  "cpu-profilerd."

enum {
    CLOCK_ID_REALTIME = 1,
    CLOCK_ID_BOOTTIME = 6,
    COUNTER_CPU_CLOCK = 1,
    UNIT_COUNT = 2,
    TYPE_COUNTER = 4,
    MODE_KERNEL = 1,
    MODE_USER = 2,
    STACK_MODE_USER = 1,
    STACK_MODE_KERNEL = 2,
    STACK_UNIT_NANOSECONDS = 1,
};

/* Fields of a StackSample, and of what is in it. */
enum {
    FIELD_TASK = 1,
    FIELD_EXECUTION = 3,
    FIELD_CALLSTACK = 6,
    FIELD_WEIGHT = 11,
    FIELD_TASK_PID = 2,
    FIELD_TASK_TID = 3,
    FIELD_EXECUTION_CPU = 2,
    FIELD_EXECUTION_MODE = 3,
};

struct task_key {
    uint64_t pid;
    uint64_t tid;
    uint32_t name; /* of the profile's texts */
    uint16_t is_process;
    uint16_t is_written;
};

/* Whose a process is. Both are always written, since one that is left out would stay as it was. */
struct process_labels {
    uint32_t unit; /* of the profile's texts */
    uint32_t user;
};

struct perfetto_packets {
    const struct profile *profile; /* borrowed */
    struct perfetto_sequence sequence;
    struct perfetto_interned interned;
    struct intern tasks;                  /* struct task_key; those that were written */
    struct task_key recent[RECENT_COUNT]; /* some of these, by number of the task */
    struct intern labeled;                /* pids of processes that have labels */
    struct process_labels *labels;        /* owned; of each of these, as written last */
    size_t label_capacity;
    size_t symbol_count;   /* of the profile, when late names were written last */
    uint64_t counter_base; /* of the numbers of counters: differs by session */
};

struct perfetto_packets *perfetto_packets_new(FILE *file, const struct profile *profile,
                                              bool is_live)
{
    struct perfetto_packets *writer = calloc(1, sizeof *writer);
    if (writer != NULL) {
        writer->profile = profile;
        writer->sequence.out.file = file;
        writer->interned.profile = profile;
        writer->interned.is_live = is_live;
        writer->interned.sequence = &writer->sequence;
    }
    return writer;
}

struct perfetto_packets *perfetto_packets_free(struct perfetto_packets *writer)
{
    if (writer != NULL) {
        perfetto_interned_done(&writer->interned);
        perfetto_sequence_done(&writer->sequence);
        intern_done(&writer->tasks);
        intern_done(&writer->labeled);
        free(writer->labels);
        free(writer);
    }
    return NULL;
}

static void write_task(struct perfetto_packets *writer, const struct task_key *key,
                       uint64_t time_ns)
{
    cleanup_(freep) char *name = strdup(profile_text(writer->profile, key->name));
    if (name == NULL) {
        writer->sequence.fault = -ENOMEM;
        return;
    }
    Perfetto__Process process = PERFETTO__PROCESS__INIT;
    Perfetto__Process *processes = &process;
    Perfetto__Thread thread = PERFETTO__THREAD__INIT;
    Perfetto__Thread *threads = &thread;
    Perfetto__ProcessTree tree = PERFETTO__PROCESS_TREE__INIT;
    Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
    process.has_pid = true;
    process.pid = (int32_t)task_number(key->pid);
    process.n_cmdline = 1;
    process.cmdline = &name;
    thread.has_tid = true;
    thread.tid = (int32_t)task_number(key->tid);
    thread.name = name;
    thread.has_tgid = true;
    thread.tgid = process.pid;
    tree.n_processes = key->is_process;
    tree.processes = &processes;
    tree.n_threads = 1 - key->is_process;
    tree.threads = &threads;
    packet.has_timestamp = true;
    packet.timestamp = time_ns;
    packet.process_tree = &tree;
    perfetto_sequence_write(&writer->sequence, &packet);
}

/* Writes the name of a sample's process or thread if it is new. */
static void add_task(struct perfetto_packets *writer, const struct task_key *key, uint64_t time_ns)
{
    struct task_key *recent =
        &writer->recent[(key->is_process ? key->pid : key->tid + 1) % RECENT_COUNT];
    size_t known_count = writer->tasks.item_count;
    uint32_t item = 0;
    if (key->name == INTERN_NONE || memcmp(recent, key, sizeof *key) == 0) {
        return;
    }
    if (intern_add(&writer->tasks, key, sizeof *key, &item) < 0) {
        writer->sequence.fault = -ENOMEM;
        return;
    }
    *recent = *key;
    if (item == known_count) {
        write_task(writer, key, time_ns);
    }
}

/* The same in all runs: FNV-1a. */
static uint64_t hash_id(const char *id)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *id != '\0'; id++) {
        hash = (hash ^ (uint8_t)*id) * UINT64_C(0x100000001b3);
    }
    return hash;
}

static void write_labels(struct perfetto_packets *writer, uint64_t pid,
                         const struct process_labels *labels, uint64_t time_ns)
{
    cleanup_(freep) char *unit = strdup(profile_text(writer->profile, labels->unit));
    cleanup_(freep) char *user = strdup(profile_text(writer->profile, labels->user));
    if (unit == NULL || user == NULL) {
        writer->sequence.fault = -ENOMEM;
        return;
    }
    char *texts[] = {unit, user};
    Perfetto__ProcessDescriptor process = PERFETTO__PROCESS_DESCRIPTOR__INIT;
    Perfetto__TrackDescriptor track = PERFETTO__TRACK_DESCRIPTOR__INIT;
    Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
    process.has_pid = true;
    process.pid = (int32_t)task_number(pid);
    process.n_process_labels = sizeof texts / sizeof texts[0];
    process.process_labels = texts;
    /* Readers take two tracks of one pid for two processes, so a pid has the same one in all
     * recordings. */
    track.has_uuid = true;
    track.uuid = hash_id("process") + task_number(pid);
    track.process = &process;
    packet.has_timestamp = true;
    packet.timestamp = time_ns;
    packet.track_descriptor = &track;
    perfetto_sequence_write(&writer->sequence, &packet);
}

/* Writes the labels of the sample's process, if that is not what was written last. */
static void add_labels(struct perfetto_packets *writer, const struct profile_sample *sample)
{
    const struct profile_task *task = profile_task(writer->profile, sample->task);
    size_t known_count = writer->labeled.item_count;
    uint32_t item = intern_find(&writer->labeled, &task->pid, sizeof task->pid);
    if (task->owner == INTERN_NONE && item == INTERN_NONE) {
        return;
    }
    const struct process_labels labels = {
        .unit = profile_label(writer->profile, sample, PROFILE_LABEL_UNIT),
        .user = profile_label(writer->profile, sample, PROFILE_LABEL_USER),
    };
    if (intern_add(&writer->labeled, &task->pid, sizeof task->pid, &item) < 0 ||
        grow(writer->labels, writer->label_capacity, (size_t)item + 1) < 0) {
        writer->sequence.fault = -ENOMEM;
    } else if (item == known_count || labels.unit != writer->labels[item].unit ||
               labels.user != writer->labels[item].user) {
        writer->labels[item] = labels;
        write_labels(writer, task->pid, &labels, sample->time_ns);
    }
}

/* Puts a message of two numbers, as a field of another. Returns its bytes. */
static size_t put_pair(uint32_t field, const uint32_t fields[2], const uint64_t values[2],
                       uint8_t *into)
{
    uint8_t pair[2 * MESSAGE_NUMBER_BYTES_MAX];
    size_t bytes = message_number(fields[0], values[0], pair);
    bytes += message_number(fields[1], values[1], pair + bytes);
    size_t head_bytes = message_head(field, bytes, into);
    memcpy(into + head_bytes, pair, bytes);
    return head_bytes + bytes;
}

/* Writes a sample of another event than the clock. A wait is on no CPU. */
static void write_stack(struct perfetto_packets *writer, const struct profile_sample *sample)
{
    static const uint32_t task_fields[2] = {FIELD_TASK_PID, FIELD_TASK_TID};
    static const uint32_t execution_fields[2] = {FIELD_EXECUTION_CPU, FIELD_EXECUTION_MODE};
    const struct profile *profile = writer->profile;
    const struct profile_task *task = profile_task(profile, sample->task);
    const uint64_t task_values[2] = {task_number(task->pid), task_number(task->tid)};
    const uint64_t execution_values[2] = {sample->cpu,
                                          sample->in_kernel ? STACK_MODE_KERNEL : STACK_MODE_USER};
    uint8_t message[PERFETTO_PACKED_BYTES_MAX];
    size_t bytes = put_pair(FIELD_TASK, task_fields, task_values, message);
    if (!profile->event.is_wait) {
        bytes += put_pair(FIELD_EXECUTION, execution_fields, execution_values, message + bytes);
    }
    bytes += message_number(FIELD_CALLSTACK, perfetto_interned_stack(&writer->interned, sample),
                            message + bytes);
    bytes += message_number(FIELD_WEIGHT, profile_value_of(profile, sample), message + bytes);
    perfetto_sequence_write_packed(&writer->sequence, sample->time_ns, STACK_FIELD, message, bytes);
}

int perfetto_packets_sample(struct perfetto_packets *writer, const struct profile_sample *sample)
{
    const struct profile_task *task = profile_task(writer->profile, sample->task);
    const struct task_key process = {
        .pid = task->pid, .name = task->process_name, .is_process = true, .is_written = true};
    const struct task_key thread = {
        .pid = task->pid, .tid = task->tid, .name = task->thread_name, .is_written = true};
    add_task(writer, &process, sample->time_ns);
    add_task(writer, &thread, sample->time_ns);
    add_labels(writer, sample);
    if (!writer->profile->event.is_clock) {
        write_stack(writer, sample);
        return writer->sequence.fault;
    }
    /* The fields of a PerfSample, by their numbers from 1 on. */
    const uint64_t fields[] = {
        sample->cpu,
        task_number(task->pid),
        task_number(task->tid),
        perfetto_interned_stack(&writer->interned, sample),
        sample->in_kernel ? MODE_KERNEL : MODE_USER,
    };
    uint8_t message[PERFETTO_PACKED_BYTES_MAX];
    size_t bytes = 0;
    for (uint32_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        bytes += message_number(i + 1, fields[i], message + bytes);
    }
    perfetto_sequence_write_packed(&writer->sequence, sample->time_ns, SAMPLE_FIELD, message,
                                   bytes);
    return writer->sequence.fault;
}

static void write_clocks(struct perfetto_packets *writer, Perfetto__TracePacket *packet,
                         uint64_t time_ns)
{
    Perfetto__Clock clocks[2] = {PERFETTO__CLOCK__INIT, PERFETTO__CLOCK__INIT};
    Perfetto__Clock *clock_list[2] = {&clocks[0], &clocks[1]};
    Perfetto__ClockSnapshot snapshot = PERFETTO__CLOCK_SNAPSHOT__INIT;
    int64_t offset_ns = 0;
    if (profile_wall_offset_ns(writer->profile, &offset_ns)) {
        for (size_t i = 0; i < 2; i++) {
            clocks[i].has_clock_id = true;
            clocks[i].has_timestamp = true;
        }
        clocks[0].clock_id = CLOCK_ID_BOOTTIME;
        clocks[0].timestamp = time_ns;
        clocks[1].clock_id = CLOCK_ID_REALTIME;
        clocks[1].timestamp = time_ns + (uint64_t)offset_ns;
        snapshot.n_clocks = 2;
        snapshot.clocks = clock_list;
        packet->clock_snapshot = &snapshot;
    }
    perfetto_sequence_write(&writer->sequence, packet);
}

/* Counters of different sessions are different tracks. */
static uint64_t find_counter_base(const struct profile *profile)
{
    cleanup_(json_freep) cJSON *session = cJSON_Parse(profile->session_json);
    const char *id = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(session, "session"));
    return id == NULL ? 0 : hash_id(id) << COUNTER_BITS;
}

/* Writes the first packet of the sequence, with what all samples have. */
static void write_defaults(struct perfetto_packets *writer, Perfetto__TracePacketDefaults *defaults,
                           uint64_t time_ns)
{
    Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
    packet.has_timestamp = true;
    packet.timestamp = time_ns;
    packet.has_sequence_flags = true;
    packet.sequence_flags = PERFETTO_CLEARED;
    packet.trace_packet_defaults = defaults;
    write_clocks(writer, &packet, time_ns);
}

static void begin_clock(struct perfetto_packets *writer, uint64_t time_ns)
{
    char name[] = "cpu-clock";
    uint64_t period_ns = profile_period_ns(writer->profile);
    Perfetto__Timebase timebase = PERFETTO__TIMEBASE__INIT;
    Perfetto__PerfSampleDefaults samples = PERFETTO__PERF_SAMPLE_DEFAULTS__INIT;
    Perfetto__TracePacketDefaults defaults = PERFETTO__TRACE_PACKET_DEFAULTS__INIT;
    timebase.has_period = period_ns > 0;
    timebase.period = period_ns;
    timebase.has_counter = true;
    timebase.counter = COUNTER_CPU_CLOCK;
    timebase.name = name;
    samples.timebase = &timebase;
    defaults.perf_sample_defaults = &samples;
    write_defaults(writer, &defaults, time_ns);
}

/* Samples of another event are of a source of their own. */
static void begin_event(struct perfetto_packets *writer, uint64_t time_ns)
{
    const struct profile_event *event = &writer->profile->event;
    char name[EXPORT_EVENT_BYTES];
    char unit[EXPORT_EVENT_BYTES];
    char source[EXPORT_EVENT_BYTES + sizeof SOURCE_PREFIX];
    const struct profile_event named_unit = {.name = event->unit};
    Perfetto__StackSampleCounter counter = PERFETTO__STACK_SAMPLE_COUNTER__INIT;
    Perfetto__StackSampleDefaults samples = PERFETTO__STACK_SAMPLE_DEFAULTS__INIT;
    Perfetto__TracePacketDefaults defaults = PERFETTO__TRACE_PACKET_DEFAULTS__INIT;
    (void)export_event_name(event, name);
    (void)export_event_name(&named_unit, unit);
    (void)snprintf(source, sizeof source, SOURCE_PREFIX "%s", name);
    counter.name = name;
    counter.has_unit = event->is_time;
    counter.unit = STACK_UNIT_NANOSECONDS;
    counter.unit_str = event->is_time ? NULL : unit;
    samples.source = source;
    samples.primary_descriptor = &counter;
    defaults.stack_sample_defaults = &samples;
    write_defaults(writer, &defaults, time_ns);
}

int perfetto_packets_begin(struct perfetto_packets *writer, uint64_t time_ns)
{
    perfetto_interned_forget(&writer->interned);
    writer->sequence.gathered_bytes = 0;
    writer->counter_base = find_counter_base(writer->profile);
    if (writer->profile->event.is_clock) {
        begin_clock(writer, time_ns);
    } else {
        begin_event(writer, time_ns);
    }
    return writer->sequence.fault;
}

struct counters {
    struct perfetto_packets *writer;
    uint64_t from_ns;
    uint64_t time_ns;
    uint64_t number; /* of the counter at hand */
};

static void write_value(const struct counters *counters, uint64_t time_ns, int64_t value)
{
    Perfetto__TrackEvent event = PERFETTO__TRACK_EVENT__INIT;
    Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
    event.has_type = true;
    event.type = TYPE_COUNTER;
    event.has_track_uuid = true;
    event.track_uuid = counters->writer->counter_base + counters->number;
    event.has_counter_value = true;
    event.counter_value = value;
    packet.has_timestamp = true;
    packet.timestamp = time_ns;
    packet.track_event = &event;
    perfetto_sequence_write(&counters->writer->sequence, &packet);
}

/* A counter of the books, by its number in the tables of their terms. */
static void write_counter(const struct export_count *count, void *userdata)
{
    struct counters *counters = userdata;
    struct perfetto_packets *writer = counters->writer;
    cleanup_(freep) char *name = strdup(count->name);
    if (name == NULL) {
        writer->sequence.fault = -ENOMEM;
        return;
    }
    Perfetto__CounterDescriptor counter = PERFETTO__COUNTER_DESCRIPTOR__INIT;
    Perfetto__TrackDescriptor track = PERFETTO__TRACK_DESCRIPTOR__INIT;
    Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
    counters->number = count->number;
    counter.has_unit = true;
    counter.unit = UNIT_COUNT;
    track.has_uuid = true;
    track.uuid = writer->counter_base + counters->number;
    track.name = name;
    track.counter = &counter;
    packet.track_descriptor = &track;
    perfetto_sequence_write(&writer->sequence, &packet);
    if (counters->from_ns > 0) {
        write_value(counters, counters->from_ns, 0);
    }
    write_value(counters, counters->time_ns, count->value);
}

int perfetto_packets_books(struct perfetto_packets *writer, uint64_t from_ns, uint64_t time_ns)
{
    struct counters counters = {.writer = writer, .from_ns = from_ns, .time_ns = time_ns};
    export_books_counts(writer->profile, write_counter, &counters);
    return writer->sequence.fault;
}

static void write_late_name(struct perfetto_packets *writer, const struct unnamed_frame *frame,
                            uint32_t name_text, uint64_t time_ns)
{
    const struct profile *profile = writer->profile;
    const struct profile_module *module = &profile->modules[frame->module];
    const char *path = profile_text(profile, module->name);
    uint8_t build_id[BUILD_ID_BYTES];
    cleanup_(freep) char *name = strdup(profile_text(profile, name_text));
    cleanup_(freep) char *shown_path = NULL;
    /* Readers put a slash before a path that has none. */
    if (name == NULL || asprintf(&shown_path, "%s%s", path[0] == '/' ? "" : "/", path) < 0) {
        shown_path = NULL;
        writer->sequence.fault = -ENOMEM;
        return;
    }
    Perfetto__Line line = PERFETTO__LINE__INIT;
    Perfetto__Line *lines = &line;
    Perfetto__AddressSymbols address = PERFETTO__ADDRESS_SYMBOLS__INIT;
    Perfetto__AddressSymbols *addresses = &address;
    Perfetto__ModuleSymbols symbols = PERFETTO__MODULE_SYMBOLS__INIT;
    Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
    line.function_name = name;
    address.has_address = true;
    address.address = frame->address;
    address.n_lines = 1;
    address.lines = &lines;
    symbols.path = shown_path;
    symbols.has_build_id = true;
    symbols.build_id.data = build_id;
    symbols.build_id.len =
        build_id_bytes(profile_text(profile, module->build_id), build_id, sizeof build_id);
    symbols.n_address_symbols = 1;
    symbols.address_symbols = &addresses;
    packet.has_timestamp = true;
    packet.timestamp = time_ns;
    packet.module_symbols = &symbols;
    perfetto_sequence_write(&writer->sequence, &packet);
}

int perfetto_packets_late_names(struct perfetto_packets *writer, uint64_t time_ns)
{
    size_t kept_count = 0;
    size_t symbol_count = defined_symbol_count(writer->profile);
    if (symbol_count == writer->symbol_count) {
        return writer->sequence.fault;
    }
    writer->symbol_count = symbol_count;
    for (size_t i = 0; i < writer->interned.unnamed_count && writer->sequence.fault == 0; i++) {
        const struct unnamed_frame frame = writer->interned.unnamed[i];
        uint32_t name = defined_symbol_find(writer->profile, frame.symbols, frame.address);
        if (name == INTERN_NONE) {
            writer->interned.unnamed[kept_count++] = frame;
        } else {
            write_late_name(writer, &frame, name, time_ns);
        }
    }
    writer->interned.unnamed_count = kept_count;
    return writer->sequence.fault;
}
