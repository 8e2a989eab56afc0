/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is said about a recording that has ended: as text, or as one JSON object.
 */

#include "output.h"
#include "record.h"
#include "record_child.h"
#include "recording.h"
#include "target_watch.h"
#include "thread_sums.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* All borrowed. */
struct record_outcome {
    const struct record_request *request;
    const struct record_scan *scan;
    const struct thread_sums *threads;        /* in their order */
    const struct record_child *child;         /* .pid 0: no command */
    const struct target_watch *ended_targets; /* their end ended it; NULL: something else did */
    const char *stopped_by;                   /* as Stop replied */
    bool is_limited; /* its max_duration_s is a limit of profctl's own, behind -d */
    const struct output *output;
    uint64_t size_bytes;
    uint64_t sampled_ns; /* from Start to Stop, as this client knows it */
    bool is_empty;       /* no sample was taken, so no file has been written */
};

/* Whether the daemon ended it before it was to end. */
bool record_outcome_is_cut(const struct record_outcome *outcome);

void record_summary_print(FILE *to, const struct record_outcome *outcome);
void record_summary_print_json(FILE *to, const struct record_outcome *outcome);

/* Complains about an empty recording: why nothing was recorded, and that the file is unchanged. */
void record_summary_complain_empty(const struct record_outcome *outcome);
