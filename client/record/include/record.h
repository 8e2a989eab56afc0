/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One recording, from opening its file to the summary. verb_record.c reads the options.
 */

#include "options.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct profctl;
struct profctl_fault;

struct record_request {
    uint64_t frequency_hz;   /* 0: as the config says */
    uint64_t duration_ns;    /* 0: until something else ends it */
    uint64_t max_duration_s; /* of a session that goes on by itself; 0: as the config says */
    const char *output_path;
    const char *config_path; /* NULL: none */
    const char *socket_path; /* NULL: where the daemon usually is */
    cJSON *targets;          /* owned; what options name; NULL: as the config says */
    cJSON *events;           /* the same */
    bool whole_machine;
    bool kernel_stacks; /* asked for; neither: as the config says, else they are recorded */
    bool no_kernel_stacks;
    bool has_waits;       /* of threads, beside the clock */
    uint64_t min_wait_us; /* those that are shorter are summed alone; means has_waits; 0: none */
    bool is_native;       /* without packets for Perfetto */
    bool shows_books;     /* of each CPU */
    bool is_json;         /* the result is one JSON object */
    bool ignores_status;  /* of the command: record ends with its own */
    bool names_code;      /* has runtimes name the code that they make */
    bool is_opened;       /* the recording is to be shown afterwards, which the verb does */
    char **command;       /* NULL: none; ends with NULL */
};

void record_request_done(struct record_request *request);

/* Returns an exit status: that of the command, if it has ended; 126 and 127 for a command that
 * cannot be run; else profctl's. `*ret_is_saved` is whether the recording has been written, all of
 * it, whatever the status. */
int record_run(const struct record_request *request, bool *ret_is_saved);

/* The session config of a request, its config file's members and what the options say over them
 * (`child`: the command's pid, 0: there is none), with a complaint where that fails. `*ret` is
 * returned: free(). Returns an exit status. */
int record_config_load(const struct record_request *request, pid_t child, char **ret);

/* The option that names the first of some targets, as "-p"; at least one there is. */
const char *record_target_option(const cJSON *targets);

/* The config (borrowed) with another rate. `*ret` is returned: free(). Returns 0, or -errno. */
int record_config_rate(const char *config, uint64_t frequency_hz, char **ret);

/*
 * Creates the session of a config. It has kernel stacks unless the config says otherwise, or the
 * administrator does not allow them, which `*ret_lacks_kernel` tells. Returns what profctl_create()
 * does.
 */
#define RECORD_LACKS_KERNEL                                                                        \
    "stacks of the kernel are not recorded, since the administrator does not allow them"
int record_session_try(struct profctl *conn, const char *config, bool is_detached,
                       bool *ret_lacks_kernel, struct profctl_fault *fault);

/* The same, with a note of it. The session has `limit_s` as its max_duration_s (0: none), where the
 * config has none and the administrator allows so much: `*ret_is_limited` (may be NULL). Returns an
 * exit status, after a complaint. */
int record_session_create(struct profctl *conn, const struct record_request *request,
                          const char *config, bool is_detached, uint64_t limit_s,
                          bool *ret_is_limited);

/* Names in a fault the option that its user gave, in place of the member of the config that the
 * option set: "--wall: ..." where the text begins with "off_cpu: ". */
void record_name_option(const struct record_request *request, struct profctl_fault *fault);

/*
 * The options of each verb that makes a session, in its table; its request is a struct
 * record_request. What names a part of the machine becomes the member "targets" of the config: it
 * is shown to the parser of configs at once, and complained of in the parser's words.
 */
option_take_fn target_take_list, target_take_name;
/* The same for events beside the clock. */
option_take_fn event_take_list;
/* A time for uint64_t `min_wait_us`. */
option_take_fn wait_take_least;

/* Options of perf record, and what is done in their place. */
extern const struct option_elsewhere record_perf_options[];

#define RECORD_AT(member) offsetof(struct record_request, member)
#define OPTION_FREQUENCY                                                                           \
    {                                                                                              \
        'F', "frequency", "HZ", "samples a second on each CPU, 1 to 100k (999)",                   \
            options_frequency, RECORD_AT(frequency_hz), 0                                          \
    }
#define OPTION_KERNEL                                                                              \
    {                                                                                              \
        0, "kernel", NULL, "stacks of the kernel, whatever the config says", options_flag,         \
            RECORD_AT(kernel_stacks), 0                                                            \
    }
#define OPTION_NO_KERNEL                                                                           \
    {                                                                                              \
        0, "no-kernel", NULL, "no stacks of the kernel", options_flag,                             \
            RECORD_AT(no_kernel_stacks), 0                                                         \
    }
#define OPTION_CONFIG                                                                              \
    {                                                                                              \
        0, "config", "FILE", "a session config, JSON; options go over it", options_text,           \
            RECORD_AT(config_path), 0                                                              \
    }
/* `name` is "event" but where that names one to be shown. */
#define OPTION_EVENTS_AS(name)                                                                     \
    {                                                                                              \
        'e', name, "EVENT",                                                                        \
            "sampled beside the clock, by perf's name: cs,\n"                                      \
            "page-faults:100 (each 100th), cycles@99 (Hz), by commas\n"                            \
            "cycles+instructions: these are counted with cycles",                                  \
            event_take_list, RECORD_AT(events), 0                                                  \
    }
#define OPTION_EVENTS OPTION_EVENTS_AS("event")
#define OPTION_WALL                                                                                \
    {                                                                                              \
        0, "wall", NULL, "also what threads wait for, and for how long", options_flag,             \
            RECORD_AT(has_waits), 0                                                                \
    }
#define OPTION_MIN_WAIT                                                                            \
    {                                                                                              \
        0, "min-wait", "TIME", "the same, but waits below 100us, 1ms summed alone",                \
            wait_take_least, RECORD_AT(min_wait_us), 0                                             \
    }
#define TARGET_OPTION(letter, name, argument, help, take)                                          \
    {                                                                                              \
        letter, name, argument, help, take, RECORD_AT(targets), 0                                  \
    }
/* clang-format off */
#define TARGET_OPTIONS                                                                             \
    {.help = "Only a part of the machine; each may be repeated, and what matches one of them\n"    \
             "is recorded:"},                                                                      \
    TARGET_OPTION('p', "pid", "PID[,PID]", "processes, and the children that they start later",    \
                  target_take_list),                                                               \
    TARGET_OPTION('t', "tid", "TID[,TID]", "single threads", target_take_list),                    \
    TARGET_OPTION('u', "uid", "USER[,USER]", "processes of these users, by name or number",        \
                  target_take_list),                                                               \
    TARGET_OPTION(0, "comm", "GLOB", "threads, and processes with all their threads, by\n"         \
                  "name: \"cc1*\"", target_take_name),                                             \
    TARGET_OPTION('G', "cgroup", "PATH", "processes in a control group or below it:\n"             \
                  "/system.slice/nginx.service", target_take_name),                                \
    TARGET_OPTION('U', "unit", "GLOB", "processes of a systemd unit, a user's too: nginx",         \
                  target_take_name)
/* clang-format on */
