/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A row is a range of processes in one array. The children of all of them are put behind what is
 * there, sorted by name and command line, and parted into ranges; so each process is in the array
 * once. Rows that wait for their turn are on a stack: processes may descend from each other
 * thousands of times.
 */
#include "process_tree.h"

#include "cleanup.h"
#include "compare.h"
#include "grow.h"
#include "lineage.h"

#include <string.h>

/* A row whose turn has not come. */
struct pending {
    size_t first; /* of its processes */
    size_t count;
    uint64_t parent;
    uint64_t total;
    uint32_t depth;
    uint32_t name;
    bool is_shared; /* their command lines differ */
};

struct walk {
    const struct profile *profile;
    process_tree_on_row_fn *on_row;
    void *userdata;
    struct lineage lineage;
    uint32_t *first_child; /* owned; by process, as the next: its number + 1, 0: there is none */
    uint32_t *next_child;  /* owned */
    uint32_t *members;     /* owned; a place for each process */
    size_t member_count;
    struct pending *pending; /* owned */
    size_t pending_capacity;
    size_t pending_count;
    char *command; /* owned; of the row at hand */
    size_t command_capacity;
    uint64_t row_count;
    double least; /* samples of a row that is not cut */
};

static void walk_done(struct walk *walk)
{
    lineage_done(&walk->lineage);
    free(walk->first_child);
    free(walk->next_child);
    free(walk->members);
    free(walk->pending);
    free(walk->command);
}

static const struct lineage_process *member(const struct walk *walk, size_t place)
{
    return &walk->lineage.processes[walk->members[place]];
}

static const char *name_of(const struct walk *walk, uint32_t name)
{
    return name == INTERN_NONE ? "" : profile_text(walk->profile, name);
}

static int begin(struct walk *walk)
{
    int r = lineage_build(walk->profile, &walk->lineage);
    const size_t count = walk->lineage.count;
    if (r < 0) {
        return r;
    }
    walk->first_child = calloc(count + 1, sizeof *walk->first_child);
    walk->next_child = calloc(count + 1, sizeof *walk->next_child);
    walk->members = calloc(count + 1, sizeof *walk->members);
    if (walk->first_child == NULL || walk->next_child == NULL || walk->members == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        const struct lineage_process *process = &walk->lineage.processes[i];
        if (process->total > 0 && process->parent != INTERN_NONE) {
            walk->next_child[i] = walk->first_child[process->parent];
            walk->first_child[process->parent] = (uint32_t)i + 1;
        } else if (process->total > 0) {
            walk->members[walk->member_count++] = (uint32_t)i;
        }
    }
    return 0;
}

/* Equal texts have one number, so any order of numbers brings them together. */
static int compare_kinds(const void *left, const void *right, void *userdata)
{
    const struct lineage *lineage = userdata;
    const struct lineage_process *a = &lineage->processes[*(const uint32_t *)left];
    const struct lineage_process *b = &lineage->processes[*(const uint32_t *)right];
    int r = compare_u64(a->name, b->name);
    r = r == 0 ? compare_u64(a->command, b->command) : r;
    return r == 0 ? compare_u64(a->pid, b->pid) : r;
}

/* How many processes from a place on are of one name and, where it matters, of one command line. */
static size_t count_alike(const struct walk *walk, size_t first, bool by_command)
{
    size_t end = first + 1;
    while (end < walk->member_count && member(walk, end)->name == member(walk, first)->name &&
           (!by_command || member(walk, end)->command == member(walk, first)->command)) {
        end++;
    }
    return end - first;
}

static size_t count_commands(const struct walk *walk, size_t first, size_t count)
{
    size_t commands = 0;
    for (size_t i = first; i < first + count; i += count_alike(walk, i, true)) {
        commands++;
    }
    return commands;
}

/* Lets a range of processes wait as a row below `parent`, or cuts it. */
static int add_row(struct walk *walk, struct process_row *parent, size_t first, size_t count,
                   bool is_shared)
{
    struct pending row = {
        .first = first,
        .count = count,
        .parent = parent->number,
        .depth = parent->depth + 1,
        .name = member(walk, first)->name,
        .is_shared = is_shared,
    };
    for (size_t i = first; i < first + count; i++) {
        row.total += member(walk, i)->total;
    }
    if ((double)row.total < walk->least) {
        parent->cut_count++;
        parent->cut_samples += row.total;
        return 0;
    }
    int r = grow(walk->pending, walk->pending_capacity, walk->pending_count + 1);
    if (r == 0) {
        walk->pending[walk->pending_count++] = row;
    }
    return r;
}

/* Behind the others comes what is to be shown first. */
static int compare_pending(const void *left, const void *right, void *userdata)
{
    const struct pending *a = left;
    const struct pending *b = right;
    const struct walk *walk = userdata;
    int r = compare_u64(a->total, b->total);
    r = r == 0 ? -strcmp(name_of(walk, a->name), name_of(walk, b->name)) : r;
    return r == 0 ? compare_u64(b->first, a->first) : r;
}

