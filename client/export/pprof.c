/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Prints pprof's profile.proto, piece by piece. Samples with the same stack and the same labels are
 * one, so they are counted first; what a message refers to is written before it. A module is a
 * mapping from 0 on, since addresses are the module's own: so one file has one mapping, however
 * many processes have it. Control characters in names are escaped, since pprof prints names as they
 * are.
 */
#include "writers.h"

#include "cleanup.h"
#include "escaped.h"
#include "export_books.h"
#include "export_cost.h"
#include "grow.h"
#include "locations.h"
#include "message_out.h"

#include <inttypes.h>
#include <pprof.pb-c.h>
#include <string.h>

#define LABELS_MAX 11

/* What labels say. */
enum label_key {
    LABEL_COMM,
    LABEL_THREAD,
    LABEL_PID,
    LABEL_TID,
    LABEL_UNIT,
    LABEL_USER_UNIT,
    LABEL_CONTAINER,
    LABEL_RUNTIME,
    LABEL_POD,
    LABEL_UID,
    LABEL_HOST,
    LABEL_KEYS,
};

static const char *const label_names[LABEL_KEYS] = {
    [LABEL_COMM] = "comm",
    [LABEL_THREAD] = "thread",
    [LABEL_PID] = "pid",
    [LABEL_TID] = "tid",
    [LABEL_UNIT] = "unit",
    [LABEL_USER_UNIT] = "user_unit",
    [LABEL_CONTAINER] = "container",
    [LABEL_RUNTIME] = "runtime",
    [LABEL_POD] = "pod",
    [LABEL_UID] = "uid",
    [LABEL_HOST] = "host",
};

#define VALUES_MAX 2

/* Samples with one key are one sample. */
struct sample_key {
    uint64_t pid;
    uint64_t tid;
    uint32_t stack; /* of the locations */
    uint32_t process_name;
    uint32_t thread_name;
    uint32_t owner;
    uint32_t host; /* of the profile's texts, in a recording of several hosts */
    uint32_t zero;
};

/* What a sample's key depends on: each of these is counted, and many may have one key. */
struct counted_key {
    uint32_t task;
    uint32_t chain;
    uint32_t user_stack;
    uint32_t rest_stack;
    uint32_t kernel_stack;
    uint32_t is_truncated; /* the stack does not reach its root */
};

struct count {
    uint64_t value;   /* of its samples, as the next */
    uint64_t time_ns; /* where periods are known */
    uint32_t key;     /* of the keys */
};

struct function_key {
    uint32_t name; /* of the strings, as `file` */
    uint32_t file;
};

struct pprof {
    const struct profile *profile; /* borrowed */
    struct message_out out;
    struct locations locations;
    struct chain_keys counted; /* struct counted_key */
    struct count *counts;      /* owned; by item of `counted` */
    size_t count_capacity;
    struct intern keys;    /* struct sample_key */
    struct count *sums;    /* owned; by item of `keys` */
    struct intern strings; /* those that were written, by their number */
    uint32_t *string_of;   /* owned; by text of the profile: its string, 0: not written yet */
    int64_t label_keys[LABEL_KEYS]; /* strings */
    struct intern functions;        /* struct function_key; those that were written */
    bool *is_written;               /* owned; by location */
    uint64_t *limits;               /* owned; by module: behind its last address, 0: none */
    struct export_cost cost;
    uint64_t period_ns; /* 0: there are several, or it is not known */
    bool has_time;      /* samples have a time beside their number */
    bool has_hosts;     /* the recording is of several */
    int fault;          /* the first -errno; nothing is written from then on */
};

static void pprof_done(struct pprof *writer)
{
    message_out_done(&writer->out);
    locations_done(&writer->locations);
    chain_keys_done(&writer->counted);
    free(writer->counts);
    intern_done(&writer->keys);
    free(writer->sums);
    intern_done(&writer->strings);
    free(writer->string_of);
    intern_done(&writer->functions);
    free(writer->is_written);
    free(writer->limits);
}

