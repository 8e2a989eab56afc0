/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A line of a process holds until the next one, by their times, wherever they stand in the file. So
 * a process that stays in its group costs one line, and one that changes it a line each time.
 *
 * Samples come nearly in the order of time: those of each CPU, and those that waited for a table,
 * may be late by a round. So the last few stretches of time in which a process was in one group are
 * remembered. A late sample that falls between two of them moves the beginning of the second, and
 * one amid another group's stretch, as of two threads in two groups, cuts that in two. One that is
 * older than all of them bears what was told of its time.
 *
 * Threads of one process can be in different groups, as those of a virtual machine are, and would
 * cost a line a sample. After TRACE_CGROUP_LINES_MAX lines the groups of one unit or container
 * count as one; after as many more, nothing is said of the process from then on. The line with
 * which less is told is the last one by its time, so that it holds for all that come.
 */
#include "trace_cgroups.h"

#include "fxt_writer.h"
#include "process_notes.h"
#include "utf8.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STRETCHES   TRACE_CGROUP_LINES_MAX
#define AGAIN_MAX   (STRETCHES / 2) /* that are told again: older samples are of nobody known */
#define TEXT_BYTES  ((size_t)4096 * 6 + 1) /* a path with each byte escaped */
#define LINE_BYTES  (TEXT_BYTES + 4096)
#define GROUP_WORDS (LINE_BYTES / sizeof(uint64_t) + 16)

/* What counts as a change of the group, and is told. */
enum detail {
    DETAIL_CGROUP,
    DETAIL_OWNER,
    DETAIL_NOTHING,
};

/* A time in which all samples of a process were in one group, or in groups that count as one. */
struct stretch {
    const struct cgroup *cgroup; /* borrowed; NULL: not known */
    uint64_t from_ns;
    uint64_t first_ns; /* the first of the samples, */
    uint64_t seen_ns;  /* and the last */
};

struct cgroup_note {
    uint32_t log;
    uint16_t line_count; /* of this detail in that log */
    uint8_t detail;
    uint8_t count;
    bool is_refused;                     /* a line, in that log */
    uint32_t uid;                        /* that the last line tells; an account */
    struct stretch stretches[STRETCHES]; /* the newest last */
};

struct trace_cgroups {
    struct definition_log *log;
    struct process_notes *notes;
    uint32_t log_number;
    size_t line_bytes;
    char line[LINE_BYTES];
    uint64_t group[GROUP_WORDS];
};

struct trace_cgroups *trace_cgroups_new(struct definition_log *log)
{
    struct trace_cgroups *cgroups = calloc(1, sizeof *cgroups);
    if (cgroups == NULL) {
        return NULL;
    }
    cgroups->log = log;
    cgroups->notes = process_notes_new(sizeof(struct cgroup_note));
    return cgroups->notes == NULL ? trace_cgroups_free(cgroups) : cgroups;
}

struct trace_cgroups *trace_cgroups_free(struct trace_cgroups *cgroups)
{
    if (cgroups != NULL) {
        (void)process_notes_free(cgroups->notes);
        free(cgroups);
    }
    return NULL;
}

void trace_cgroups_begin(struct trace_cgroups *cgroups)
{
    cgroups->log_number++;
}

__attribute__((format(printf, 2, 3))) static void add(struct trace_cgroups *cgroups,
                                                      const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    size_t room_bytes = sizeof cgroups->line - cgroups->line_bytes;
    int bytes = vsnprintf(cgroups->line + cgroups->line_bytes, room_bytes, format, arguments);
    va_end(arguments);
    if (bytes > 0) {
        cgroups->line_bytes += (size_t)bytes < room_bytes ? (size_t)bytes : room_bytes - 1;
    }
}

static void add_member(struct trace_cgroups *cgroups, const char *name, struct cgroup_part part)
{
    char text[TEXT_BYTES];
    if (part.bytes > 0) {
        (void)utf8_json(text, sizeof text, part.text, part.bytes);
        add(cgroups, ",\"%s\":\"%s\"", name, text);
    }
}

static void add_text(struct trace_cgroups *cgroups, const char *name, const char *text)
{
    add_member(cgroups, name, (struct cgroup_part){text, text == NULL ? 0 : strlen(text)});
}

static void add_cgroup(struct trace_cgroups *cgroups, const struct cgroup *cgroup,
                       enum detail detail)
{
    const struct cgroup_owner *owner = &cgroup->owner;
    if (detail == DETAIL_CGROUP) {
        add_text(cgroups, "cgroup", cgroup->path);
    }
    add_member(cgroups, "unit", owner->unit);
    add_member(cgroups, "user_unit", owner->user_unit);
    add_member(cgroups, "container", owner->container);
    add_text(cgroups, "runtime", owner->runtime);
    add_text(cgroups, "pod", owner->pod);
}

