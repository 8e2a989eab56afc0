/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Walks the tree without building it. Each different stack is an entry with its samples; a node is
 * a range of the entries, and its children are found by parting that range by the function that
 * comes next. What is cut is never parted, so a walk costs what it shows. Nodes that wait for their
 * turn are on a stack of their own: a path may have thousands of frames.
 */
#include "tree.h"

#include "cleanup.h"
#include "functions.h"
#include "grow.h"

#include <string.h>

#define ENDED UINT32_MAX /* no function: the path is over */

/* A different stack, as the view goes along it. */
struct entry {
    const uint32_t *frames; /* borrowed from the profile, leaf first */
    uint32_t count;
    bool is_truncated; /* and that end is in the view */
    uint64_t samples;
};

/* A node whose turn has not come. Its entries agree in the first `depth` steps. */
struct pending {
    size_t first; /* of the entries */
    size_t count;
    uint64_t parent;
    uint64_t total;
    uint32_t function;
    uint32_t depth;
    uint32_t forks;
    bool is_forked;
};

/* The entries of a node that go on with the same function. */
struct branch {
    uint32_t function;
    size_t count;
    size_t next; /* where the next of them goes */
    uint64_t samples;
};

struct walk {
    const struct profile *profile;
    const struct tree_request *request;
    tree_on_node_fn *on_node;
    void *userdata;
    struct functions functions;
    uint32_t truncated;    /* the function that "[truncated]" is */
    struct entry *entries; /* owned */
    struct entry *parted;  /* owned; as many */
    size_t entry_count;
    uint32_t *branch_of; /* owned; by function: its branch + 1 while a range is parted, else 0 */
    struct branch *branches; /* owned */
    size_t branch_capacity;
    size_t branch_count;
    struct pending *pending; /* owned */
    size_t pending_capacity;
    size_t pending_count;
    uint64_t node_count;
    double least; /* samples of a node that is not cut */
};

static void walk_done(struct walk *walk)
{
    functions_done(&walk->functions);
    free(walk->entries);
    free(walk->parted);
    free(walk->branch_of);
    free(walk->branches);
    free(walk->pending);
}

const char *tree_view_name(enum tree_view view)
{
    static const char *const names[] = {
        [TREE_FROM_ROOT] = "root",
        [TREE_FROM_LEAVES] = "leaves",
        [TREE_CALLERS] = "callers",
        [TREE_CALLEES] = "callees",
    };
    return names[view];
}

/* The function after `depth` steps along an entry. */
static uint32_t step(const struct walk *walk, const struct entry *entry, uint32_t depth)
{
    uint32_t length = entry->count + entry->is_truncated;
    if (depth >= length) {
        return ENDED;
    }
    uint32_t from_leaf = tree_is_outward(walk->request->view) ? depth : length - 1 - depth;
    return from_leaf == entry->count ? walk->truncated
                                     : walk->functions.of_frame[entry->frames[from_leaf]];
}

/* By function, which of them were sampled. Returned: free(). NULL: there is no memory. */
static bool *find_sampled(const struct walk *walk)
{
    cleanup_(freep) bool *frames = functions_sampled_frames(walk->profile);
    bool *sampled = calloc(walk->functions.items.item_count + 1, sizeof *sampled);
    for (size_t i = 0; i < walk->profile->frames.item_count && frames != NULL && sampled != NULL;
         i++) {
        if (frames[i]) {
            sampled[walk->functions.of_frame[i]] = true;
        }
    }
    if (frames == NULL) {
        free(sampled);
        return NULL;
    }
    return sampled;
}

/*
 * Marks the functions that the request names, in an array by function. Returned: free(). NULL when
 * there is no memory. `*ret_count` is how many there are.
 */
static bool *mark_named(const struct walk *walk, size_t *ret_count)
{
    size_t count = walk->functions.items.item_count;
    cleanup_(freep) bool *sampled = find_sampled(walk);
    bool *marks = sampled == NULL ? NULL : calloc(count + 1, sizeof *marks);
    *ret_count = 0;
    for (unsigned reading = 0; reading < FUNCTION_READINGS && *ret_count == 0 && marks != NULL;
         reading++) {
        for (size_t i = 0; i < count; i++) {
            const struct function *function = functions_get(&walk->functions, (uint32_t)i);
            const char *name = profile_text(walk->profile, function->name);
            marks[i] = sampled[i] && functions_are_meant(reading, walk->request->function, name);
            *ret_count += marks[i];
        }
    }
    return marks;
}

