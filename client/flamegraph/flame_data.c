/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Makes a tree of stacks. Samples are sorted first, so that those of one group stand together: a
 * stack is walked once for each group that begins with a frame of its own, and its end is
 * remembered until the next group.
 */
#include "flame_data.h"

#include "cleanup.h"
#include "compare.h"
#include "frame_identity.h"
#include "grow.h"

#include <inttypes.h>
#include <string.h>

#define NS_PER_US   UINT64_C(1000)
#define LABEL_BYTES 64 /* of the numbers behind a name */

#define KNOWN_GROUPS ((size_t)256)

/* Where a stack of the profile ends in the tree. */
struct stack_end {
    uint32_t group; /* for which this holds */
    uint32_t node;
};

/* A frame of the stack that was added last. */
struct step {
    uint32_t function;
    uint32_t node;
};

/* A group that was looked up, so that it is not for each sample. */
struct known_group {
    uint32_t number;
    uint32_t place; /* in the recording's groups, + 1; 0: there is none yet */
};

/* What is at hand while a recording is added. */
struct adding {
    struct flame *flame;
    struct flame_recording *recording;
    const struct profile *profile;
    enum flame_by by;
    uint32_t *text_of;      /* owned; of the flame, by text of the profile; INTERN_NONE: not yet */
    uint32_t *function_of;  /* owned; by frame of the profile */
    uint32_t truncated;     /* the function of "[truncated]" */
    struct stack_end *ends; /* owned; by chain, twice, the second of those that are truncated */
    uint32_t *group_of; /* owned; by task of the profile: the function that its stacks begin with */
    struct intern group_numbers;
    struct known_group known[KNOWN_GROUPS]; /* by number, as far as there is room */
    struct step *steps;                     /* owned; outermost first */
    size_t step_capacity;
    size_t step_count;
};

static void adding_done(struct adding *adding)
{
    free(adding->text_of);
    free(adding->function_of);
    free(adding->ends);
    free(adding->group_of);
    intern_done(&adding->group_numbers);
    free(adding->steps);
}

const char *flame_by_name(size_t by)
{
    static const char *const names[] = {
        [FLAME_BY_NOTHING] = "none",    [FLAME_BY_UNIT] = "unit",
        [FLAME_BY_COMMAND] = "command", [FLAME_BY_PROCESS] = "process",
        [FLAME_BY_THREAD] = "thread",   [FLAME_BYS] = NULL,
    };
    return names[by];
}

void flame_done(struct flame *flame)
{
    intern_done(&flame->texts);
    intern_done(&flame->functions);
    intern_done(&flame->tasks);
    free(flame->modules);
    flame_nodes_done(&flame->nodes);
    for (size_t i = 0; i < flame->recording_count; i++) {
        struct flame_recording *recording = &flame->recordings[i];
        free(recording->name);
        free(recording->host);
        free(recording->what);
        free(recording->order);
        free(recording->nodes);
        free(recording->task_of);
        free(recording->groups);
        free(recording->drops);
        free(recording->books_json);
    }
    free(flame->recordings);
    *flame = (struct flame){0};
}

const struct flame_function *flame_function(const struct flame *flame, uint32_t function)
{
    size_t size_bytes = 0;
    return intern_bytes(&flame->functions, function, &size_bytes);
}

const struct flame_task *flame_task(const struct flame *flame, uint32_t task)
{
    size_t size_bytes = 0;
    return intern_bytes(&flame->tasks, task, &size_bytes);
}

static int add_text(struct adding *adding, uint32_t text, uint32_t *ret)
{
    if (text == INTERN_NONE) {
        *ret = INTERN_NONE;
        return 0;
    }
    if (adding->text_of[text] == INTERN_NONE) {
        const char *bytes = profile_text(adding->profile, text);
        int r = intern_add(&adding->flame->texts, bytes, strlen(bytes), &adding->text_of[text]);
        if (r < 0) {
            return r;
        }
    }
    *ret = adding->text_of[text];
    return 0;
}