/* The user that a process is charged to: the threads of the kernel are root's. */
static uint32_t uid_of(const struct process *process)
{
    uint32_t account = process->owner_known ? process->owner : PROCESS_ACCOUNT_UNKNOWN;
    return process->kernel_thread ? 0 : account;
}

static bool write_line(struct trace_cgroups *cgroups, const struct process *process,
                       const struct cgroup *cgroup, enum detail detail, uint64_t from_ns)
{
    struct fxt_writer writer;
    cgroups->line_bytes = 0;
    add(cgroups, "{\"pid\":%" PRId32 ",\"boot_ts_ns\":\"%" PRIu64 "\"", process->pid, from_ns);
    if (uid_of(process) != PROCESS_ACCOUNT_UNKNOWN) {
        add(cgroups, ",\"uid\":%" PRIu32, uid_of(process));
    }
    if (cgroup != NULL && detail != DETAIL_NOTHING) {
        add_cgroup(cgroups, cgroup, detail);
    }
    add(cgroups, "}\n");
    fxt_writer_init(&writer, cgroups->group, sizeof cgroups->group);
    fxt_write_data(&writer, FXT_STRING_PROCESSES, cgroups->line, cgroups->line_bytes);
    return fxt_writer_ok(&writer) &&
           definition_log_put(cgroups->log, process->owner, DEFINITION_TASK, cgroups->group,
                              writer.used_bytes);
}

/* Puts a stretch into its place, where the note is full instead of the oldest. Returns the place
 * that it has then. */
static size_t insert(struct cgroup_note *note, size_t place, struct stretch stretch)
{
    if (note->count == STRETCHES && place == 0) {
        return 0;
    }
    if (note->count == STRETCHES) {
        memmove(&note->stretches[0], &note->stretches[1],
                (STRETCHES - 1) * sizeof note->stretches[0]);
        note->count--;
        place--;
    }
    memmove(&note->stretches[place + 1], &note->stretches[place],
            (note->count - place) * sizeof note->stretches[0]);
    note->stretches[place] = stretch;
    note->count++;
    return place;
}

/* The number of the stretches that do not begin later. */
static size_t find_stretch(const struct cgroup_note *note, uint64_t time_ns)
{
    size_t i = note->count;
    while (i > 0 && note->stretches[i - 1].from_ns > time_ns) {
        i--;
    }
    return i;
}

static bool is_one(const struct cgroup_note *note, const struct cgroup *a, const struct cgroup *b)
{
    bool has_one_owner = a != NULL && b != NULL && a->owner_key == b->owner_key;
    return a == b || note->detail == DETAIL_NOTHING ||
           (note->detail == DETAIL_OWNER && has_one_owner);
}

/* The first line of a process in a log holds from the beginning of the process. */
static bool tell_first(struct trace_cgroups *cgroups, const struct process *process,
                       struct cgroup_note *note, struct stretch now)
{
    now.from_ns = process->from_ns;
    if (!write_line(cgroups, process, now.cgroup, DETAIL_CGROUP, now.from_ns)) {
        return false;
    }
    *note =
        (struct cgroup_note){.log = cgroups->log_number, .line_count = 1, .uid = uid_of(process)};
    (void)insert(note, 0, now);
    return true;
}

/* Tells another user, of the newest stretch: one that was not known before is that of all of it. */
static bool tell_user(struct trace_cgroups *cgroups, const struct process *process,
                      struct cgroup_note *note, uint64_t time_ns)
{
    const struct stretch *newest = &note->stretches[note->count - 1];
    bool is_of_all = note->uid == PROCESS_ACCOUNT_UNKNOWN || time_ns < newest->from_ns;
    if (!write_line(cgroups, process, newest->cgroup, note->detail,
                    is_of_all ? newest->from_ns : time_ns)) {
        return false;
    }
    note->uid = uid_of(process);
    return true;
}

/* Tells less from the sample on or, where that is later, from the beginning of the newest stretch
 * on: there is no line behind it that tells more. */
static bool tell_less(struct trace_cgroups *cgroups, const struct process *process,
                      struct cgroup_note *note, const struct stretch *now)
{
    struct stretch first = note->stretches[note->count - 1];
    first.from_ns = now->from_ns > first.from_ns ? now->from_ns : first.from_ns;
    first.first_ns = now->from_ns > first.first_ns ? now->from_ns : first.first_ns;
    first = now->from_ns > first.seen_ns ? *now : first;
    if (!write_line(cgroups, process, first.cgroup, note->detail + 1, first.from_ns)) {
        return false;
    }
    note->detail++;
    note->line_count = 1;
    note->count = 0;
    (void)insert(note, 0, first);
    return true;
}

/* Tells a sample before the first one of stretch `i`, which nothing but the beginning of the
 * process had put there. */
