/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a perf.data file says beside its records: of which event they are, and features, which
 * describe the recording. A file has its features behind the records, at places that the file's
 * head names; a pipe has all of it as records, in front.
 */

#include "profile.h"

#include <stdint.h>
#include <stdio.h>

/* Begins a file whose records take `data_bytes`, and ends it. `period` is the event's. */
void perf_header_begin_file(FILE *file, uint64_t period, uint64_t data_bytes,
                            const struct profile *profile);
void perf_header_end_file(FILE *file, uint64_t data_bytes, const struct profile *profile);

/* Begins what goes through a pipe. */
void perf_header_begin_pipe(FILE *file, uint64_t period, const struct profile *profile);
