/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Counts the samples of a recording, by what they stand for, for what its summary says of them.
 * Each chain has the class of its leaf, and a task is looked up once for all of its samples, so a
 * sample costs a few additions.
 */
#include "summary.h"

#include "cleanup.h"
#include "grow.h"

#include <string.h>

#define INTERPRETER "_PyEval_EvalFrameDefault" /* of Python; compilers add to it */

/* What is known of where a frame is. */
enum frame_class {
    FRAME_NAMED,
    FRAME_UNKNOWN,
    FRAME_MADE,
    FRAME_MADE_NAMED,
    FRAME_UNNAMED,
    FRAME_KERNEL, /* without names: the module's stands for all of it */
};

/* Whose samples they are. Padded by hand, since its bytes are a key. */
struct process_key {
    uint64_t pid;
    uint32_t segment;
    uint32_t name;
};

struct counting {
    const struct profile *profile;
    struct summary *summary;
    uint8_t *classes;             /* owned; enum frame_class of the leaf, by chain */
    uint8_t *end_classes;         /* owned; of the outermost frame, + 1; 0: not asked for yet */
    uint64_t *made_counts;        /* owned; by text: the command */
    uint64_t *cut_counts;         /* owned; the same, of stacks that such code cuts */
    uint64_t *named_counts;       /* owned; the same, of such code that has names */
    uint64_t *unnamed_counts;     /* owned; by module */
    uint64_t *interpreter_counts; /* owned; the same */
    uint32_t *interpreters;       /* owned; the module whose interpreter a chain is in, by chain,
                                   * or INTERN_NONE; NULL: none is */
    struct intern processes;      /* struct process_key */
    struct summary_command *commands; /* owned; by text */
    uint64_t *task_counts;            /* owned; by task, of those that are none of the kernel's */
    uint64_t quality_counts[UINT8_MAX + 1];
};

static void counting_done(struct counting *counting)
{
    free(counting->classes);
    free(counting->end_classes);
    free(counting->cut_counts);
    free(counting->made_counts);
    free(counting->named_counts);
    free(counting->unnamed_counts);
    free(counting->interpreter_counts);
    free(counting->interpreters);
    free(counting->commands);
    free(counting->task_counts);
    intern_done(&counting->processes);
}

static enum frame_class class_of(const struct profile *profile, const struct profile_frame *frame)
{
    const char *name = profile_text(profile, frame->name);
    if (frame->module == INTERN_NONE) {
        return strcmp(name, "[unknown]") == 0 ? FRAME_UNKNOWN : FRAME_NAMED;
    }
    const struct profile_module *module = &profile->modules[frame->module];
    const char *basename = profile_text(profile, module->basename);
    if (module->is_anonymous) {
        return frame->name == module->basename ? FRAME_MADE : FRAME_MADE_NAMED;
    }
    if (frame->is_kernel != 0 && frame->name == module->basename) {
        return FRAME_KERNEL;
    }
    return unnamed_is_name(name, basename) ? FRAME_UNNAMED : FRAME_NAMED;
}

static const struct profile_frame *outermost_of(const struct profile *profile, uint32_t chain)
{
    size_t count = 0;
    const uint32_t *frames = profile_chain(profile, chain, &count);
    return profile_frame(profile, frames[count - 1]);
}

static const struct profile_frame *leaf_of(const struct profile *profile, uint32_t chain)
{
    size_t count = 0;
    return profile_frame(profile, profile_chain(profile, chain, &count)[0]);
}

/* What a frame says of Python: its interpreter runs code, or a function that it has named. */
enum python_frame {
    PYTHON_NOT,
    PYTHON_INTERPRETER,
    PYTHON_FUNCTION,
};

static enum python_frame python_of(const struct profile *profile, uint32_t frame)
{
    const char *name = profile_text(profile, profile_frame(profile, frame)->name);
    return strncmp(name, INTERPRETER, strlen(INTERPRETER)) == 0 ? PYTHON_INTERPRETER
           : strncmp(name, "py::", strlen("py::")) == 0         ? PYTHON_FUNCTION
                                                                : PYTHON_NOT;
}

/* The module whose interpreter runs in a chain, without the names of what it runs; or INTERN_NONE.
 */
static uint32_t find_interpreter(const struct profile *profile, const uint8_t *pythons,
                                 uint32_t chain)
{
    size_t count = 0;
    const uint32_t *frames = profile_chain(profile, chain, &count);
    uint32_t module = INTERN_NONE;
    for (size_t i = 0; i < count; i++) {
        if (pythons[frames[i]] == PYTHON_FUNCTION) {
            return INTERN_NONE;
        }
        if (pythons[frames[i]] == PYTHON_INTERPRETER) {
            module = profile_frame(profile, frames[i])->module;
        }
    }
    return module;
}

