/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * CPUs that go offline and come back during a session: finds out, opens what came, hands it to the
 * collector. Belongs to the main thread; of session.c only.
 */

#include "collector.h"
#include "perf_source.h"

#include <systemd/sd-event.h>

struct session_cpus;

struct session_cpus_params {
    sd_event *event;            /* borrowed for its life, as all of these */
    struct perf_source *source; /* its sideband is enabled */
    struct collector *collector;
    const char *session_id; /* for the log */
};

/* Returns 0, or -errno. */
int session_cpus_new(const struct session_cpus_params *params, struct session_cpus **ret);
struct session_cpus *session_cpus_free(struct session_cpus *cpus);

/* Looks whether a CPU came or went; by itself once a second, and when the kernel says so. */
void session_cpus_look(struct session_cpus *cpus);
/* After COLLECTOR_REPLACED. */
void session_cpus_replaced(struct session_cpus *cpus);

struct session_cpus_counts {
    uint64_t returned; /* times that a CPU came, or came back, and was taken in */
    uint64_t refused;  /* times that the kernel gave none of the events for it, or no memory */
};
struct session_cpus_counts session_cpus_counts(const struct session_cpus *cpus);
