/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The options of verbs that work on a part of a recording. `at` is the place of a struct selection
 * in the verb's request. */

#include "options.h"
#include "selection.h"

option_take_fn select_take_time, select_take_pids, select_take_tids, select_take_comm,
    select_take_module, select_take_users, select_take_unit, select_take_cgroup;

/* The words of --sort, "self" and "total"; and it as a bool, whether it is the second. */
const char *select_sort_name(size_t sort);
option_take_fn select_take_sort;

/* A number of rows (size_t), 0 for all. */
option_take_fn select_take_rows;

#define OPTION_FROM(at)                                                                            \
    {                                                                                              \
        0, "from", "TIME",                                                                         \
            "only samples from then on: seconds since the first one\n"                             \
            "(1.5, 250ms, 2m), or a time of the day (14:05:09)",                                   \
            select_take_time, (at) + offsetof(struct selection, from), 0                           \
    }
#define OPTION_TO(at)                                                                              \
    {                                                                                              \
        0, "to", "TIME", "only samples before then", select_take_time,                             \
            (at) + offsetof(struct selection, to), 0                                               \
    }
#define OPTION_PIDS(at)                                                                            \
    {                                                                                              \
        'p', "pid", "PID", "only these processes: 7, or 7,12", select_take_pids, (at), 0           \
    }
#define OPTION_TIDS(at)                                                                            \
    {                                                                                              \
        't', "tid", "TID", "only these threads", select_take_tids, (at), 0                         \
    }
#define OPTION_COMM(at)                                                                            \
    {                                                                                              \
        0, "comm", "GLOB", "only threads or processes of such a name", select_take_comm, (at), 0   \
    }
#define OPTION_MODULE(at)                                                                          \
    {                                                                                              \
        0, "module", "GLOB",                                                                       \
            "only samples whose innermost function is in a module of\n"                            \
            "such a path, or last part of it",                                                     \
            select_take_module, (at), 0                                                            \
    }
#define OPTION_USERS(at)                                                                           \
    {                                                                                              \
        'u', "uid", "USER", "only processes of these users, by number or name", select_take_users, \
            (at), 0                                                                                \
    }
#define OPTION_UNIT(at)                                                                            \
    {                                                                                              \
        'U', "unit", "GLOB", "only processes of such a systemd unit, a user's too",                \
            select_take_unit, (at), 0                                                              \
    }
#define OPTION_CGROUP(at)                                                                          \
    {                                                                                              \
        'G', "cgroup", "PATH", "only processes in this control group or below it",                 \
            select_take_cgroup, (at), 0                                                            \
    }
#define OPTION_EVENT(at)                                                                           \
    {                                                                                              \
        0, "event", "EVENT",                                                                       \
            "the samples of this event, by what they stand for:\n"                                 \
            "page-faults, off-cpu (cpu-clock)",                                                    \
            options_text, (at) + offsetof(struct selection, event), 0                              \
    }
#define OPTIONS_SELECT(at)                                                                         \
    OPTION_EVENT(at), OPTION_FROM(at), OPTION_TO(at), OPTION_PIDS(at), OPTION_TIDS(at),            \
        OPTION_COMM(at), OPTION_USERS(at), OPTION_UNIT(at), OPTION_CGROUP(at), OPTION_MODULE(at)
