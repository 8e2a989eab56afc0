/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One function finds each doubt: it writes a clause if there is one. Below a percent nothing is
 * one, since every recording of a busy machine has a little of everything.
 */
#include "doubts.h"

#include "books_print.h"
#include "cleanup.h"
#include "doctor.h"
#include "doubts_events.h"
#include "measure.h"
#include "percent.h"
#include "session_facts.h"
#include "text_out.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define DOUBT_PERCENT   1
#define UNNAMED_PERCENT 10
#define FEW_TICKS       2 /* what a recording's two ends cost */

/*
 * Of n samples that fall independently, a share p is off by a standard deviation of
 * sqrt(p (1 - p) / n), at most 1 / (2 sqrt(n)), where p is a half; in 19 of 20 recordings by less
 * than 1.96 of these. Ticks at even distances fall more evenly than that, unless the program is in
 * step with them.
 */
#define FEW_SAMPLES       385 /* for 5 points, rounded up */
#define POINTS_OF_SAMPLES (1.96 * 50)

static void few_samples(const struct profile *profile, const struct summary *summary, FILE *file)
{
    char count[TEXT_COUNT_BYTES];
    if (summary->sample_count > 0 && summary->effective_count < FEW_SAMPLES &&
        !doubts_event_is_whole(profile)) {
        (void)fprintf(file, "%s %s few: shares are within about %.0f points of the true ones",
                      text_samples(summary->sample_count, count),
                      summary->sample_count == 1 ? "is" : "are",
                      POINTS_OF_SAMPLES / sqrt(summary->effective_count));
    }
}

/* What is not selected is in the file. */
static void missing_samples(const struct profile *profile, const struct summary *summary,
                            FILE *file)
{
    uint64_t read_count = summary->sample_count + profile->unselected_count;
    int64_t kept = 0;
    if (books_print_total(profile->books_json, "kept", &kept) && kept > 0 &&
        (uint64_t)kept > read_count &&
        percent_of((uint64_t)kept - read_count, (uint64_t)kept) > DOUBT_PERCENT) {
        bool is_whole = !profile->input.truncated && !profile->input.damaged;
        (void)fprintf(file, "%" PRIu64 " of %" PRId64 " kept samples are not in this file, %s",
                      (uint64_t)kept - read_count, kept,
                      is_whole ? "but in that of another read" : "which is cut off or damaged");
    }
}

static void missing_books(const struct profile *profile, const struct summary *summary, FILE *file)
{
    int64_t expected = 0;
    (void)summary;
    if (!books_print_total(profile->books_json, "expected", &expected)) {
        (void)fputs("there are no books", file);
        doubts_write_bookless(file, profile);
        (void)fputs(", so it is not known how many ticks are missing", file);
    }
}

/* The terms of the books whose ticks have no sample and were not idle; the last is DROPPED. */
enum {
    DROPPED = 4,
    TERMS
};
static const char *const missing_terms[TERMS] = {"lost", "throttled", "missed", "unexplained",
                                                 "dropped"};

static uint64_t count_term(const struct profile *profile, size_t term)
{
    int64_t ticks = 0;
    bool is_some = books_print_total(profile->books_json, missing_terms[term], &ticks) && ticks > 0;
    return is_some ? (uint64_t)ticks : 0;
}

void doubts_count_missing(const struct profile *profile, uint64_t *ret_missing,
                          uint64_t *ret_expected)
{
    int64_t expected = 0;
    *ret_missing = 0;
    *ret_expected = 0;
    if (!books_print_total(profile->books_json, "expected", &expected) || expected <= 0) {
        return;
    }
    *ret_expected = (uint64_t)expected;
    for (size_t i = 0; i < TERMS; i++) {
        *ret_missing += count_term(profile, i);
    }
}

/* Whether drops alone are a doubt, of what is in this file. */
static bool is_dropping(const struct profile *profile, const struct summary *summary)
{
    uint64_t dropped = profile->dropped_record_count;
    uint64_t read_count = summary->sample_count + profile->unselected_count;
    return percent_of(dropped, dropped + read_count) > DOUBT_PERCENT;
}

/* What the books warn of on one CPU, though all together miss few. */
static void missing_of_cpu(const struct profile *profile, FILE *file)
{
    char text[BOOKS_PRINT_WORST_BYTES];
    if (books_print_worst(profile->books_json, text)) {
        (void)fputs(text, file);
    }
}

/* "2.0 % of the ticks are lost", or "3.0 % of the ticks are missing: 2.0 % lost, 1.0 % dropped".
 * What dropped_records() says is not said twice. */
