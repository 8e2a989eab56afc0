/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Remembers each requested pid for a second, with the result, so that its further samples neither
 * request it again nor take a lock. Two pids that share a place are requested more often.
 *
 * While too many readings wait to be merged, none is taken from the threads, which then pause. The
 * work of a round is bounded: a process may have 65,536 mappings, and there may be many such. A
 * large reading is merged in parts, and the process counts as read after the last part.
 *
 * A walk lists all pids at once and requests some at a time, beside the requests of samples.
 */
#include "proc_feed.h"

#include "cleanup.h"
#include "clock.h"
#include "proc_pool.h"
#include "process_notes.h"
#include "seeded_hash.h"

#include <assert.h>

#define PLACE_COUNT     1024
#define TELL_STEPS_MAX  16384 /* mappings and threads that are told in a round: some 5 ms */
#define REREAD_MOST_LOG 6 /* a process is read again every 64 s, however useless it was before */

/* A command line is read again after 10 ms, 20 ms, ... 640 ms. */
#define COMMAND_RETRY_NS  (10 * NS_PER_MS)
#define COMMAND_TRIES_MAX 7
#define RETRIES_MAX       ((size_t)64)

enum news {
    NEWS_NONE,
    NEWS_ASKED,
    NEWS_READ,
    NEWS_GONE,
};

/* Oldest first. */
struct reading_list {
    struct proc_reading *first;
    struct proc_reading **end;
};

/* What is to be read of a process again, and when. */
struct reread_note {
    uint64_t exec_ns;           /* of the program that this is about */
    uint64_t next_scan_ns;      /* not read again before this */
    uint64_t identity_asked_ns; /* when it was asked for last; 0: never */
    uint8_t useless_count;      /* readings in a row that found nothing new */
    uint8_t command_tries;      /* readings that found no command line */
};

struct proc_feed {
    struct process_table *processes;
    struct cgroup_feed *cgroups; /* NULL: samples have none */
    struct process_notes *notes;
    const struct filter *filters[FILTERS_MAX];
    size_t filter_count;
    bool wants_identity;
    struct command_right commands;
    proc_feed_command_fn on_command;
    void *userdata; /* of it */
    proc_feed_times_fn on_times;
    void *times_userdata;
    struct proc_pool *reader;
    struct {
        int32_t pid;
        enum news news;
        uint64_t read_ns;
    } places[PLACE_COUNT];
    struct reading_list telling; /* at once */
    struct reading_list waiting; /* until sideband has come as far */
    size_t waiting_bytes;        /* of both */
    size_t steps_left;           /* of this round */
    struct {
        int32_t pid;
        uint64_t due_ns;
    } retries[RETRIES_MAX]; /* of command lines */
    size_t retry_count;

    bool listing;              /* a walk has begun */
    struct proc_reading *list; /* of a walk */
    size_t asked_count;        /* of its pids */
    size_t answered_count;
    bool walk_failed;
};

struct proc_feed *proc_feed_new(struct process_table *processes, struct cgroup_feed *cgroups,
                                struct filter *const *filters, size_t filter_count)
{
    struct proc_feed *readings = calloc(1, sizeof *readings);
    if (readings == NULL) {
        return NULL;
    }
    readings->processes = processes;
    readings->cgroups = cgroups;
    readings->notes = process_notes_new(sizeof(struct reread_note));
    assert(filter_count <= FILTERS_MAX);
    readings->filter_count = filter_count;
    for (size_t i = 0; i < filter_count; i++) {
        readings->filters[i] = filters[i];
        readings->wants_identity = readings->wants_identity || filter_wants_identity(filters[i]);
    }
    readings->telling.end = &readings->telling.first;
    readings->waiting.end = &readings->waiting.first;
    proc_feed_begin_round(readings);
    bool ok = readings->notes != NULL &&
              proc_pool_new(readings->wants_identity, PROC_POOL_HANG_NS, &readings->reader) >= 0;
    return ok ? readings : proc_feed_free(readings);
}

void proc_feed_begin_round(struct proc_feed *readings)
{
    readings->steps_left = TELL_STEPS_MAX;
}

static void append(struct reading_list *list, struct proc_reading *reading)
{
    reading->next = NULL;
    *list->end = reading;
    list->end = &reading->next;
}