static bool tell_before(struct trace_cgroups *cgroups, const struct process *process,
                        struct cgroup_note *note, size_t i, const struct stretch *now)
{
    struct stretch after = note->stretches[i];
    if (!write_line(cgroups, process, after.cgroup, note->detail, after.first_ns) ||
        !write_line(cgroups, process, now->cgroup, note->detail, after.from_ns)) {
        return false;
    }
    note->line_count = (uint16_t)(note->line_count + 2);
    note->stretches[i] = *now;
    note->stretches[i].from_ns = after.from_ns;
    after.from_ns = after.first_ns;
    (void)insert(note, i + 1, after);
    return true;
}

/* Tells a change of the group within the time from stretch `i` on. */
static bool tell_change(struct trace_cgroups *cgroups, const struct process *process,
                        struct cgroup_note *note, size_t i, const struct stretch *now)
{
    struct stretch before = note->stretches[i];
    bool is_amid = now->from_ns < before.seen_ns;
    bool is_next =
        !is_amid && i + 1 < note->count && is_one(note, note->stretches[i + 1].cgroup, now->cgroup);
    /* The way back comes first: where the second line is refused, the first one does no harm. */
    if ((is_amid && !write_line(cgroups, process, before.cgroup, note->detail, now->from_ns + 1)) ||
        !write_line(cgroups, process, now->cgroup, note->detail, now->from_ns)) {
        return false;
    }
    note->line_count = (uint16_t)(note->line_count + (is_amid ? 2 : 1));
    if (is_next) {
        note->stretches[i + 1].from_ns = now->from_ns;
        note->stretches[i + 1].first_ns = now->from_ns;
        return true;
    }
    size_t place = i + 1;
    if (is_amid) {
        note->stretches[i].seen_ns = now->from_ns - 1;
        before.from_ns = now->from_ns + 1;
        before.first_ns = before.from_ns;
        place = insert(note, place, before);
    }
    (void)insert(note, place, *now);
    return true;
}

/* Tells what is remembered in a log that has nothing of it. */
static bool tell_again(struct trace_cgroups *cgroups, const struct process *process,
                       struct cgroup_note *note)
{
    const size_t old_count = note->count > AGAIN_MAX ? note->count - AGAIN_MAX : 0;
    note->count = (uint8_t)(note->count - old_count);
    memmove(&note->stretches[0], &note->stretches[old_count],
            note->count * sizeof note->stretches[0]);
    note->log = cgroups->log_number;
    note->detail = DETAIL_CGROUP;
    note->line_count = note->count;
    note->uid = uid_of(process);
    note->is_refused = false;
    for (size_t i = 0; i < note->count && !note->is_refused; i++) {
        const struct stretch *stretch = &note->stretches[i];
        note->is_refused =
            !write_line(cgroups, process, stretch->cgroup, DETAIL_CGROUP, stretch->from_ns);
    }
    return !note->is_refused;
}

/* Takes a sample. False: a line was refused. */
static bool take(struct trace_cgroups *cgroups, const struct process *process,
                 struct cgroup_note *note, const struct cgroup *cgroup, uint64_t time_ns)
{
    const struct stretch now = {cgroup, time_ns, time_ns, time_ns};
    if (note->count == 0) {
        return tell_first(cgroups, process, note, now);
    }
    if (note->log != cgroups->log_number && !tell_again(cgroups, process, note)) {
        return false;
    }
    if (note->uid != uid_of(process) && !tell_user(cgroups, process, note, time_ns)) {
        return false;
    }
    for (;;) {
        size_t i = find_stretch(note, time_ns);
        if (i == 0) {
            return true;
        }
        struct stretch *at = &note->stretches[i - 1];
        if (is_one(note, at->cgroup, cgroup)) {
            at->seen_ns = time_ns > at->seen_ns ? time_ns : at->seen_ns;
            return true;
        }
        if (note->line_count < TRACE_CGROUP_LINES_MAX) {
            return time_ns < at->first_ns ? tell_before(cgroups, process, note, i - 1, &now)
                                          : tell_change(cgroups, process, note, i - 1, &now);
        }
        /* Once for each detail: with none, all groups are one. */
        if (!tell_less(cgroups, process, note, &now)) {
            return false;
        }
    }
}

void trace_cgroups_note(struct trace_cgroups *cgroups, const struct process *process,
                        const struct cgroup *cgroup, uint64_t time_ns)
{
    struct cgroup_note *note = process_notes_of(cgroups->notes, process);
    bool was_refused = note->log == cgroups->log_number && note->is_refused;
    note->is_refused = was_refused || !take(cgroups, process, note, cgroup, time_ns);
    note->log = cgroups->log_number;
}

bool trace_cgroups_hold(struct trace_cgroups *cgroups, const struct process *process)
{
    struct cgroup_note *note = process_notes_of(cgroups->notes, process);
    if (note->log != cgroups->log_number) {
        return tell_again(cgroups, process, note);
    }
    return !note->is_refused;
}
