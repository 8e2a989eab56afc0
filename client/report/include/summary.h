/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What stands above and below every view of a recording: what was recorded and when, who used the
 * machine, and what casts doubt on the view.
 */

#include "page.h"
#include "profile.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json_out;

/* A command is all processes of one name. */
struct summary_command {
    uint32_t name; /* of the profile's texts */
    uint64_t process_count;
    uint64_t value; /* of its samples */
};

#define SUMMARY_COMMANDS_MAX 3

/* Counts of samples: of what they stand for, unless they say otherwise. */
struct summary {
    const char *path;      /* borrowed; of the recording, for commands; NULL: none are printed */
    uint64_t sample_count; /* of samples themselves */
    uint64_t total;
    double effective_count; /* so many samples of equal values would be as sure as these */
    uint64_t complete_count;
    uint64_t unproved_count; /* at their root, but not on proof */
    uint64_t truncated_count;
    uint64_t stitched_count;      /* of them */
    uint64_t short_copy_count;    /* of them: what was copied of the stack ends before the root */
    uint64_t too_deep_count;      /* of them: it has more frames than the config allows */
    uint64_t outside_count;       /* of processes outside the pid namespace of the daemon */
    uint64_t made_cut_count;      /* of the truncated: they end in code that a process made */
    uint32_t cut_command;         /* that has most of these; INTERN_NONE: there are none */
    uint64_t none_count;          /* without a user stack */
    uint64_t kernel_thread_count; /* of them */
    uint64_t in_kernel_count;
    uint64_t kernel_seen_count;    /* of them: some of the kernel's functions were recorded */
    uint64_t kernel_unseen_count;  /* of them: the kernel's functions were not recorded */
    uint64_t kernel_unnamed_count; /* of them: they were, and have no names */
    uint64_t unknown_count;        /* in memory of which nothing is known, as are the next two */
    uint64_t made_count;           /* in code that a process made and that has no name */
    uint64_t unnamed_count;        /* in a function of a file that has no name */
    uint32_t made_command;         /* that has most of the former; INTERN_NONE: there are none */
    bool is_made_named;            /* other code of that command has names */
    uint32_t unnamed_module;       /* of the profile, that has most of the latter; or INTERN_NONE */
    uint64_t interpreted_count;    /* in Python's interpreter, without the names of what it ran */
    uint32_t interpreter_module;   /* that has most of these; or INTERN_NONE */
    uint64_t command_count;        /* of commands, without threads of the kernel */
    struct summary_command commands[SUMMARY_COMMANDS_MAX]; /* the largest; else all 0 */
};

/* Returns 0, or -ENOMEM. */
int summary_take(const struct profile *profile, struct summary *ret);

/* The first of the sentences above a view: what was recorded. */
void summary_print_session(const struct page *page, const struct profile *profile,
                           const struct summary *summary);
/* All of them. */
void summary_print_head(const struct page *page, const struct profile *profile,
                        const struct summary *summary);
/* What is below it: the books in a line, or as a table with how stacks end. */
void summary_print_foot(const struct page *page, const struct profile *profile,
                        const struct summary *summary, bool has_table);

/* The first and the last members of the JSON object. */
void summary_json_head(struct json_out *out, const struct profile *profile,
                       const struct summary *summary);
void summary_json_foot(struct json_out *out, const struct profile *profile,
                       const struct summary *summary);