static struct proc_reading *take_first(struct reading_list *list)
{
    struct proc_reading *reading = list->first;
    if (reading != NULL) {
        list->first = reading->next;
    }
    if (list->first == NULL) {
        list->end = &list->first;
    }
    return reading;
}

static void free_list(struct reading_list *list)
{
    while (list->first != NULL) {
        free(take_first(list));
    }
}

struct proc_feed *proc_feed_free(struct proc_feed *readings)
{
    if (readings == NULL) {
        return NULL;
    }
    (void)proc_pool_free(readings->reader);
    free_list(&readings->telling);
    free_list(&readings->waiting);
    (void)process_notes_free(readings->notes);
    free(readings->list);
    free(readings);
    return NULL;
}

static struct process *find_newest(struct proc_feed *readings, int32_t pid)
{
    return process_table_find(readings->processes, pid, TIME_OPEN_NS);
}

static size_t place_of(int32_t pid)
{
    return seeded_hash(&pid, sizeof pid) % PLACE_COUNT;
}

enum reading_state proc_feed_ask(struct proc_feed *readings, int32_t pid, uint64_t from_ns,
                                 uint64_t time_ns)
{
    const size_t place = place_of(pid);
    const uint64_t read_ns = readings->places[place].read_ns;
    bool lately = read_ns >= from_ns && read_ns + PROC_FEED_PERIOD_NS > time_ns;
    bool known = readings->places[place].pid == pid &&
                 (readings->places[place].news == NEWS_ASKED || lately);
    if (!known && proc_pool_ask(readings->reader, PROC_SAMPLED, PROC_PART_ALL, pid) < 0) {
        return READING_CAME;
    }
    if (!known) {
        readings->places[place].pid = pid;
        readings->places[place].news = NEWS_ASKED;
        return READING_ASKED;
    }
    switch (readings->places[place].news) {
    case NEWS_ASKED:
        return READING_COMES;
    case NEWS_GONE:
        return READING_GONE;
    case NEWS_READ:
    case NEWS_NONE:
        break;
    }
    return READING_CAME;
}

/* A program that was executed since is another one: its uid may be, and its mappings are. */
static struct reread_note *note_of(struct proc_feed *readings, const struct process *process)
{
    struct reread_note *note = process_notes_of(readings->notes, process);
    if (note->exec_ns != process->exec_ns) {
        note->exec_ns = process->exec_ns;
        note->identity_asked_ns = 0;
        note->useless_count = 0;
        note->command_tries = 0;
    }
    return note;
}

void proc_feed_read_commands(struct proc_feed *readings, const struct command_right *right,
                             proc_feed_command_fn on_command, void *userdata)
{
    readings->commands = *right;
    readings->on_command = on_command;
    readings->userdata = userdata;
    proc_pool_read_commands(readings->reader, right);
}

/* A program that waits for nothing has ended before its turn, so these are the least urgent. */
void proc_feed_ask_command(struct proc_feed *readings, const struct process *process)
{
    if (readings->commands.is_given) {
        (void)proc_pool_ask(readings->reader, PROC_AGAIN, PROC_PART_COMMAND, process->pid);
    }
}

bool proc_feed_is_due(struct proc_feed *readings, const struct process *process, uint64_t time_ns)
{
    return note_of(readings, process)->next_scan_ns <= time_ns;
}

void proc_feed_put_off(struct proc_feed *readings, const struct process *process, uint64_t time_ns)
{
    note_of(readings, process)->next_scan_ns = time_ns;
}

void proc_feed_reread(struct proc_feed *readings, const struct process *process, uint64_t time_ns)
{
    struct reread_note *note = note_of(readings, process);
    if (process->scanned && note->next_scan_ns <= time_ns &&
        proc_pool_ask(readings->reader, PROC_AGAIN, PROC_PART_MAPPINGS, process->pid) >= 0) {
        note->next_scan_ns = time_ns + (PROC_FEED_PERIOD_NS << note->useless_count);
    }
}