/* Finds the chains in Python's interpreter. Where no frame is one they are not looked through. */
static int find_interpreters(struct counting *counting)
{
    const struct profile *profile = counting->profile;
    size_t chain_count = profile->chains.item_count;
    size_t frame_count = profile->frames.item_count;
    cleanup_(freep) uint8_t *pythons = calloc(frame_count + 1, sizeof *pythons);
    bool has_interpreter = false;
    if (pythons == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < frame_count; i++) {
        pythons[i] = (uint8_t)python_of(profile, (uint32_t)i);
        has_interpreter = has_interpreter || pythons[i] == PYTHON_INTERPRETER;
    }
    if (!has_interpreter) {
        return 0;
    }
    counting->interpreters = calloc(chain_count + 1, sizeof *counting->interpreters);
    if (counting->interpreters == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < chain_count; i++) {
        counting->interpreters[i] = find_interpreter(profile, pythons, (uint32_t)i);
    }
    return 0;
}

static int begin(struct counting *counting)
{
    const struct profile *profile = counting->profile;
    size_t chain_count = profile->chains.item_count;
    size_t text_count = profile->texts.item_count;
    counting->classes = calloc(chain_count + 1, sizeof *counting->classes);
    counting->end_classes = calloc(chain_count + 1, sizeof *counting->end_classes);
    counting->made_counts = calloc(text_count + 1, sizeof *counting->made_counts);
    counting->cut_counts = calloc(text_count + 1, sizeof *counting->cut_counts);
    counting->named_counts = calloc(text_count + 1, sizeof *counting->named_counts);
    counting->unnamed_counts = calloc(profile->module_count + 1, sizeof *counting->unnamed_counts);
    counting->interpreter_counts =
        calloc(profile->module_count + 1, sizeof *counting->interpreter_counts);
    counting->commands = calloc(text_count + 1, sizeof *counting->commands);
    counting->task_counts = calloc(profile->tasks.item_count + 1, sizeof *counting->task_counts);
    if (counting->classes == NULL || counting->made_counts == NULL ||
        counting->named_counts == NULL || counting->unnamed_counts == NULL ||
        counting->interpreter_counts == NULL || counting->commands == NULL ||
        counting->task_counts == NULL || counting->end_classes == NULL ||
        counting->cut_counts == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < chain_count; i++) {
        counting->classes[i] = (uint8_t)class_of(profile, leaf_of(profile, (uint32_t)i));
    }
    return find_interpreters(counting);
}

static void count_rooted(struct summary *summary, enum profile_rooted rooted, uint64_t count)
{
    switch (rooted) {
    case PROFILE_STACK_NONE:
        summary->none_count += count;
        break;
    case PROFILE_STACK_COMPLETE:
        summary->complete_count += count;
        break;
    case PROFILE_STACK_UNPROVED:
        summary->unproved_count += count;
        break;
    case PROFILE_STACK_TRUNCATED:
        summary->truncated_count += count;
        break;
    case PROFILE_STACK_STITCHED:
        summary->truncated_count += count;
        summary->stitched_count += count;
        break;
    }
}

static void count_leaf(struct counting *counting, const struct profile_sample *sample,
                       uint64_t value)
{
    switch ((enum frame_class)counting->classes[sample->chain]) {
    case FRAME_NAMED:
        break;
    case FRAME_UNKNOWN:
        counting->summary->unknown_count += value;
        break;
    case FRAME_MADE:
        counting->summary->made_count += value;
        counting->made_counts[profile_task(counting->profile, sample->task)->process_name] += value;
        break;
    case FRAME_MADE_NAMED:
        counting->named_counts[profile_task(counting->profile, sample->task)->process_name]++;
        break;
    case FRAME_UNNAMED:
        counting->summary->unnamed_count += value;
        counting->unnamed_counts[leaf_of(counting->profile, sample->chain)->module] += value;
        break;
    case FRAME_KERNEL:
        counting->summary->kernel_unnamed_count += value;
        break;
    }
}

static void count_interpreter(struct counting *counting, const struct profile_sample *sample,
                              uint64_t value)
{
    uint32_t module =
        counting->interpreters == NULL ? INTERN_NONE : counting->interpreters[sample->chain];
    if (module != INTERN_NONE) {
        counting->summary->interpreted_count += value;
        counting->interpreter_counts[module] += value;
    }
}

/* Whether a stack ends in code that a program made. Few stacks are asked for. */
static bool ends_in_made(struct counting *counting, uint32_t chain)
{
    uint8_t *known = &counting->end_classes[chain];
    if (*known == 0) {
        *known = (uint8_t)(class_of(counting->profile, outermost_of(counting->profile, chain)) + 1);
    }
    return *known == FRAME_MADE + 1 || *known == FRAME_MADE_NAMED + 1;
}

static void count_cut(struct counting *counting, const struct profile_sample *sample,
                      uint64_t value)
{
    if (profile_rooted(sample) == PROFILE_STACK_TRUNCATED &&
        ends_in_made(counting, sample->chain)) {
        counting->summary->made_cut_count += value;
        counting->cut_counts[profile_task(counting->profile, sample->task)->process_name] += value;
    }
}

