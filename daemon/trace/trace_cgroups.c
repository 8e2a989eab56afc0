/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A line of a process holds until the next one, by their times, wherever they stand in the file. So
 * a process that stays in its group costs one line, and one that changes it a line each time.
 *
 * Samples come nearly in the order of time, but some are late. So the last stretches of time in
 * which a process was in one group are remembered. A late sample that falls between two of them
 * moves the beginning of the second, and one amid another group's stretch, as of two threads in two
 * groups, cuts that in two. One that is older than all of them bears what was told of its time.
 *
 * What is remembered does not depend on what had room in a log: the next one is told it again, as
 * samples that were noted before may be written there.
 *
 * Threads of one process can be in different groups, as those of a virtual machine are, and would
 * cost a line a sample. After TRACE_CGROUP_LINES_MAX lines the groups of one unit or container
 * count as one; after as many more, nothing is said of the process from then on. The line with
 * which less is told is the last one by its time, so that it holds for all that come.
 *
 * A line has the command line that is known when it is written, of the program that the process
 * executed last. When that changes, a line of the newest stretch says so, from the exec on. Its
 * bytes are on the share of names: without them no sample is dropped. What such a line says of the
 * group is a guess where the exec is later than all samples so far, as one before the exec may
 * still come from another group. So it begins a stretch of its own, without samples, which the next
 * sample confirms or replaces.
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

#define STRETCHES  TRACE_CGROUP_LINES_MAX
#define AGAIN_MAX  (STRETCHES / 2)        /* that are told again: older samples have no owner */
#define TEXT_BYTES ((size_t)4096 * 6 + 1) /* a path with each byte escaped */
#define LINE_BYTES FXT_DATA_BYTES_MAX
/* Each byte escaped, or an argument of its own. */
#define COMMAND_BYTES (PROCESS_COMMAND_MAX * 6 + 64)
#define GROUP_WORDS   (LINE_BYTES / sizeof(uint64_t) + 16)

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
    uint64_t first_ns; /* the first of the samples, or NO_SAMPLE */
    uint64_t seen_ns;  /* and the last */
    uint8_t detail;    /* that is told of it */
};

#define NO_SAMPLE UINT64_MAX

struct cgroup_note {
    uint32_t log;
    uint16_t line_count; /* of this detail in that log */
    uint8_t detail;      /* of new lines in it */
    uint8_t count;
    bool is_refused;                     /* a line, in that log */
    uint8_t command_line_count;          /* lines about command lines alone, in that log */
    uint64_t command_number;             /* that the last line tells; 0: none */
    bool has_line;                       /* that log has one */
    bool has_parents;                    /* and those of what it descends from */
    uint32_t uid;                        /* that the last line tells; an account */
    struct stretch stretches[STRETCHES]; /* the newest last */
};

struct trace_cgroups {
    struct definition_log *log;
    struct command_right commands;
    struct process_notes *notes;
    uint32_t log_number;
    size_t line_bytes;
    char line[LINE_BYTES];
    uint64_t group[GROUP_WORDS];
};