bool proc_feed_identify(struct proc_feed *readings, const struct process *process, uint64_t time_ns)
{
    bool due = process->identity_ns == 0 || process->identity_ns + PROC_FEED_PERIOD_NS <= time_ns;
    if (!readings->wants_identity || !due) {
        return false;
    }
    struct reread_note *note = note_of(readings, process);
    if (process->to_ns == TIME_OPEN_NS &&
        note->identity_asked_ns + PROC_FEED_PERIOD_NS <= time_ns) {
        /* When there are too many it is not tried for each sample, either. */
        (void)proc_pool_ask(readings->reader, PROC_SAMPLED, PROC_PART_IDENTITY, process->pid);
        note->identity_asked_ns = time_ns;
    }
    return process->identity_ns == 0 && note->identity_asked_ns != 0;
}

void proc_feed_read_times(struct proc_feed *readings, proc_feed_times_fn on_times, void *userdata)
{
    readings->on_times = on_times;
    readings->times_userdata = userdata;
}

bool proc_feed_ask_times(struct proc_feed *readings, int32_t from_pid)
{
    return proc_pool_ask(readings->reader, PROC_LISTED, PROC_PART_TIMES, from_pid) >= 0;
}

void proc_feed_list_cgroups(struct proc_feed *readings)
{
    if (readings->cgroups != NULL && cgroup_feed_take_request(readings->cgroups)) {
        cgroup_feed_asked(readings->cgroups,
                          proc_pool_ask(readings->reader, PROC_SAMPLED, PROC_PART_CGROUPS, 0) >= 0);
    }
}

void proc_feed_walk(struct proc_feed *readings)
{
    if (!proc_feed_is_walking(readings)) {
        readings->listing = proc_pool_ask(readings->reader, PROC_LISTED, PROC_PART_PIDS, 0) >= 0;
        readings->walk_failed = readings->walk_failed || !readings->listing;
        process_table_walk_begin(readings->processes);
    }
}

bool proc_feed_is_walking(const struct proc_feed *readings)
{
    return readings->listing || readings->list != NULL || readings->telling.first != NULL;
}

bool proc_feed_take_failure(struct proc_feed *readings)
{
    bool failed = readings->walk_failed;
    readings->walk_failed = false;
    return failed;
}

/* Merges the list of pids of a walk. */
static void take_list(struct proc_feed *readings, struct proc_reading *list)
{
    readings->listing = false;
    if (list->error != 0) {
        readings->walk_failed = true;
        free(list);
        return;
    }
    for (size_t i = 0; i < list->pid_count; i++) {
        process_table_walk_meet(readings->processes, list->pids[i]);
    }
    if (!list->cut) {
        process_table_walk_end(readings->processes, list->scan.begin_ns, list->scan.end_ns);
    }
    readings->list = list;
    readings->asked_count = readings->answered_count = 0;
}

/* Requests as many pids of the walk as there is room for. The walk ends with the last answer. */
static void go_on_walking(struct proc_feed *readings)
{
    const struct proc_reading *list = readings->list;
    if (list == NULL) {
        return;
    }
    while (readings->asked_count < list->pid_count &&
           proc_pool_ask(readings->reader, PROC_LISTED, PROC_PART_ALL,
                         list->pids[readings->asked_count]) == 0) {
        readings->asked_count++;
    }
    if (readings->answered_count == list->pid_count) {
        free(take_ptr(readings->list));
    }
}

static void judge(struct proc_feed *readings, struct proc_reading *reading)
{
    struct process_scan *scan = &reading->scan;
    scan->identity_read = scan->identity_read && readings->wants_identity &&
                          reading->part != PROC_PART_MAPPINGS && reading->part != PROC_PART_COMMAND;
    scan->identity_matches = 0;
    for (size_t i = 0; scan->identity_read && i < readings->filter_count; i++) {
        if (filter_matches_identity(readings->filters[i], reading->uid, reading->cgroups)) {
            scan->identity_matches |= (uint8_t)(1U << i);
        }
    }
}

/* Notes the uid and cgroups. If they could not be read, the last judgement of the process stays. */
static void tell_identity(struct proc_feed *readings, const struct proc_reading *reading)
{
    struct process *process = find_newest(readings, reading->scan.pid);
    if (process == NULL || process->exec_ns > reading->scan.begin_ns) {
        return;
    }
    process->identity_ns = reading->scan.end_ns;
    if (reading->error == 0 && reading->scan.identity_read) {
        process->identity_matches = reading->scan.identity_matches;
    }
}