/* Leaves of an entry what lies on the view's side of the named function; false: it has none. */
static bool trim(const struct walk *walk, const bool *marks, struct entry *entry)
{
    bool is_outward = tree_is_outward(walk->request->view);
    for (uint32_t i = 0; i < entry->count; i++) {
        uint32_t at = is_outward ? i : entry->count - 1 - i;
        if (marks[walk->functions.of_frame[entry->frames[at]]]) {
            entry->frames += is_outward ? at : 0;
            entry->count = is_outward ? entry->count - at : at + 1;
            entry->is_truncated = entry->is_truncated && is_outward;
            return true;
        }
    }
    return false;
}

/* Makes an entry of each different stack; `marks` NULL: of all of them. */
static int find_entries(struct walk *walk, const bool *marks)
{
    const struct profile *profile = walk->profile;
    size_t chain_count = profile->chains.item_count;
    cleanup_(freep) uint64_t *counts = calloc(2 * chain_count + 1, sizeof *counts);
    if (counts == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < profile->sample_count; i++) {
        const struct profile_sample *sample = &profile->samples[i];
        bool is_truncated = profile_rooted(sample) == PROFILE_STACK_TRUNCATED;
        uint64_t *count = &counts[2 * (size_t)sample->chain + is_truncated];
        walk->entry_count += *count == 0;
        *count += profile_value(profile, i);
    }
    walk->entries = calloc(walk->entry_count + 1, sizeof *walk->entries);
    walk->parted = calloc(walk->entry_count + 1, sizeof *walk->parted);
    if (walk->entries == NULL || walk->parted == NULL) {
        return -ENOMEM;
    }
    walk->entry_count = 0;
    for (size_t i = 0; i < 2 * chain_count; i++) {
        size_t frame_count = 0;
        if (counts[i] == 0) {
            continue;
        }
        struct entry entry = {
            .frames = profile_chain(profile, (uint32_t)(i / 2), &frame_count),
            .is_truncated = i % 2 != 0,
            .samples = counts[i],
        };
        entry.count = (uint32_t)frame_count;
        if (marks == NULL || trim(walk, marks, &entry)) {
            walk->entries[walk->entry_count++] = entry;
        }
    }
    return 0;
}

static const struct function *branch_function(const struct walk *walk, const struct branch *branch)
{
    return branch->function == walk->truncated ? NULL
                                               : functions_get(&walk->functions, branch->function);
}

static int compare_branches(const void *left, const void *right, void *userdata)
{
    const struct walk *walk = userdata;
    const struct branch *a = left;
    const struct branch *b = right;
    const struct function *a_function = branch_function(walk, a);
    const struct function *b_function = branch_function(walk, b);
    if (a->samples != b->samples) {
        return a->samples < b->samples ? 1 : -1;
    }
    return a_function == NULL || b_function == NULL
               ? (a_function == NULL) - (b_function == NULL)
               : functions_compare(walk->profile, a_function, b_function);
}

static int add_branch(struct walk *walk, uint32_t function)
{
    if (grow(walk->branches, walk->branch_capacity, walk->branch_count + 1) < 0) {
        return -ENOMEM;
    }
    walk->branches[walk->branch_count++] = (struct branch){.function = function};
    walk->branch_of[function] = (uint32_t)walk->branch_count;
    return 0;
}

/* Finds the branches of a node's entries. Counts in `node` the samples that end there. */
static int find_branches(struct walk *walk, const struct pending *at, struct tree_node *node)
{
    walk->branch_count = 0;
    for (size_t i = at->first; i < at->first + at->count; i++) {
        const struct entry *entry = &walk->entries[i];
        uint32_t function = step(walk, entry, at->depth);
        if (function == ENDED) {
            node->ending += entry->samples;
            continue;
        }
        if (walk->branch_of[function] == 0 && add_branch(walk, function) < 0) {
            return -ENOMEM;
        }
        struct branch *branch = &walk->branches[walk->branch_of[function] - 1];
        branch->count++;
        branch->samples += entry->samples;
    }
    return 0;
}

/* Cuts the branches that are too small, and gives each of the others its range, the largest first.
 */
static void order_branches(struct walk *walk, const struct pending *at, struct tree_node *node)
{
    size_t kept = 0;
    size_t next = at->first;
    for (size_t i = 0; i < walk->branch_count; i++) {
        const struct branch branch = walk->branches[i];
        walk->branch_of[branch.function] = 0;
        if ((double)branch.samples >= walk->least) {
            walk->branches[kept++] = branch;
        } else {
            node->cut_samples += branch.samples;
            node->cut_count++;
        }
    }
    walk->branch_count = kept;
    if (kept > 0) {
        qsort_r(walk->branches, kept, sizeof *walk->branches, compare_branches, walk);
    }
    for (size_t i = 0; i < kept; i++) {
        walk->branches[i].next = next;
        next += walk->branches[i].count;
        walk->branch_of[walk->branches[i].function] = (uint32_t)i + 1;
    }
}

