/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Prints perf.data of samples, as a file or as what goes through a pipe. A file's head says
 * how long the records are, so these are counted first. Names of programs and mappings come before
 * samples, each with its time, since readers sort by time. Paths of control groups are records too,
 * which samples refer to by numbers that mean nothing elsewhere.
 *
 * The format has no names of functions but the kernel's: readers find them in the modules' files,
 * by path and build-id. So a mapping needs the offset in its file, which load_segments has where
 * the file is still here; else it is guessed to be as GNU ld makes it.
 *
 * Of the kernel, perf makes one object from its mapping, and puts a function that a record names
 * into the object that is mapped at the function's address, at the beginning of that mapping; where
 * nothing is mapped, each function becomes an object. So the kernel's mapping is first said to be
 * each of its functions in turn, and then all of the kernel's addresses: a later one takes the
 * place of the earlier one, and the object keeps the functions. perf looks for more of them in the
 * kernel that runs where it does, which may be another one: unless the object is known already, as
 * one is that data was mapped of, in huge pages.
 */
#include "writers.h"

#include "build_id_bytes.h"
#include "cleanup.h"
#include "definitions.h"
#include "export_books.h"
#include "export_cost.h"
#include "extremes.h"
#include "load_segments.h"
#include "perf_header.h"
#include "perf_records.h"
#include "stack_runs.h"
#include "task_number.h"

#include <assert.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>

#define USER_LAST      UINT64_C(0x7fffffffffff)
#define FIXED_BASE     UINT64_C(0x400000) /* of programs that run where they were linked for */
#define BUILD_ID_BYTES ((size_t)20)
#define NO_GROUP       UINT64_C(0) /* perf shows "N/A" */
#define KERNEL_FIRST   (UINT64_C(1) << 63)
#define KERNEL_OBJECT  "[kernel.kallsyms]"
#define AHEAD          ((size_t)16) /* so many samples ahead their stacks are fetched */

/* Of a sample's record: what stands before its stacks, and up to their end: a word of the control
 * group may follow. */
#define SAMPLE_HEAD_BYTES (7 * sizeof(uint64_t))
#define SAMPLE_BYTES_MAX                                                                           \
    (PERF_RECORD_BYTES_MAX / sizeof(uint64_t) * sizeof(uint64_t) - sizeof(uint64_t))

struct perf_data {
    const struct profile *profile; /* borrowed */
    struct intern functions;       /* struct defined_function of the kernel */
    struct stack_runs stacks;      /* those with a kernel's, whose functions were found; empty */
    struct intern groups;          /* control groups: texts of the profile */
    uint64_t sample_bytes;         /* of the records of all samples */
    bool has_kernel;               /* a sample has a stack of it */
    struct load_segments *files;   /* owned; by module */
    struct perf_event event;
    struct export_cost cost;
    struct perf_records records;
};

static void perf_data_done(struct perf_data *writer)
{
    intern_done(&writer->functions);
    stack_runs_done(&writer->stacks);
    intern_done(&writer->groups);
    free(writer->files);
}

/* Makes the kernel an object of which perf knows all. The mapping itself means nothing: no task has
 * the kernel's addresses. */
static void write_kernel_object(struct perf_data *writer)
{
    const struct perf_task task = {.pid = UINT32_MAX, .tid = UINT32_MAX};
    const uint64_t no_file[3] = {0}; /* device, inode, generation */
    perf_records_begin(&writer->records, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER);
    perf_records_u32(&writer->records, task.pid);
    perf_records_u32(&writer->records, task.tid);
    perf_records_u64(&writer->records, KERNEL_FIRST);
    perf_records_u64(&writer->records, 1);
    perf_records_u64(&writer->records, 0); /* offset */
    perf_records_bytes(&writer->records, no_file, sizeof no_file);
    perf_records_u32(&writer->records, PROT_READ);
    perf_records_u32(&writer->records, MAP_PRIVATE | MAP_HUGETLB);
    perf_records_text(&writer->records, KERNEL_OBJECT);
    perf_records_task(&writer->records, &task);
    perf_records_end(&writer->records);
}

/* Says what the kernel's mapping is from now on. Its offset is the address of a symbol of the
 * kernel, which a perf that asks the running kernel compares; where it is 0, perf warns. */
static void write_kernel_mapping(struct perf_data *writer, uint64_t start, uint64_t size_bytes)
{
    const struct perf_task task = {.pid = UINT32_MAX};
    perf_records_begin(&writer->records, PERF_RECORD_MMAP, PERF_RECORD_MISC_KERNEL);
    perf_records_u32(&writer->records, task.pid);
    perf_records_u32(&writer->records, task.tid);
    perf_records_u64(&writer->records, start);
    perf_records_u64(&writer->records, size_bytes);
    perf_records_u64(&writer->records, start); /* offset */
    perf_records_text(&writer->records, KERNEL_OBJECT "_text");
    perf_records_task(&writer->records, &task);
    perf_records_end(&writer->records);
}

