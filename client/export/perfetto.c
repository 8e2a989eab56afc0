/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Prints a trace of Perfetto: one sequence of packets, a PerfSample a sample. What a sample refers
 * to is in packets before it, each thing once: names, modules, frames, stacks. Of what is told of a
 * process or thread, its name is there again when it changes. The books are counters, from 0 at the
 * first sample to what they came to at the last.
 *
 * Frames have the module's own addresses, so modules are mappings without a place in memory.
 */
#include "writers.h"

#include "build_id_bytes.h"
#include "cleanup.h"
#include "export_books.h"
#include "grow.h"
#include "locations.h"
#include "message_out.h"
#include "task_number.h"

#include <perfetto.pb-c.h>
#include <string.h>

#define SEQUENCE       1
#define PACKET_FIELD   1 /* of the trace */
#define BUILD_ID_BYTES ((size_t)64)

enum {
    SEQUENCE_CLEARED = 1,
    SEQUENCE_NEEDS = 2,
    CLOCK_ID_REALTIME = 1,
    CLOCK_ID_BOOTTIME = 6,
    COUNTER_CPU_CLOCK = 1,
    UNIT_COUNT = 2,
    TYPE_COUNTER = 4,
    MODE_KERNEL = 1,
    MODE_USER = 2,
};

enum string_kind {
    STRING_FUNCTION,
    STRING_BUILD_ID,
    STRING_PATH,
    STRING_SOURCE,
    STRING_KINDS,
};

/* A line of a location. */
struct frame_key {
    uint32_t location;
    uint32_t frame; /* of the profile, or LOCATION_TRUNCATED */
};

struct task_key {
    uint64_t pid;
    uint64_t tid;
    uint32_t name; /* of the profile's texts */
    uint32_t is_process;
};

struct perfetto {
    const struct profile *profile; /* borrowed */
    struct message_out out;
    struct locations locations;
    struct intern
        strings[STRING_KINDS]; /* those that were written; a number is 1 less than an iid */
    struct intern frames;      /* struct frame_key; those that were written */
    struct intern tasks;       /* struct task_key; those that were written */
    bool *has_module;          /* owned; by module, and one for frames without any */
    size_t stack_count;        /* that were written: the first ones */
    uint64_t *frame_ids;       /* owned; of the stack at hand */
    size_t frame_capacity;
    uint64_t track_count;
    int fault; /* the first -errno; nothing is written from then on */
};

static void perfetto_done(struct perfetto *writer)
{
    message_out_done(&writer->out);
    locations_done(&writer->locations);
    for (size_t i = 0; i < STRING_KINDS; i++) {
        intern_done(&writer->strings[i]);
    }
    intern_done(&writer->frames);
    intern_done(&writer->tasks);
    free(writer->has_module);
    free(writer->frame_ids);
}

/* Writes a packet of the sequence. */
static void write_packet(struct perfetto *writer, Perfetto__TracePacket *packet)
{
    packet->has_trusted_packet_sequence_id = true;
    packet->trusted_packet_sequence_id = SEQUENCE;
    if (!packet->has_sequence_flags) {
        packet->has_sequence_flags = true;
        packet->sequence_flags = SEQUENCE_NEEDS;
    }
    if (writer->fault == 0) {
        writer->fault = message_out_field(&writer->out, PACKET_FIELD, &packet->base);
    }
}

static void write_interned(struct perfetto *writer, Perfetto__InternedData *data)
{
    Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
    packet.interned_data = data;
    write_packet(writer, &packet);
}

static void set_string(Perfetto__InternedData *data, enum string_kind kind,
                       Perfetto__InternedString **strings)
{
    switch (kind) {
    case STRING_FUNCTION:
        data->n_function_names = 1;
        data->function_names = strings;
        break;
    case STRING_BUILD_ID:
        data->n_build_ids = 1;
        data->build_ids = strings;
        break;
    case STRING_PATH:
        data->n_mapping_paths = 1;
        data->mapping_paths = strings;
        break;
    case STRING_SOURCE:
    case STRING_KINDS:
        data->n_source_paths = 1;
        data->source_paths = strings;
        break;
    }
}