static void missing_ticks(const struct profile *profile, const struct summary *summary, FILE *file)
{
    uint64_t missing = 0;
    uint64_t expected = 0;
    const char *separator = ": ";
    doubts_count_missing(profile, &missing, &expected);
    if (missing <= FEW_TICKS || percent_of(missing, expected) <= DOUBT_PERCENT) {
        missing_of_cpu(profile, file);
        return;
    }
    if (is_dropping(profile, summary) && missing == count_term(profile, DROPPED)) {
        return;
    }
    (void)fprintf(file, "%.1f %% of the ticks are ", percent_of(missing, expected));
    for (size_t i = 0; i < TERMS; i++) {
        if (count_term(profile, i) == missing) {
            (void)fputs(missing_terms[i], file);
            return;
        }
    }
    (void)fputs("missing", file);
    for (size_t i = 0; i < TERMS; i++) {
        uint64_t ticks = count_term(profile, i);
        if (ticks > 0) {
            (void)fprintf(file, "%s%.1f %% %s", separator, percent_of(ticks, expected),
                          missing_terms[i]);
            separator = ", ";
        }
    }
}

static void dropped_records(const struct profile *profile, const struct summary *summary,
                            FILE *file)
{
    if (is_dropping(profile, summary)) {
        (void)fprintf(file, "%" PRIu64 " samples were dropped, since the trace buffer was full%s",
                      profile->dropped_record_count,
                      books_print_counter(profile->books_json, "tasks_refused") == 0
                          ? "; read sooner"
                          : ", or their user had used up a share of it; read sooner");
    }
}

/* Rows count samples, which then are no measure of time. */
static void several_periods(const struct profile *profile, const struct summary *summary,
                            FILE *file)
{
    (void)summary;
    if (profile_periods_differ(profile)) {
        (void)fputs("sessions have different rates: counts and percentages are of samples, not of "
                    "time",
                    file);
    }
}

/* Of those that are shown. */
static void stacks_without_room(const struct profile *profile, const struct summary *summary,
                                FILE *file)
{
    bool has_left_out = percent_of(profile->left_out_count, summary->sample_count) > DOUBT_PERCENT;
    if (has_left_out) {
        (void)fprintf(file, "%.1f %% of the stacks are left out for want of memory ([left out])",
                      percent_of(profile->left_out_count, summary->sample_count));
    }
    if (percent_of(profile->plain_count, summary->sample_count) > DOUBT_PERCENT) {
        (void)fprintf(file,
                      "%s%.1f %% of the stacks are shown without debugging information, for want "
                      "of memory",
                      has_left_out ? ", " : "",
                      percent_of(profile->plain_count, summary->sample_count));
    }
}

/* Why stacks of a daemon's first recording are short, and what to do. The books count these stacks
 * of all events together, whatever the view shows. */
static void write_cold(FILE *file, const struct profile *profile)
{
    uint64_t cold = books_print_counter(profile->books_json, "cold_stacks");
    uint64_t kept = books_print_kept_of_all(profile->books_json);
    double percent = percent_of(cold < kept ? cold : kept, kept);
    if (percent > DOUBT_PERCENT) {
        (void)fprintf(file,
                      "; of all samples that were kept, of any event, %.1f %% have stacks that may "
                      "be short since files in them had not been read when they were taken: record "
                      "again, the daemon has read them by now, or start the session before the "
                      "load",
                      percent);
    }
}

/* Why most stacks that are cut are, where there is one reason. */
static void explain_cut(FILE *file, const struct profile *profile, const struct summary *summary,
                        uint64_t cut)
{
    if (2 * summary->outside_count > cut) {
        (void)fputs(", most since their processes are outside the pid namespace of the daemon, "
                    "which reads nothing of them",
                    file);
    } else if (2 * summary->short_copy_count > cut) {
        (void)fputs(", most since the copy of the stack ends before it: with a larger "
                    "stack_copy_bytes in the config of record it may be reached",
                    file);
    } else if (2 * summary->too_deep_count > cut) {
        (void)fputs(", most since they have more frames than max_stack_depth in the config of "
                    "record",
                    file);
    } else if (2 * summary->made_cut_count > cut) {
        const char *command = profile_text(profile, summary->cut_command);
        const char *remedy = doctor_keep_frames(command);
        (void)fputs(", most in code that '", file);
        text_print(file, command);
        (void)fprintf(file, "' made%s%s", remedy == NULL ? "" : ": ", remedy == NULL ? "" : remedy);
    }
}

static void truncated_stacks(const struct profile *profile, const struct summary *summary,
                             FILE *file)
{
    uint64_t cut = summary->truncated_count - summary->stitched_count;
    if (percent_of(cut, summary->total) > DOUBT_PERCENT) {
        (void)fprintf(file, "%.1f %% of the stacks are cut short of their root ([truncated])",
                      percent_of(cut, summary->total));
        explain_cut(file, profile, summary, cut);
        write_cold(file, profile);
    }
}

static void guessed_stacks(const struct profile *profile, const struct summary *summary, FILE *file)
{
    uint64_t guessed = summary->unproved_count + summary->stitched_count;
    (void)profile;
    if (percent_of(guessed, summary->total) > DOUBT_PERCENT) {
        (void)fprintf(file, "%.1f %% of the stacks reach their root without proof of each frame",
                      percent_of(guessed, summary->total));
    }
}

