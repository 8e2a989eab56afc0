/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Finds the items of each stack of a recording. Stacks of functions are the profile's chains; where
 * rows are nodes of the tree, a chain that has lost its root is another stack than a whole one.
 * Where rows are of tasks, a stack is the item itself.
 */
#include "diff_items.h"

#include "cleanup.h"
#include "functions.h"
#include "grow.h"

#include <string.h>

/* What is at hand while a recording is looked through. */
struct finding {
    struct diff_items *items;
    const struct profile *profile;
    struct diff_stacks *stacks;
    uint32_t *text_of; /* owned; of the items, by text of the profile; INTERN_NONE: not yet */
    uint32_t *item_of; /* owned; by function of the profile, where rows are these */
    size_t *seen_in;   /* owned; by item: the stack that had it last, + 1 */
    size_t seen_count;
    struct functions functions;
};

static void finding_done(struct finding *finding)
{
    free(finding->text_of);
    free(finding->item_of);
    free(finding->seen_in);
    functions_done(&finding->functions);
}

void diff_items_done(struct diff_items *items)
{
    intern_done(&items->texts);
    intern_done(&items->items);
    free(items->paths);
    *items = (struct diff_items){0};
}

const struct diff_item *diff_items_get(const struct diff_items *items, uint32_t item)
{
    size_t size_bytes = 0;
    return intern_bytes(&items->items, item, &size_bytes);
}

void diff_stacks_done(struct diff_stacks *stacks)
{
    free(stacks->of_sample);
    free(stacks->ends);
    free(stacks->items);
    *stacks = (struct diff_stacks){0};
}

static int add_text(struct finding *finding, uint32_t text, uint32_t *ret)
{
    if (text == INTERN_NONE) {
        *ret = INTERN_NONE;
        return 0;
    }
    if (finding->text_of[text] == INTERN_NONE) {
        const char *bytes = profile_text(finding->profile, text);
        int r = intern_add(&finding->items->texts, bytes, strlen(bytes), &finding->text_of[text]);
        if (r < 0) {
            return r;
        }
    }
    *ret = finding->text_of[text];
    return 0;
}

/* `path` is of the items' texts. */
static int add_item(struct finding *finding, const struct diff_item *item, uint32_t path,
                    uint32_t *ret)
{
    struct diff_items *items = finding->items;
    int r = intern_add(&items->items, item, sizeof *item, ret);
    if (r < 0 || *ret < items->path_count) {
        return r;
    }
    r = grow(items->paths, items->path_capacity, items->path_count + 1);
    if (r == 0) {
        items->paths[items->path_count++] = path;
    }
    return r;
}

/* The item of a function as it is called by `parent`. */
static int add_function(struct finding *finding, const struct function *function, uint32_t parent,
                        uint32_t *ret)
{
    struct diff_item item = {.parent = parent};
    uint32_t path = INTERN_NONE;
    if (add_text(finding, function->name, &item.name) < 0 ||
        add_text(finding, function->basename, &item.module) < 0 ||
        add_text(finding, function->build_id, &item.build_id) < 0 ||
        add_text(finding, function->module, &path) < 0) {
        return -ENOMEM;
    }
    return add_item(finding, &item, path, ret);
}

static int add_named(struct finding *finding, uint32_t name, uint32_t parent, uint32_t *ret)
{
    const struct diff_item item = {parent, name, INTERN_NONE, INTERN_NONE};
    return add_item(finding, &item, INTERN_NONE, ret);
}

/* Adds an item to the stack that is being made, unless it is in it. */
static int put_item(struct finding *finding, uint32_t item)
{
    struct diff_stacks *stacks = finding->stacks;
    size_t stack = stacks->stack_count;
    if (item >= finding->seen_count) {
        size_t old_count = finding->seen_count;
        if (grow(finding->seen_in, finding->seen_count, (size_t)item + 1) < 0) {
            return -ENOMEM;
        }
        memset(finding->seen_in + old_count, 0,
               (finding->seen_count - old_count) * sizeof *finding->seen_in);
    }
    if (finding->seen_in[item] == stack + 1) {
        return 0;
    }
    if (grow(stacks->items, stacks->item_capacity, stacks->item_count + 1) < 0) {
        return -ENOMEM;
    }
    finding->seen_in[item] = stack + 1;
    stacks->items[stacks->item_count++] = item;
    return 0;
}

static void end_stack(struct finding *finding)
{
    struct diff_stacks *stacks = finding->stacks;
    stacks->ends[stacks->stack_count++] = stacks->item_count;
}

static const struct function *function_of(const struct finding *finding, uint32_t frame)
{
    return functions_get(&finding->functions, finding->functions.of_frame[frame]);
}

static int put_functions(struct finding *finding, uint32_t chain)
{
    size_t count = 0;
    const uint32_t *frames = profile_chain(finding->profile, chain, &count);
    int r = 0;
    for (size_t i = 0; i < count && r == 0; i++) {
        r = put_item(finding, finding->item_of[finding->functions.of_frame[frames[i]]]);
    }
    end_stack(finding);
    return r;
}