/* The iid of bytes, which are written if they are new. */
static uint64_t string_iid(struct perfetto *writer, enum string_kind kind, const void *bytes,
                           size_t size_bytes)
{
    struct intern *known = &writer->strings[kind];
    size_t known_count = known->item_count;
    uint32_t item = 0;
    if (intern_add(known, bytes, size_bytes, &item) < 0) {
        writer->fault = -ENOMEM;
        return 0;
    }
    if (item == known_count) {
        Perfetto__InternedString string = PERFETTO__INTERNED_STRING__INIT;
        Perfetto__InternedString *strings = &string;
        Perfetto__InternedData data = PERFETTO__INTERNED_DATA__INIT;
        string.has_iid = true;
        string.iid = (uint64_t)item + 1;
        string.has_str = true;
        const void *kept = intern_bytes(known, item, &string.str.len);
        memcpy(&string.str.data, &kept, sizeof kept); /* its interface is older than const */
        set_string(&data, kind, &strings);
        write_interned(writer, &data);
    }
    return (uint64_t)item + 1;
}

static uint64_t text_iid(struct perfetto *writer, enum string_kind kind, const char *text)
{
    return string_iid(writer, kind, text, strlen(text));
}

/* What readers know the kernel's own mapping by; another name stands for no module. */
static const char *module_path(const struct perfetto *writer, uint32_t module, bool is_kernel)
{
    const struct profile *profile = writer->profile;
    if (is_kernel) {
        return "kernel";
    }
    return module == INTERN_NONE ? "[unknown]"
                                 : profile_text(profile, profile->modules[module].name);
}

static void write_mapping(struct perfetto *writer, uint64_t iid, uint32_t module, bool is_kernel)
{
    const struct profile *profile = writer->profile;
    Perfetto__Mapping mapping = PERFETTO__MAPPING__INIT;
    Perfetto__Mapping *mappings = &mapping;
    Perfetto__InternedData data = PERFETTO__INTERNED_DATA__INIT;
    uint8_t build_id[BUILD_ID_BYTES];
    size_t bytes = 0;
    uint64_t path = text_iid(writer, STRING_PATH, module_path(writer, module, is_kernel));
    if (module != INTERN_NONE && !is_kernel) {
        const char *digits = profile_text(profile, profile->modules[module].build_id);
        bytes = build_id_bytes(digits, build_id, sizeof build_id);
    }
    if (bytes > 0) {
        mapping.has_build_id = true;
        mapping.build_id = string_iid(writer, STRING_BUILD_ID, build_id, bytes);
    }
    mapping.has_iid = true;
    mapping.iid = iid;
    mapping.has_start = true;
    mapping.has_end = true;
    mapping.n_path_string_ids = 1;
    mapping.path_string_ids = &path;
    data.n_mappings = 1;
    data.mappings = &mappings;
    write_interned(writer, &data);
}

/* The iid of a location's module, which is written if it is new. */
static uint64_t mapping_iid(struct perfetto *writer, uint32_t module, bool is_kernel)
{
    size_t number = module == INTERN_NONE ? writer->profile->module_count + is_kernel : module;
    if (!writer->has_module[number]) {
        writer->has_module[number] = true;
        write_mapping(writer, number + 1, module, is_kernel);
    }
    return number + 1;
}

static void fill_names(struct perfetto *writer, uint32_t number, Perfetto__Frame *frame)
{
    if (number == LOCATION_TRUNCATED) {
        frame->function_name_id = text_iid(writer, STRING_FUNCTION, "[truncated]");
        return;
    }
    const struct profile *profile = writer->profile;
    const struct profile_frame *known = profile_frame(profile, number);
    frame->function_name_id = text_iid(writer, STRING_FUNCTION, profile_text(profile, known->name));
    if (known->file != INTERN_NONE) {
        frame->has_source_path_iid = true;
        frame->source_path_iid =
            text_iid(writer, STRING_SOURCE, profile_text(profile, known->file));
        frame->has_line_number = true;
        frame->line_number = known->line;
    }
}

