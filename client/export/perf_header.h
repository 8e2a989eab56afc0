/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a perf.data file says beside its records: of which event they are, and features, which
 * describe the recording. A file has its features behind the records, at places that the file's
 * head names; a pipe has all of it as records, in front.
 */

#include "export_cost.h"
#include "profile.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct perf_event {
    char name[EXPORT_EVENT_BYTES];
    uint32_t type; /* as the kernel numbers them, and the next */
    uint64_t config;
    uint64_t period;
    bool has_groups; /* each sample ends with the number of its control group */
};

/* Describes the event of a profile. */
void perf_header_take_event(const struct profile_event *event, uint64_t period,
                            struct perf_event *ret);

/* Begins a file whose records take `data_bytes`, and ends it. */
void perf_header_begin_file(FILE *file, const struct perf_event *event, uint64_t data_bytes,
                            const struct profile *profile);
void perf_header_end_file(FILE *file, const struct perf_event *event, uint64_t data_bytes,
                          const struct profile *profile);

/* Begins what goes through a pipe. */
void perf_header_begin_pipe(FILE *file, const struct perf_event *event,
                            const struct profile *profile);