static enum flame_kind kind_of(const struct profile *profile, const struct profile_frame *frame)
{
    if (frame->module == INTERN_NONE && profile_text(profile, frame->name)[0] == '[') {
        return FLAME_MARKER;
    }
    return frame->is_kernel != 0    ? FLAME_KERNEL
           : frame->is_inlined != 0 ? FLAME_INLINED
                                    : FLAME_USER;
}

/* `module` is the path that is shown, of the flame's texts. */
static int put_function(struct flame *flame, const struct flame_function *function, uint32_t module,
                        uint32_t *ret)
{
    int r = intern_add(&flame->functions, function, sizeof *function, ret);
    if (r < 0 || *ret < flame->module_count) {
        return r;
    }
    r = grow(flame->modules, flame->module_capacity, flame->module_count + 1);
    if (r == 0) {
        flame->modules[flame->module_count++] = module;
    }
    return r;
}

/* Leaves the last part of a path of the flame's texts. */
static int cut_folder(struct flame *flame, uint32_t *path)
{
    const char *slash =
        *path == INTERN_NONE ? NULL : strrchr(intern_text(&flame->texts, *path), '/');
    cleanup_(freep) char *name = slash == NULL ? NULL : strdup(slash + 1);
    return slash == NULL  ? 0
           : name == NULL ? -ENOMEM
                          : intern_add(&flame->texts, name, strlen(name), path);
}

static int add_function(struct adding *adding, const struct profile_frame *frame, uint32_t *ret)
{
    const struct profile *profile = adding->profile;
    struct flame *flame = adding->flame;
    struct frame_identity identity = frame_identity(profile, frame, false);
    uint32_t path =
        frame->module == INTERN_NONE ? INTERN_NONE : profile->modules[frame->module].name;
    struct flame_function function = {
        .build_id = INTERN_NONE, .line = frame->line, .kind = kind_of(profile, frame)};
    if (add_text(adding, frame->name, &function.name) < 0 || add_text(adding, path, &path) < 0 ||
        add_text(adding, frame->file, &function.file) < 0) {
        return -ENOMEM;
    }
    function.module = path;
    if (flame->is_comparison && (add_text(adding, identity.module, &function.module) < 0 ||
                                 add_text(adding, identity.build_id, &function.build_id) < 0 ||
                                 cut_folder(flame, &function.file) < 0)) {
        return -ENOMEM;
    }
    return put_function(flame, &function, path, ret);
}

/* A function that is no frame of the profile. */
static int add_named(struct adding *adding, const char *name, enum flame_kind kind, uint32_t *ret)
{
    struct flame_function function = {
        .module = INTERN_NONE, .build_id = INTERN_NONE, .file = INTERN_NONE, .kind = kind};
    int r = intern_add(&adding->flame->texts, name, strlen(name), &function.name);
    return r < 0 ? r : put_function(adding->flame, &function, INTERN_NONE, ret);
}

static int allocate(struct adding *adding)
{
    const struct profile *profile = adding->profile;
    struct flame_recording *recording = adding->recording;
    size_t task_bytes = (profile->tasks.item_count + 1) * sizeof *recording->task_of;
    size_t text_bytes = (profile->texts.item_count + 1) * sizeof *adding->text_of;
    size_t end_bytes = (2 * profile->chains.item_count + 1) * sizeof *adding->ends;
    adding->text_of = malloc(text_bytes);
    adding->ends = malloc(end_bytes);
    adding->function_of = malloc((profile->frames.item_count + 1) * sizeof *adding->function_of);
    adding->group_of = malloc(task_bytes);
    recording->task_of = malloc(task_bytes);
    recording->order = malloc((profile->sample_count + 1) * sizeof *recording->order);
    recording->nodes = malloc((profile->sample_count + 1) * sizeof *recording->nodes);
    if (adding->text_of == NULL || adding->ends == NULL || adding->function_of == NULL ||
        adding->group_of == NULL || recording->task_of == NULL || recording->order == NULL ||
        recording->nodes == NULL) {
        return -ENOMEM;
    }
    memset(adding->text_of, 0xff, text_bytes);
    memset(adding->ends, 0xff, end_bytes);
    memset(recording->task_of, 0xff, task_bytes);
    return 0;
}