static void write_piece(struct pprof *writer, const Pprof__Profile *piece)
{
    if (writer->fault == 0) {
        writer->fault = message_out_write(&writer->out, &piece->base);
    }
}

/* The index of a text, which is written if it is new. */
static int64_t string_index(struct pprof *writer, const char *text)
{
    cleanup_(freep) char *escaped = escaped_text(text);
    size_t known_count = writer->strings.item_count;
    uint32_t item = 0;
    if (escaped == NULL || intern_add(&writer->strings, escaped, strlen(escaped), &item) < 0) {
        writer->fault = -ENOMEM;
        return 0;
    }
    if (item == known_count) {
        Pprof__Profile piece = PPROF__PROFILE__INIT;
        piece.n_string_table = 1;
        piece.string_table = &escaped;
        write_piece(writer, &piece);
    }
    return item;
}

static int64_t text_index(struct pprof *writer, uint32_t text)
{
    if (text == INTERN_NONE) {
        return 0;
    }
    if (writer->string_of[text] == 0) {
        writer->string_of[text] =
            (uint32_t)string_index(writer, profile_text(writer->profile, text));
    }
    return writer->string_of[text];
}

static void write_function(struct pprof *writer, uint64_t id, const struct function_key *key)
{
    Pprof__Function function = PPROF__FUNCTION__INIT;
    Pprof__Function *functions = &function;
    Pprof__Profile piece = PPROF__PROFILE__INIT;
    function.id = id;
    function.name = key->name;
    function.system_name = key->name;
    function.filename = key->file;
    piece.n_function = 1;
    piece.function = &functions;
    write_piece(writer, &piece);
}

/* The id of a function, which is written if it is new. */
static uint64_t function_id(struct pprof *writer, int64_t name, int64_t file)
{
    const struct function_key key = {(uint32_t)name, (uint32_t)file};
    size_t known_count = writer->functions.item_count;
    uint32_t item = 0;
    if (intern_add(&writer->functions, &key, sizeof key, &item) < 0) {
        writer->fault = -ENOMEM;
        return 1;
    }
    if (item == known_count) {
        write_function(writer, (uint64_t)item + 1, &key);
    }
    return (uint64_t)item + 1;
}

static void fill_line(struct pprof *writer, uint32_t number, Pprof__Line *line)
{
    if (number == LOCATION_TRUNCATED || number == LOCATION_LOST) {
        const char *marker = number == LOCATION_LOST ? "[lost]" : "[truncated]";
        line->function_id = function_id(writer, string_index(writer, marker), 0);
        return;
    }
    const struct profile_frame *frame = profile_frame(writer->profile, number);
    line->function_id =
        function_id(writer, text_index(writer, frame->name), text_index(writer, frame->file));
    line->line = frame->line;
}

static void write_location(struct pprof *writer, uint32_t number)
{
    const struct location *location = locations_at(&writer->locations, number);
    size_t count = 0;
    const uint32_t *frames = locations_frames(&writer->locations, location, &count);
    cleanup_(freep) Pprof__Line *lines = calloc(count, sizeof *lines);
    cleanup_(freep) Pprof__Line **line_list = calloc(count, sizeof(Pprof__Line *));
    if (lines == NULL || line_list == NULL) {
        writer->fault = -ENOMEM;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        lines[i] = (Pprof__Line)PPROF__LINE__INIT;
        fill_line(writer, frames[i], &lines[i]);
        line_list[i] = &lines[i];
    }
    Pprof__Location message = PPROF__LOCATION__INIT;
    Pprof__Location *messages = &message;
    Pprof__Profile piece = PPROF__PROFILE__INIT;
    message.id = (uint64_t)number + 1;
    message.address = location->address;
    message.n_line = count;
    message.line = line_list;
    if (location->module != INTERN_NONE) {
        message.mapping_id = (uint64_t)location->module + 1;
    }
    piece.n_location = 1;
    piece.location = &messages;
    write_piece(writer, &piece);
}