/* Sorts a node's entries into the ranges of its branches. Those of none are not needed any more. */
static void part_entries(struct walk *walk, const struct pending *at)
{
    size_t end = at->first;
    for (size_t i = at->first; i < at->first + at->count; i++) {
        uint32_t function = step(walk, &walk->entries[i], at->depth);
        if (function != ENDED && walk->branch_of[function] != 0) {
            struct branch *branch = &walk->branches[walk->branch_of[function] - 1];
            walk->parted[branch->next++] = walk->entries[i];
            end++;
        }
    }
    if (end > at->first) {
        memcpy(walk->entries + at->first, walk->parted + at->first,
               (end - at->first) * sizeof *walk->entries);
    }
}

static int push_branches(struct walk *walk, const struct pending *at, const struct tree_node *node)
{
    if (grow(walk->pending, walk->pending_capacity, walk->pending_count + walk->branch_count) < 0) {
        return -ENOMEM;
    }
    for (size_t i = walk->branch_count; i > 0; i--) {
        const struct branch *branch = &walk->branches[i - 1];
        bool is_forked = walk->branch_count > 1;
        walk->branch_of[branch->function] = 0;
        walk->pending[walk->pending_count++] = (struct pending){
            .first = branch->next - branch->count,
            .count = branch->count,
            .parent = node->number,
            .total = branch->samples,
            .function = branch->function,
            .depth = at->depth + 1,
            .forks = at->forks + is_forked,
            .is_forked = is_forked,
        };
    }
    return 0;
}

/* Tells a node, and puts its children on the stack. */
static int visit(struct walk *walk, const struct pending *at)
{
    struct tree_node node = {
        .number = walk->node_count++,
        .parent = at->parent,
        .depth = at->depth,
        .forks = at->forks,
        .is_forked = at->is_forked,
        .is_truncated = at->depth > 0 && at->function == walk->truncated,
        .name = INTERN_NONE,
        .module = INTERN_NONE,
        .build_id = INTERN_NONE,
        .file = INTERN_NONE,
        .total = at->total,
    };
    if (at->depth > 0 && !node.is_truncated) {
        const struct function *function = functions_get(&walk->functions, at->function);
        node.name = function->name;
        node.module = function->module;
        node.build_id = function->build_id;
        node.file = function->file;
        node.line = function->line;
    }
    if (find_branches(walk, at, &node) < 0) {
        return -ENOMEM;
    }
    order_branches(walk, at, &node);
    part_entries(walk, at);
    walk->on_node(&node, walk->userdata);
    return push_branches(walk, at, &node);
}

static int visit_all(struct walk *walk)
{
    struct pending root = {.count = walk->entry_count};
    for (size_t i = 0; i < walk->entry_count; i++) {
        root.total += walk->entries[i].samples;
    }
    int r = visit(walk, &root);
    while (r == 0 && walk->pending_count > 0) {
        struct pending at = walk->pending[--walk->pending_count];
        r = visit(walk, &at);
    }
    return r;
}

int tree_walk(const struct profile *profile, const struct tree_request *request,
              tree_on_node_fn *on_node, void *userdata)
{
    cleanup_(walk_done) struct walk walk = {
        .profile = profile,
        .request = request,
        .on_node = on_node,
        .userdata = userdata,
        .least = request->min_percent * (double)profile_total(profile) / 100,
    };
    cleanup_(freep) bool *marks = NULL;
    size_t marked_count = 0;
    int r = functions_find(profile, FUNCTIONS_EACH, &walk.functions);
    if (r < 0) {
        return r;
    }
    walk.truncated = (uint32_t)walk.functions.items.item_count;
    walk.branch_of = calloc((size_t)walk.truncated + 1, sizeof *walk.branch_of);
    if (walk.branch_of == NULL) {
        return -ENOMEM;
    }
    if (request->view == TREE_CALLERS || request->view == TREE_CALLEES) {
        marks = mark_named(&walk, &marked_count);
        if (marks == NULL) {
            return -ENOMEM;
        }
    }
    r = find_entries(&walk, marks);
    if (r < 0) {
        return r;
    }
    return marks != NULL && walk.entry_count == 0 ? TREE_NO_FUNCTION : visit_all(&walk);
}
