/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Opens the events of one CPU, disabled, and says in words why the kernel does not. Of perf_source
 * only.
 */

#include "perf_plan.h"
#include "perf_source.h"

/* How the records are laid out: those of sampling and sideband, and those of switches. */
struct perf_record_layout perf_open_layout(const struct perf_source_config *config);
struct perf_record_layout perf_open_switch_layout(void);

/* What the kernel knows. Returns 0, or -errno when this CPU has no event at all. */
int perf_open_probe(uint32_t cpu, struct perf_features *ret);

/* `deferring`: user chains come later, in sideband records of their own (perf_features).
 * Return a descriptor (returned: close()) or -errno; -ENODEV: the CPU is offline. */
int perf_open_sampling(const struct perf_source_config *config,
                       const struct perf_features *features, const struct perf_plan *plan,
                       bool deferring, uint32_t cpu);
int perf_open_sideband(const struct perf_features *features, const struct perf_plan *plan,
                       bool deferring, uint32_t cpu);
int perf_open_switches(uint32_t cpu);

/* `error` of the above, positive, in words. Returns -errno, which may be another. */
int perf_open_fault(int error, struct fault *reterr);
