/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A process's name is that of its leader, the thread whose tid is the pid; it is written as both.
 * A name is written before the first sample that falls in its time.
 * Texts are interned, anew in each log: the segment's string table has a place for 32,767, what
 * comes after stands inline in its record. Threads choose their names, so the table's hash is
 * seeded.
 */
#include "trace_names.h"

#include "capacity.h"
#include "cleanup.h"
#include "fxt_writer.h"
#include "seeded_hash.h"
#include "utf8.h"

#include <string.h>

#define NAME_BYTES  64 /* a comm of 15 bytes, each possibly replaced by three */
#define BUCKETS     CAPACITY(65536)
#define STRINGS_MAX (BUCKETS / 2) /* of a log; later texts stand in their records */
/* Of a log; what comes later is written for each sample. */
#define WRITTEN_BUCKETS CAPACITY(262144)
#define WRITTEN_MAX     (WRITTEN_BUCKETS / 2)
#define GROUP_WORDS     64

#define UNKNOWN_NAME "[unknown]"

_Static_assert(STRINGS_MAX <= FXT_STRING_INDEX_MAX + 1, "the format has an index for each");

struct interned {
    uint16_t index; /* 0: free */
    char text[NAME_BYTES];
};

/* On whose share a name is, and what it is needed for. */
struct payer {
    uint32_t owner;
    enum definition_log_kind kind;
};

struct trace_names {
    struct definition_log *log;
    uint16_t next_index;
    struct interned table[BUCKETS]; /* open addressing; half full at the most */
    size_t written_count;
    uint64_t written[WRITTEN_BUCKETS]; /* the same, of the numbers of what the log has */
};

struct trace_names *trace_names_new(struct definition_log *log)
{
    struct trace_names *names = calloc(1, sizeof *names);
    if (names != NULL) {
        names->log = log;
    }
    return names;
}

struct trace_names *trace_names_free(struct trace_names *names)
{
    free(names);
    return NULL;
}

static struct interned *find_place(struct trace_names *names, const char *text)
{
    for (size_t i = seeded_hash(text, strlen(text)) % BUCKETS;; i = (i + 1) % BUCKETS) {
        if (names->table[i].index == 0 || strcmp(names->table[i].text, text) == 0) {
            return &names->table[i];
        }
    }
}

/* Writes one name with, where it is new, its string; for the leader the process's name too. */
static bool write_name(struct trace_names *names, const struct payer *payer, struct fxt_name name,
                       const char *text, bool as_process)
{
    uint64_t group[GROUP_WORDS];
    struct fxt_writer writer;
    struct interned *place = find_place(names, text);
    bool defines = place->index == 0 && names->next_index < STRINGS_MAX;

    name.name.index = defines ? names->next_index : place->index;
    name.name.text = text;
    name.name.text_bytes = strlen(text);
    fxt_writer_init(&writer, group, sizeof group);
    if (defines) {
        fxt_write_string(&writer, name.name.index, text, strlen(text));
    }
    if (as_process) {
        struct fxt_name process = name;
        process.tid = 0;
        fxt_write_name(&writer, &process);
    }
    if (name.tid != 0) {
        fxt_write_name(&writer, &name);
    }
    if (!fxt_writer_ok(&writer) ||
        !definition_log_put(names->log, payer->owner, payer->kind, group, writer.used_bytes)) {
        return false;
    }
    if (defines) {
        place->index = names->next_index++;
        memcpy(place->text, text, name.name.text_bytes + 1);
    }
    return true;
}

/* The place of a number (of a name, or of what has none) among those that are written. */
static uint64_t *find_written(struct trace_names *names, uint64_t number)
{
    size_t i = seeded_hash_pair(number, 0) % WRITTEN_BUCKETS;
    while (names->written[i] != 0 && names->written[i] != number) {
        i = (i + 1) % WRITTEN_BUCKETS;
    }
    return &names->written[i];
}

static void note_written(struct trace_names *names, uint64_t *place, uint64_t number)
{
    if (names->written_count < WRITTEN_MAX) {
        names->written_count++;
        *place = number;
    }
}

bool trace_names_begin(struct trace_names *names)
{
    if (names->next_index > 0) {
        memset(names->table, 0, sizeof names->table);
        memset(names->written, 0, sizeof names->written);
        names->written_count = 0;
    }
    names->next_index = FXT_STRING_FIRST_FREE;
    const struct payer kernel = {TRACE_OWNER_KERNEL, DEFINITION_TASK};
    return write_name(names, &kernel, (struct fxt_name){.pid = 0}, "[outside]", true) &&
           write_name(names, &kernel, (struct fxt_name){.pid = UINT64_MAX}, "[exited]", true);
}

/*
 * Writes the name of a task at a time. A task without a name is written as such, so that no older
 * name of its ids, perhaps of another task, shows through. In a gap between names that is written
 * anew for each time, since what was written before may be of any time in it.
 */
static bool write_task(struct trace_names *names, struct process *process, struct thread *thread,
                       int32_t tid, enum definition_log_kind kind, uint64_t time_ns)
{
    const struct payer payer = {process->owner, kind};
    struct name *known = thread == NULL ? NULL : process_thread_name(thread, time_ns);
    struct fxt_name name = {.pid = (uint64_t)process->pid, .tid = (uint64_t)tid};
    uint64_t number = known != NULL    ? known->number
                      : thread != NULL ? thread->number
                                       : process->number;
    uint64_t *written = find_written(names, number);
    char text[NAME_BYTES] = UNKNOWN_NAME;
    bool gap = known != NULL && known->text[0] == '\0';
    if (gap) {
        name.since_ns = time_ns;
    } else if (known != NULL) {
        name.since_ns = known->from_ns;
        (void)utf8_clean(text, sizeof text, known->text, strnlen(known->text, sizeof known->text));
    } else {
        name.since_ns = thread == NULL ? process->from_ns : thread->from_ns;
    }
    if (!gap && *written == number) {
        return true;
    }
    if (!write_name(names, &payer, name, text, tid == process->pid)) {
        return false;
    }
    if (!gap) {
        note_written(names, written, number);
    }
    return true;
}

/* The leader at a time. In an exec by another thread it has exited, and its successor has no name
 * yet: until then the process is called as before. */
static struct thread *find_leader(struct process *process, uint64_t time_ns)
{
    struct thread *leader = process_find_thread(process, process->pid, time_ns);
    if (leader == NULL || leader->from_ns == 0 || process_thread_name(leader, time_ns) != NULL) {
        return leader;
    }
    struct thread *older = process_find_thread(process, process->pid, leader->from_ns - 1);
    return older == NULL ? leader : older;
}

bool trace_names_write(struct trace_names *names, struct process *process, int32_t tid,
                       uint64_t time_ns)
{
    if (!write_task(names, process, find_leader(process, time_ns), process->pid, DEFINITION_TASK,
                    time_ns)) {
        return false;
    }
    struct thread *thread = tid == process->pid ? NULL : process_find_thread(process, tid, time_ns);
    return thread == NULL || write_task(names, process, thread, tid, DEFINITION_TASK, time_ns);
}

void trace_names_write_parent(struct trace_names *names, struct process *parent, uint64_t time_ns)
{
    struct thread *leader = find_leader(parent, time_ns);
    const struct name *known = leader == NULL ? NULL : process_thread_name(leader, time_ns);
    /* That a name is not known yet may hide one that will be, from an earlier time on. */
    if (known != NULL && known->text[0] != '\0') {
        (void)write_task(names, parent, leader, parent->pid, DEFINITION_NAME, time_ns);
    }
}
