/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Prints perf.data of clock samples, as a file or as what goes through a pipe. A file's head says
 * how long the records are, so these are made twice: once to be counted, once to be written. Names
 * of programs and mappings come first, each with its time, since readers sort by time. Paths of
 * control groups are records too, which samples refer to by numbers that mean nothing elsewhere.
 *
 * The format has no names of functions but the kernel's: readers find them in the modules' files,
 * by path and build-id. So a mapping needs the offset in its file, which load_segments has where
 * the file is still here; else it is guessed to be as GNU ld makes it.
 */
#include "writers.h"

#include "build_id_bytes.h"
#include "cleanup.h"
#include "definitions.h"
#include "export_books.h"
#include "load_segments.h"
#include "perf_header.h"
#include "perf_records.h"
#include "task_number.h"

#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>

#define USER_LAST      UINT64_C(0x7fffffffffff)
#define FIXED_BASE     UINT64_C(0x400000) /* of programs that run where they were linked for */
#define BUILD_ID_BYTES ((size_t)20)
#define NO_GROUP       UINT64_C(0) /* perf shows "N/A" */

/* Of a sample's record, up to the end of its stacks: a word of the control group may follow. */
#define SAMPLE_BYTES_MAX                                                                           \
    (PERF_RECORD_BYTES_MAX / sizeof(uint64_t) * sizeof(uint64_t) - sizeof(uint64_t))

struct perf_data {
    const struct profile *profile; /* borrowed */
    struct intern functions;       /* struct defined_function of the kernel */
    struct intern groups;          /* control groups: texts of the profile */
    struct load_segments *files;   /* owned; by module */
    struct perf_event event;
    struct perf_records records;
};

static void perf_data_done(struct perf_data *writer)
{
    intern_done(&writer->functions);
    intern_done(&writer->groups);
    free(writer->files);
}

static void write_function(struct perf_data *writer, const struct defined_function *function)
{
    const struct perf_task task = {.pid = UINT32_MAX};
    uint64_t size_bytes = function->size_bytes > UINT32_MAX ? UINT32_MAX : function->size_bytes;
    perf_records_begin(&writer->records, PERF_RECORD_KSYMBOL, PERF_RECORD_MISC_KERNEL);
    perf_records_u64(&writer->records, function->start);
    perf_records_u32(&writer->records, size_bytes == 0 ? 1 : (uint32_t)size_bytes);
    perf_records_u32(&writer->records, PERF_RECORD_KSYMBOL_TYPE_UNKNOWN); /* and no flags */
    perf_records_text(&writer->records, profile_text(writer->profile, function->name));
    perf_records_task(&writer->records, &task);
    perf_records_end(&writer->records);
}

static void write_name(struct perf_data *writer, const struct defined_name *name)
{
    const struct perf_task task = {name->since_ns, task_number(name->pid), task_number(name->tid),
                                   0};
    perf_records_begin(&writer->records, PERF_RECORD_COMM, 0);
    perf_records_u32(&writer->records, task.pid);
    perf_records_u32(&writer->records, task.tid);
    perf_records_text(&writer->records, profile_text(writer->profile, name->text));
    perf_records_task(&writer->records, &task);
    perf_records_end(&writer->records);
}

/* Names what samples have whose task is none: perf's own names for these numbers say otherwise. */
static void write_marker_names(struct perf_data *writer)
{
    static const uint64_t pids[] = {PROFILE_PID_OUTSIDE, PROFILE_PID_EXITED};
    const struct profile *profile = writer->profile;
    for (size_t i = 0; i < sizeof pids / sizeof pids[0]; i++) {
        size_t found = 0;
        while (found < profile->sample_count && profile->samples[found].pid != pids[i]) {
            found++;
        }
        if (found < profile->sample_count) {
            const struct defined_name name = {
                .pid = pids[i], .tid = pids[i], .text = profile->samples[found].process_name};
            write_name(writer, &name);
        }
    }
}

static uint64_t file_offset(const struct perf_data *writer, const struct defined_mapping *mapping)
{
    uint64_t offset = mapping->address;
    if (mapping->module != INTERN_NONE &&
        !load_segments_find(&writer->files[mapping->module], mapping->address, &offset) &&
        mapping->address == mapping->start && mapping->address >= FIXED_BASE) {
        offset = mapping->address - FIXED_BASE;
    }
    return offset;
}

/* The build-id of at most BUILD_ID_BYTES. Returns its bytes, 0: none. */
static uint8_t read_build_id(const struct perf_data *writer, uint32_t module, uint8_t *ret)
{
    const char *digits =
        module == INTERN_NONE
            ? ""
            : profile_text(writer->profile, writer->profile->modules[module].build_id);
    return (uint8_t)build_id_bytes(digits, ret, BUILD_ID_BYTES);
}

