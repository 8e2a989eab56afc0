/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lines of one pid become processes: a parent never changes, so a line with another one begins
 * another process, and a line without belongs to the process before it. A parent is looked up as of
 * its child's beginning. Recordings come from anywhere: parents that go in a circle are cut apart.
 */
#include "lineage.h"

#include "cleanup.h"
#include "grow.h"
#include "tables.h"

#include <stdlib.h>

/* A process as one segment has it. */
struct life {
    uint64_t pid;
    uint64_t begin_ns;
    uint64_t parent_pid;
    uint32_t segment;
    uint32_t command;
    uint32_t process; /* of the lineage */
};

/* Padded by hand, since its bytes are a key. */
struct identity {
    uint64_t pid;
    uint64_t begin_ns;
    uint32_t host; /* a text, or INTERN_NONE */
    uint32_t zero;
};

struct builder {
    const struct profile *profile;
    struct lineage *lineage;
    struct life *lives; /* owned; in the order of segment, pid and time */
    size_t capacity;
    size_t count;
    struct intern identities; /* an item's number is its process's */
};

static void builder_done(struct builder *builder)
{
    free(builder->lives);
    intern_done(&builder->identities);
}

void lineage_done(struct lineage *lineage)
{
    free(lineage->processes);
    *lineage = (struct lineage){0};
}

/* The process of a segment's pid that began then, made when it is first met. */
static int find_process(struct builder *builder, uint32_t segment, uint64_t pid, uint64_t begin_ns,
                        uint32_t *ret)
{
    struct lineage *lineage = builder->lineage;
    const struct profile *profile = builder->profile;
    const struct identity identity = {
        .pid = pid,
        .begin_ns = begin_ns,
        .host = segment < profile->host_count ? profile->hosts[segment] : INTERN_NONE,
    };
    int r = intern_add(&builder->identities, &identity, sizeof identity, ret);
    if (r < 0 || *ret < lineage->count) {
        return r;
    }
    r = grow(lineage->processes, lineage->capacity, lineage->count + 1);
    if (r == 0) {
        lineage->processes[lineage->count++] = (struct lineage_process){
            .pid = pid,
            .begin_ns = begin_ns,
            .parent = INTERN_NONE,
            .name = INTERN_NONE,
            .command = INTERN_NONE,
        };
    }
    return r;
}

/* Whether a line is of another process than the life before it. */
static bool begins_life(const struct life *before, const struct process_line *line)
{
    return before == NULL || before->segment != line->segment || before->pid != line->pid ||
           (line->parent_pid != PROCESS_PARENT_UNKNOWN &&
            before->parent_pid != PROCESS_PARENT_UNKNOWN && line->parent_pid != before->parent_pid);
}

static int take_line(struct builder *builder, const struct process_line *line)
{
    struct life *life = builder->count == 0 ? NULL : &builder->lives[builder->count - 1];
    if (begins_life(life, line)) {
        if (grow(builder->lives, builder->capacity, builder->count + 1) < 0) {
            return -ENOMEM;
        }
        life = &builder->lives[builder->count++];
        *life = (struct life){
            .pid = line->pid,
            .begin_ns = line->since_ns,
            .parent_pid = PROCESS_PARENT_UNKNOWN,
            .segment = line->segment,
        };
    }
    if (line->parent_pid != PROCESS_PARENT_UNKNOWN) {
        life->parent_pid = line->parent_pid;
    }
    life->command = line->command; /* that of the last program, even where it is not known */
    return find_process(builder, life->segment, life->pid, life->begin_ns, &life->process);
}

static bool is_of(const struct life *life, uint32_t segment, uint64_t pid)
{
    return life->segment == segment && life->pid == pid;
}

/* The life that had a pid at a time; before the first of them that one, since its beginning may not
 * be in its segment. NULL: there is none. */
static const struct life *find_life(const struct builder *builder, uint32_t segment, uint64_t pid,
                                    uint64_t time_ns)
{
    size_t low = 0;
    size_t high = builder->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct life *life = &builder->lives[middle];
        bool is_later = life->segment != segment ? life->segment > segment
                        : life->pid != pid       ? life->pid > pid
                                                 : life->begin_ns > time_ns;
        if (is_later) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    if (low > 0 && is_of(&builder->lives[low - 1], segment, pid)) {
        return &builder->lives[low - 1];
    }
    return low < builder->count && is_of(&builder->lives[low], segment, pid) ? &builder->lives[low]
                                                                             : NULL;
}