/* Makes rows of the processes from a place on, the children of a row. */
static int make_rows(struct walk *walk, struct process_row *parent, size_t first)
{
    const size_t pending_before = walk->pending_count;
    int r = 0;
    if (walk->member_count > first) {
        qsort_r(walk->members + first, walk->member_count - first, sizeof *walk->members,
                compare_kinds, &walk->lineage);
    }
    while (first < walk->member_count && r == 0) {
        size_t count = count_alike(walk, first, false);
        const size_t commands = count_commands(walk, first, count);
        bool is_shared = commands > PROCESS_TREE_COMMANDS_MAX;
        count = is_shared ? count : count_alike(walk, first, true);
        r = add_row(walk, parent, first, count, is_shared);
        first += count;
    }
    if (walk->pending_count > pending_before) {
        qsort_r(walk->pending + pending_before, walk->pending_count - pending_before,
                sizeof *walk->pending, compare_pending, walk);
    }
    return r;
}

/* Cuts `walk->command`, of which `bytes` are shared with another text, behind a word. */
static void cut_command(char *command, size_t bytes, const char *other)
{
    bool is_word = (command[bytes] == ' ' || command[bytes] == '\0') &&
                   (other[bytes] == ' ' || other[bytes] == '\0');
    while (!is_word && bytes > 0) {
        bytes--;
        is_word = command[bytes] == ' ';
    }
    command[bytes] = '\0';
}

static int keep_command(struct walk *walk, const char *command)
{
    const size_t bytes = strlen(command) + 1;
    if (grow(walk->command, walk->command_capacity, bytes) < 0) {
        return -ENOMEM;
    }
    memcpy(walk->command, command, bytes);
    return 0;
}

/* Leaves of `walk->command` what a command line shares with it. */
static void keep_shared(struct walk *walk, const char *command)
{
    size_t shared = 0;
    while (walk->command[shared] != '\0' && walk->command[shared] == command[shared]) {
        shared++;
    }
    cut_command(walk->command, shared, command);
}

/* Finds the words with which all command lines of a row begin that are known. */
static int share_command(struct walk *walk, const struct pending *row, const char **ret)
{
    bool is_first = true;
    *ret = NULL;
    for (size_t i = row->first; i < row->first + row->count; i++) {
        const uint32_t number = member(walk, i)->command;
        const char *command = number == INTERN_NONE ? NULL : profile_text(walk->profile, number);
        if (command == NULL) {
            continue;
        }
        if (!is_first) {
            keep_shared(walk, command);
        } else if (keep_command(walk, command) < 0) {
            return -ENOMEM;
        }
        is_first = false;
    }
    *ret = is_first || walk->command[0] == '\0' ? NULL : walk->command;
    return 0;
}

static int show(struct walk *walk, const struct pending *pending)
{
    struct process_row row = {
        .number = walk->row_count++,
        .parent = pending->parent,
        .depth = pending->depth,
        .name = pending->name,
        .is_shared = pending->is_shared,
        .process_count = pending->count,
        .pid = member(walk, pending->first)->pid,
        .total = pending->total,
    };
    const size_t first = walk->member_count;
    for (size_t i = pending->first; i < pending->first + pending->count; i++) {
        row.self += member(walk, i)->self;
        for (uint32_t child = walk->first_child[walk->members[i]]; child != 0;
             child = walk->next_child[child - 1]) {
            walk->members[walk->member_count++] = child - 1;
        }
    }
    int r = make_rows(walk, &row, first);
    r = r < 0 ? r : share_command(walk, pending, &row.command);
    if (r == 0) {
        walk->on_row(&row, walk->userdata);
    }
    return r;
}

int process_tree_walk(const struct profile *profile, double min_percent,
                      process_tree_on_row_fn *on_row, void *userdata)
{
    cleanup_(walk_done) struct walk walk = {
        .profile = profile,
        .on_row = on_row,
        .userdata = userdata,
        .least = min_percent / 100 * (double)profile_total(profile),
    };
    int r = begin(&walk);
    if (r < 0) {
        return r;
    }
    struct process_row all = {
        .number = walk.row_count++,
        .name = INTERN_NONE,
        .total = profile_total(profile),
    };
    for (size_t i = 0; i < walk.lineage.count; i++) {
        all.process_count += walk.lineage.processes[i].total > 0;
    }
    r = make_rows(&walk, &all, 0);
    if (r == 0) {
        on_row(&all, userdata);
    }
    while (r == 0 && walk.pending_count > 0) {
        const struct pending row = walk.pending[--walk.pending_count];
        r = show(&walk, &row);
    }
    return r;
}
