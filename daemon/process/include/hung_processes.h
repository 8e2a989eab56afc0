/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Processes that kept a thread of ours waiting, which any process can do to whoever looks at its
 * memory (/proc/PID/maps, map_files). They are remembered for the whole program, since sessions
 * come and go: the last HUNG_PROCESSES_MAX of them. All functions may be called from every thread.
 */

#include <stdbool.h>
#include <stdint.h>

#define HUNG_PROCESSES_MAX 64

/* `start_time_ns` is that of /proc/PID/stat: proc_parse_start_time(). */
void hung_processes_add(int32_t pid, uint64_t start_time_ns);
/* It has answered after all. */
void hung_processes_remove(int32_t pid, uint64_t start_time_ns);
bool hung_processes_have(int32_t pid, uint64_t start_time_ns);
