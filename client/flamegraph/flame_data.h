/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What flame graphs are drawn from: recordings as samples in one tree of stacks. Texts, functions,
 * nodes and tasks are shared by all recordings that are added.
 */

#include "flame_nodes.h"
#include "flamegraph.h"
#include "intern.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is drawn in which colour. */
enum flame_kind {
    FLAME_USER,
    FLAME_KERNEL,
    FLAME_INLINED,
    FLAME_MARKER, /* it stands for what is not known: "[truncated]" */
    FLAME_GROUP,  /* a first frame */
};

/* A frame as it is shown. Two that show the same are one; in a comparison frames of one name are
 * that in all folders, as frame_identity() has it. INTERN_NONE and 0 where a member is not known.
 */
struct flame_function {
    uint32_t name;     /* of `texts`, as the next three */
    uint32_t module;   /* its path; in a comparison the last part of that */
    uint32_t build_id; /* in a comparison, where the name is an address */
    uint32_t file;     /* in a comparison the last part of its path */
    uint32_t line;
    uint32_t kind; /* enum flame_kind */
};

/* A thread under one name. Padded by hand, since its bytes are a key. */
struct flame_task {
    uint64_t pid; /* 0, as the next: the number is not known */
    uint64_t tid;
    uint32_t segment;
    uint32_t recording; /* which source it is of */
    uint32_t process;   /* of `texts`, as the next two */
    uint32_t thread;
    uint32_t unit;
    uint32_t zero;
};

struct flame_sample {
    uint64_t time_us; /* since the recording's first sample, cut to the microsecond */
    uint32_t task;
    uint32_t node; /* where its stack ends */
};

/* Samples that stand together: those of a CPU or, where stacks begin with a frame of the task, of
 * such a frame. */
struct flame_group {
    uint32_t number; /* of the CPU, or the function */
    size_t first;    /* of its samples */
    size_t count;
};

/* Of samples only their order and their nodes are kept, since there are millions; the rest is the
 * profile's. */
struct flame_recording {
    const struct profile *profile; /* borrowed */
    char *name;                    /* owned */
    char *host;                    /* owned; or NULL, as the next */
    char *what;
    size_t side;                /* of a comparison */
    uint32_t *order;            /* owned; the profile's samples by group, then by time */
    uint32_t *nodes;            /* owned; in that order */
    uint32_t *task_of;          /* owned; by task of the profile; INTERN_NONE: of none */
    struct flame_group *groups; /* owned; by number */
    size_t group_capacity;
    size_t group_count;
    size_t sample_count;
    uint64_t origin_ns; /* the time of the first sample before some were selected */
    uint64_t period_ns; /* 0: not known */
    uint64_t unselected_count;
    uint64_t left_out_count;
    struct profile_drop *drops; /* owned */
    size_t drop_count;
    char *books_json;       /* owned; or NULL */
    int64_t wall_offset_ns; /* as profile_wall_offset_ns() says, where it does */
    bool has_wall_offset;
    bool is_whole; /* of a whole machine */
    bool is_truncated;
    bool is_damaged;
};

/* All zero is an empty one. */
struct flame {
    struct intern texts;
    struct intern functions; /* struct flame_function */
    struct intern tasks;     /* struct flame_task */
    uint32_t *modules;       /* owned; of `texts`, by function: its module's path, as met first */
    size_t module_capacity;
    size_t module_count;
    bool is_comparison; /* of two sides; else, where there are several, the page switches */
    struct flame_nodes nodes;
    struct flame_recording *recordings; /* owned */
    size_t recording_capacity;
    size_t recording_count;
};

void flame_done(struct flame *flame);

/* Adds a recording, whose profile (borrowed) is needed as long as the flame is; with `by` each
 * stack begins with a frame of that. Returns 0, or -ENOMEM. */
int flame_add(struct flame *flame, const struct flame_source *source, size_t side,
              enum flame_by by);

/* The sample at a place in the order, and what it stands for. */
struct flame_sample flame_sample(const struct flame_recording *recording, size_t place);
uint64_t flame_value(const struct flame_recording *recording, size_t place);

const struct flame_function *flame_function(const struct flame *flame, uint32_t function);
const struct flame_task *flame_task(const struct flame *flame, uint32_t task);
