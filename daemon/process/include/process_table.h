/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * pid -> names, threads and executable mappings over time. Fed by the kernel's sideband records in
 * the order of their time and by scans of /proc; asked with (pid, pc, sample time). Bounded: what
 * finds no place is counted in `table_refused`, never an abort. Pure: no files, no clock.
 *
 * A process that has ended, a mapping that was replaced, a name that was changed stay until
 * process_table_prune() passes them, so a sample that is late by one drain still finds its time.
 */

#include "capacity.h"
#include "counters.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TIME_OPEN_NS            UINT64_MAX /* "has not ended" */
#define PROCESS_ACCOUNT_UNKNOWN UINT32_MAX
#define COMM_BYTES              16

/*
 * Every process is charged to an account (account.h): of processes, threads, mappings and names an
 * account holds at most half of what the others leave. An eighth of each is for root alone. A
 * process has its parent's account until /proc tells another. Processes of which no parent is known
 * either are charged to an account of their own, which holds at most a fourth of what is left.
 */
#define PROCESS_TABLE_PROCESSES_MAX CAPACITY((size_t)65536)
#define PROCESS_TABLE_THREADS_MAX   CAPACITY((size_t)262144)
/*
 * Mappings are counted by weight: one, and one more for each 64 bytes of the path, so that this
 * bounds the bytes of paths too. Each process has room for a few whatever the others do; of the
 * rest it may hold an eighth of what the others leave, and never more than its own maximum.
 */
#define PROCESS_TABLE_MAPPINGS_MAX CAPACITY((size_t)2097152)
#define PROCESS_MAPPINGS_MAX       CAPACITY((size_t)65536)
#define PROCESS_MAPPINGS_RESERVED  (PROCESS_TABLE_MAPPINGS_MAX / 2 / PROCESS_TABLE_PROCESSES_MAX)
#define MAPPING_WEIGHT_BYTES       64
/*
 * A child begins with its parent's mappings, and a process with many can have children that cost it
 * next to nothing (vfork). So only so many are copied in a round for parents that have more than a
 * few: a child beyond that begins as one of which nothing is known, and is read from /proc.
 */
#define PROCESS_INHERIT_FEW   ((size_t)256)
#define PROCESS_INHERIT_ROUND ((size_t)16384)
/* Mappings and threads that are forgotten or looked at in one prune, and those of one process. */
#define PROCESS_PRUNE_STEPS ((size_t)16384)
#define PROCESS_HISTORY_MAX ((size_t)512) /* ended mappings, that a lookup goes through */
/*
 * Names that a thread no longer has, and which late samples ask for. Each thread has room for one;
 * of the rest a process may hold an eighth of what the others leave. What finds no place leaves a
 * time without a name.
 */
#define PROCESS_TABLE_NAMES_MAX CAPACITY((size_t)262144)
#define THREAD_NAMES_MAX        ((uint32_t)256)

/* What was mapped, as the kernel or /proc told us. Shared by the copies of a mapping that fork
 * makes. */
struct mapped_file {
    uint32_t reference_count;
    const char *path; /* "[anon]" for memory without a file, "[vdso]", "//anon", ... as told; equal
                         ones are one */
    uint32_t weight;  /* of a mapping of it */
    uint32_t device_major; /* 0:0 inode 0 when the record had a build-id instead */
    uint32_t device_minor;
    uint64_t inode;
    uint64_t inode_generation;
    bool is_jitdump;  /* by its name: jit-PID.dump */
    void *trace_file; /* trace.c's own; see process_table_new() */
    void *code_file;  /* code_map.c's own */
};

struct mapping {
    uint64_t start;
    uint64_t end;
    uint64_t file_offset;
    uint64_t from_ns;
    uint64_t to_ns; /* TIME_OPEN_NS while it holds */
    struct mapped_file *file;
    uint64_t seen_ns;    /* when /proc last showed it to be there, 0 when it did not */
    bool scanned;        /* from /proc, beneath what records say */
    uint16_t module_id;  /* trace.c's own: 0 until it is written */
    uint32_t module_log; /* and in which log */
};

struct name {
    uint64_t from_ns;
    uint32_t written_log;  /* trace.c's own: the log in which it is written */
    char text[COMM_BYTES]; /* NUL-terminated, bytes as the kernel gave them; "": nobody knows */
    bool judged;           /* filter.c's own, as the next one */
    bool matches;
};

struct thread {
    int32_t tid;
    uint32_t unnamed_log; /* trace.c's own: the log that says that it has no name at first */
    uint64_t from_ns;
    uint64_t to_ns;
    uint64_t known_ns;  /* the time of the first word of it */
    struct name *names; /* name_count, sorted by from_ns; owned */
    uint32_t name_count;
    uint32_t name_capacity;
};

