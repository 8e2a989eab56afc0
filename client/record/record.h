/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One recording, from opening its file to the summary. cmd_record.c reads the options, record.c
 * runs it, and the rest of this folder is what it needs to.
 */

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

struct record_request {
    uint64_t frequency_hz; /* 0: as the config says */
    uint64_t duration_ns;  /* 0: until something else ends it */
    const char *output_path;
    const char *config_path; /* NULL: none */
    const char *socket_path; /* NULL: where the daemon usually is */
    const cJSON *targets;    /* what options name; NULL: as the config says */
    bool whole_machine;
    bool kernel_stacks;
    char **command; /* NULL: none; ends with NULL */
};

/* Returns an exit status: that of profctl, or 126 and 127 for a command that cannot be run. */
int record_run(const struct record_request *request);
