/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Processes as a tree, each below the one that made it. Siblings that are alike are one row: those
 * with one command line, and where a name has many of these, all of that name. What stands below
 * such a row descends from any of them. Of each row
 *
 *     total = self + cut_samples + the totals of the rows below it
 */

#include "page.h"
#include "profile.h"
#include "summary.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Command lines of one name below one row that are rows of their own; of more none is. */
#define PROCESS_TREE_COMMANDS_MAX 3

struct process_row {
    uint64_t number;        /* of the row: 0, 1, 2 as they come */
    uint64_t parent;        /* its number; of row 0 0 */
    uint32_t depth;         /* 0: all samples */
    uint32_t name;          /* of the profile's texts, or INTERN_NONE */
    const char *command;    /* borrowed for the call; NULL: not known */
    bool is_shared;         /* `command` is how all their command lines begin */
    uint64_t process_count; /* with samples, or with such below them */
    uint64_t pid;           /* of one process */
    uint64_t total;
    uint64_t self;
    uint64_t cut_samples;
    uint64_t cut_count; /* rows below this one that had too few samples */
};

/* `row` is borrowed for the call. */
typedef void process_tree_on_row_fn(const struct process_row *row, void *userdata);

/* Calls `on_row` for all rows, each before those below it, siblings by total and then by name.
 * Those with less than `min_percent` of all samples are cut. Returns 0, or -ENOMEM. */
int process_tree_walk(const struct profile *profile, double min_percent,
                      process_tree_on_row_fn *on_row, void *userdata);

/* Print it; both return what process_tree_walk() does. What stands below the text is
 * summary_print_foot()'s. */
int process_tree_print_text(const struct page *page, const struct profile *profile,
                            const struct summary *summary, double min_percent);
int process_tree_print_json(FILE *file, const struct profile *profile,
                            const struct summary *summary, double min_percent);
