/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a session records: the member "targets" of its config. Values only, which are compared with
 * what the kernel says of a process; nothing here is ever opened. All of it at its largest, as
 * JSON, fits a record of the file (TRACE_JSON_BYTES_MAX).
 */

#include "unit_glob.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SESSION_PIDS_MAX         1024
#define SESSION_TIDS_MAX         256
#define SESSION_UIDS_MAX         128
#define SESSION_COMMS_MAX        64
#define SESSION_COMM_BYTES_MAX   32 /* of a glob */
#define SESSION_CGROUPS_MAX      16
#define SESSION_CGROUP_BYTES_MAX 384
#define SESSION_UNITS_MAX        8
#define SESSION_NAME_BYTES       15 /* what the kernel keeps of a thread's name */
#define SESSION_PID_LIMIT        4194304
#define SESSION_UID_MAX          UINT32_C(4294967294)

struct session_targets {
    int32_t pids[SESSION_PIDS_MAX];
    size_t pid_count;
    int32_t tids[SESSION_TIDS_MAX];
    size_t tid_count;
    uint32_t uids[SESSION_UIDS_MAX];
    size_t uid_count;
    char comms[SESSION_COMMS_MAX][SESSION_COMM_BYTES_MAX + 1]; /* globs */
    size_t comm_count;
    char cgroups[SESSION_CGROUPS_MAX][SESSION_CGROUP_BYTES_MAX + 1]; /* path prefixes */
    size_t cgroup_count;
    char units[SESSION_UNITS_MAX][UNIT_GLOB_BYTES_MAX + 1]; /* unit_glob.h */
    size_t unit_count;
};

/* Nothing is named, so that everything is a target. */
bool session_targets_empty(const struct session_targets *targets);
