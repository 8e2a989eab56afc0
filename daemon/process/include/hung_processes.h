/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Remembers the processes that blocked a thread of the daemon. Any process can block a reader of
 * /proc/PID/maps and map_files. The last HUNG_PROCESSES_MAX are remembered for the whole program,
 * not for a session. Any thread may call all functions.
 */

#include <stdbool.h>
#include <stdint.h>

#define HUNG_PROCESSES_MAX 64

/* `start_time_ns` is that of /proc/PID/stat: proc_parse_start_time(). */
void hung_processes_add(int32_t pid, uint64_t start_time_ns);
/* Forgets a process that has answered after all. */
void hung_processes_remove(int32_t pid, uint64_t start_time_ns);
bool hung_processes_have(int32_t pid, uint64_t start_time_ns);
