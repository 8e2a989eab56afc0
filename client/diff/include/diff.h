/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What grew and what shrank from one side to another, each of one recording or several, and what of
 * that is more than noise. Recordings are folded one after the other: none is needed any more once
 * it was added. docs/diff.md says how sure a change is, and why.
 */

#include "page.h"
#include "profile.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* What rows are. Those of processes are by name: numbers differ in each run. */
enum diff_by {
    DIFF_BY_FUNCTION,
    DIFF_BY_STACK, /* a function as called by these others: a node of the tree of stacks */
    DIFF_BY_MODULE,
    DIFF_BY_COMMAND,
    DIFF_BY_THREAD,
    DIFF_BY_UNIT,
    DIFF_BY_CONTAINER,
    DIFF_BY_USER,
    DIFF_BYS,
};

const char *diff_by_name(size_t by);

/* What samples are divided by. */
enum diff_per {
    DIFF_PER_ANY,  /* by time where whole machines were recorded, and all of it is compared */
    DIFF_PER_TIME, /* the ticks of all CPUs that were seen, by the books; of another event than the
                    * clock the seconds of the recording */
    DIFF_PER_CPU,  /* the CPU time, or the event, of all that is compared */
    DIFF_PER_WORK, /* units of work that were done */
};

enum diff_side {
    DIFF_BEFORE,
    DIFF_AFTER,
    DIFF_SIDES,
};

struct diff_options {
    enum diff_by by;
    enum diff_per per;
    bool sorts_total;      /* else by self */
    bool is_part;          /* tasks or modules were selected */
    bool is_part_of_time;  /* or a part of the time */
    bool has_force;        /* compares what cannot be compared */
    double discovery_rate; /* the part of the changes called sure that may be false, 0 to 1 */
};

/* One number of a row, on both sides. Values and changes are parts, from 0 to 1, of the time or of
 * what is compared; with DIFF_PER_WORK they are seconds for each unit. Of another event than the
 * clock they are its unit (seconds, of a time), for each unit of work or for each second. */
struct diff_change {
    uint64_t samples[DIFF_SIDES]; /* of another event than the clock, what they stand for */
    double values[DIFF_SIDES];
    double change;
    double margin;      /* the interval of 95 % around the change is so much to both sides */
    double visible;     /* the smallest change that would have been called sure in 4 of 5 cases */
    double probability; /* of one as large by noise alone; 1 where that was not tested */
    bool has_margin;    /* there are enough samples for one */
    bool is_tested;     /* the same, and the comparison is judged; else there is no `visible` */
    bool is_sure;
};

struct diff_row {
    const char *name;     /* of a stack the function; borrowed from the diff, as all texts */
    const char *module;   /* its path; NULL where there is none */
    const char *build_id; /* of a function that is called by an address; NULL: of another */
    uint32_t item;        /* which one it is, for the printing */
    bool is_unmatched;    /* its name means nothing in another build of the module */
    struct diff_change self;
    struct diff_change total;
};

struct diff;

/* Returned: diff_free(). NULL when there is no memory. */
struct diff *diff_new(const struct diff_options *options);
struct diff *diff_free(struct diff *diff);
void diff_freep(struct diff **diff);

/* Adds a recording to a side; `name` is what it is called; `work` the units of work that were done
 * in it, with DIFF_PER_WORK. Returns 0, or -ENOMEM. */
int diff_add(struct diff *diff, enum diff_side side, const struct profile *profile,
             const char *name, double work);

/*
 * Compares, once all are added. Returns 0, or with a sentence in `reterr`
 *   -EINVAL  what was added cannot be compared so
 *   -ENOMEM
 */
int diff_compare(struct diff *diff, struct fault *reterr);

/* The sentence of a refusal that may be longer than a fault, whole; else NULL. Borrowed. */
const char *diff_refusal(const struct diff *diff);

/*
 * How many recordings each side needs before anything can be sure, at that rate of false
 * discoveries. What some runs of a program do and others do not, such as to move the end of the
 * heap with each allocation, is in all runs of one side and in none of the other by chance: of two
 * a side in 1 of 8 comparisons, of three in 1 of 32.
 */
size_t diff_recordings_needed(double discovery_rate);

/* Whether the sides have so many. Otherwise nothing is tested, and margins are of the noise within
 * the recordings alone. */
bool diff_is_judged(const struct diff *diff);

/* The rows: those that are sure first, then by the change. Borrowed. */
const struct diff_row *diff_rows(const struct diff *diff, size_t *ret_count);

/* Both sides have samples of one session, so they may be one recording. To be called before the
 * result is shown. */
void diff_note_shared(struct diff *diff);

/* Whether shares are compared of sides of which the second took more CPU time a recording, by more
 * than `part`: what grew as all did is then in no row. `*ret_part` is by how much. */
bool diff_hides_growth(const struct diff *diff, double part, double *ret_part);

/* The change of a row that is sure, larger than `part` of the first side's whole and the largest
 * such increase, in itself where there is one, since all that calls it grew as well; NULL: there
 * is none. `*ret_visible` is whether one of that size would have been
 * seen in every row that was tested. */
const struct diff_row *diff_find_above(const struct diff *diff, double part, double *ret_part,
                                       bool *ret_is_visible);

/* What numbers are, and how sure they are, as lines; and what to mind, "" if nothing is. Returns 0,
 * or -ENOMEM. Texts of recordings are as a terminal may get them. */
int diff_write_head(FILE *file, const struct diff *diff);
void diff_write_warnings(FILE *file, const struct diff *diff);

/* At most `limit` rows, 0 for all. Return 0, or -ENOMEM. */
int diff_print_table(const struct page *page, const struct diff *diff, size_t limit);
/* docs/diff.schema.json has the members. */
int diff_print_json(FILE *file, const struct diff *diff, size_t limit);
