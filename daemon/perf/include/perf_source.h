/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The kernel's side of a session: a sideband event with a ring of its own for every online CPU, and
 * the other events, most with rings of their own, for those that are sampled. Opens, maps, enables,
 * reads counts, closes; knows no loop and parses nothing.
 *
 * Two threads use it. What opens, closes, and switches sampling on and off is the main thread's;
 * the rings and the rest of a struct perf_cpu are the collector's, which puts what was opened anew
 * into its place.
 */

#include "event_code.h"
#include "fault.h"
#include "perf_plan.h"
#include "perf_record.h"
#include "perf_streams.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct perf_source {
    struct perf_source_config config;              /* with the copies that the plan has */
    struct perf_group groups[1 + PERF_EVENTS_MAX]; /* by the index of an event */
    struct perf_features features;
    struct perf_record_layout layout;       /* of sampling's and sideband's records */
    struct perf_record_layout rated_layout; /* of events that have a rate */
    struct perf_record_layout switch_layout;
    bool has_switches; /* else switch records would not tell the idle task from others */
    struct perf_plan plan;
    struct perf_event *events; /* owned; of the streams, in the order of their places */
    size_t stream_count;
    struct perf_cpu *cpus;     /* a place for each that the machine has: first those that are
                                * sampled, then the others with sideband alone; each by rising cpu;
                                * ids may be sparse */
    size_t cpu_count;          /* that are sampled */
    size_t sideband_count;     /* all */
    uint16_t sample_max_stack; /* frames of both kinds in one sample's chain, at most */
    bool deferring;      /* most user chains come in records of their own, in the sideband ring
                          * of the CPU on which the task returns to its program */
    uint64_t ring_bytes; /* all rings together, as they were opened at first */
    uint8_t *bounces;    /* one for each ring: a record of every ring can be shown at once */
    size_t bounces_bytes;
    pthread_mutex_t mutex; /* over what switches sampling on and off */
    /* Set before the first CPU's is enabled, and unset before the first one's is disabled: a CPU
     * that comes back meanwhile is sampled at once. */
    atomic_bool sampling;
};

/* Words of a reading of an event: its count, its id, and what it lost where the kernel says that.
 */
static inline size_t perf_source_event_words(const struct perf_source *source)
{
    return source->features.format_lost ? 3 : 2;
}

/* How the records of a stream of samples are laid out. */
static inline struct perf_record_layout perf_source_layout(const struct perf_source *source,
                                                           const struct perf_stream *stream)
{
    const struct perf_group *group = &source->groups[stream->event];
    struct perf_record_layout layout =
        stream->is_rated || group->follower_count > 0 ? source->rated_layout : source->layout;
    if (group->follower_count > 0) {
        layout.follower_count = group->follower_count;
        layout.read_words =
            PERF_GROUP_HEAD_WORDS + (1 + group->follower_count) * perf_source_event_words(source);
    }
    return layout;
}

/* The highest index that a sample's event has: waits have two, behind the others. */
#define PERF_WAIT_EVENTS 2
static inline uint32_t perf_source_sample_events(const struct perf_source *source)
{
    return (uint32_t)source->config.event_count + (source->config.has_waits ? PERF_WAIT_EVENTS : 0);
}

/* What `part_count` of the events may have of event_rate_max_hz, of which each has an equal part,
 * and all waits together one; 0: any rate. */
static inline uint32_t perf_source_rate_part_hz(const struct perf_source_config *config,
                                                size_t part_count)
{
    const size_t parts = config->event_count + (config->has_waits ? 1 : 0);
    const uint64_t hz = (uint64_t)config->event_rate_max_hz * part_count / (parts > 0 ? parts : 1);
    return config->event_rate_max_hz > 0 && hz == 0 ? 1 : (uint32_t)hz;
}

/* Probes without keeping anything open. Returns 0, or -errno as perf_source_open(). */
int perf_source_probe(struct perf_features *ret, struct fault *reterr);