static int begin(struct adding *adding)
{
    const struct profile *profile = adding->profile;
    int r = allocate(adding);
    r = r < 0 ? r : flame_nodes_begin(&adding->flame->nodes);
    r = r < 0 ? r : add_named(adding, "[truncated]", FLAME_MARKER, &adding->truncated);
    for (size_t i = 0; i < profile->frames.item_count && r == 0; i++) {
        r = add_function(adding, profile_frame(profile, (uint32_t)i), &adding->function_of[i]);
    }
    return r;
}

static int add_task(struct adding *adding, const struct profile_sample *sample, uint32_t *ret)
{
    const struct profile *profile = adding->profile;
    const struct profile_task *sampled = profile_task(profile, sample->task);
    bool has_pid = sampled->pid != PROFILE_PID_OUTSIDE && sampled->pid != PROFILE_PID_EXITED;
    uint32_t thread = sampled->thread_name;
    struct flame_task task = {
        .pid = has_pid ? sampled->pid : 0,
        .tid = has_pid ? sampled->tid : 0,
        .segment = sampled->segment,
        .recording = (uint32_t)(adding->recording - adding->flame->recordings),
    };
    /* A leader may be told as the process only. */
    if (add_text(adding, sampled->process_name, &task.process) < 0 ||
        add_text(adding, thread == INTERN_NONE ? sampled->process_name : thread, &task.thread) <
            0 ||
        add_text(adding, profile_label(profile, sample, PROFILE_LABEL_UNIT), &task.unit) < 0) {
        return -ENOMEM;
    }
    return intern_add(&adding->flame->tasks, &task, sizeof task, ret);
}

/* The function that a task's stacks begin with. */
static int add_group(struct adding *adding, uint32_t number, uint32_t *ret)
{
    const struct flame_task *task = flame_task(adding->flame, number);
    char numbers[LABEL_BYTES] = "";
    cleanup_(freep) char *label = NULL;
    uint32_t text = adding->by == FLAME_BY_UNIT     ? task->unit
                    : adding->by == FLAME_BY_THREAD ? task->thread
                                                    : task->process;
    if (task->pid != 0 && adding->by == FLAME_BY_PROCESS) {
        (void)snprintf(numbers, sizeof numbers, "-%" PRIu64, task->pid);
    } else if (task->pid != 0 && adding->by == FLAME_BY_THREAD) {
        (void)snprintf(numbers, sizeof numbers, "-%" PRIu64 "/%" PRIu64, task->pid, task->tid);
    }
    if (asprintf(&label, "%s%s", intern_text(&adding->flame->texts, text), numbers) < 0) {
        label = NULL;
        return -ENOMEM;
    }
    return add_named(adding, label, FLAME_GROUP, ret);
}

static size_t stack_of(const struct profile_sample *sample)
{
    return 2 * (size_t)sample->chain + (profile_rooted(sample) == PROFILE_STACK_TRUNCATED ? 1 : 0);
}

static uint64_t time_us(const struct flame_recording *recording, uint32_t number)
{
    const struct profile_sample *sample = &recording->profile->samples[number];
    return (sample->time_ns - recording->origin_ns) / NS_PER_US;
}

struct flame_sample flame_sample(const struct flame_recording *recording, size_t place)
{
    uint32_t number = recording->order[place];
    return (struct flame_sample){
        .time_us = time_us(recording, number),
        .task = recording->task_of[recording->profile->samples[number].task],
        .node = recording->nodes[place],
    };
}

uint64_t flame_value(const struct flame_recording *recording, size_t place)
{
    return profile_value(recording->profile, recording->order[place]);
}

/* The number of a sample's group. */
static uint32_t group_number(const struct adding *adding, const struct profile_sample *sample)
{
    return adding->by == FLAME_BY_NOTHING ? sample->cpu : adding->group_of[sample->task];
}