static void set_label(Pprof__Label *label, struct pprof *writer, enum label_key key, int64_t text,
                      int64_t number)
{
    if (writer->label_keys[key] == 0) {
        writer->label_keys[key] = string_index(writer, label_names[key]);
    }
    *label = (Pprof__Label)PPROF__LABEL__INIT;
    label->key = writer->label_keys[key];
    label->str = text;
    label->num = number;
}

/* The labels that say whose it is. Returns how many there are. */
static size_t fill_owner(struct pprof *writer, uint32_t number, Pprof__Label *labels)
{
    const struct profile_owner *owner = profile_owner(writer->profile, number);
    const struct {
        enum label_key key;
        uint32_t text;
    } texts[] = {
        {LABEL_UNIT, owner->unit},
        {LABEL_USER_UNIT, owner->user_unit},
        {LABEL_CONTAINER, owner->container},
        {LABEL_RUNTIME, owner->runtime},
        {LABEL_POD, owner->pod},
    };
    size_t count = 0;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (texts[i].text != INTERN_NONE) {
            set_label(&labels[count++], writer, texts[i].key, text_index(writer, texts[i].text), 0);
        }
    }
    if (owner->uid != PROFILE_UID_UNKNOWN) {
        set_label(&labels[count++], writer, LABEL_UID, 0, owner->uid);
    }
    return count;
}

/* A sample's labels. Returns how many there are. */
static size_t fill_labels(struct pprof *writer, const struct sample_key *key, Pprof__Label *labels)
{
    size_t count = 0;
    set_label(&labels[count++], writer, LABEL_COMM, text_index(writer, key->process_name), 0);
    if (key->thread_name != INTERN_NONE) {
        set_label(&labels[count++], writer, LABEL_THREAD, text_index(writer, key->thread_name), 0);
    }
    if (key->pid != PROFILE_PID_OUTSIDE && key->pid <= INT64_MAX) {
        set_label(&labels[count++], writer, LABEL_PID, 0, (int64_t)key->pid);
    }
    if (key->tid != 0 && key->tid <= INT64_MAX) {
        set_label(&labels[count++], writer, LABEL_TID, 0, (int64_t)key->tid);
    }
    if (key->host != INTERN_NONE) {
        set_label(&labels[count++], writer, LABEL_HOST, text_index(writer, key->host), 0);
    }
    return count + fill_owner(writer, key->owner, labels + count);
}

/* Writes a sample that stands for so much, and the locations that are new. */
static void write_sample(struct pprof *writer, const uint32_t *stack, size_t count,
                         Pprof__Label **labels, size_t label_count, const struct count *sum)
{
    cleanup_(freep) uint64_t *ids = calloc(count, sizeof *ids);
    int64_t values[VALUES_MAX] = {(int64_t)sum->value, (int64_t)sum->time_ns};
    if (ids == NULL) {
        writer->fault = -ENOMEM;
        return;
    }
    for (size_t i = 0; i < count && writer->fault == 0; i++) {
        if (!writer->is_written[stack[i]]) {
            writer->is_written[stack[i]] = true;
            write_location(writer, stack[i]);
        }
        ids[i] = (uint64_t)stack[i] + 1;
    }
    Pprof__Sample sample = PPROF__SAMPLE__INIT;
    Pprof__Sample *samples_list = &sample;
    Pprof__Profile piece = PPROF__PROFILE__INIT;
    sample.n_location_id = count;
    sample.location_id = ids;
    sample.n_value = writer->has_time ? 2 : 1;
    sample.value = values;
    sample.n_label = label_count;
    sample.label = labels;
    piece.n_sample = 1;
    piece.sample = &samples_list;
    write_piece(writer, &piece);
}

static void write_key(struct pprof *writer, uint32_t item)
{
    size_t key_bytes = 0;
    size_t count = 0;
    const struct sample_key *key = intern_bytes(&writer->keys, item, &key_bytes);
    const uint32_t *stack = locations_stack(&writer->locations, key->stack, &count);
    Pprof__Label labels[LABELS_MAX];
    Pprof__Label *label_list[LABELS_MAX];
    size_t label_count = fill_labels(writer, key, labels);
    for (size_t i = 0; i < label_count; i++) {
        label_list[i] = &labels[i];
    }
    write_sample(writer, stack, count, label_list, label_count, &writer->sums[item]);
}

