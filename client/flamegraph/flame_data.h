/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What flame graphs are drawn from: recordings as samples in one tree of stacks. Texts, functions,
 * nodes and tasks are shared by all recordings that are added.
 */

#include "flamegraph.h"
#include "intern.h"

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

/* A frame as it is shown. Two that show the same are one. INTERN_NONE and 0 where a member is not
 * known. */
struct flame_function {
    uint32_t name;   /* of `texts`, as `module` and `file` */
    uint32_t module; /* its path */
    uint32_t file;
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

/* Nodes stand behind their parents, and new ones in the order of the samples. Node 0 is the root,
 * which has no function. */
struct flame_node {
    uint32_t parent;
    uint32_t function;
};

struct flame_sample {
    uint64_t time_us; /* since the recording's first sample, cut to the microsecond */
    uint32_t group;   /* its CPU; where stacks begin with a frame of the task, that function */
    uint32_t task;
    uint32_t node; /* where its stack ends */
    uint32_t zero;
};

struct flame_recording {
    const struct flame_source *source; /* borrowed */
    struct flame_sample *samples;      /* owned; by group, and in the order of time within one */
    size_t sample_count;
    uint64_t origin_ns; /* the time of the first sample before some were selected */
};

/* All zero is an empty one. */
struct flame {
    struct intern texts;
    struct intern functions; /* struct flame_function */
    struct intern tasks;     /* struct flame_task */
    struct intern nodes;     /* struct flame_node */
    struct flame_recording recordings[FLAME_SOURCES_MAX];
    size_t recording_count;
};

void flame_done(struct flame *flame);

/* Adds a recording; with `by` each stack begins with a frame of that. Returns 0, or -ENOMEM. */
int flame_add(struct flame *flame, const struct flame_source *source, enum flame_by by);

const struct flame_function *flame_function(const struct flame *flame, uint32_t function);
const struct flame_task *flame_task(const struct flame *flame, uint32_t task);
const struct flame_node *flame_node(const struct flame *flame, uint32_t node);