/* The group of that number, made when it is first met. Borrowed; NULL when there is no memory. */
static struct flame_group *find_group(struct adding *adding, uint32_t number)
{
    struct flame_recording *recording = adding->recording;
    struct known_group *known = &adding->known[number % KNOWN_GROUPS];
    if (known->place == 0 || known->number != number) {
        uint32_t place = 0;
        if (intern_add(&adding->group_numbers, &number, sizeof number, &place) < 0 ||
            grow(recording->groups, recording->group_capacity, (size_t)place + 1) < 0) {
            return NULL;
        }
        if (place == recording->group_count) {
            recording->groups[recording->group_count++] = (struct flame_group){.number = number};
        }
        *known = (struct known_group){number, place + 1};
    }
    return &recording->groups[known->place - 1];
}

/* Takes a sample's task, and counts it in its group. */
static int count_sample(struct adding *adding, const struct profile_sample *sample)
{
    uint32_t *task = &adding->recording->task_of[sample->task];
    if (*task == INTERN_NONE) {
        int r = add_task(adding, sample, task);
        if (r == 0 && adding->by != FLAME_BY_NOTHING) {
            r = add_group(adding, *task, &adding->group_of[sample->task]);
        }
        if (r < 0) {
            return r;
        }
    }
    struct flame_group *group = find_group(adding, group_number(adding, sample));
    if (group == NULL) {
        return -ENOMEM;
    }
    group->count++;
    return 0;
}

static int compare_groups(const void *left, const void *right)
{
    const struct flame_group *a = left;
    const struct flame_group *b = right;
    return compare_u64(a->number, b->number);
}

static int compare_samples(const void *left, const void *right, void *userdata)
{
    const struct flame_recording *recording = userdata;
    uint32_t a = *(const uint32_t *)left;
    uint32_t b = *(const uint32_t *)right;
    int r = compare_u64(time_us(recording, a), time_us(recording, b));
    return r != 0 ? r : compare_u64(a, b);
}

/* Brings the samples of a group into the order of time, if they are not in it. */
static void sort_group(struct flame_recording *recording, const struct flame_group *group)
{
    uint32_t *order = recording->order + group->first;
    for (size_t i = 1; i < group->count; i++) {
        if (time_us(recording, order[i]) < time_us(recording, order[i - 1])) {
            qsort_r(order, group->count, sizeof *order, compare_samples, recording);
            return;
        }
    }
}

/* Deals the samples out to their groups, which are counted. Those of one stay as they were. */
static int order_samples(struct adding *adding)
{
    const struct profile *profile = adding->profile;
    struct flame_recording *recording = adding->recording;
    size_t first = 0;
    for (size_t i = 0; i < recording->group_count; i++) {
        recording->groups[i].first = first;
        first += recording->groups[i].count;
    }
    for (size_t i = 0; i < profile->sample_count; i++) {
        struct flame_group *group = find_group(adding, group_number(adding, &profile->samples[i]));
        if (group == NULL) {
            return -ENOMEM;
        }
        recording->order[group->first++] = (uint32_t)i;
    }
    return 0;
}

/* Brings the groups into order, and the samples of each, which begin so many places lower. */
static void sort_groups(struct flame_recording *recording)
{
    for (size_t i = 0; i < recording->group_count; i++) {
        recording->groups[i].first -= recording->groups[i].count;
        sort_group(recording, &recording->groups[i]);
    }
    qsort(recording->groups, recording->group_count, sizeof *recording->groups, compare_groups);
}

/* Goes from `*node` to its child with that function, at such a depth. Stacks that follow one
 * another mostly begin alike, and what is alike is not looked up. */
static int add_node(struct adding *adding, size_t depth, uint32_t function, uint32_t *node)
{
    if (depth < adding->step_count && adding->steps[depth].function == function) {
        *node = adding->steps[depth].node;
        return 0;
    }
    if (grow(adding->steps, adding->step_capacity, depth + 1) < 0 ||
        flame_nodes_add(&adding->flame->nodes, *node, function, node) < 0) {
        return -ENOMEM;
    }
    adding->steps[depth] = (struct step){function, *node};
    adding->step_count = depth + 1;
    return 0;
}