/* Counts useless readings in a row: after each, the next reading is later. */
static void count_reread(struct proc_feed *readings, int32_t pid, bool useless)
{
    const struct process *process = find_newest(readings, pid);
    struct reread_note *note = process == NULL ? NULL : note_of(readings, process);
    if (note != NULL && !useless) {
        note->useless_count = 0;
    } else if (note != NULL && note->useless_count < REREAD_MOST_LOG) {
        note->useless_count++;
    }
}

static uint64_t generation_of(struct proc_feed *readings, int32_t pid)
{
    const struct process *process = find_newest(readings, pid);
    return process == NULL ? 0 : process->generation;
}

static void remember(struct proc_feed *readings, const struct proc_reading *reading)
{
    const size_t place = place_of(reading->scan.pid);
    bool other = readings->places[place].pid != reading->scan.pid;
    if (reading->urgency == PROC_SAMPLED || !other) {
        readings->places[place].pid = reading->scan.pid;
        readings->places[place].news = reading->error == -ESRCH ? NEWS_GONE : NEWS_READ;
        readings->places[place].read_ns = reading->scan.begin_ns;
    }
}

/* Up to which address a part of a reading has all mappings behind the part before it. */
static uint64_t whole_to(const struct proc_reading *reading, const struct process_scan *part,
                         bool last)
{
    if (part->mappings_missing) {
        return 0;
    }
    if (last && !reading->cut) {
        return UINT64_MAX;
    }
    return part->mapping_count == 0 ? 0 : part->mappings[part->mapping_count - 1].end;
}

/*
 * The kernel tells of an exec before the new program has its arguments: until then its command line
 * is empty, as some programs' is for good. So it is read again some times.
 */
static void retry_command(struct proc_feed *readings, const struct process *process,
                          uint64_t time_ns)
{
    struct reread_note *note = note_of(readings, process);
    if (note->command_tries < COMMAND_TRIES_MAX && readings->retry_count < RETRIES_MAX) {
        readings->retries[readings->retry_count].pid = process->pid;
        readings->retries[readings->retry_count++].due_ns =
            time_ns + (COMMAND_RETRY_NS << note->command_tries++);
    }
}

static void ask_commands_again(struct proc_feed *readings, uint64_t time_ns)
{
    for (size_t i = readings->retry_count; i > 0; i--) {
        if (readings->retries[i - 1].due_ns <= time_ns) {
            (void)proc_pool_ask(readings->reader, PROC_AGAIN, PROC_PART_COMMAND,
                                readings->retries[i - 1].pid);
            readings->retries[i - 1] = readings->retries[--readings->retry_count];
        }
    }
}

/* Tells of the command line that a reading has, once it is merged. */
static void tell_command(struct proc_feed *readings, const struct proc_reading *reading,
                         struct process *process)
{
    if (process != NULL && reading->scan.command_bytes > 0) {
        readings->on_command(process, readings->userdata);
    }
}

/* Merges as much of a reading as the round allows; its threads at once, since they are few. True:
 * the reading is merged. */
static bool tell_part(struct proc_feed *readings, struct proc_reading *reading)
{
    struct process_scan part = reading->scan;
    if (reading->part == PROC_PART_COMMAND) {
        readings->steps_left--;
        struct process *process = process_table_command(readings->processes, &part);
        tell_command(readings, reading, process);
        if (process != NULL && part.command_bytes == 0) {
            retry_command(readings, process, part.end_ns);
        }
        return true;
    }
    const size_t left = part.mapping_count - reading->told_count;
    const size_t threads = reading->told_count == 0 ? part.thread_count : 0;
    const size_t steps = readings->steps_left > threads ? readings->steps_left - threads : 0;
    const uint64_t generation = generation_of(readings, part.pid);
    bool last = left <= steps;
    part.whole_from = reading->told_count == 0 ? 0 : part.mappings[reading->told_count - 1].end;
    part.mappings += reading->told_count;
    part.mapping_count = last ? left : steps;
    part.whole_to = whole_to(reading, &part, last);
    part.mappings_missing = part.mappings_missing || !last;
    part.thread_count = threads;
    part.command_bytes = reading->told_count == 0 ? part.command_bytes : 0;
    process_table_scan(readings->processes, &part);
    readings->steps_left -= steps == 0 ? readings->steps_left : threads + part.mapping_count;
    reading->told_count += part.mapping_count;
    reading->told_anything =
        reading->told_anything || generation_of(readings, part.pid) != generation;
    if (last) {
        tell_command(readings, reading, find_newest(readings, part.pid));
    }
    return last;
}