/* "12.3 % of the samples were", "12.3 % of the blocked time was". */
static void write_share(FILE *file, const struct profile *profile, const struct summary *summary,
                        uint64_t part)
{
    (void)fprintf(file, "%.1f %% of the ", percent_of(part, summary->total));
    text_print(file, measure_whole(&profile->event));
    (void)fputs(measure_is_one(&profile->event) ? " was" : " were", file);
}

static void unseen_kernel(const struct profile *profile, const struct summary *summary, FILE *file)
{
    if (percent_of(summary->kernel_unseen_count, summary->total) > DOUBT_PERCENT) {
        /* Of a thread that waits when sampling begins there is no sample of its leaving. */
        struct session_facts facts;
        session_facts_take(profile, &facts);
        bool is_early =
            !profile->event.is_clock && (facts.has_kernel_stacks || summary->kernel_seen_count > 0);
        session_facts_done(&facts);
        write_share(file, profile, summary, summary->kernel_unseen_count);
        (void)fputs(is_early ? " of no stack that is known, as where a wait had begun before the "
                               "recording; a debugger shows one that lasts"
                             : " in the kernel, whose functions were not recorded; the view shows "
                               "what called it",
                    file);
    }
}

static void unnamed_kernel(const struct profile *profile, const struct summary *summary, FILE *file)
{
    if (percent_of(summary->kernel_unnamed_count, summary->total) > UNNAMED_PERCENT) {
        write_share(file, profile, summary, summary->kernel_unnamed_count);
        (void)fputs(" in the kernel, whose functions have no names; profctl doctor says how to "
                    "have them",
                    file);
    }
}

static void made_code(const struct profile *profile, const struct summary *summary, FILE *file)
{
    if (percent_of(summary->made_count, summary->total) <= DOUBT_PERCENT) {
        return;
    }
    const char *command = profile_text(profile, summary->made_command);
    const char *remedy = summary->is_made_named
                             ? "other code of it has names; this was made before its map was "
                               "begun, or ran just before its map was written anew, or is not in "
                               "that"
                             : doctor_name_made_code(command);
    write_share(file, profile, summary, summary->made_count);
    (void)fputs(" in code without names that a program made ([anon], [jit]), most in '", file);
    text_print(file, command);
    (void)fprintf(file, "': %s",
                  remedy == NULL ? "a map /tmp/perf-PID.map or a jitdump would name it" : remedy);
}

static void interpreted_code(const struct profile *profile, const struct summary *summary,
                             FILE *file)
{
    if (percent_of(summary->interpreted_count, summary->total) > UNNAMED_PERCENT) {
        const struct profile_module *module = &profile->modules[summary->interpreter_module];
        write_share(file, profile, summary, summary->interpreted_count);
        (void)fprintf(file, " in Python code, whose functions are not shown: %s",
                      doctor_name_interpreted(profile_text(profile, module->basename)));
    }
}

static void unknown_memory(const struct profile *profile, const struct summary *summary, FILE *file)
{
    if (percent_of(summary->unknown_count, summary->total) > DOUBT_PERCENT) {
        write_share(file, profile, summary, summary->unknown_count);
        (void)fputs(" where nothing is known to be mapped ([unknown])", file);
    }
}

static void unnamed_functions(const struct profile *profile, const struct summary *summary,
                              FILE *file)
{
    if (percent_of(summary->unnamed_count, summary->total) > UNNAMED_PERCENT) {
        const struct profile_module *module = &profile->modules[summary->unnamed_module];
        write_share(file, profile, summary, summary->unnamed_count);
        (void)fputs(" in functions without names, most in '", file);
        text_print(file, profile_text(profile, module->basename));
        (void)fputs("', which lacks symbols", file);
    }
}

size_t doubts_find(const struct profile *profile, const struct summary *summary,
                   doubts_fn *on_doubt, void *userdata)
{
    static doubts_clause_fn *const clauses[] = {
        few_samples,         missing_samples,  missing_books,  missing_ticks,
        dropped_records,     several_periods,  NULL,           NULL,
        stacks_without_room, truncated_stacks, guessed_stacks, unseen_kernel,
        unnamed_kernel,      unknown_memory,   made_code,      interpreted_code,
        unnamed_functions,
    };
    const size_t of_ticks = 1 + DOUBTS_OF_EVENTS; /* the first so many are of the clock */
    size_t count = 0;
    for (size_t i = 0; i < sizeof clauses / sizeof clauses[0]; i++) {
        bool is_replaced = !profile->event.is_clock && i > 0 && i < of_ticks;
        doubts_clause_fn *clause = is_replaced ? doubts_of_events[i - 1] : clauses[i];
        cleanup_(freep) char *text = NULL;
        size_t text_bytes = 0;
        FILE *file = clause != NULL ? open_memstream(&text, &text_bytes) : NULL;
        if (file == NULL) {
            continue;
        }
        clause(profile, summary, file);
        if (fclose(file) == 0 && text_bytes > 0) {
            on_doubt(text, userdata);
            count++;
        }
    }
    return count;
}
