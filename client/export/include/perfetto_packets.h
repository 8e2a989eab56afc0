/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Packets of a trace of Perfetto, one sequence: a PerfSample a sample of the clock, a StackSample
 * one of another event, with what that stands for. What a sample refers to is in its packet or in
 * one before, each thing once: names, modules, frames, stacks. A process's or thread's name is
 * there again when it changes, and so are the process's labels. The profile may be one that grows;
 * then its tables may only get longer between calls.
 */

#include "profile.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct perfetto_packets;

/* Packets are written to `file` (borrowed, as the profile is), each as the field of a trace that it
 * is. `is_live`: the profile is that of one segment, and functions may get names later. Returned:
 * perfetto_packets_free(). NULL when there is no memory. */
struct perfetto_packets *perfetto_packets_new(FILE *file, const struct profile *profile,
                                              bool is_live);
struct perfetto_packets *perfetto_packets_free(struct perfetto_packets *packets);

/* Begins the sequence, or begins it anew where the profile's numbers have other meanings now. All
 * return 0, or -ENOMEM; nothing is written after that. */
int perfetto_packets_begin(struct perfetto_packets *packets, uint64_t time_ns);
int perfetto_packets_sample(struct perfetto_packets *packets, const struct profile_sample *sample);

/* The books' terms as counters: their values at a time, and before that, unless `from_ns` is 0, 0
 * at another. A session's counters are the same tracks in all its segments. */
int perfetto_packets_books(struct perfetto_packets *packets, uint64_t from_ns, uint64_t time_ns);

/* The names of functions that have become known since frames of them were written, in modules that
 * have a build-id. `time_ns` is not
 * before the samples that have these frames. */
int perfetto_packets_late_names(struct perfetto_packets *packets, uint64_t time_ns);