static void end_telling(struct proc_feed *readings, struct proc_reading *reading)
{
    if (reading->part == PROC_PART_MAPPINGS) {
        count_reread(readings, reading->scan.pid, !reading->told_anything);
    } else if (reading->part != PROC_PART_COMMAND) {
        remember(readings, reading);
    }
    readings->waiting_bytes -= reading->bytes;
    proc_reading_free(reading);
}

/* Merges the readings whose end the sideband has reached. */
static bool tell_list(struct proc_feed *readings, struct reading_list *list, uint64_t reached_ns)
{
    bool any = false;
    while (list->first != NULL && list->first->scan.end_ns <= reached_ns &&
           readings->steps_left > 0) {
        any = true;
        if (tell_part(readings, list->first)) {
            end_telling(readings, take_first(list));
        }
    }
    return any;
}

static bool tell(struct proc_feed *readings, uint64_t reached_ns)
{
    bool any = tell_list(readings, &readings->telling, UINT64_MAX);
    return tell_list(readings, &readings->waiting, reached_ns) || any;
}

/* Whether a process is read again with the next walk: the daemon was short of something. What was
 * given up is not tried again, and what has another error is gone. */
static bool was_short(int error)
{
    return error == -EBUSY || error == -ENOMEM || error == -EMFILE || error == -ENFILE;
}

/* Takes a reading of a process. */
static void take_process(struct proc_feed *readings, struct proc_reading *reading)
{
    const struct process *process = find_newest(readings, reading->scan.pid);
    bool known = reading->part == PROC_PART_MAPPINGS || reading->part == PROC_PART_COMMAND ||
                 (process != NULL && process->scanned && process->to_ns == TIME_OPEN_NS);
    readings->answered_count += reading->urgency == PROC_LISTED;
    readings->walk_failed =
        readings->walk_failed || (reading->urgency == PROC_LISTED && was_short(reading->error));
    judge(readings, reading);
    if (reading->part == PROC_PART_IDENTITY) {
        tell_identity(readings, reading);
    } else if (reading->part == PROC_PART_ALL && reading->error != 0) {
        remember(readings, reading);
        if (reading->error == -ESRCH) {
            process_table_gone(readings->processes, reading->scan.pid, reading->scan.end_ns);
        }
    }
    if (reading->part == PROC_PART_MAPPINGS && reading->error != 0) {
        count_reread(readings, reading->scan.pid, true);
    }
    if (reading->part == PROC_PART_IDENTITY || reading->error != 0) {
        proc_reading_free(reading);
    } else {
        append(known ? &readings->waiting : &readings->telling, reading);
        readings->waiting_bytes += reading->bytes;
    }
}

bool proc_feed_apply(struct proc_feed *readings, uint64_t reached_ns)
{
    struct proc_reading *reading;
    ask_commands_again(readings, reached_ns);
    bool any = tell(readings, reached_ns);
    while (readings->waiting_bytes < PROC_POOL_BYTES_MAX && readings->steps_left > 0 &&
           (reading = proc_pool_next(readings->reader)) != NULL) {
        if (reading->part == PROC_PART_PIDS) {
            take_list(readings, reading);
        } else if (reading->part == PROC_PART_CGROUPS) {
            cgroup_feed_take(readings->cgroups, reading);
            proc_reading_free(reading);
        } else if (reading->part == PROC_PART_TIMES) {
            readings->on_times(reading, readings->times_userdata);
        } else {
            take_process(readings, reading);
            (void)tell_list(readings, &readings->telling, UINT64_MAX);
        }
        any = true;
    }
    go_on_walking(readings);
    return tell(readings, reached_ns) || any;
}

struct proc_pool_counts proc_feed_counts(struct proc_feed *readings)
{
    return proc_pool_counts(readings->reader);
}