/* The nodes of a chain, which are found from the root inward. */
static int put_nodes(struct finding *finding, uint32_t chain, bool is_truncated)
{
    size_t count = 0;
    const uint32_t *frames = profile_chain(finding->profile, chain, &count);
    struct diff_stacks *stacks = finding->stacks;
    size_t first = stacks->item_count;
    uint32_t node = INTERN_NONE;
    uint32_t name = 0;
    int r = 0;
    if (is_truncated) {
        r = intern_add(&finding->items->texts, "[truncated]", strlen("[truncated]"), &name);
        r = r < 0 ? r : add_named(finding, name, node, &node);
        r = r < 0 ? r : put_item(finding, node);
    }
    for (; count > 0 && r == 0; count--) {
        r = add_function(finding, function_of(finding, frames[count - 1]), node, &node);
        r = r < 0 ? r : put_item(finding, node);
    }
    for (size_t last = stacks->item_count; first + 1 < last; first++) {
        uint32_t outer = stacks->items[first];
        stacks->items[first] = stacks->items[--last];
        stacks->items[last] = outer;
    }
    end_stack(finding);
    return r;
}

static int find_functions(struct finding *finding)
{
    size_t count = finding->functions.items.item_count;
    int r = 0;
    finding->item_of = calloc(count + 1, sizeof *finding->item_of);
    if (finding->item_of == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < count && r == 0; i++) {
        r = add_function(finding, functions_get(&finding->functions, (uint32_t)i), INTERN_NONE,
                         &finding->item_of[i]);
    }
    return r;
}

static int find_by_frames(struct finding *finding)
{
    const struct profile *profile = finding->profile;
    bool has_nodes = finding->items->by == DIFF_BY_STACK;
    size_t chain_count = profile->chains.item_count;
    int r = functions_find(
        profile, finding->items->by == DIFF_BY_MODULE ? FUNCTIONS_OF_MODULES : FUNCTIONS_EACH,
        &finding->functions);
    r = r < 0 || has_nodes ? r : find_functions(finding);
    finding->stacks->ends = calloc(2 * chain_count + 1, sizeof *finding->stacks->ends);
    if (finding->stacks->ends == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < chain_count && r == 0; i++) {
        r = has_nodes ? put_nodes(finding, (uint32_t)i, false)
                      : put_functions(finding, (uint32_t)i);
        r = r < 0 || !has_nodes ? r : put_nodes(finding, (uint32_t)i, true);
    }
    for (size_t i = 0; i < profile->sample_count && r == 0; i++) {
        const struct profile_sample *sample = &profile->samples[i];
        bool is_truncated = profile_rooted(sample) == PROFILE_STACK_TRUNCATED;
        finding->stacks->of_sample[i] =
            has_nodes ? 2 * sample->chain + is_truncated : sample->chain;
    }
    return r;
}

static uint32_t label_of(const struct finding *finding, const struct profile_sample *sample)
{
    const struct profile *profile = finding->profile;
    const struct profile_task *task = profile_task(profile, sample->task);
    switch (finding->items->by) {
    case DIFF_BY_THREAD: {
        /* A leader may be told as the process only. */
        uint32_t name = task->thread_name;
        return name == INTERN_NONE ? task->process_name : name;
    }
    case DIFF_BY_UNIT:
        return profile_label(profile, sample, PROFILE_LABEL_UNIT);
    case DIFF_BY_CONTAINER:
        return profile_label(profile, sample, PROFILE_LABEL_CONTAINER);
    case DIFF_BY_USER:
        return profile_label(profile, sample, PROFILE_LABEL_USER);
    case DIFF_BY_FUNCTION:
    case DIFF_BY_STACK:
    case DIFF_BY_MODULE:
    case DIFF_BY_COMMAND:
    case DIFF_BYS:
        break;
    }
    return task->process_name;
}

static int find_by_samples(struct finding *finding)
{
    const struct profile *profile = finding->profile;
    struct diff_stacks *stacks = finding->stacks;
    int r = 0;
    for (size_t i = 0; i < profile->sample_count && r == 0; i++) {
        uint32_t name = INTERN_NONE;
        r = add_text(finding, label_of(finding, &profile->samples[i]), &name);
        r = r < 0 ? r : add_named(finding, name, INTERN_NONE, &stacks->of_sample[i]);
    }
    size_t count = finding->items->items.item_count;
    stacks->ends = calloc(count + 1, sizeof *stacks->ends);
    if (stacks->ends == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < count && r == 0; i++) {
        r = put_item(finding, (uint32_t)i);
        end_stack(finding);
    }
    return r;
}

int diff_stacks_find(struct diff_items *items, const struct profile *profile,
                     struct diff_stacks *ret)
{
    cleanup_(finding_done) struct finding finding = {
        .items = items, .profile = profile, .stacks = ret};
    size_t text_bytes = (profile->texts.item_count + 1) * sizeof *finding.text_of;
    *ret = (struct diff_stacks){.of_sample =
                                    calloc(profile->sample_count + 1, sizeof *ret->of_sample)};
    finding.text_of = malloc(text_bytes);
    if (ret->of_sample == NULL || finding.text_of == NULL) {
        return -ENOMEM;
    }
    memset(finding.text_of, 0xff, text_bytes);
    switch (items->by) {
    case DIFF_BY_FUNCTION:
    case DIFF_BY_STACK:
    case DIFF_BY_MODULE:
        return find_by_frames(&finding);
    case DIFF_BY_COMMAND:
    case DIFF_BY_THREAD:
    case DIFF_BY_UNIT:
    case DIFF_BY_CONTAINER:
    case DIFF_BY_USER:
    case DIFF_BYS:
        break;
    }
    return find_by_samples(&finding);
}
