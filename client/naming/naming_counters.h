/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a Java virtual machine says of itself before it is asked: HotSpot keeps a file of counters
 * in /tmp/hsperfdata_USER, and has it mapped. The file says whether tools may attach, wherever the
 * option for that came from.
 */

#include "naming_process.h"

enum naming_tools {
    NAMING_TOOLS_UNKNOWN, /* there is no such file */
    NAMING_TOOLS_ALLOWED,
    NAMING_TOOLS_REFUSED,
};

/* Reads the file of the process. It may block for ever: it is a child's (naming_ask.h). */
enum naming_tools naming_counters_tools(const struct naming_process *process);

/* What such a file says. Pure. */
enum naming_tools naming_counters_judge(const void *file, size_t file_bytes);