/* Adds a stack to the tree, below the frame of its group where there are some. */
static int add_stack(struct adding *adding, size_t stack, uint32_t group, uint32_t *ret_node)
{
    size_t count = 0;
    const uint32_t *frames = profile_chain(adding->profile, (uint32_t)(stack / 2), &count);
    size_t depth = 0;
    int r = 0;
    *ret_node = 0;
    if (adding->by != FLAME_BY_NOTHING) {
        r = add_node(adding, depth++, group, ret_node);
    }
    if (r == 0 && stack % 2 != 0) {
        r = add_node(adding, depth++, adding->truncated, ret_node);
    }
    for (; count > 0 && r == 0; count--) {
        r = add_node(adding, depth++, adding->function_of[frames[count - 1]], ret_node);
    }
    return r;
}

/* Finds where the stacks of a group's samples end. */
static int end_stacks(struct adding *adding, const struct flame_group *group)
{
    struct flame_recording *recording = adding->recording;
    uint32_t number = adding->by == FLAME_BY_NOTHING ? 0 : group->number;
    int r = 0;
    for (size_t i = group->first; i < group->first + group->count && r == 0; i++) {
        size_t stack = stack_of(&adding->profile->samples[recording->order[i]]);
        struct stack_end *end = &adding->ends[stack];
        if (end->group != number) {
            r = add_stack(adding, stack, number, &end->node);
            end->group = number;
        }
        recording->nodes[i] = end->node;
    }
    return r;
}

/* Copies what the recording says of itself. */
static int take_facts(struct flame_recording *recording, const struct flame_source *source,
                      size_t side)
{
    const struct profile *profile = source->profile;
    size_t drop_bytes = profile->drop_count * sizeof *profile->drops;
    *recording = (struct flame_recording){
        .profile = profile,
        .name = strdup(source->name),
        .host = source->host == NULL ? NULL : strdup(source->host),
        .what = source->what == NULL ? NULL : strdup(source->what),
        .side = side,
        .sample_count = profile->sample_count,
        .origin_ns = profile->first_ns - profile->unselected_ns,
        .period_ns = profile->event.is_clock ? profile_period_ns(profile) : 0,
        .unselected_count = profile->unselected_count,
        .left_out_count = profile->left_out_count,
        .drops = malloc(drop_bytes + 1),
        .books_json = profile->books_json == NULL ? NULL : strdup(profile->books_json),
        .is_whole = source->is_whole,
        .is_truncated = profile->input.truncated,
        .is_damaged = profile->input.damaged,
    };
    recording->has_wall_offset = profile_wall_offset_ns(profile, &recording->wall_offset_ns);
    if (recording->name == NULL || recording->drops == NULL ||
        (recording->books_json == NULL && profile->books_json != NULL)) {
        return -ENOMEM;
    }
    if (profile->drop_count > 0) {
        memcpy(recording->drops, profile->drops, drop_bytes);
    }
    recording->drop_count = profile->drop_count;
    return 0;
}

int flame_add(struct flame *flame, const struct flame_source *source, size_t side, enum flame_by by)
{
    const struct profile *profile = source->profile;
    if (grow(flame->recordings, flame->recording_capacity, flame->recording_count + 1) < 0) {
        return -ENOMEM;
    }
    struct flame_recording *recording = &flame->recordings[flame->recording_count++];
    cleanup_(adding_done) struct adding adding = {
        .flame = flame, .recording = recording, .profile = profile, .by = by};
    int r = take_facts(recording, source, side);
    r = r < 0 ? r : begin(&adding);
    for (size_t i = 0; i < profile->sample_count && r == 0; i++) {
        r = count_sample(&adding, &profile->samples[i]);
    }
    r = r < 0 ? r : order_samples(&adding);
    if (r == 0 && recording->group_count > 0) {
        sort_groups(recording);
    }
    for (size_t i = 0; i < recording->group_count && r == 0; i++) {
        r = end_stacks(&adding, &recording->groups[i]);
    }
    return r;
}
