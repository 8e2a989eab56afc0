/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The events of a source, and what one CPU has of them; says in words why the kernel gives none. Of
 * perf_source only.
 */

#include "perf_abi.h"
#include "perf_source.h"

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

/* Fills the events of a source by its config, features and plan, while it has the caller's. */
void perf_event_list(struct perf_source *source);

/* How the records are laid out: those of sampling and sideband, of events that have a rate, and
 * those of switches. */
struct perf_record_layout perf_event_layout(const struct perf_source_config *config,
                                            const struct perf_features *features, bool is_rated);
struct perf_record_layout perf_event_switch_layout(void);

/* What the kernel knows. Returns 0, or -errno when this CPU has no event at all. */
int perf_event_probe(uint32_t cpu, struct perf_features *ret);

/* Whether a CPU has an event: opens it to sample, and closes it. Returns 0 or -errno. */
int perf_event_try(uint32_t cpu, const struct event_code *code);

/* `error` of opening an event, positive, in words. Returns -errno, which may be another. */
int perf_event_fault(int error, struct fault *reterr);

/*
 * Opens the events of a CPU, disabled, and maps their rings into `cpu`, whose number is set;
 * `bounces` (borrowed for its life) has room for a record of each ring. Returns 0, or -errno with a
 * fault and `cpu` closed; -ENODEV: the CPU is offline.
 */
int perf_cpu_open(const struct perf_source *source, bool sampled, uint8_t *bounces,
                  struct perf_cpu *cpu, struct fault *reterr);
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