struct trace_cgroups *trace_cgroups_new(struct definition_log *log,
                                        const struct command_right *commands)
{
    struct trace_cgroups *cgroups = calloc(1, sizeof *cgroups);
    if (cgroups == NULL) {
        return NULL;
    }
    cgroups->log = log;
    cgroups->commands = *commands;
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

/* The command line of a process that may be written, or NULL. */
static const struct process_command *command_of(const struct trace_cgroups *cgroups,
                                                const struct process *process)
{
    const struct process_command *command = process->command;
    return command != NULL && command_right_covers(&cgroups->commands, command->uid) ? command
                                                                                     : NULL;
}

static uint64_t command_number_of(const struct trace_cgroups *cgroups,
                                  const struct process *process)
{
    const struct process_command *command = command_of(cgroups, process);
    return command == NULL ? 0 : command->number;
}

/* Adds a command line as an array of its arguments, if there is room in the line and in the owner's
 * share, which is charged. Returns its bytes. */
static size_t add_command(struct trace_cgroups *cgroups, const struct process *process)
{
    const struct process_command *command = command_of(cgroups, process);
    const size_t before_bytes = cgroups->line_bytes;
    char text[COMMAND_BYTES];
    if (command == NULL || before_bytes + 2 * COMMAND_BYTES > sizeof cgroups->line) {
        return 0;
    }
    add(cgroups, ",\"cmdline\":[");
    for (size_t at = 0; at <= command->size_bytes;) {
        const size_t bytes = strnlen(command->bytes + at, command->size_bytes - at);
        (void)utf8_json(text, sizeof text, command->bytes + at, bytes);
        add(cgroups, "%s\"%s\"", at == 0 ? "" : ",", text);
        at += bytes + 1;
    }
    add(cgroups, "]");
    const size_t added_bytes = cgroups->line_bytes - before_bytes;
    if (!definition_log_pay(cgroups->log, process->owner, DEFINITION_NAME, added_bytes)) {
        cgroups->line_bytes = before_bytes;
        return 0;
    }
    return added_bytes;
}

static bool write_line(struct trace_cgroups *cgroups, const struct process *process,
                       struct cgroup_note *note, const struct stretch *stretch, uint64_t from_ns,
                       enum definition_log_kind kind)
{
    struct fxt_writer writer;
    note->has_line = true;
    note->command_number = command_number_of(cgroups, process);
    cgroups->line_bytes = 0;
    add(cgroups, "{\"pid\":%" PRId32 ",\"boot_ts_ns\":\"%" PRIu64 "\"", process->pid, from_ns);
    if (uid_of(process) != PROCESS_ACCOUNT_UNKNOWN) {
        add(cgroups, ",\"uid\":%" PRIu32, uid_of(process));
    }
    if (process->parent_pid > 0) {
        add(cgroups, ",\"ppid\":%" PRId32, process->parent_pid);
    }
    if (stretch->cgroup != NULL && stretch->detail != DETAIL_NOTHING) {
        add_cgroup(cgroups, stretch->cgroup, stretch->detail);
    }
    const size_t command_bytes = add_command(cgroups, process);
    add(cgroups, "}\n");
    fxt_writer_init(&writer, cgroups->group, sizeof cgroups->group);
    fxt_write_data(&writer, FXT_STRING_PROCESSES, cgroups->line, cgroups->line_bytes);
    const size_t paid_bytes = TRACE_GROUP_HEADER_BYTES + writer.used_bytes - command_bytes;
    if (!fxt_writer_ok(&writer) ||
        !definition_log_pay(cgroups->log, process->owner, kind, paid_bytes)) {
        return false;
    }
    bool is_put = definition_log_put_paid(cgroups->log, cgroups->group, writer.used_bytes);
    if (!is_put) {
        definition_log_refuse(cgroups->log, kind);
    }
    return is_put;
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

/* Whether a sample of a group needs no line of its own in the time of a stretch. */
static bool is_one(const struct stretch *stretch, const struct cgroup *cgroup)
{
    const struct cgroup *own = stretch->cgroup;
    bool has_one_owner = own != NULL && cgroup != NULL && own->owner_key == cgroup->owner_key;
    return own == cgroup || stretch->detail == DETAIL_NOTHING ||
           (stretch->detail == DETAIL_OWNER && has_one_owner);
}

/* Writes the line of a stretch. Once one is refused, the log gets no more of the process. */
static void tell(struct trace_cgroups *cgroups, const struct process *process,
                 struct cgroup_note *note, const struct stretch *stretch, uint64_t from_ns)
{
    note->is_refused =
        note->is_refused || !write_line(cgroups, process, note, stretch, from_ns, DEFINITION_TASK);
    note->line_count++;
}

/* The first line of a process holds from the beginning of the process. */
static void tell_first(struct trace_cgroups *cgroups, const struct process *process,
                       struct cgroup_note *note, struct stretch now)
{
    now.from_ns = process->from_ns;
    note->uid = uid_of(process);
    tell(cgroups, process, note, &now, now.from_ns);
    (void)insert(note, 0, now);
}

/* Tells another user, of the newest stretch: one that was not known before is that of all of it. */
static void tell_user(struct trace_cgroups *cgroups, const struct process *process,
                      struct cgroup_note *note, uint64_t time_ns)
{
    const struct stretch *newest = &note->stretches[note->count - 1];
    bool is_of_all = note->uid == PROCESS_ACCOUNT_UNKNOWN || time_ns < newest->from_ns;
    const uint16_t line_count = note->line_count; /* of groups: it is none of these */
    tell(cgroups, process, note, newest, is_of_all ? newest->from_ns : time_ns);
    note->line_count = line_count;
    note->uid = uid_of(process);
}

/* Tells less from the sample on or, where that is later, from the beginning of the newest stretch
 * on: there is no line behind it that tells more. */
static void tell_less(struct trace_cgroups *cgroups, const struct process *process,
                      struct cgroup_note *note, const struct stretch *now)
{
    const struct stretch *newest = &note->stretches[note->count - 1];
    struct stretch first = now->from_ns > newest->seen_ns ? *now : *newest;
    note->detail++;
    note->line_count = 0;
    note->count = 0;
    first.detail = first.detail > note->detail ? first.detail : note->detail;
    if (now->from_ns > first.from_ns) {
        first.from_ns = now->from_ns;
        first.first_ns = now->from_ns;
    }
    tell(cgroups, process, note, &first, first.from_ns);
    (void)insert(note, 0, first);
}

/* Tells a sample before the first one of stretch `i`, which nothing but the beginning of the
 * process had put there. */
static void tell_before(struct trace_cgroups *cgroups, const struct process *process,
                        struct cgroup_note *note, size_t i, const struct stretch *now)
{
    struct stretch after = note->stretches[i];
    tell(cgroups, process, note, &after, after.first_ns);
    tell(cgroups, process, note, now, after.from_ns);
    note->stretches[i] = *now;
    note->stretches[i].from_ns = after.from_ns;
    after.from_ns = after.first_ns;
    (void)insert(note, i + 1, after);
}

/* Tells a change of the group within the time from stretch `i` on. */
static void tell_change(struct trace_cgroups *cgroups, const struct process *process,
                        struct cgroup_note *note, size_t i, const struct stretch *now)
{
    struct stretch before = note->stretches[i];
    struct stretch *next = i + 1 < note->count ? &note->stretches[i + 1] : NULL;
    size_t place = i + 1;
    if (now->from_ns < before.seen_ns) {
        note->stretches[i].seen_ns = now->from_ns - 1;
        before.from_ns = now->from_ns + 1;
        before.first_ns = before.from_ns;
        tell(cgroups, process, note, &before, before.from_ns);
        place = insert(note, place, before);
    } else if (next != NULL && is_one(next, now->cgroup)) {
        next->from_ns = now->from_ns;
        next->first_ns = now->from_ns;
        tell(cgroups, process, note, next, next->from_ns);
        return;
    }
    tell(cgroups, process, note, now, now->from_ns);
    (void)insert(note, place, *now);
}

/* Gives a stretch without samples the group of its first one. */
static void tell_instead(struct trace_cgroups *cgroups, const struct process *process,
                         struct cgroup_note *note, struct stretch *at, const struct stretch *now)
{
    const uint64_t from_ns = at->from_ns;
    *at = *now;
    at->from_ns = from_ns;
    tell(cgroups, process, note, at, from_ns);
}

/* Tells what is remembered, as it was told before, in a log that has nothing of it. */
static void tell_again(struct trace_cgroups *cgroups, const struct process *process,
                       struct cgroup_note *note)
{
    const size_t old_count = note->count > AGAIN_MAX ? note->count - AGAIN_MAX : 0;
    note->count = (uint8_t)(note->count - old_count);
    memmove(&note->stretches[0], &note->stretches[old_count],
            note->count * sizeof note->stretches[0]);
    note->log = cgroups->log_number;
    note->detail = DETAIL_CGROUP;
    note->line_count = 0;
    note->uid = uid_of(process);
    note->is_refused = false;
    note->has_line = false;
    note->has_parents = false;
    note->command_line_count = 0;
    note->command_number = 0;
    for (size_t i = 0; i < note->count; i++) {
        tell(cgroups, process, note, &note->stretches[i], note->stretches[i].from_ns);
    }
}

static struct cgroup_note *find_note(struct trace_cgroups *cgroups, const struct process *process)
{
    struct cgroup_note *note = process_notes_of(cgroups->notes, process);
    if (note->log != cgroups->log_number) {
        tell_again(cgroups, process, note);
    }
    return note;
}

/* Takes a sample into the stretch that it falls in. False: it needs a line, and there is none. */
static bool take(struct trace_cgroups *cgroups, const struct process *process,
                 struct cgroup_note *note, const struct stretch *now)
{
    size_t i = find_stretch(note, now->from_ns);
    if (i == 0) {
        return true;
    }
    struct stretch *at = &note->stretches[i - 1];
    bool is_behind = i == note->count && now->from_ns > at->seen_ns;
    /* What comes behind a stretch of another log is told with all of its detail again. */
    if (is_one(at, now->cgroup) && !(is_behind && at->detail > note->detail)) {
        at->seen_ns = now->from_ns > at->seen_ns ? now->from_ns : at->seen_ns;
        at->first_ns = now->from_ns < at->first_ns ? now->from_ns : at->first_ns;
        return true;
    }
    if (note->line_count >= TRACE_CGROUP_LINES_MAX) {
        return false;
    }
    if (at->first_ns == NO_SAMPLE) {
        tell_instead(cgroups, process, note, at, now);
    } else if (now->from_ns < at->first_ns) {
        tell_before(cgroups, process, note, i - 1, now);
    } else {
        tell_change(cgroups, process, note, i - 1, now);
    }
    return true;
}

/* Begins the newest stretch anew at a later time, at which a line repeats its group. */
static void split_newest(struct cgroup_note *note, uint64_t time_ns)
{
    struct stretch *newest = &note->stretches[note->count - 1];
    struct stretch behind = *newest;
    const bool is_sampled_before = newest->first_ns < time_ns;
    const bool is_sampled_behind = newest->first_ns != NO_SAMPLE && newest->seen_ns >= time_ns;
    behind.from_ns = time_ns;
    if (is_sampled_before) {
        behind.first_ns = is_sampled_behind ? time_ns : NO_SAMPLE;
    } else {
        newest->first_ns = NO_SAMPLE;
    }
    behind.seen_ns = is_sampled_behind ? newest->seen_ns : time_ns;
    newest->seen_ns = newest->seen_ns < time_ns ? newest->seen_ns : time_ns - 1;
    (void)insert(note, note->count, behind);
}

/* Tells another command line than the last line does, or that it is not known any more. */
static void tell_command(struct trace_cgroups *cgroups, const struct process *process,
                         struct cgroup_note *note)
{
    const struct stretch unknown = {.from_ns = process->from_ns, .detail = DETAIL_NOTHING};
    const struct stretch *newest = note->count == 0 ? &unknown : &note->stretches[note->count - 1];
    if (note->command_number == command_number_of(cgroups, process) || note->is_refused ||
        note->command_line_count == TRACE_COMMAND_LINES_MAX) {
        return;
    }
    const bool is_later = process->exec_ns > newest->from_ns;
    note->command_line_count++;
    (void)write_line(cgroups, process, note, newest, is_later ? process->exec_ns : newest->from_ns,
                     DEFINITION_NAME);
    if (is_later && note->count > 0) {
        split_newest(note, process->exec_ns);
    }
}

void trace_cgroups_note_command(struct trace_cgroups *cgroups, const struct process *process)
{
    struct cgroup_note *note = find_note(cgroups, process);
    if (note->has_line) {
        tell_command(cgroups, process, note);
    }
}

void trace_cgroups_note(struct trace_cgroups *cgroups, const struct process *process,
                        const struct cgroup *cgroup, uint64_t time_ns)
{
    struct cgroup_note *note = find_note(cgroups, process);
    struct stretch now = {cgroup, time_ns, time_ns, time_ns, note->detail};
    if (note->count == 0) {
        tell_first(cgroups, process, note, now);
        return;
    }
    if (note->uid != uid_of(process)) {
        tell_user(cgroups, process, note, time_ns);
    }
    tell_command(cgroups, process, note);
    /* Once for each detail: with none, all groups are one. */
    while (!take(cgroups, process, note, &now) && note->detail < DETAIL_NOTHING) {
        tell_less(cgroups, process, note, &now);
        now.detail = note->detail;
    }
}

bool trace_cgroups_note_parent(struct trace_cgroups *cgroups, const struct process *parent)
{
    struct cgroup_note *note = find_note(cgroups, parent);
    const struct stretch unknown = {.detail = DETAIL_NOTHING};
    if (!note->has_line) {
        (void)write_line(cgroups, parent, note, &unknown, parent->from_ns, DEFINITION_NAME);
    }
    return trace_cgroups_take_parents(cgroups, parent);
}

bool trace_cgroups_take_parents(struct trace_cgroups *cgroups, const struct process *process)
{
    struct cgroup_note *note = find_note(cgroups, process);
    bool are_due = !note->has_parents;
    note->has_parents = true;
    return are_due;
}

bool trace_cgroups_hold(struct trace_cgroups *cgroups, const struct process *process)
{
    return !find_note(cgroups, process)->is_refused;
}
