/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Makes a tree of stacks. Samples are sorted first, so that those of one group stand together: a
 * stack is walked once for each group that begins with a frame of its own, and its end is
 * remembered until the next group.
 */
#include "flame_data.h"

#include "cleanup.h"
#include "compare.h"
#include "grow.h"

#include <inttypes.h>
#include <string.h>

#define NS_PER_US   UINT64_C(1000)
#define LABEL_BYTES 64 /* of the numbers behind a name */

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
    struct step *steps;     /* owned; outermost first */
    size_t step_capacity;
    size_t step_count;
};

static void adding_done(struct adding *adding)
{
    free(adding->text_of);
    free(adding->function_of);
    free(adding->ends);
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
    intern_done(&flame->nodes);
    for (size_t i = 0; i < flame->recording_count; i++) {
        free(flame->recordings[i].samples);
    }
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

const struct flame_node *flame_node(const struct flame *flame, uint32_t node)
{
    size_t size_bytes = 0;
    return intern_bytes(&flame->nodes, node, &size_bytes);
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

static int add_function(struct adding *adding, const struct profile_frame *frame, uint32_t *ret)
{
    const struct profile *profile = adding->profile;
    uint32_t module =
        frame->module == INTERN_NONE ? INTERN_NONE : profile->modules[frame->module].name;
    struct flame_function function = {.line = frame->line, .kind = kind_of(profile, frame)};
    if (add_text(adding, frame->name, &function.name) < 0 ||
        add_text(adding, module, &function.module) < 0 ||
        add_text(adding, frame->file, &function.file) < 0) {
        return -ENOMEM;
    }
    return intern_add(&adding->flame->functions, &function, sizeof function, ret);
}

/* A function that is no frame of the profile. */
static int add_named(struct adding *adding, const char *name, enum flame_kind kind, uint32_t *ret)
{
    struct flame_function function = {.module = INTERN_NONE, .file = INTERN_NONE, .kind = kind};
    int r = intern_add(&adding->flame->texts, name, strlen(name), &function.name);
    return r < 0 ? r : intern_add(&adding->flame->functions, &function, sizeof function, ret);
}

static int allocate(struct adding *adding)
{
    const struct profile *profile = adding->profile;
    size_t text_bytes = (profile->texts.item_count + 1) * sizeof *adding->text_of;
    size_t end_bytes = (2 * profile->chains.item_count + 1) * sizeof *adding->ends;
    adding->text_of = malloc(text_bytes);
    adding->ends = malloc(end_bytes);
    adding->function_of = malloc((profile->frames.item_count + 1) * sizeof *adding->function_of);
    adding->recording->samples =
        malloc((profile->sample_count + 1) * sizeof *adding->recording->samples);
    if (adding->text_of == NULL || adding->ends == NULL || adding->function_of == NULL ||
        adding->recording->samples == NULL) {
        return -ENOMEM;
    }
    memset(adding->text_of, 0xff, text_bytes);
    memset(adding->ends, 0xff, end_bytes);
    return 0;
}

static int begin(struct adding *adding)
{
    const struct profile *profile = adding->profile;
    const struct flame_node root = {INTERN_NONE, INTERN_NONE};
    uint32_t item = 0;
    int r = allocate(adding);
    r = r < 0 ? r : intern_add(&adding->flame->nodes, &root, sizeof root, &item);
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

/* Takes all of a sample but its stack, of which only the number is noted. */
static int add_sample(struct adding *adding, const struct profile_sample *sample, uint32_t number)
{
    struct flame_sample added = {
        .time_us = (sample->time_ns - adding->recording->origin_ns) / NS_PER_US,
        .group = sample->cpu,
        .node = number,
    };
    int r = add_task(adding, sample, &added.task);
    if (r == 0 && adding->by != FLAME_BY_NOTHING) {
        r = add_group(adding, added.task, &added.group);
    }
    adding->recording->samples[adding->recording->sample_count++] = added;
    return r;
}

static int compare_samples(const void *left, const void *right)
{
    const struct flame_sample *a = left;
    const struct flame_sample *b = right;
    int r = compare_u64(a->group, b->group);
    return r != 0 ? r : compare_u64(a->time_us, b->time_us);
}

/* Goes from `*node` to its child with that function, at such a depth. Stacks that follow one
 * another mostly begin alike, and what is alike is not looked up. */
static int add_node(struct adding *adding, size_t depth, uint32_t function, uint32_t *node)
{
    const struct flame_node key = {*node, function};
    if (depth < adding->step_count && adding->steps[depth].function == function) {
        *node = adding->steps[depth].node;
        return 0;
    }
    if (grow(adding->steps, adding->step_capacity, depth + 1) < 0 ||
        intern_add(&adding->flame->nodes, &key, sizeof key, node) < 0) {
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

/* Finds where a sample's stack ends. */
static int end_stack(struct adding *adding, struct flame_sample *sample)
{
    size_t stack = stack_of(&adding->profile->samples[sample->node]);
    uint32_t group = adding->by == FLAME_BY_NOTHING ? 0 : sample->group;
    struct stack_end *end = &adding->ends[stack];
    if (end->group != group) {
        int r = add_stack(adding, stack, group, &end->node);
        if (r < 0) {
            return r;
        }
        end->group = group;
    }
    sample->node = end->node;
    return 0;
}

int flame_add(struct flame *flame, const struct flame_source *source, enum flame_by by)
{
    const struct profile *profile = source->profile;
    struct flame_recording *recording = &flame->recordings[flame->recording_count++];
    cleanup_(adding_done) struct adding adding = {
        .flame = flame, .recording = recording, .profile = profile, .by = by};
    *recording = (struct flame_recording){
        .source = source,
        .origin_ns = profile->first_ns - profile->unselected_ns,
    };
    int r = begin(&adding);
    for (size_t i = 0; i < profile->sample_count && r == 0; i++) {
        r = add_sample(&adding, &profile->samples[i], (uint32_t)i);
    }
    if (r == 0) {
        qsort(recording->samples, recording->sample_count, sizeof *recording->samples,
              compare_samples);
    }
    for (size_t i = 0; i < recording->sample_count && r == 0; i++) {
        r = end_stack(&adding, &recording->samples[i]);
    }
    return r;
}
