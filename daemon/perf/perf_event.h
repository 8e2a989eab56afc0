/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The events of a source, and what one CPU has of them; says in words why the kernel gives none. Of
 * perf_source only.
 */

#include "fault.h"
#include "perf_abi.h"
#include "perf_plan.h"
#include "perf_record.h"
#include "perf_streams.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An event that each CPU is to have. */
struct perf_event {
    struct perf_event_attr attr;
    char name[PERF_EVENT_NAME_BYTES]; /* of one that a session chose; else empty */
    enum perf_consumer consumer;
    uint32_t index;          /* among those that sample or follow; 0: the clock */
    uint32_t leader;         /* of a follower: the index of its leader */
    const char *leader_name; /* of a follower; borrowed, or static; NULL: it is none */
    uint64_t ring_bytes;
};

/* By what the events of a source are chosen. All borrowed. */
struct perf_event_needs {
    const struct perf_source_config *config;
    const struct perf_features *features;
    const struct perf_plan *plan;
    const struct perf_group *groups; /* by the index of an event */
    bool has_switches;               /* as in struct perf_source, with the next */
    bool deferring;
};

/* Fills the events of a source, of which there are PERF_STREAMS and those of the config. */
void perf_event_list(const struct perf_event_needs *needs, struct perf_event *events);

/* How the records are laid out: those of sampling and sideband, of events that have a rate, and
 * those of switches. */
struct perf_record_layout perf_event_layout(const struct perf_source_config *config,
                                            const struct perf_features *features, bool is_rated);
struct perf_record_layout perf_event_switch_layout(void);

/* What the kernel knows. Returns 0, or -errno when this CPU has no event at all. */
int perf_event_probe(uint32_t cpu, struct perf_features *ret);

/* Whether a CPU has an event: opens it to sample, and closes it. Returns 0 or -errno. */
int perf_event_try(uint32_t cpu, const struct event_code *code);

/* As perf_source_why(). */
const char *perf_event_why(int error);

/* `error` of opening an event, positive, in words; each sampled CPU needs so many events, 0: not
 * known. Returns -errno, which may be another. */
int perf_event_fault(int error, size_t needed_count, struct fault *reterr);

/*
 * Opens a CPU's events, of a list in the order of their places (borrowed for the call), disabled,
 * and maps their rings into `cpu`, whose number is set; `bounces` (borrowed for its life) has room
 * for a record of each ring. Returns 0, or -errno with a fault and
 * `cpu` closed; -ENODEV: the CPU is offline.
 */
int perf_cpu_open(const struct perf_event *events, size_t event_count, bool sampled,
                  uint8_t *bounces, struct perf_cpu *cpu, struct fault *reterr);
/* A CPU without events: absent. */
void perf_cpu_init(struct perf_cpu *cpu, uint32_t number);
/* Leaves one that has no events. */
void perf_cpu_close(struct perf_cpu *cpu);

/* Switches an event on or off; without one nothing is done. Returns 0 or -errno. */
int perf_stream_enable(const struct perf_stream *stream, bool enable);
/* Changes the period of an event that samples; without one nothing is done. Returns 0 or -errno. */
int perf_stream_set_period(const struct perf_stream *stream, uint64_t period);
/* Switches all events of a consumer on or off, whichever of them refuses. Returns 0, or the first
 * -errno. */
int perf_cpu_enable(const struct perf_cpu *cpu, enum perf_consumer consumer, bool enable);

uint64_t perf_cpu_ring_bytes(const struct perf_cpu *cpu);

/* In no core dump. Kernels do so to perf rings by themselves; it is asked for since it must hold.
 * Returns 0 or -errno. */
int perf_cpu_hide(void *map, size_t bytes);