/* The iid of a line of a location, which is written if it is new. */
static uint64_t frame_iid(struct perfetto *writer, const struct frame_key *key)
{
    size_t known_count = writer->frames.item_count;
    uint32_t item = 0;
    if (intern_add(&writer->frames, key, sizeof *key, &item) < 0) {
        writer->fault = -ENOMEM;
        return 0;
    }
    if (item == known_count) {
        const struct location *location = locations_at(&writer->locations, key->location);
        bool is_kernel = key->frame != LOCATION_TRUNCATED &&
                         profile_frame(writer->profile, key->frame)->is_kernel != 0;
        Perfetto__Frame frame = PERFETTO__FRAME__INIT;
        Perfetto__Frame *frames = &frame;
        Perfetto__InternedData data = PERFETTO__INTERNED_DATA__INIT;
        frame.has_iid = true;
        frame.iid = (uint64_t)item + 1;
        frame.has_function_name_id = true;
        fill_names(writer, key->frame, &frame);
        frame.has_mapping_id = true;
        frame.mapping_id = mapping_iid(writer, location->module, is_kernel);
        frame.has_rel_pc = true;
        frame.rel_pc = location->address;
        data.n_frames = 1;
        data.frames = &frames;
        write_interned(writer, &data);
    }
    return (uint64_t)item + 1;
}

/* Gathers the frames of a stack, the outermost first. Returns how many there are. */
static size_t gather_frames(struct perfetto *writer, uint32_t stack)
{
    size_t location_count = 0;
    size_t count = 0;
    const uint32_t *numbers = locations_stack(&writer->locations, stack, &location_count);
    for (size_t i = location_count; i-- > 0 && writer->fault == 0;) {
        size_t line_count = 0;
        const struct location *location = locations_at(&writer->locations, numbers[i]);
        const uint32_t *lines = locations_frames(&writer->locations, location, &line_count);
        if (grow(writer->frame_ids, writer->frame_capacity, count + line_count) < 0) {
            writer->fault = -ENOMEM;
            return count;
        }
        for (size_t line = line_count; line-- > 0;) {
            const struct frame_key key = {numbers[i], lines[line]};
            writer->frame_ids[count++] = frame_iid(writer, &key);
        }
    }
    return count;
}

/* The iid of a stack, which is written if it is new: then its number is the next. */
static uint64_t stack_iid(struct perfetto *writer, uint32_t stack)
{
    if (stack == writer->stack_count) {
        Perfetto__Callstack callstack = PERFETTO__CALLSTACK__INIT;
        Perfetto__Callstack *callstacks = &callstack;
        Perfetto__InternedData data = PERFETTO__INTERNED_DATA__INIT;
        writer->stack_count++;
        callstack.has_iid = true;
        callstack.iid = (uint64_t)stack + 1;
        callstack.n_frame_ids = gather_frames(writer, stack);
        callstack.frame_ids = writer->frame_ids;
        data.n_callstacks = 1;
        data.callstacks = &callstacks;
        write_interned(writer, &data);
    }
    return (uint64_t)stack + 1;
}

static void write_task(struct perfetto *writer, const struct task_key *key, uint64_t time_ns)
{
    cleanup_(freep) char *name = strdup(profile_text(writer->profile, key->name));
    if (name == NULL) {
        writer->fault = -ENOMEM;
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
    write_packet(writer, &packet);
}

/* Writes the name of a sample's process or thread if it is new. */
static void add_task(struct perfetto *writer, const struct task_key *key, uint64_t time_ns)
{
    size_t known_count = writer->tasks.item_count;
    uint32_t item = 0;
    if (key->name == INTERN_NONE) {
        return;
    }
    if (intern_add(&writer->tasks, key, sizeof *key, &item) < 0) {
        writer->fault = -ENOMEM;
    } else if (item == known_count) {
        write_task(writer, key, time_ns);
    }
}

static void write_sample(struct perfetto *writer, const struct profile_sample *sample)
{
    const struct task_key process = {
        .pid = sample->pid, .name = sample->process_name, .is_process = true};
    const struct task_key thread = {.pid = sample->pid,
                                    .tid = sample->tid,
                                    .name = profile_thread_name(writer->profile, sample)};
    uint32_t stack = 0;
    if (locations_add_stack(&writer->locations, writer->profile, sample, &stack) < 0) {
        writer->fault = -ENOMEM;
        return;
    }
    add_task(writer, &process, sample->time_ns);
    add_task(writer, &thread, sample->time_ns);
    Perfetto__PerfSample message = PERFETTO__PERF_SAMPLE__INIT;
    Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
    message.has_cpu = true;
    message.cpu = sample->cpu;
    message.has_pid = true;
    message.pid = task_number(sample->pid);
    message.has_tid = true;
    message.tid = task_number(sample->tid);
    message.has_callstack_iid = true;
    message.callstack_iid = stack_iid(writer, stack);
    message.has_cpu_mode = true;
    message.cpu_mode = sample->in_kernel ? MODE_KERNEL : MODE_USER;
    packet.has_timestamp = true;
    packet.timestamp = sample->time_ns;
    packet.perf_sample = &message;
    write_packet(writer, &packet);
}

static void write_clocks(struct perfetto *writer, Perfetto__TracePacket *packet)
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
        clocks[0].timestamp = writer->profile->first_ns;
        clocks[1].clock_id = CLOCK_ID_REALTIME;
        clocks[1].timestamp = writer->profile->first_ns + (uint64_t)offset_ns;
        snapshot.n_clocks = 2;
        snapshot.clocks = clock_list;
        packet->clock_snapshot = &snapshot;
    }
    write_packet(writer, packet);
}