static void write_mapping(struct perf_data *writer, const struct defined_mapping *mapping)
{
    uint32_t pid = task_number(mapping->pid);
    const struct perf_task task = {mapping->time_ns, pid, pid, 0};
    uint64_t last = mapping->last < USER_LAST ? mapping->last : USER_LAST;
    uint8_t build_id[BUILD_ID_BYTES] = {0};
    uint8_t build_id_bytes = read_build_id(writer, mapping->module, build_id);
    const uint8_t build_id_head[4] = {build_id_bytes};
    uint16_t misc = build_id_bytes > 0 ? PERF_RECORD_MISC_MMAP_BUILD_ID : 0;
    if (mapping->pid == PROFILE_PID_OUTSIDE || mapping->start > last) {
        return;
    }
    perf_records_begin(&writer->records, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER | misc);
    perf_records_u32(&writer->records, pid);
    perf_records_u32(&writer->records, pid);
    perf_records_u64(&writer->records, mapping->start);
    perf_records_u64(&writer->records, last - mapping->start + 1);
    perf_records_u64(&writer->records, file_offset(writer, mapping));
    perf_records_bytes(&writer->records, build_id_head, sizeof build_id_head);
    perf_records_bytes(&writer->records, build_id, sizeof build_id);
    perf_records_u32(&writer->records, PROT_READ | PROT_EXEC);
    perf_records_u32(&writer->records, MAP_PRIVATE);
    perf_records_text(
        &writer->records,
        mapping->module == INTERN_NONE
            ? "[unknown]"
            : profile_text(writer->profile, writer->profile->modules[mapping->module].name));
    perf_records_task(&writer->records, &task);
    perf_records_end(&writer->records);
}

/*
 * Adds a stack's addresses behind the marker of their context. Returns the words. A sample has the
 * stacks of at most two records of FXT, each without its head, fields, id and count: the longest
 * two have one address more than there is room for.
 */
static size_t add_chain(struct perf_data *writer, uint32_t stack, uint64_t context)
{
    size_t stack_bytes = 0;
    const uint64_t *addresses = intern_bytes(&writer->profile->stacks, stack, &stack_bytes);
    if (stack_bytes == 0) {
        return 0;
    }
    if (context != 0) {
        perf_records_u64(&writer->records, context);
    }
    size_t room_bytes = SAMPLE_BYTES_MAX - writer->records.used_bytes;
    size_t taken_bytes = stack_bytes < room_bytes ? stack_bytes : room_bytes;
    perf_records_bytes(&writer->records, addresses, taken_bytes);
    return taken_bytes / sizeof *addresses + (context != 0);
}

/* The interrupted instruction, 0: not known. */
static uint64_t leaf_address(const struct profile *profile, const struct profile_sample *sample)
{
    size_t stack_bytes = 0;
    const uint64_t *stack = intern_bytes(&profile->stacks, sample->kernel_stack, &stack_bytes);
    if (stack_bytes == 0 && !sample->in_kernel) {
        stack = intern_bytes(&profile->stacks, sample->user_stack, &stack_bytes);
    }
    return stack_bytes == 0 ? 0 : stack[0];
}

/* The number of a control group, by its text. */
static uint64_t group_number(uint32_t text)
{
    return text == INTERN_NONE ? NO_GROUP : 1 + (uint64_t)text;
}

static uint32_t sample_group(const struct perf_data *writer, const struct profile_sample *sample)
{
    return profile_owner(writer->profile, sample->owner)->cgroup;
}

static void write_group(struct perf_data *writer, uint32_t text)
{
    const struct perf_task task = {0};
    perf_records_begin(&writer->records, PERF_RECORD_CGROUP, 0);
    perf_records_u64(&writer->records, group_number(text));
    perf_records_text(&writer->records, profile_text(writer->profile, text));
    perf_records_task(&writer->records, &task);
    perf_records_end(&writer->records);
}

static void write_sample(struct perf_data *writer, const struct profile_sample *sample)
{
    struct perf_records *records = &writer->records;
    uint64_t count = 0;
    perf_records_begin(records, PERF_RECORD_SAMPLE,
                       sample->in_kernel ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER);
    perf_records_u64(records, leaf_address(writer->profile, sample));
    perf_records_u32(records, task_number(sample->pid));
    perf_records_u32(records, task_number(sample->tid));
    perf_records_u64(records, sample->time_ns);
    perf_records_u32(records, sample->cpu);
    perf_records_u32(records, 0);
    perf_records_u64(records, writer->event.period);
    size_t count_at = records->used_bytes;
    perf_records_u64(records, 0);
    count += add_chain(writer, sample->kernel_stack, (uint64_t)PERF_CONTEXT_KERNEL);
    count += add_chain(writer, sample->user_stack, (uint64_t)PERF_CONTEXT_USER);
    count += add_chain(writer, sample->rest_stack, 0);
    memcpy(records->bytes + count_at, &count, sizeof count);
    if (writer->event.has_groups) {
        perf_records_u64(records, group_number(sample_group(writer, sample)));
    }
    perf_records_end(records);
}