/* The mappings that hold now, ordered by address: mapping_set.h. */
struct mapping_set {
    struct mapping_chunk *chunks; /* owned */
    size_t chunk_count;
    size_t chunk_capacity;
    size_t count; /* of mappings */
};

struct process {
    int32_t pid;
    int32_t parent_pid;
    uint64_t from_ns; /* its fork, or 0 when it was there before us */
    uint64_t exec_ns; /* its last exec, 0 when none was seen, */
    uint64_t anew_ns; /* and the first one since records were lost last */
    uint64_t to_ns;
    uint64_t generation; /* unique among all processes, and new whenever its mappings change */
    bool kernel_thread;
    bool scanned;  /* /proc was read, or every mapping since its fork or exec was seen */
    bool has_gaps; /* some mapping found no place, or was forgotten before its time */
    bool remapped; /* of what its program has mapped something has ended */

    /* The collector's own. */
    bool identity_matches;      /* whether the filter found a target's; inherited by a fork */
    uint8_t useless_rereads;    /* one after another */
    uint64_t next_scan_ns;      /* not read again before this */
    uint64_t identity_asked_ns; /* when it was asked for last; 0: not since its fork or exec */
    uint64_t identity_ns; /* when its uid and cgroups were read; 0: not since its fork or exec */
    uint64_t scan_ns;     /* when the reading of /proc began that was told last, 0: never */
    uint64_t agreed_ns;   /* and the last one that found nothing to be other than it was known */

    /* trace.c's own. */
    uint64_t defined_ns;     /* from when on what is written of it holds, */
    uint32_t written_log;    /* and in which log */
    uint32_t unnamed_log;    /* the log that says that its leader is not known */
    uint32_t owner;          /* the account, */
    uint32_t owner_log;      /* when it was looked for last: in this log, */
    uint64_t owner_ns;       /* and in the program that began then; */
    uint16_t next_module_id; /* 0: nothing is written of it */
    bool owner_known;        /* if it was found out, of this process or before a fork; as a scan
                                tells both, too */

    /* The table's own, here and below. */
    bool forked;        /* from_ns is the time of a fork record */
    bool scan_differs;  /* of the scan that is told in parts */
    bool threads_known; /* /proc listed them: none lives that was not told of */
    bool leader_exited;
    bool listed;            /* on the list of what prune looks at */
    uint64_t known_ns;      /* the time of the first word of it */
    uint64_t start_time_ns; /* as /proc or the fork says, TIME_OPEN_NS while unknown */
    uint64_t last_exit_ns;  /* the newest exit of a thread */
    uint64_t last_end_ns;   /* the latest end of a thread, whatever told it */
    uint64_t met_walk;      /* the number of the last walk that met it, or during which it came */
    struct mapping_set mappings;
    uint64_t jitdump_start;  /* where a jitdump was mapped last; 0: none was */
    struct mapping *history; /* mappings that were ended, sorted by to_ns; owned */
    size_t history_count;
    size_t history_capacity;
    size_t mapping_weight;   /* of both */
    struct thread **threads; /* thread_count, sorted by (tid, from_ns); owned */
    size_t thread_count;     /* live or not yet pruned */
    size_t thread_capacity;
    size_t live_thread_count;
    size_t older_name_count;     /* names of its threads but the newest of each */
    size_t prune_at;             /* the thread with which the next prune goes on */
    struct process_share *share; /* of the account that it is charged to */
    struct process *next_in_bucket;
    struct process *next_listed;
};

struct process_table;

/* `on_file_free` (may be NULL) is called before a mapped_file goes, to release what hangs on it. */
typedef void (*mapped_file_free_fn)(struct mapped_file *file, void *userdata);
struct process_table *process_table_new(mapped_file_free_fn on_file_free, void *userdata);
struct process_table *process_table_free(struct process_table *table);

/*
 * The sideband, in the order of time. Unknown pids and tids come into being as they are named; pids
 * and tids below 1 are ignored. A record may come late, after one that is newer: where the two
 * disagree, the newer one stands.
 */
void process_table_fork(struct process_table *table, int32_t pid, int32_t parent_pid, int32_t tid,
                        int32_t parent_tid, uint64_t time_ns);
void process_table_comm(struct process_table *table, int32_t pid, int32_t tid, const char *comm,
                        bool exec, uint64_t time_ns);
void process_table_exit(struct process_table *table, int32_t pid, int32_t tid, uint64_t time_ns);

struct mapping_description {
    uint64_t start;
    uint64_t end;
    uint64_t file_offset;
    const char *path; /* borrowed; "" is memory without a file */
    uint32_t device_major;
    uint32_t device_minor;
    uint64_t inode;
    uint64_t inode_generation;
};
/* A new executable mapping trims what it overlaps from its time on. */
void process_table_mmap(struct process_table *table, int32_t pid,
                        const struct mapping_description *mapping, uint64_t time_ns);