/* What begins the sequence: nothing is interned yet. */
static void write_head(struct perfetto *writer)
{
    char name[] = "cpu-clock";
    uint64_t period_ns = profile_period_ns(writer->profile);
    Perfetto__Timebase timebase = PERFETTO__TIMEBASE__INIT;
    Perfetto__PerfSampleDefaults samples = PERFETTO__PERF_SAMPLE_DEFAULTS__INIT;
    Perfetto__TracePacketDefaults defaults = PERFETTO__TRACE_PACKET_DEFAULTS__INIT;
    Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
    timebase.has_period = period_ns > 0;
    timebase.period = period_ns;
    timebase.has_counter = true;
    timebase.counter = COUNTER_CPU_CLOCK;
    timebase.name = name;
    samples.timebase = &timebase;
    defaults.perf_sample_defaults = &samples;
    packet.has_timestamp = true;
    packet.timestamp = writer->profile->first_ns;
    packet.has_sequence_flags = true;
    packet.sequence_flags = SEQUENCE_CLEARED;
    packet.trace_packet_defaults = &defaults;
    write_clocks(writer, &packet);
}

static void write_value(struct perfetto *writer, uint64_t time_ns, int64_t value)
{
    Perfetto__TrackEvent event = PERFETTO__TRACK_EVENT__INIT;
    Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
    event.has_type = true;
    event.type = TYPE_COUNTER;
    event.has_track_uuid = true;
    event.track_uuid = writer->track_count;
    event.has_counter_value = true;
    event.counter_value = value;
    packet.has_timestamp = true;
    packet.timestamp = time_ns;
    packet.track_event = &event;
    write_packet(writer, &packet);
}

/* A counter of the books' line "NAME: NUMBER"; of another line there is none. */
static void write_counter(const char *line, void *userdata)
{
    struct perfetto *writer = userdata;
    const char *colon = strrchr(line, ':');
    char *end = NULL;
    int64_t value = colon == NULL ? 0 : strtoll(colon + 1, &end, 10);
    if (end == NULL || end == colon + 1 || *end != '\0') {
        return;
    }
    cleanup_(freep) char *name = strndup(line, (size_t)(colon - line));
    if (name == NULL) {
        writer->fault = -ENOMEM;
        return;
    }
    Perfetto__CounterDescriptor counter = PERFETTO__COUNTER_DESCRIPTOR__INIT;
    Perfetto__TrackDescriptor track = PERFETTO__TRACK_DESCRIPTOR__INIT;
    Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
    counter.has_unit = true;
    counter.unit = UNIT_COUNT;
    track.has_uuid = true;
    track.uuid = ++writer->track_count;
    track.name = name;
    track.counter = &counter;
    packet.track_descriptor = &track;
    write_packet(writer, &packet);
    write_value(writer, writer->profile->first_ns, 0);
    write_value(writer, writer->profile->last_ns, value);
}

int perfetto_print(FILE *file, const struct profile *profile, const struct export_options *options)
{
    (void)options;
    cleanup_(perfetto_done) struct perfetto writer = {.profile = profile, .out = {.file = file}};
    writer.has_module = calloc(profile->module_count + 2, sizeof *writer.has_module);
    if (writer.has_module == NULL) {
        return -ENOMEM;
    }
    write_head(&writer);
    export_books_lines(profile, write_counter, &writer);
    for (size_t i = 0; i < profile->sample_count && writer.fault == 0; i++) {
        write_sample(&writer, &profile->samples[i]);
    }
    return writer.fault;
}