/* Gives a process what a segment says of it; a later one says it again. */
static void describe(const struct builder *builder, size_t number)
{
    const struct life *life = &builder->lives[number];
    const struct life *next = number + 1 < builder->count ? life + 1 : NULL;
    struct lineage_process *process = &builder->lineage->processes[life->process];
    bool has_next = next != NULL && is_of(next, life->segment, life->pid) && next->begin_ns > 0;
    const uint64_t last_ns = has_next ? next->begin_ns - 1 : UINT64_MAX;
    uint32_t name = names_find(&builder->profile->tables->names, life->segment, life->pid,
                               NAMES_PROCESS, last_ns);
    const struct life *parent =
        life->parent_pid == PROCESS_PARENT_UNKNOWN
            ? NULL
            : find_life(builder, life->segment, life->parent_pid, life->begin_ns);
    process->name = name == INTERN_NONE ? process->name : name;
    process->command = life->command;
    process->parent = parent == NULL ? process->parent : parent->process;
}

static int take_lines(struct builder *builder)
{
    const struct process_lines *lines = &builder->profile->tables->owners.lines;
    int r = 0;
    for (size_t i = 0; i < lines->count && r == 0; i++) {
        r = take_line(builder, &lines->lines[i]);
    }
    for (size_t i = 0; i < builder->count && r == 0; i++) {
        describe(builder, i);
    }
    return r;
}

/* Counts a sample. A process of which no line says anything is known by its pid. */
static int take_sample(struct builder *builder, const struct profile_sample *sample)
{
    const struct profile_task *task = profile_task(builder->profile, sample->task);
    const struct life *life = find_life(builder, task->segment, task->pid, sample->time_ns);
    uint32_t number = life == NULL ? 0 : life->process;
    int r = life == NULL ? find_process(builder, task->segment, task->pid, 0, &number) : 0;
    if (r == 0) {
        struct lineage_process *process = &builder->lineage->processes[number];
        process->self += profile_value_of(builder->profile, sample);
        process->name =
            life == NULL || process->name == INTERN_NONE ? task->process_name : process->name;
    }
    return r;
}

/* Cuts circles of parents. `walks` has a place for each process: the walk upward that came there,
 * or 0. */
static void cut_circles(struct lineage *lineage, uint32_t *walks)
{
    for (uint32_t i = 0; i < lineage->count; i++) {
        uint32_t at = i;
        while (walks[at] == 0) {
            const uint32_t parent = lineage->processes[at].parent;
            walks[at] = i + 1;
            if (parent == INTERN_NONE) {
                break;
            }
            if (walks[parent] == i + 1) {
                lineage->processes[at].parent = INTERN_NONE;
                break;
            }
            at = parent;
        }
    }
}

/* Adds up what descends from each process: children before their parents. `waiting` has a place for
 * each process, and becomes how many of its children are to come. */
static void add_totals(struct lineage *lineage, uint32_t *waiting)
{
    for (size_t i = 0; i < lineage->count; i++) {
        waiting[i] = 0;
        lineage->processes[i].total = lineage->processes[i].self;
    }
    for (size_t i = 0; i < lineage->count; i++) {
        if (lineage->processes[i].parent != INTERN_NONE) {
            waiting[lineage->processes[i].parent]++;
        }
    }
    for (size_t i = 0; i < lineage->count; i++) {
        size_t at = i;
        while (waiting[at] == 0) {
            const uint32_t parent = lineage->processes[at].parent;
            waiting[at] = UINT32_MAX; /* done */
            if (parent == INTERN_NONE) {
                break;
            }
            lineage->processes[parent].total += lineage->processes[at].total;
            waiting[parent]--;
            at = parent;
        }
    }
}

int lineage_build(const struct profile *profile, struct lineage *ret)
{
    cleanup_(builder_done) struct builder builder = {.profile = profile, .lineage = ret};
    *ret = (struct lineage){0};
    int r = take_lines(&builder);
    for (size_t i = 0; i < profile->sample_count && r == 0; i++) {
        r = take_sample(&builder, &profile->samples[i]);
    }
    cleanup_(freep) uint32_t *work = r < 0 ? NULL : calloc(ret->count + 1, sizeof *work);
    if (work == NULL) {
        return -ENOMEM;
    }
    cut_circles(ret, work);
    add_totals(ret, work);
    return 0;
}

uint32_t lineage_command(const struct profile *profile, uint64_t pid)
{
    const struct process_lines *table = &profile->tables->owners.lines;
    struct life life = {.parent_pid = PROCESS_PARENT_UNKNOWN, .command = INTERN_NONE};
    bool is_found = false;
    for (size_t i = 0; i < table->count; i++) {
        const struct process_line *line = &table->lines[i];
        if (is_found && begins_life(&life, line)) {
            break;
        }
        if (line->pid == pid) {
            is_found = true;
            life.pid = pid;
            life.segment = line->segment;
            life.parent_pid =
                line->parent_pid == PROCESS_PARENT_UNKNOWN ? life.parent_pid : line->parent_pid;
            life.command = line->command;
        }
    }
    return life.command;
}