static void write_mapping(struct pprof *writer, size_t number)
{
    const struct profile_module *module = &writer->profile->modules[number];
    Pprof__Mapping mapping = PPROF__MAPPING__INIT;
    Pprof__Mapping *mappings = &mapping;
    Pprof__Profile piece = PPROF__PROFILE__INIT;
    mapping.id = (uint64_t)number + 1;
    mapping.memory_limit = writer->limits[number];
    mapping.filename = text_index(writer, module->name);
    mapping.build_id = text_index(writer, module->build_id);
    mapping.has_functions = true;
    mapping.has_filenames = module->source == INLINES_FOUND;
    mapping.has_line_numbers = mapping.has_filenames && writer->profile->inlines.has_lines;
    mapping.has_inline_frames = mapping.has_filenames;
    piece.n_mapping = 1;
    piece.mapping = &mappings;
    write_piece(writer, &piece);
}

/* Of the clock the number of samples, and the time where the period is known; of another event what
 * samples stand for, and that alone. */
static void name_types(struct pprof *writer, Pprof__ValueType *types)
{
    const struct profile_event *event = &writer->profile->event;
    char name[EXPORT_EVENT_BYTES];
    if (!event->is_clock) {
        types[0].type = string_index(writer, strcmp(event->name, "off-cpu") == 0
                                                 ? "off_cpu"
                                                 : export_event_name(event, name));
        types[0].unit = string_index(writer, event->is_time ? "nanoseconds" : "count");
        return;
    }
    types[0].type = string_index(writer, "samples");
    types[0].unit = string_index(writer, "count");
    types[1].type = string_index(writer, "cpu");
    types[1].unit = string_index(writer, "nanoseconds");
}

/* What is in a sample's values, and since when for how long it was sampled. */
static void write_head(struct pprof *writer)
{
    const struct profile *profile = writer->profile;
    Pprof__Profile piece = PPROF__PROFILE__INIT;
    Pprof__ValueType types[VALUES_MAX] = {PPROF__VALUE_TYPE__INIT, PPROF__VALUE_TYPE__INIT};
    Pprof__ValueType *type_list[VALUES_MAX] = {&types[0], &types[1]};
    int64_t offset_ns = 0;
    (void)string_index(writer, "");
    name_types(writer, types);
    piece.n_sample_type = writer->has_time ? 2 : 1;
    piece.sample_type = type_list;
    if (writer->period_ns > 0) {
        piece.period_type = &types[1];
        piece.period = (int64_t)writer->period_ns;
    }
    piece.default_sample_type = types[piece.n_sample_type - 1].type;
    if (profile_wall_offset_ns(profile, &offset_ns)) {
        piece.time_nanos = (int64_t)(profile->first_ns + (uint64_t)offset_ns);
    }
    piece.duration_nanos = (int64_t)profile_span(profile).length_ns;
    write_piece(writer, &piece);
}

static void write_comment(const char *line, void *userdata)
{
    struct pprof *writer = userdata;
    Pprof__Profile piece = PPROF__PROFILE__INIT;
    int64_t comment = string_index(writer, line);
    piece.n_comment = 1;
    piece.comment = &comment;
    write_piece(writer, &piece);
}

/* Finds the key of a sample whose counted key is new. */
static int add_key(struct pprof *writer, const struct profile_sample *sample, uint32_t *ret_key)
{
    const struct profile_task *task = profile_task(writer->profile, sample->task);
    struct sample_key key = {
        .pid = task->pid,
        .tid = task->tid,
        .process_name = task->process_name,
        .thread_name = task->thread_name,
        .owner = task->owner,
        .host = writer->has_hosts ? writer->profile->hosts[task->segment] : INTERN_NONE,
    };
    int r = locations_make_stack(&writer->locations, writer->profile, sample, &key.stack);
    return r < 0 ? r : intern_add(&writer->keys, &key, sizeof key, ret_key);
}

