/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Maps a pid and a time to a process with its names, threads and executable mappings. The input is
 * the kernel's sideband records, in the order of their time, and scans of /proc. Lookups are by
 * (pid, pc, sample time). Bounded: an entry without a place is counted in `table_refused`. Pure: no
 * files, no clock.
 *
 * An ended process, a replaced mapping and a former name stay until process_table_prune() removes
 * them, so that a sample which is late by one drain finds what was true at its time.
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
 * Every process is charged to an account (account.h). An account holds at most half of the
 * processes, threads, mappings and names that the others leave; an eighth of each is for root
 * alone. A process has its parent's account until /proc is read. Processes without a known parent
 * are charged to one common account, which holds at most a fourth of what the others leave.
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
 * A child begins with a copy of its parent's mappings, and vfork() makes children at nearly no
 * cost. So the copies of one round are bounded for parents with more than a few mappings. A child
 * beyond the bound begins without mappings, and is read from /proc.
 */
#define PROCESS_INHERIT_FEW   ((size_t)256)
#define PROCESS_INHERIT_ROUND ((size_t)16384)
/* Mappings and threads that are forgotten or looked at in one prune, and those of one process. */
#define PROCESS_PRUNE_STEPS ((size_t)16384)
#define PROCESS_HISTORY_MAX ((size_t)512) /* ended mappings, that a lookup goes through */
/*
 * Former names of threads, kept for late samples. Each thread has room for one; of the rest a
 * process may hold an eighth of what the others leave. A name without a place leaves its time
 * unnamed.
 */
#define PROCESS_TABLE_NAMES_MAX CAPACITY((size_t)262144)
/* Bytes of command lines: of all, of which an account has half of what the others leave, and of
 * one. */
#define PROCESS_TABLE_COMMANDS_MAX CAPACITY((uint64_t)16 << 20)
#define PROCESS_COMMAND_MAX        ((size_t)1024)
#define THREAD_NAMES_MAX           ((uint32_t)256)

struct process_totals;

/* The file of a mapping, as a record or /proc describes it. A mapping and its copies after fork
 * share it. */
struct mapped_file {
    uint32_t reference_count;
    const char *path; /* "[anon]" for memory without a file, "[vdso]", "//anon", ... as told; equal
                         ones are one */
    uint32_t weight;  /* of a mapping of it */
    uint32_t device_major; /* 0:0 inode 0 when the record had a build-id instead */
    uint32_t device_minor;
    uint64_t inode;
    uint64_t inode_generation;
    uint64_t replaced_ns; /* since when another mapping, or none, is where one of it was */
    const struct process_totals *totals;
    bool is_jitdump;  /* by its name: jit-PID.dump */
    void *trace_file; /* trace.c's own; see process_table_new() */
    void *code_file;  /* code_map.c's own */
    void *names;      /* mapping_query.c's own */
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
    uint64_t number; /* as a process's */
    uint64_t from_ns;
    char text[COMM_BYTES]; /* NUL-terminated, bytes as the kernel gave them; "": unknown */
};

struct thread {
    int32_t tid;
    uint64_t number; /* as a process's */
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

/* The command line of a program: arguments with a NUL behind each, the last one perhaps cut. A
 * process and its children share it until they execute another one. */
struct process_command {
    uint32_t reference_count;
    uint32_t account; /* that is charged */
    uint64_t number;  /* as a process's */
    uint32_t uid;     /* as of process_scan */
    size_t size_bytes;
    char bytes[];
};

struct process {
    size_t place;    /* below PROCESS_TABLE_PROCESSES_MAX; no other process's while this is kept */
    uint64_t number; /* from 1 on; never another process's, thread's or name's */
    int32_t pid;
    int32_t parent_pid;
    uint64_t from_ns; /* its fork, or 0 when it was there before us */
    uint64_t exec_ns; /* its last exec, 0 when none was seen, */
    uint64_t anew_ns; /* and the first one since records were lost last */
    uint64_t to_ns;
    uint64_t generation; /* unique among all processes, and new whenever its mappings change */
    bool kernel_thread;
    bool heir_of_doubt; /* its parent was in doubt when it forked */
    bool scanned;       /* /proc was read, or every mapping since its fork or exec was seen */
    bool has_gaps;      /* some mapping found no place, or was forgotten before its time */
    bool remapped;      /* of what its program has mapped something has ended */

    /* As /proc was read, or others found out. */
    uint8_t identity_matches; /* a bit for each filter that found a target's; inherited by a fork */
    bool owner_known;         /* of this process or before a fork */
    uint32_t owner;           /* the account */
    uint64_t identity_ns; /* when its uid and cgroups were read; 0: not since its fork or exec */
    uint64_t scan_ns;     /* when the reading of /proc began that was told last, 0: never */
    uint64_t agreed_ns;   /* and the last one of root's process that found nothing to be other
                             than it was known */

    struct process_command *command; /* of the program that it executed last; NULL: not known */