/* What one reading of /proc/PID gave. All borrowed. */
struct process_scan {
    int32_t pid;
    int32_t parent_pid;
    bool kernel_thread;
    uint64_t start_time_ns; /* of the process, CLOCK_BOOTTIME, to clock-tick precision (10 ms) */
    const struct scanned_thread {
        int32_t tid;
        char comm[COMM_BYTES];
    } * threads;
    size_t thread_count;
    bool threads_cut; /* it has more */
    const struct mapping_description *mappings;
    size_t mapping_count;
    bool mappings_missing; /* it may have some that were not read: of them nothing is said */
    uint64_t begin_ns;     /* when the reading began and ended */
    uint64_t end_ns;
    bool identity_read;
    bool identity_matches;
    bool account_known;
    uint32_t account;
};
/*
 * Scanned mappings hold from the process's last exec or fork record, else from 0, or, where all its
 * mappings were known, from `begin_ns`. They lie beneath what records said: a range that a record's
 * mapping covers is left alone, unless process_table_lost() was told since. A scan that an exec or
 * exit record (already told) cuts in two is dropped. A scanned mapping that is there already
 * changes nothing; one that differs from what an older scan saw replaces it from `begin_ns` on. A
 * start time later than that of the process we know is another process with the same pid. Of a
 * process that is known already, tell it when the sideband up to `end_ns` has been: what a record
 * explains is nobody else's then.
 */
void process_table_scan(struct process_table *table, const struct process_scan *scan);
/*
 * A process with this pid was seen at `time_ns`: if none is known that lives then, its beginning
 * was not told, and it is made. NULL when there is no place, or a newer one is known.
 */
struct process *process_table_meet(struct process_table *table, int32_t pid, uint64_t time_ns);
/* Charges what a process holds to its owner, if that is known. */
void process_table_charge(struct process_table *table, struct process *process);
/* True when something that is charged to root found no place since the last call. Some of what is
 * charged to root may be of others by now, since no record tells of a new uid. */
bool process_table_take_root_refused(struct process_table *table);
/* Records of any process were lost up to `time_ns`: a scan that begins later knows better than the
 * older records. */
void process_table_lost(struct process_table *table, uint64_t time_ns);
/*
 * What a process and its thread `tid` are called at `time_ns` may be a name of an earlier program:
 * they have none from then on, until a record, or the last scan if that is later, names them.
 */
void process_table_doubt(struct process_table *table, struct process *process, int32_t tid,
                         uint64_t time_ns);
/* /proc has no such process at `time_ns`: what lived then has ended, and its exit was lost. */
void process_table_gone(struct process_table *table, int32_t pid, uint64_t time_ns);

/*
 * A walk of all of /proc, one at a time: begin, each pid that /proc lists, and, unless it was cut
 * short, its end. What was known before `begin_ns` and was not met is gone at `end_ns`: an exit
 * that is told late may still set an earlier time. What comes during a walk counts as met.
 */
void process_table_walk_begin(struct process_table *table);
void process_table_walk_meet(struct process_table *table, int32_t pid);
void process_table_walk_end(struct process_table *table, uint64_t begin_ns, uint64_t end_ns);

/* The process that had this pid at `time_ns` or, when none lived then, the last one that had it
 * before and is not forgotten yet: a task is sampled until it is reaped. NULL without either. */
struct process *process_table_find(struct process_table *table, int32_t pid, uint64_t time_ns);
/* The mapping in which `pc` fell at `time_ns`, or NULL. Valid until the next call that changes the
 * process. */
struct mapping *process_find_mapping(struct process *process, uint64_t pc, uint64_t time_ns);
/* The mapping by which the process shows where its jitdump is, by the file's name alone; NULL. */
const struct mapping *process_find_jitdump(const struct process *process);
/* The thread `tid` at `time_ns` or, when none lived then, the last one before, as above; or NULL.
 */
struct thread *process_find_thread(struct process *process, int32_t tid, uint64_t time_ns);
/* The name that a thread had at `time_ns`, or NULL. Valid until the next call that changes it. */
struct name *process_thread_name(struct thread *thread, uint64_t time_ns);

/* Calls `visit` for every mapping that holds now; it must not change the table. */
typedef void (*mapping_visit_fn)(struct process *process, struct mapping *mapping, void *userdata);
void process_table_each_mapping(struct process_table *table, mapping_visit_fn visit,
                                void *userdata);

/* A round of the collector begins: what it may cost is counted anew. */
void process_table_begin_round(struct process_table *table);

/* Forgets what ended before `horizon_ns`: no sample older than that will be asked for. Not all at
 * once where it is much: the next call goes on. */
void process_table_prune(struct process_table *table, uint64_t horizon_ns);

struct process_table_counts {
    size_t process_count;
    size_t thread_count;
    size_t mapping_count;
    size_t path_bytes; /* of the paths of mappings, equal ones once */
    struct counters counters;
};
struct process_table_counts process_table_counts(const struct process_table *table);
