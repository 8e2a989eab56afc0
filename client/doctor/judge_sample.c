/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Judges the recording of the doctor's child: whether its samples came, with their stacks, names
 * and build-id, and what became of the ticks of all CPUs meanwhile. The first samples of a program
 * come before its file has been read, so half of them do not count against it.
 */
#include "causes.h"
#include "judge.h"

#include "books_print.h"
#include "percent.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PERCENT_BYTES ((size_t)16)

static const char *percent(uint64_t part, uint64_t whole, char *into)
{
    (void)snprintf(into, PERCENT_BYTES, "%.0f", percent_of(part, whole));
    return into;
}

static bool is_half(uint64_t part, uint64_t whole)
{
    return 2 * part >= whole;
}

static void judge_count(const struct sample_facts *sample, struct doctor_report *report)
{
    char count[JUDGE_NUMBER_BYTES];
    char expected[JUDGE_NUMBER_BYTES];
    (void)judge_number((int64_t)sample->sample_count, count);
    (void)judge_number((int64_t)sample->expected_count, expected);
    if (sample->sample_count == 0) {
        REPORT(report, CAUSE_SAMPLE_NONE);
    } else if (!is_half(sample->sample_count, sample->expected_count)) {
        REPORT(report, CAUSE_SAMPLE_FEW, count, expected);
    } else {
        REPORT(report, CAUSE_SAMPLE_GOOD, count);
    }
}

static void judge_stacks(const struct sample_facts *sample, struct doctor_report *report)
{
    char part[PERCENT_BYTES];
    REPORT(report,
           is_half(sample->complete_count, sample->sample_count) ? CAUSE_STACKS_GOOD
                                                                 : CAUSE_STACKS_CUT,
           percent(sample->complete_count, sample->sample_count, part));
    REPORT(report,
           is_half(sample->named_count, sample->sample_count) ? CAUSE_NAMES_GOOD
                                                              : CAUSE_NAMES_MISSING,
           percent(sample->named_count, sample->sample_count, part));
    if (sample->own_build_id[0] == '\0') {
        REPORT(report, CAUSE_BUILD_IDS_NONE);
    } else {
        REPORT(report,
               strcmp(sample->own_build_id, sample->build_id) == 0 ? CAUSE_BUILD_IDS_GOOD
                                                                   : CAUSE_BUILD_IDS_MISSING,
               sample->own_build_id);
    }
}

static uint64_t total(const char *books, const char *member)
{
    int64_t count = 0;
    return books_print_total(books, member, &count) && count > 0 ? (uint64_t)count : 0;
}

static void judge_ticks(const struct sample_facts *sample, struct doctor_report *report)
{
    static const char *const terms[] = {"lost", "throttled", "missed", "unexplained", "dropped"};
    const char *books = sample->books_json;
    char expected[JUDGE_NUMBER_BYTES];
    char missing[JUDGE_NUMBER_BYTES];
    char steal[JUDGE_NUMBER_BYTES];
    char part[PERCENT_BYTES];
    char why[BOOKS_PRINT_REASON_BYTES];
    uint64_t missing_count = 0;
    size_t before = report->count;
    if (total(books, "expected") == 0) {
        report_unknown(report, "ticks", "the recording has no books");
        return;
    }
    for (size_t i = 0; i < sizeof terms / sizeof terms[0]; i++) {
        missing_count += total(books, terms[i]);
        if (books_print_reason(books, terms[i], why)) {
            (void)snprintf(part, sizeof part, "%.1f",
                           percent_of(total(books, terms[i]), total(books, "expected")));
            REPORT(report,
                   strcmp(terms[i], "throttled") == 0 ? CAUSE_TICKS_THROTTLED : CAUSE_TICKS_MISSING,
                   part, terms[i], why);
        }
    }
    if (report->count == before) {
        REPORT(report, CAUSE_TICKS_GOOD, judge_number((int64_t)total(books, "expected"), expected),
               judge_number((int64_t)missing_count, missing),
               judge_number((int64_t)(total(books, "steal_ns") / 1000000), steal));
    }
}

void judge_sample(const struct facts *facts, struct doctor_report *report)
{
    const struct sample_facts *sample = &facts->sample;
    static const char *const checks[] = {"stacks", "names", "build-ids", "ticks"};
    const char *why = sample->why;
    if (sample->is_refused) {
        REPORT(report, CAUSE_SAMPLE_REFUSED, sample->text);
        why = "the daemon made no session";
    } else if (sample->has_failed) {
        REPORT(report, CAUSE_SAMPLE_FAILED, sample->text);
        why = "the recording failed";
    } else if (why[0] != '\0') {
        report_unknown(report, "sample", why);
    } else {
        judge_count(sample, report);
        if (sample->sample_count > 0) {
            judge_stacks(sample, report);
            judge_ticks(sample, report);
            return;
        }
        why = "there is no sample";
    }
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
        report_unknown(report, checks[i], why);
    }
}