    /* The table's own, here and below. */
    bool forked;        /* from_ns is the time of a fork record */
    bool scan_differs;  /* of the scan that is told in parts */
    bool threads_known; /* /proc listed them: none lives that was not told of */
    bool leader_exited;
    bool starts;            /* since its exec it has mapped nothing */
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
 * Sideband records, in the order of time. A record creates the process and the thread that it names
 * if they are unknown; pids and tids below 1 are ignored. Where a late record contradicts a newer
 * one, the newer one stands.
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

/* One reading of /proc/PID. All borrowed. */
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
    bool mappings_missing; /* it may have more */
    uint64_t whole_from;   /* from this address on, up to the next one, it has no more */
    uint64_t whole_to;
    uint64_t begin_ns; /* when the reading began and ended */
    uint64_t end_ns;
    bool identity_read;
    uint8_t identity_matches; /* of whichever filters, by their numbers */
    bool account_known;
    uint32_t account;
    const char *command; /* command_bytes; 0: not read, or there is none */
    size_t command_bytes;
    /* The only user of the process with this command line, or COMMAND_UID_NONE: command_right.h. */
    uint32_t command_uid;
};
/*
 * Merges a scan. Its mappings hold from the process's last exec or fork record, or from 0 without
 * one; where all mappings were known already, or records were lost after that time, new ones hold
 * from `begin_ns`. Records take precedence: a range that a record's mapping covers is left alone,
 * unless process_table_lost() was called since. A scanned mapping that is known changes nothing;
 * one that differs from an older scan's replaces it from `begin_ns` on. Where the scan is whole,
 * known mappings that are older and that it does not have end at `begin_ns`: no record tells of
 * munmap(), nor of an exec that was lost.
 *
 * A scan that an exec or exit record cuts in two is dropped. A later start time than that of the
 * known process means another process with the same pid. For a known process, call this after all
 * sideband records up to `end_ns`, so that no change that a record explains counts as unexplained.
 */
void process_table_scan(struct process_table *table, const struct process_scan *scan);
/* Takes the command line of a scan alone. Returns the process, or NULL when the scan is of another
 * one, or of another program. To be called as process_table_scan() of a known process. */
struct process *process_table_command(struct process_table *table, const struct process_scan *scan);
/*
 * The process that lives with this pid at `time_ns`, made if none is known. NULL when there is no
 * place, or a newer process with this pid is known.
 */
struct process *process_table_meet(struct process_table *table, int32_t pid, uint64_t time_ns);
/* Charges a process's entries to its owner's account, if that is known. */
void process_table_charge(struct process_table *table, struct process *process);
/* True when an entry charged to root found no place since the last call. Some entries charged to
 * root may be of other users by now, since no record reports a new uid. */
bool process_table_take_root_refused(struct process_table *table);
/* Notes that records of any process were lost up to `time_ns`: a scan that begins later takes
 * precedence over older records. */
void process_table_lost(struct process_table *table, uint64_t time_ns);
/*
 * Removes the names of a process and of its thread `tid` from `time_ns` on, which may be those of
 * an earlier program, until the next record or, if it is later, the last scan.
 */
void process_table_doubt(struct process_table *table, struct process *process, int32_t tid,
                         uint64_t time_ns);
/* Ends the process that lived at `time_ns`: /proc has none, so its exit record was lost. */
void process_table_gone(struct process_table *table, int32_t pid, uint64_t time_ns);

/*
 * A walk of all of /proc, one at a time: begin, each pid that /proc lists, and, unless it was cut
 * short, its end. A process that was known before `begin_ns` and was not listed ends at `end_ns`; a
 * late exit record may still set an earlier time. Processes that begin during the walk stay.
 */
void process_table_walk_begin(struct process_table *table);
void process_table_walk_meet(struct process_table *table, int32_t pid);
void process_table_walk_end(struct process_table *table, uint64_t begin_ns, uint64_t end_ns);

/* The process that had this pid at `time_ns`. When none lived then, the last one that had it before
 * and is still kept, since a task is sampled until it is reaped. Else NULL. */
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

/* Begins a round of the collector, with new limits of work. */
void process_table_begin_round(struct process_table *table);

/* Every record of `time_ns` or before has been applied. */
void process_table_reach(struct process_table *table, uint64_t time_ns);

enum mapping_fate {
    MAPPING_KEPT,
    MAPPING_REPLACED,
    MAPPING_AWAITED, /* not all records of that time have been applied */
};
/* What records say of the mappings of a file up to `time_ns`. */
enum mapping_fate mapped_file_fate(const struct mapped_file *file, uint64_t time_ns);

/* Frees entries that ended before `horizon_ns`: no older sample is looked up any more. Work is
 * bounded; the next call goes on. */
void process_table_prune(struct process_table *table, uint64_t horizon_ns);

struct process_table_counts {
    size_t process_count;
    size_t thread_count;
    size_t mapping_count;
    size_t path_bytes; /* of the paths of mappings, equal ones once */
    struct counters counters;
};
struct process_table_counts process_table_counts(const struct process_table *table);
