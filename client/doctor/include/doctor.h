/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Says why profiling does not work, or not well, on this machine, and what to do about it. Checks
 * are made with the caller's rights alone; a check that cannot be made says so, and why. The causes
 * and their remedies are one table (causes.c), for `profctl doctor` and for the verbs that fail.
 */

#include "page.h"
#include "profctl.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum doctor_verdict {
    DOCTOR_OK,
    DOCTOR_NOTE,    /* good to know, or not known */
    DOCTOR_WARNING, /* profiling works, but not as well as it could */
    DOCTOR_WRONG,   /* profiling does not work */
};

/* What one check has found. Texts may hold what other users chose, so they are printed by
 * text_out.h. */
struct doctor_finding {
    const char *check; /* "socket"; static */
    const char *cause; /* the row of the table, "socket-missing"; static */
    enum doctor_verdict verdict;
    bool is_known;   /* false: the check could not be made, and the text says why */
    bool is_fixable; /* doctor_fix() runs the commands */
    char *text;      /* owned; a clause without a full stop */
    char *commands;  /* owned; for a shell, one a line; "" where there are none */
    char *advice;    /* owned; what no command does; "" where there is nothing */
};

#define DOCTOR_FINDINGS_MAX 64
struct doctor_report {
    struct doctor_finding findings[DOCTOR_FINDINGS_MAX];
    size_t count;
    bool is_cut; /* more was found, or there was no memory for it */
};

/*
 * Makes all checks, among them a recording of a second, for which a child of the caller spins.
 * `socket_path` is the daemon's (borrowed; NULL: as profctl_connect() has it). doctor_report_done()
 * releases the report.
 */
void doctor_examine(const char *socket_path, struct doctor_report *ret);
void doctor_report_done(struct doctor_report *report);

/* Whether something is DOCTOR_WRONG, or the report is cut. */
bool doctor_is_ill(const struct doctor_report *report);

void doctor_print(const struct page *page, const struct doctor_report *report);
void doctor_print_json(FILE *file, const struct doctor_report *report);

/* Runs the commands of what is fixable, each printed on `file` before it runs. Returns how many
 * were run. */
size_t doctor_fix(const struct doctor_report *report, FILE *file);

/*
 * Complain about what profctl_connect() or profctl_create() refused with `fault`, and end with the
 * doctor's line for its cause, where the doctor knows one. Return EXIT_FAILED.
 */
int doctor_complain_connect(const char *socket_path, const struct profctl_fault *fault);
int doctor_complain_create(struct profctl *conn, const struct profctl_fault *fault);

/* The second one's sentence. `into` has room for DOCTOR_SENTENCE_BYTES; returns it. */
#define DOCTOR_SENTENCE_BYTES ((size_t)768)
const char *doctor_describe_create(struct profctl *conn, const struct profctl_fault *fault,
                                   char *into);

/* What has a program of this name (the begin of a command counts) name the code that it makes, as
 * a clause; NULL where nothing is known. */
const char *doctor_name_made_code(const char *command);

/* How stacks through the code that a command makes are brought to their root; static text. NULL: it
 * is not known. */
const char *doctor_keep_frames(const char *command);

/* What has Python name the functions that it interprets, as a clause; `module` is the file of the
 * interpreter ("libpython3.11.so.1.0"), since older ones cannot. */
const char *doctor_name_interpreted(const char *module);