static int count_sample(struct pprof *writer, const struct profile_sample *sample)
{
    const struct counted_key key = {
        .task = sample->task,
        .chain = sample->chain,
        .user_stack = sample->user_stack,
        .rest_stack = sample->rest_stack,
        .kernel_stack = sample->kernel_stack,
        .is_truncated = profile_rooted(sample) == PROFILE_STACK_TRUNCATED,
    };
    uint32_t item = 0;
    size_t known_count = writer->counted.count;
    if (chain_keys_add(&writer->counted, writer->profile, sample, &key, sizeof key, &item) < 0 ||
        grow(writer->counts, writer->count_capacity, (size_t)item + 1) < 0) {
        return -ENOMEM;
    }
    int r = 0;
    if (item == known_count) {
        writer->counts[item] = (struct count){0};
        r = add_key(writer, sample, &writer->counts[item].key);
    }
    writer->counts[item].value += profile_value_of(writer->profile, sample);
    writer->counts[item].time_ns += export_cost_of_sample(&writer->cost, writer->profile, sample);
    return r;
}

/* Counts the samples of each key. What they were found by is not needed any more. */
static int count_keys(struct pprof *writer)
{
    writer->sums = calloc(writer->keys.item_count + 1, sizeof *writer->sums);
    for (size_t i = 0; writer->sums != NULL && i < writer->counted.count; i++) {
        struct count *sum = &writer->sums[writer->counts[i].key];
        sum->value += writer->counts[i].value;
        sum->time_ns += writer->counts[i].time_ns;
    }
    chain_keys_done(&writer->counted);
    return writer->sums == NULL ? -ENOMEM : 0;
}

static void write_lost(struct pprof *writer, uint32_t location)
{
    const struct count lost = {
        .value = export_books_lost(writer->profile),
        .time_ns = export_books_lost_cost(writer->profile, &writer->cost),
    };
    if (lost.value > 0) {
        write_sample(writer, &location, 1, NULL, 0, &lost);
    }
}

/* Counts all samples. `*ret_lost` is the location "[lost]". */
static int prepare(struct pprof *writer, uint32_t *ret_lost)
{
    const struct profile *profile = writer->profile;
    int r = locations_add_marker(&writer->locations, LOCATION_LOST, ret_lost);
    for (size_t i = 0; i < profile->sample_count && r == 0; i++) {
        chain_keys_fetch_ahead(&writer->counted, profile, i);
        r = count_sample(writer, &profile->samples[i]);
    }
    r = r == 0 ? count_keys(writer) : r;
    if (r < 0) {
        return r;
    }
    writer->is_written = calloc(writer->locations.items.item_count + 1, sizeof *writer->is_written);
    writer->limits = locations_find_limits(&writer->locations, profile);
    writer->string_of = calloc(profile->texts.item_count + 1, sizeof *writer->string_of);
    return writer->is_written == NULL || writer->limits == NULL || writer->string_of == NULL
               ? -ENOMEM
               : 0;
}

int pprof_print(FILE *file, const struct profile *profile, const struct export_options *options)
{
    cleanup_(pprof_done) struct pprof writer = {
        .profile = profile,
        .out = {.file = file},
        .cost = export_cost_of(profile),
        .period_ns = profile->event.is_clock ? profile_period_ns(profile) : 0,
        .has_hosts = profile_has_hosts(profile),
    };
    uint32_t lost = 0;
    writer.has_time = profile->event.is_clock && writer.cost.is_time;
    int r = prepare(&writer, &lost);
    if (r < 0) {
        return r;
    }
    write_head(&writer);
    export_books_lines(profile, write_comment, &writer);
    for (size_t i = 0; i < writer.keys.item_count && writer.fault == 0; i++) {
        write_key(&writer, (uint32_t)i);
    }
    if (options->has_lost_frame) {
        write_lost(&writer, lost);
    }
    for (size_t i = 0; i < profile->module_count && writer.fault == 0; i++) {
        if (writer.limits[i] > 0) {
            write_mapping(&writer, i);
        }
    }
    return writer.fault;
}