static void write_function(struct perf_data *writer, const struct defined_function *function)
{
    const struct perf_task task = {.pid = UINT32_MAX};
    uint64_t size_bytes = function->size_bytes > UINT32_MAX ? UINT32_MAX : function->size_bytes;
    size_bytes = size_bytes == 0 ? 1 : size_bytes;
    write_kernel_mapping(writer, function->start, size_bytes);
    perf_records_begin(&writer->records, PERF_RECORD_KSYMBOL, PERF_RECORD_MISC_KERNEL);
    perf_records_u64(&writer->records, function->start);
    perf_records_u32(&writer->records, (uint32_t)size_bytes);
    perf_records_u32(&writer->records, PERF_RECORD_KSYMBOL_TYPE_UNKNOWN); /* and no flags */
    perf_records_text(&writer->records, profile_text(writer->profile, function->name));
    perf_records_task(&writer->records, &task);
    perf_records_end(&writer->records);
}

static void write_kernel(struct perf_data *writer)
{
    if (!writer->has_kernel) {
        return;
    }
    write_kernel_object(writer);
    for (size_t i = 0; i < writer->functions.item_count; i++) {
        size_t size_bytes = 0;
        write_function(writer, intern_bytes(&writer->functions, (uint32_t)i, &size_bytes));
    }
    write_kernel_mapping(writer, KERNEL_FIRST, UINT64_MAX - KERNEL_FIRST);
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
        const struct profile_task *found = NULL;
        for (size_t at = 0; at < profile->sample_count && found == NULL; at++) {
            const struct profile_task *task = profile_task(profile, profile->samples[at].task);
            found = task->pid == pids[i] ? task : NULL;
        }
        if (found != NULL) {
            const struct defined_name name = {
                .pid = pids[i], .tid = pids[i], .text = found->process_name};
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
 * What a stack takes in a sample's record that has `used_bytes` by then. Before its addresses
 * stands the marker of their context, if there is one. A sample has the stacks of at most two
 * records of FXT, each without its head, fields, id and count: the longest two have one address
 * more than there is room for.
 */
static size_t chain_bytes(size_t stack_bytes, uint64_t context, size_t used_bytes)
{
    size_t marker_bytes = context == 0 ? 0 : sizeof context;
    size_t room_bytes = SAMPLE_BYTES_MAX - used_bytes;
    size_t wanted_bytes = stack_bytes == 0 ? 0 : marker_bytes + stack_bytes;
    return wanted_bytes < room_bytes ? wanted_bytes : room_bytes;
}

/* Adds a stack's addresses. */
static void add_chain(struct perf_data *writer, uint32_t stack, uint64_t context)
{
    struct perf_records *records = &writer->records;
    size_t stack_bytes = 0;
    const uint64_t *addresses = intern_bytes(&writer->profile->stacks, stack, &stack_bytes);
    size_t bytes = chain_bytes(stack_bytes, context, records->used_bytes);
    if (bytes > 0 && context != 0) {
        perf_records_u64(records, context);
        bytes -= sizeof context;
    }
    perf_records_bytes(records, addresses, bytes);
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
    return profile_owner(writer->profile, profile_task(writer->profile, sample->task)->owner)
        ->cgroup;
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

/* The sizes of all stacks, which are looked at for each sample. Returned: free(). NULL when there
 * is no memory. */
static uint32_t *find_stack_bytes(const struct profile *profile)
{
    size_t count = profile->stacks.item_count;
    uint32_t *sizes = calloc(count + 1, sizeof *sizes);
    for (size_t i = 0; i < count && sizes != NULL; i++) {
        size_t size_bytes = 0;
        (void)intern_bytes(&profile->stacks, (uint32_t)i, &size_bytes);
        sizes[i] = (uint32_t)size_bytes;
    }
    return sizes;
}

/* What the record of a sample takes, without a control group. */
static size_t sample_bytes(const uint32_t *stack_bytes, const struct profile_sample *sample)
{
    size_t bytes = SAMPLE_HEAD_BYTES;
    bytes += chain_bytes(stack_bytes[sample->kernel_stack], (uint64_t)PERF_CONTEXT_KERNEL, bytes);
    bytes += chain_bytes(stack_bytes[sample->user_stack], (uint64_t)PERF_CONTEXT_USER, bytes);
    return bytes + chain_bytes(stack_bytes[sample->rest_stack], 0, bytes);
}

static void write_sample(struct perf_data *writer, const struct profile_sample *sample)
{
    const struct profile_task *task = profile_task(writer->profile, sample->task);
    struct perf_records *records = &writer->records;
    perf_records_begin(records, PERF_RECORD_SAMPLE,
                       sample->in_kernel ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER);
    perf_records_u64(records, leaf_address(writer->profile, sample));
    perf_records_u32(records, task_number(task->pid));
    perf_records_u32(records, task_number(task->tid));
    perf_records_u64(records, sample->time_ns);
    perf_records_u32(records, sample->cpu);
    perf_records_u32(records, 0);
    perf_records_u64(records, export_cost_of_sample(&writer->cost, writer->profile, sample));
    perf_records_u64(records, 0); /* the words of the stacks, for now */
    assert(records->used_bytes == SAMPLE_HEAD_BYTES);
    add_chain(writer, sample->kernel_stack, (uint64_t)PERF_CONTEXT_KERNEL);
    add_chain(writer, sample->user_stack, (uint64_t)PERF_CONTEXT_USER);
    add_chain(writer, sample->rest_stack, 0);
    uint64_t count = (records->used_bytes - SAMPLE_HEAD_BYTES) / sizeof count;
    memcpy(records->bytes + SAMPLE_HEAD_BYTES - sizeof count, &count, sizeof count);
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

/* Writes what stands before samples. */
static void write_definitions(struct perf_data *writer)
{
    const struct profile *profile = writer->profile;
    write_kernel(writer);
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
}

/* Fetches into the CPU's cache what will be needed for the sample so far behind the one `at`. */
static void fetch_ahead(const struct profile *profile, size_t at)
{
    if (profile->sample_count - at > AHEAD) {
        const struct profile_sample *sample = &profile->samples[at + AHEAD];
        intern_fetch_bytes(&profile->stacks, sample->kernel_stack);
        intern_fetch_bytes(&profile->stacks, sample->user_stack);
        intern_fetch_bytes(&profile->stacks, sample->rest_stack);
    }
}

static void write_records(struct perf_data *writer, FILE *file)
{
    const struct profile *profile = writer->profile;
    writer->records.out.file = file;
    write_definitions(writer);
    for (size_t i = 0; i < profile->sample_count; i++) {
        fetch_ahead(profile, i);
        write_sample(writer, &profile->samples[i]);
    }
    write_lost(writer);
    perf_records_flush(&writer->records);
}

/* The bytes that write_records() will write. */
static uint64_t count_records(struct perf_data *writer)
{
    write_definitions(writer);
    write_lost(writer);
    uint64_t other_bytes = writer->records.written_bytes;
    writer->records.written_bytes = 0;
    return other_bytes + writer->sample_bytes;
}

/* A stack_run_fn of no bytes: finds the kernel's functions that are in a sample's stack. */
static int find_functions(const struct profile_sample *sample, void *userdata, struct made_run *ret)
{
    struct perf_data *writer = userdata;
    struct place_walk walk;
    struct stack_place place;
    struct defined_function function;
    uint32_t item = 0;
    int r = 0;
    place_walk_begin(&walk, writer->profile, sample);
    while (r == 0 && place_walk_next(&walk, &place) && place.is_kernel) {
        if (defined_function_find(writer->profile, sample, &place, &function)) {
            r = intern_add(&writer->functions, &function, sizeof function, &item);
        }
    }
    *ret = (struct made_run){0};
    return r;
}

/* Finds what a sample refers to. `before`: the one before it, or NULL. */
static int prepare_sample(struct perf_data *writer, const struct profile_sample *sample,
                          const struct profile_sample *before)
{
    struct made_run nothing;
    uint32_t item = 0;
    int r = 0;
    if (sample->kernel_stack != 0) {
        writer->has_kernel = true;
        r = stack_runs_get(&writer->stacks, writer->profile, sample, find_functions, writer,
                           &nothing);
    }
    if (r == 0 && (before == NULL || before->task != sample->task)) {
        uint32_t text = sample_group(writer, sample);
        r = text == INTERN_NONE ? 0 : intern_add(&writer->groups, &text, sizeof text, &item);
    }
    return r;
}

static int prepare(struct perf_data *writer)
{
    const struct profile *profile = writer->profile;
    int r = 0;
    cleanup_(freep) uint32_t *stack_bytes = find_stack_bytes(profile);
    writer->files = calloc(profile->module_count + 1, sizeof *writer->files);
    if (writer->files == NULL || stack_bytes == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < profile->module_count; i++) {
        load_segments_read(profile_text(profile, profile->modules[i].name),
                           profile_text(profile, profile->modules[i].build_id), &writer->files[i]);
    }
    for (size_t i = 0; i < profile->sample_count && r == 0; i++) {
        r = prepare_sample(writer, &profile->samples[i], i == 0 ? NULL : &profile->samples[i - 1]);
        writer->sample_bytes += sample_bytes(stack_bytes, &profile->samples[i]);
    }
    writer->event.has_groups = writer->groups.item_count > 0;
    if (writer->event.has_groups) {
        writer->sample_bytes += profile->sample_count * sizeof(uint64_t);
    }
    return r;
}

int perf_data_print(FILE *file, const struct profile *profile, const struct export_options *options)
{
    cleanup_(perf_data_done) struct perf_data writer = {.profile = profile,
                                                        .cost = export_cost_of(profile)};
    /* Each sample has its own beside it. */
    perf_header_take_event(&profile->event, max_u64(writer.cost.scale, 1), &writer.event);
    int r = prepare(&writer);
    if (r < 0) {
        return r;
    }
    if (options->is_piped) {
        perf_header_begin_pipe(file, &writer.event, profile);
        write_records(&writer, file);
        return 0;
    }
    uint64_t data_bytes = count_records(&writer);
    perf_header_begin_file(file, &writer.event, data_bytes, profile);
    write_records(&writer, file);
    assert(writer.records.written_bytes == data_bytes);
    perf_header_end_file(file, &writer.event, data_bytes, profile);
    return 0;
}
