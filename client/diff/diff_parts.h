/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the rest of the room knows of a comparison: its recordings, and what became of them.
 */

#include "diff.h"
#include "diff_fold.h"
#include "statistics.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What must be alike for a comparison to mean anything, or should be. */
enum part_fact {
    FACT_KERNEL_STACKS,
    FACT_UNWIND,
    FACT_EVENTS,
    FACT_TARGETS,
    FACT_HOST,
    FACT_KERNEL,
    FACTS,
};

/* One recording. */
struct part {
    enum diff_side side;
    char *name; /* owned */
    double work;
    struct fold fold;
    char *facts[FACTS]; /* owned; NULL: not known */
    bool is_whole;      /* no session named a part of the machine */
    uint64_t period_ns; /* 0: not known, or its sessions have several */
    double cpu_s;       /* the CPU time of its samples; 0: not known */
    double expected;    /* ticks; 0: not known, as the next */
    double seen;        /* of them, those of which it is known what ran */
    double length_s;
    double counted; /* of another event than the clock, by its books; 0: not known, as the next */
    double sampled;
    double divisor; /* of its samples, once it is known by what they are divided */
};

/* What was found in the comparison of all rows. */
struct verdict {
    size_t row_count;  /* that were tested */
    size_t test_count; /* self and total are tests of their own */
    size_t sure_count; /* of the tests */
    size_t sure_rows;
    double limit;    /* the probability up to which a change is sure */
    bool is_assumed; /* how much runs differ: there were too few functions to tell */
    struct spread spread;
    double whole_spread; /* how much the wholes of one side differ, as a part; 0 by CPU time */
};

struct diff {
    struct diff_options options;
    struct profile_event event; /* of the first recording, as the next */
    double unit;                /* in which samples are summed up */
    bool has_units;             /* another recording has the event in another unit */
    struct diff_items items;
    struct part *parts; /* owned */
    size_t part_capacity;
    size_t part_count;
    size_t counts[DIFF_SIDES]; /* of recordings */
    bool has_shared;           /* both sides have samples of one session */
    double divisors[DIFF_SIDES];
    double wholes[DIFF_SIDES]; /* the values of all samples together */
    struct diff_row *rows;     /* owned */
    size_t row_count;
    size_t unmatched_count;
    struct verdict verdict;
    char *refusal;   /* owned; why it is not compared, whole; NULL: the fault says it */
    char **warnings; /* owned, as what is in it */
    size_t warning_capacity;
    size_t warning_count;
};

/* What a part of all samples is a part of, for a person: "CPU time", "faults", "blocked time".
 * Texts of recordings are as a terminal may get them. `into` has room for DIFF_UNIT_BYTES; returns
 * it. */
#define DIFF_UNIT_BYTES ((size_t)96)
const char *diff_whole_name(const struct diff *diff, char *into);

/* Takes what the recording says of itself. Returns 0, or -ENOMEM. */
int part_take_facts(struct part *part, const struct profile *profile);

/* Sees whether the recordings may be compared, and by what their samples are divided. Returns as
 * diff_compare(). */
int diff_check(struct diff *diff, struct fault *reterr);

/* Warns where the rows, which are made, have hardly anything that both sides have. Returns 0, or
 * -ENOMEM. */
int diff_check_overlap(struct diff *diff);

/* A difference between the sides that is worth a word, as a part. */
#define DIFF_MUCH 0.05

/* The CPU time of a side's recordings on average; 0: it is not known of all of them. */
double diff_cpu_seconds(const struct diff *diff, enum diff_side side);

/* Whether a recording was compared with itself, by all that is known of it. */
bool diff_is_identical(const struct diff *diff);

/* Makes the rows, in no order. Returns 0, or -ENOMEM. */
int diff_judge(struct diff *diff);

/* What a side is called: the name of its only recording, or how many there are. `into` has room for
 * DIFF_NAME_BYTES; returns it. */
#define DIFF_NAME_BYTES ((size_t)256)
const char *diff_side_name(const struct diff *diff, enum diff_side side, char *into);

/* The names of the functions of a stack, outermost first. Returned: free(), of the array alone.
 * Returns 0, or -ENOMEM. */
int diff_find_path(const struct diff *diff, uint32_t item, const char ***ret, size_t *ret_count);

/* What numbers are shown in. */
struct diff_unit {
    double scale;               /* of values, to what is shown */
    char name[DIFF_UNIT_BYTES]; /* "%", "ms", "thousand faults" */
};

struct diff_unit diff_unit_of(const struct diff *diff);

/* Whether values are parts of a whole, and no amounts. */
bool diff_is_of_parts(const struct diff *diff);
