/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The samples of the last seconds, and the rows that they make, of one event at a time. Numbers of
 * events are the caller's; 0 is the clock. The model copies what it is given,
 * and forgets names with the last sample that has them, so its memory depends on the window alone.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of more samples in a window, of all events together, the oldest are forgotten early. */
#define TOP_MODEL_SAMPLES_MAX ((size_t)1 << 20)
/* What is beyond in the values of all samples together counts for nothing, so no sum overflows. */
#define TOP_MODEL_VALUE_MAX ((uint64_t)INT64_MAX)

enum top_view {
    TOP_FUNCTIONS,
    TOP_PROCESSES,
    TOP_UNITS,
};
#define TOP_VIEWS 3

enum top_sort {
    TOP_BY_SELF,
    TOP_BY_TOTAL,
};

struct top_model;

/* Returned: top_model_free(). NULL when there is no memory. */
struct top_model *top_model_new(uint64_t window_ns);
struct top_model *top_model_free(struct top_model *model);

/*
 * The numbers of a function, and of a process with its systemd unit. Texts are borrowed. Numbers
 * hold until top_model_generation() changes. Return 0, or -ENOMEM.
 */
int top_model_function(struct top_model *model, const char *name, const char *module,
                       uint32_t *ret);
int top_model_process(struct top_model *model, uint64_t pid, const char *name, const char *unit,
                      uint32_t *ret);
uint32_t top_model_generation(const struct top_model *model);

struct top_sample {
    uint64_t time_ns;
    const uint32_t *functions; /* borrowed; leaf first, at least one */
    size_t function_count;
    uint64_t value; /* what it stands for, in the event's unit: 1 tick of the clock */
    uint32_t process;
    uint32_t event;
    bool is_truncated; /* its stack does not reach its root */
    bool is_stackless; /* it has no user stack */
};

/* Returns 0, or -ENOMEM. */
int top_model_add(struct top_model *model, const struct top_sample *sample);

/* Moves the window: it ends at `now_ns` from now on. What has left it is forgotten. Returns 0, or
 * -ENOMEM. */
int top_model_advance(struct top_model *model, uint64_t now_ns);

/* Forgets all samples. */
void top_model_clear(struct top_model *model);

/* Of one event. */
struct top_sums {
    uint64_t value; /* that rows are parts of */
    uint64_t sample_count;
    uint64_t truncated_count;
    uint64_t stackless_count;
    uint64_t span_ns; /* from the oldest sample to the end of the window */
};

void top_model_sum(const struct top_model *model, uint32_t event, struct top_sums *ret);

/* Texts are borrowed from the model until its next change. */
struct top_row {
    const char *name;
    const char *module;     /* its path; NULL: not of a function */
    uint64_t pid;           /* of a process */
    uint64_t process_count; /* of a unit */
    uint64_t self;          /* in the event's unit */
    uint64_t total;         /* as self but of functions */
};

/* All zero is empty. */
struct top_rows {
    struct top_row *rows; /* owned */
    size_t count;
};

void top_rows_done(struct top_rows *rows);

struct top_query {
    enum top_view view;
    enum top_sort sort;
    uint32_t event;
    const char *filter; /* borrowed; of name, module or pid, in any case; "": all rows */
};

/* The rows of a view, by what `sort` says, then the other, then by name. Returns 0, or -ENOMEM.
 * Either way top_rows_done() releases them. */
int top_model_rows(const struct top_model *model, const struct top_query *query,
                   struct top_rows *ret);

/*
 * What called a function, by the innermost call in each stack: `total` sums the samples below each
 * caller. "[root]" stands for nothing, "[truncated]" for what is not in the stack. The rest is
 * as top_model_rows() has it.
 */
int top_model_callers(const struct top_model *model, uint32_t event, const char *name,
                      const char *module, struct top_rows *ret);

/* What the model takes of memory, within a few bytes an item. */
uint64_t top_model_size_bytes(const struct top_model *model);
