/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the checks judge. The gatherers fill it from this machine, or from a folder that looks like
 * one; tests make it up. Nothing in it is a guess: a fact that is not known says why.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FACT_WHY_BYTES ((size_t)96)

/* A number, or why it is not known ("": it is). */
struct fact {
    int64_t value;
    char why[FACT_WHY_BYTES];
};

/* The kernel and the machine. */
struct machine_facts {
    struct fact paranoid;
    bool has_package_switch; /* the Debian package, which asks for the setting, is installed */
    struct fact kptr_restrict;
    struct fact mlock_kib; /* that each user may lock for each CPU, for perf events */
    struct fact max_sample_rate;
    struct fact cpu_time_max_percent;
    struct fact available_kib; /* of the memory */
    struct fact clock_step_ns; /* the resolution of the clock */
    int probe_errno;           /* of perf_event_open() for the caller itself; 0: it works */
    char lockdown[32];         /* "none"; "": the kernel has none */
    char lockdown_why[FACT_WHY_BYTES];
    char clock_source[32]; /* "tsc"; "": not known */
    char time_offset[32];  /* of the caller's time namespace in s, of the clock of boot; "": none */
};

/* The socket, and the caller's way to it. */
struct access_facts {
    const char *path; /* borrowed */
    bool is_default;  /* it is the service's */
    bool is_root;
    int stat_errno; /* 0: what follows is known */
    bool is_socket;
    bool is_ours; /* the caller's own uid owns it */
    mode_t mode;
    gid_t gid;
    char group[64];    /* its name, or that of the group which may connect; "": it has none */
    bool is_foreign;   /* the socket belongs to a group that is not the daemon's */
    bool has_group;    /* the database has that group */
    bool is_listed;    /* the database has the caller in it */
    bool is_in_effect; /* the caller's process is in it */
};

struct unit_facts {
    char load[24]; /* "loaded", "masked", "not-found" */
    char active[24];
    char file[24]; /* "enabled" */
    char result[32];
    bool needs_reload;
    char drop_ins[512]; /* paths, separated by spaces */
};

/* What of the daemon's rights a drop-in may change. */
enum rights_kind {
    RIGHTS_CAPABILITIES,
    RIGHTS_FILTER, /* of system calls */
    RIGHTS_MEMLOCK,
    RIGHTS_KINDS,
};

struct drop_in {
    char path[160];   /* "": none is seen */
    char setting[32]; /* the name of its line, "LimitMEMLOCK" */
};

struct service_facts {
    bool is_booted;            /* systemd is the machine's init */
    char why[FACT_WHY_BYTES];  /* the units are not known; "": they are */
    struct unit_facts socket;  /* cpu-profilerd.socket */
    struct unit_facts service; /* cpu-profilerd.service */
    char journal[192];         /* its last line; "": not known */
    char journal_why[FACT_WHY_BYTES];
    struct drop_in drop_ins[RIGHTS_KINDS]; /* the last that sets each */
};

/* The daemon, as far as it answers. */
struct daemon_facts {
    bool is_connected;
    bool has_answered;
    int code;       /* of what failed; 0: nothing */
    char text[384]; /* what it said of that */
    char version[32];
    char release[80]; /* of the kernel */
    bool has_deferred_chains;
    bool has_mmap_build_id;
    bool has_format_lost;
    bool has_cgroup;
    pid_t pid;
    char process_why[FACT_WHY_BYTES]; /* the rest is not known; "": it is */
    uint64_t capabilities;
    bool has_filter;          /* of system calls */
    struct fact locked_bytes; /* RLIMIT_MEMLOCK; -1: none */
    struct fact realtime;     /* RLIMIT_RTPRIO; -1: none */
    struct fact descriptors;  /* RLIMIT_NOFILE; -1: none */
    bool has_session;
    bool is_sampling;   /* that session gets samples now */
    bool is_of_another; /* it is of another user than the caller */
    char holder[256];   /* the client that holds the session, a clause */
    char holder_remedy[192];
};

/* The recording of the doctor's own child. */
struct sample_facts {
    char why[FACT_WHY_BYTES]; /* none was made; "": it was */
    bool is_refused;          /* Create or Start refused it, with `code` and `text` */
    bool has_failed;          /* it began, and did not come about, for `text` */
    int code;
    char text[384];
    char remarks[640];       /* what Create had to remark, a line each */
    bool is_kernel_off;      /* the administrator allows no stacks of the kernel */
    uint64_t expected_count; /* samples, by the CPU time that the child used */
    uint64_t sample_count;   /* of it */
    uint64_t complete_count;
    uint64_t named_count;  /* those with its functions in their order */
    uint64_t kernel_count; /* with frames of the kernel */
    uint64_t kernel_named_count;
    char build_id[48];     /* of the child's program, as the recording has it; "": none */
    char own_build_id[48]; /* as it has itself; "": none */
    char *books_json;      /* owned */
};

/* Programs that run. */
#define MADE_MAX     12
#define PACKAGES_MAX 12
struct made_facts {
    pid_t pid;
    bool is_own;       /* the caller's uid runs it, in the caller's mount namespace, and no other
                          user can replace the tool beside it */
    size_t runtime;    /* of the table of runtimes */
    bool is_named;     /* but Java without frame pointers */
    bool lacks_frames; /* Java without frame pointers */
    char command[32];  /* the base name of its file */
    char folder[160];  /* where its file is */
};

struct program_facts {
    char why[FACT_WHY_BYTES]; /* not known; "": it is */
    uint32_t process_count;
    uint32_t hidden_count; /* programs with a file that the caller may not see */
    bool is_cut;           /* there are more processes or files than were looked at */
    uint32_t file_count;   /* different files of the others */
    uint32_t with_build_id;
    uint32_t with_symbols;
    uint32_t with_debug_file; /* below /usr/lib/debug, or in the file itself */
    uint32_t bare_count;      /* without symbols and without debugging information */
    uint32_t nameless_count;  /* without a build-id */
    char nameless[160];       /* one of these */
    char bare[PACKAGES_MAX][160];
    uint32_t runtime_count;  /* processes that make code */
    uint32_t unmapped_count; /* those without a map or a dump */
    struct made_facts made[MADE_MAX];
};

struct facts {
    struct machine_facts machine;
    struct access_facts access;
    struct service_facts service;
    struct daemon_facts daemon;
    struct sample_facts sample;
    struct program_facts programs;
    char packages[512];      /* with debugging information of programs that run, for apt */
    char debuginfod_url[80]; /* of this distribution */
    bool has_debuginfod;     /* DEBUGINFOD_URLS is set */
    char kernel_names[256];  /* the drop-in that comes with the installation; "": not found */
};