/* Ticks without a sample. Readers refuse a file without any record, so this one is always there. */
static void write_lost(struct perf_data *writer)
{
    const struct perf_task task = {.time_ns = writer->profile->last_ns};
    perf_records_begin(&writer->records, PERF_RECORD_LOST_SAMPLES, 0);
    perf_records_u64(&writer->records, export_books_lost(writer->profile));
    perf_records_task(&writer->records, &task);
    perf_records_end(&writer->records);
}

/* Writes all records, or with `file` NULL counts them. */
static void write_records(struct perf_data *writer, FILE *file)
{
    const struct profile *profile = writer->profile;
    writer->records.file = file;
    writer->records.written_bytes = 0;
    for (size_t i = 0; i < writer->functions.item_count; i++) {
        size_t size_bytes = 0;
        write_function(writer, intern_bytes(&writer->functions, (uint32_t)i, &size_bytes));
    }
    for (size_t i = 0; i < writer->groups.item_count; i++) {
        size_t size_bytes = 0;
        const uint32_t *text = intern_bytes(&writer->groups, (uint32_t)i, &size_bytes);
        write_group(writer, *text);
    }
    for (size_t i = 0; i < defined_name_count(profile); i++) {
        struct defined_name name;
        defined_name_at(profile, i, &name);
        write_name(writer, &name);
    }
    write_marker_names(writer);
    for (size_t i = 0; i < defined_mapping_count(profile); i++) {
        struct defined_mapping mapping;
        defined_mapping_at(profile, i, &mapping);
        write_mapping(writer, &mapping);
    }
    for (size_t i = 0; i < profile->sample_count; i++) {
        write_sample(writer, &profile->samples[i]);
    }
    write_lost(writer);
}

/* Finds the kernel's functions that are in a sample's stack. */
static int add_functions(struct perf_data *writer, const struct profile_sample *sample)
{
    struct place_walk walk;
    struct stack_place place;
    struct defined_function function;
    uint32_t item = 0;
    int r = 0;
    if (sample->kernel_stack == 0) {
        return 0;
    }
    place_walk_begin(&walk, writer->profile, sample);
    while (r == 0 && place_walk_next(&walk, &place) && place.is_kernel) {
        if (defined_function_find(writer->profile, sample, &place, &function)) {
            r = intern_add(&writer->functions, &function, sizeof function, &item);
        }
    }
    return r;
}

/* Finds a sample's control group. */
static int add_group(struct perf_data *writer, const struct profile_sample *sample)
{
    uint32_t text = sample_group(writer, sample);
    uint32_t item = 0;
    return text == INTERN_NONE ? 0 : intern_add(&writer->groups, &text, sizeof text, &item);
}

static int prepare(struct perf_data *writer)
{
    const struct profile *profile = writer->profile;
    int r = 0;
    writer->files = calloc(profile->module_count + 1, sizeof *writer->files);
    if (writer->files == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < profile->module_count; i++) {
        load_segments_read(profile_text(profile, profile->modules[i].name),
                           profile_text(profile, profile->modules[i].build_id), &writer->files[i]);
    }
    for (size_t i = 0; i < profile->sample_count && r == 0; i++) {
        r = add_functions(writer, &profile->samples[i]);
        r = r < 0 ? r : add_group(writer, &profile->samples[i]);
    }
    writer->event.has_groups = writer->groups.item_count > 0;
    return r;
}

int perf_data_print(FILE *file, const struct profile *profile, const struct export_options *options)
{
    uint64_t period_ns = profile_period_ns(profile);
    cleanup_(perf_data_done) struct perf_data writer = {
        .profile = profile,
        .event = {.period = period_ns > 0 ? period_ns : 1},
    };
    int r = prepare(&writer);
    if (r < 0) {
        return r;
    }
    if (options->is_piped) {
        perf_header_begin_pipe(file, &writer.event, profile);
        write_records(&writer, file);
        return 0;
    }
    write_records(&writer, NULL);
    uint64_t data_bytes = writer.records.written_bytes;
    perf_header_begin_file(file, &writer.event, data_bytes, profile);
    write_records(&writer, file);
    perf_header_end_file(file, &writer.event, data_bytes, profile);
    return 0;
}