/* Counts the samples of a task for its command. */
static int count_command(struct counting *counting, uint32_t number, uint64_t count)
{
    const struct profile_task *task = profile_task(counting->profile, number);
    const struct process_key key = {task->pid, task->segment, task->process_name};
    struct summary_command *command = &counting->commands[key.name];
    uint32_t item = 0;
    size_t known_count = counting->processes.item_count;
    int r = intern_add(&counting->processes, &key, sizeof key, &item);
    command->name = key.name;
    command->value += count;
    command->process_count += item == known_count;
    return r;
}

static void count_sample(struct counting *counting, const struct profile_sample *sample,
                         uint64_t value)
{
    struct summary *summary = counting->summary;
    counting->quality_counts[sample->quality] += value;
    count_leaf(counting, sample, value);
    count_interpreter(counting, sample, value);
    count_cut(counting, sample, value);
    bool is_kernel_thread = profile_rooted(sample) == PROFILE_STACK_NONE &&
                            profile_is_kernel_thread(counting->profile, sample);
    uint64_t pid = profile_task(counting->profile, sample->task)->pid;
    summary->outside_count += pid == PROFILE_PID_OUTSIDE ? value : 0;
    bool in_kernel = is_kernel_thread || sample->in_kernel;
    summary->kernel_thread_count += is_kernel_thread ? value : 0;
    summary->in_kernel_count += in_kernel ? value : 0;
    summary->kernel_seen_count += sample->kernel_stack != 0 ? value : 0;
    summary->kernel_unseen_count += in_kernel && sample->kernel_stack == 0 ? value : 0;
    counting->task_counts[sample->task] += is_kernel_thread ? 0 : value;
}

/* Of n samples that fall independently, each with a value of its own, a share is as sure as one of
 * (sum of values)^2 / (sum of their squares) samples of equal values. */
static double count_effective(const struct profile *profile)
{
    double squares = 0;
    for (size_t i = 0; i < profile->sample_count && profile->values != NULL; i++) {
        squares += (double)profile->values[i] * (double)profile->values[i];
    }
    double total = (double)profile_total(profile);
    return squares > 0 ? total * total / squares : (double)profile->sample_count;
}

/* Counts what samples were counted by. */
static int count_up(struct counting *counting)
{
    int r = 0;
    for (unsigned i = 0; i <= UINT8_MAX; i++) {
        const struct profile_sample sample = {.quality = (uint8_t)i};
        count_rooted(counting->summary, profile_rooted(&sample), counting->quality_counts[i]);
    }
    counting->summary->short_copy_count = counting->quality_counts[PROFILE_QUALITY_SHORT_COPY];
    counting->summary->too_deep_count = counting->quality_counts[PROFILE_QUALITY_DEPTH];
    for (size_t i = 0; i < counting->profile->tasks.item_count && r == 0; i++) {
        if (counting->task_counts[i] > 0) {
            r = count_command(counting, (uint32_t)i, counting->task_counts[i]);
        }
    }
    return r;
}

/* The item that has most; INTERN_NONE where none has any. */
static uint32_t find_most(const uint64_t *counts, size_t count)
{
    uint32_t most = INTERN_NONE;
    for (size_t i = 0; i < count; i++) {
        if (counts[i] > (most == INTERN_NONE ? 0 : counts[most])) {
            most = (uint32_t)i;
        }
    }
    return most;
}

/* Puts a command among the largest, in the order of their samples. */
static void rank_command(struct summary *summary, const struct summary_command *command)
{
    size_t at = SUMMARY_COMMANDS_MAX;
    while (at > 0 && command->value > summary->commands[at - 1].value) {
        at--;
    }
    if (at < SUMMARY_COMMANDS_MAX) {
        memmove(&summary->commands[at + 1], &summary->commands[at],
                (SUMMARY_COMMANDS_MAX - 1 - at) * sizeof *command);
        summary->commands[at] = *command;
    }
}

int summary_take(const struct profile *profile, struct summary *ret)
{
    struct summary summary = {
        .sample_count = profile->sample_count,
        .total = profile_total(profile),
        .effective_count = count_effective(profile),
    };
    cleanup_(counting_done) struct counting counting = {.profile = profile, .summary = &summary};
    int r = begin(&counting);
    for (size_t i = 0; i < profile->sample_count && r == 0; i++) {
        count_sample(&counting, &profile->samples[i], profile_value(profile, i));
    }
    r = r < 0 ? r : count_up(&counting);
    if (r < 0) {
        return r;
    }
    summary.made_command = find_most(counting.made_counts, profile->texts.item_count);
    summary.cut_command = find_most(counting.cut_counts, profile->texts.item_count);
    summary.is_made_named =
        summary.made_command != INTERN_NONE && counting.named_counts[summary.made_command] > 0;
    summary.unnamed_module = find_most(counting.unnamed_counts, profile->module_count);
    summary.interpreter_module = find_most(counting.interpreter_counts, profile->module_count);
    for (size_t i = 0; i < profile->texts.item_count; i++) {
        if (counting.commands[i].value > 0) {
            summary.command_count++;
            rank_command(&summary, &counting.commands[i]);
        }
    }
    *ret = summary;
    return 0;
}