/* Whether the machine's first CPU can be sampled by an event, which is not kept open. Returns 0, or
 * -errno: perf_source_why(). */
int perf_source_try(const struct event_code *code);

/* Why an event is refused, where that is the event's own fault: `error`, positive, in words that
 * follow its name. NULL for other errors. Static. */
const char *perf_source_why(int error);

/*
 * Opens everything, disabled, and maps all rings. Returns 0 and an object to release with
 * perf_source_free(), or -errno with a fault that says what is missing and what to do:
 *   -EACCES, -EPERM  perf_event_paranoid, capabilities, a security module
 *   -ENOSYS, -EOPNOTSUPP, -ENOENT  a kernel without perf events, or too old
 *   -EINVAL  a setting that the kernel or the memory for rings does not allow (fault.member is set)
 *   -ENOMEM, -EMFILE
 * or another errno of the kernel's.
 */
int perf_source_open(const struct perf_source_config *config, struct perf_source **ret,
                     struct fault *reterr);
struct perf_source *perf_source_free(struct perf_source *source);

/*
 * Sideband runs from Create on, sampling from Start to Stop. Returns 0 or -errno of the ioctl.
 * Sampling starts on each CPU at a random phase, which takes about a period, at most 1 ms; when
 * that fails it is off on all.
 */
int perf_source_enable_sideband(struct perf_source *source);
int perf_source_enable_sampling(struct perf_source *source);
int perf_source_disable_sampling(struct perf_source *source);

/*
 * Whether a CPU's sideband, which was enabled, is so still. A CPU that went offline took it along,
 * even when it is back. Of the main thread, while nothing is under way to perf_source_replace().
 */
bool perf_source_is_alive(const struct perf_source *source, size_t index);

/* What takes the place of a CPU's events, and then what had it before. */
struct perf_opening {
    struct perf_opening *next; /* its holder's own */
    size_t index;              /* into `cpus` */
    struct perf_cpu cpu;
    uint64_t gap_from_ns; /* from then on the CPU's sideband may be missing; the caller's to set */
    uint64_t gap_to_ns;   /* from then on it comes */
};
/*
 * Opens the events of a CPU that came back, or came at last: sideband enabled, sampling not.
 * Returns 0 and an object to release with perf_opening_free(), or -errno as perf_source_open();
 * -ENODEV: it is offline again.
 */
int perf_source_reopen(const struct perf_source *source, size_t index, struct perf_opening **ret,
                       struct fault *reterr);
struct perf_opening *perf_opening_free(struct perf_opening *opening);
/* Lists of them, the last pushed first (the openings are taken, and returned; NULL: none). */
void perf_opening_push(struct perf_opening **list, struct perf_opening *opening);
struct perf_opening *perf_opening_pop(struct perf_opening **list);
void perf_opening_free_all(struct perf_opening *list);
/*
 * Of the collector, when the old rings have been drained: the two change places. True: sampling is
 * enabled, and has begun there at the new started_ns.
 */
bool perf_source_replace(struct perf_source *source, struct perf_opening *opening);

/*
 * Switch records come while sampling is enabled, unless they are switched off for a CPU (index into
 * `cpus`). Once sampling is disabled nothing is switched on. Of either thread. Returns 0, which it
 * does without switches too, or -errno.
 */
int perf_source_control_switches(struct perf_source *source, size_t index, bool enable);
/* A sample of one switch in so many on a CPU. */
int perf_source_control_waits(struct perf_source *source, size_t index, uint64_t period);
/* The same for one of the events beside the clock. */
int perf_source_control_event(struct perf_source *source, size_t index, uint32_t event,
                              bool enable);

/* The kernel's own counts of one of a CPU's events (index into `cpus`; 0: the clock), and of those
 * before it. Returns 0 or -errno. */
int perf_source_read_count(const struct perf_source *source, size_t index, uint32_t event,
                           struct perf_count *ret);
