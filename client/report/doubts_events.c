/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The books of an event say what the kernel counted, on all CPUs and of all tasks, and what the
 * samples stand for. What they do not say casts no doubt, but where they say nothing of the event.
 */
#include "doubts_events.h"

#include "books_print.h"
#include "cleanup.h"
#include "doubts_threads.h"
#include "measure.h"
#include "percent.h"
#include "session_facts.h"
#include "text_out.h"
#include "wait_sums.h"

#include <inttypes.h>
#include <math.h>

#define DOUBT_PERCENT 1

/* A sum of the event's books, 0 where they have none. */
static uint64_t sum_of(const struct profile *profile, const char *member)
{
    int64_t value = 0;
    bool is_some = books_print_event(profile->books_json, profile->event.name, member, &value);
    return is_some && value > 0 ? (uint64_t)value : 0;
}

bool doubts_event_is_whole(const struct profile *profile)
{
    int64_t period = 0;
    if (profile->event.is_clock) {
        return false;
    }
    return profile->event.is_wait ||
           (books_print_event(profile->books_json, profile->event.name, "period", &period) &&
            period == 1);
}

bool doubts_event_percent(const struct profile *profile, double *ret)
{
    uint64_t counted = sum_of(profile, "counted");
    uint64_t sampled = sum_of(profile, "sampled");
    *ret = percent_of(sampled < counted ? sampled : counted, counted);
    return counted > 0;
}

/* Whether samples of an event stand at both ends of each turn of a task on a CPU. */
static bool is_of_each_switch(const struct profile *profile, const char *event)
{
    int64_t period = 0;
    return profile_event_is_meant("context-switches", event) &&
           books_print_event(profile->books_json, event, "period", &period) && period == 1;
}

/* Whether the event is a follower; `*ret_is_exact`: of each switch. A time is not: the kernel takes
 * some of it around the sample. */
static bool is_follower(const struct profile *profile, bool *ret_is_exact)
{
    cleanup_(freep) char *leader = books_print_leader(profile->books_json, profile->event.name);
    *ret_is_exact = leader != NULL && !profile->event.is_time && is_of_each_switch(profile, leader);
    return leader != NULL;
}

/* Of an estimate of waits, in ns. */
struct wait_error {
    double standard;
    double most_95; /* in 19 of 20 recordings */
};

/*
 * Of waits that were too many: a sampled one stands for others on its CPU, drawn as below, and so
 * its square is the most that it adds. What was written without being sampled has no stack, and
 * stands for itself. So do the samples of a thread that has one of each wait. Of all that was
 * recorded the books know the error by the lengths of the waits, which weights do not tell. Where
 * few samples decide, two standard errors are not enough: the books add half of the largest, too.
 */
static struct wait_error find_wait_error(const struct profile *profile)
{
    double squares = 0;
    double largest = 0;
    if (!profile->event.is_wait || sum_of(profile, "not_sampled") == 0) {
        return (struct wait_error){0, 0};
    }
    if (!session_facts_are_of_part(profile)) {
        return (struct wait_error){(double)sum_of(profile, "standard_error_ns"),
                                   (double)sum_of(profile, "error_95_ns")};
    }
    for (size_t i = 0; i < profile->sample_count; i++) {
        const struct profile_sample *sample = &profile->samples[i];
        if (wait_sums_stand_for_others(profile, sample)) {
            const double value = (double)profile_value(profile, i);
            squares += value * value;
            largest = fmax(largest, value);
        }
    }
    return (struct wait_error){sqrt(squares), 2 * sqrt(squares) + largest / 2};
}

double doubts_wait_error_95(const struct profile *profile)
{
    return find_wait_error(profile).most_95;
}

/*
 * A sample that stands for v events is one of them, drawn at random. When k of these v are of the
 * tasks that are shown, the sample counts for v with the probability k / v, which has the variance
 * k (v - k). Its expectation is at most that of v (v - 1) for each sample that is shown, and, with
 * these tasks' share p of all events, that of (1 - p) v^2.
 */
bool doubts_event_error(const struct profile *profile, double *ret)
{
    double squares = 0;
    double total = (double)profile_total(profile);
    double counted = (double)sum_of(profile, "counted");
    bool is_exact = false;
    *ret = find_wait_error(profile).standard;
    if (profile->event.is_clock || doubts_event_is_whole(profile)) {
        return true;
    }
    if (is_follower(profile, &is_exact)) {
        return is_exact || (counted > 0 && counted <= total);
    }
    for (size_t i = 0; i < profile->sample_count; i++) {
        double value = (double)profile_value(profile, i);
        squares += value * value;
    }
    double others = counted > total ? 1 - total / counted : 0;
    *ret = sqrt(fmin(squares - total, (counted > 0 ? others : 1) * squares));
    return true;
}

static void missing_samples(const struct profile *profile, const struct summary *summary,
                            FILE *file)
{
    uint64_t read_count = summary->sample_count + profile->unselected_count;
    uint64_t kept = sum_of(profile, "kept");
    if (kept > read_count && percent_of(kept - read_count, kept) > DOUBT_PERCENT) {
        bool is_whole = !profile->input.truncated && !profile->input.damaged;
        (void)fprintf(file, "%" PRIu64 " of %" PRIu64 " kept samples are not in this file, %s",
                      kept - read_count, kept,
                      is_whole ? "but in that of another read" : "which is cut off or damaged");
    }
}

void doubts_write_bookless(FILE *file, const struct profile *profile)
{
    if (profile->bookless_session_count > 0 &&
        profile->bookless_session_count < profile->sampled_session_count) {
        (void)fprintf(file, " of %zu of the %zu sessions", profile->bookless_session_count,
                      profile->sampled_session_count);
    }
}

static void missing_books(const struct profile *profile, const struct summary *summary, FILE *file)
{
    int64_t kept = 0;
    (void)summary;
    if (!books_print_event(profile->books_json, profile->event.name, "kept", &kept)) {
        (void)fputs("there are no books of ", file);
        text_print(file, profile->event.name);
        doubts_write_bookless(file, profile);
        (void)fputs(", so it is not known how much has no sample", file);
    }
}

/* How long the event should have been on. While it is held back it is off; records of switches are
 * off then, and the event of waits goes on. */
static uint64_t whole_time_ns(const struct profile *profile)
{
    const uint64_t enabled_ns = sum_of(profile, "enabled_ns");
    return profile->event.is_wait ? enabled_ns : enabled_ns + sum_of(profile, "held_back_ns");
}

/* Time in which nothing was counted, as a part of that. */
static void write_time(FILE *file, const struct profile *profile, uint64_t time_ns,
                       const char *words, const char **separator)
{
    const uint64_t whole_ns = whole_time_ns(profile);
    if (whole_ns > 0 && percent_of(time_ns, whole_ns) > DOUBT_PERCENT) {
        (void)fprintf(file, "%s%s %.1f %% of the time", *separator, words,
                      percent_of(time_ns, whole_ns));
        *separator = ", ";
    }
}

/* "nothing was counted in 2.0 % of the time, since others had the counter, in 3.0 % ..." */
static void missing_time(const struct profile *profile, const struct summary *summary, FILE *file)
{
    uint64_t enabled_ns = sum_of(profile, "enabled_ns");
    uint64_t running_ns = sum_of(profile, "running_ns");
    const char *separator = "";
    (void)summary;
    write_time(file, profile, sum_of(profile, "throttled_ns"),
               "the kernel's limit of samples stopped it for", &separator);
    write_time(file, profile, sum_of(profile, "held_back_ns"),
               profile->event.is_wait ? "switches came too fast to be recorded in"
                                      : "max_event_rate_hz held it back for",
               &separator);
    write_time(file, profile,
               running_ns > 0 && running_ns < enabled_ns ? enabled_ns - running_ns : 0,
               "other events had its counter for", &separator);
    if (separator[0] != '\0') {
        (void)fputs(profile->event.is_wait ? "; waits then are not certain, and have no sample"
                                           : "; what happened then is not counted",
                    file);
    }
}

static void missing_counts(const struct profile *profile, const struct summary *summary, FILE *file)
{
    char count[TEXT_COUNT_BYTES];
    double percent = 0;
    uint64_t lost = sum_of(profile, "lost");
    uint64_t dropped = sum_of(profile, "dropped");
    (void)summary;
    if (doubts_event_percent(profile, &percent) && 100 - percent > DOUBT_PERCENT) {
        (void)fprintf(file, "%.1f %% of the ", 100 - percent);
        text_print(file, measure_whole(&profile->event));
        (void)fputs(measure_is_one(&profile->event)
                        ? " that was counted of all tasks has no sample"
                        : " that were counted of all tasks have no sample",
                    file);
        if (lost > 0 && profile->event.is_wait) {
            (void)fprintf(file, "; %" PRIu64 " %s not certain, since switches were lost meanwhile",
                          lost, lost == 1 ? "wait is" : "waits are");
        } else if (lost > 0) {
            (void)fprintf(file, "; %s %s lost", text_samples(lost, count),
                          lost == 1 ? "was" : "were");
        }
    } else if (percent_of(dropped, dropped + sum_of(profile, "kept")) > DOUBT_PERCENT) {
        (void)fprintf(file, "%s %s dropped, since the trace buffer was full; read sooner",
                      text_samples(dropped, count), dropped == 1 ? "was" : "were");
    }
}

/* How many waits these threads had is not known. */
static void unfollowed_threads(const struct profile *profile, const struct summary *summary,
                               FILE *file)
{
    (void)summary;
    if (profile->event.is_wait && books_print_counter(profile->books_json, "threads_refused") > 0) {
        (void)fputs("there were more threads than are followed, of one user or of all: the waits "
                    "of the others are missing",
                    file);
    }
}

/* The sums of the threads that are shown, which are no estimate. */
static void write_spent(const struct profile *profile, FILE *file)
{
    if (profile->thread_count > 0) {
        (void)fprintf(file, "; by the books of threads %s ",
                      profile->thread_count == 1 ? "this one was" : "these were");
        doubts_threads_write_spent(file, profile);
        (void)doubts_threads_write_lacks(file, profile, "; ");
    }
}

static void estimated(const struct profile *profile, const struct summary *summary, FILE *file)
{
    char value[MEASURE_WORDS_BYTES];
    const double error_ns = doubts_wait_error_95(profile);
    (void)summary;
    if (100 * error_ns <= DOUBT_PERCENT * (double)profile_total(profile)) {
        return;
    }
    const bool is_part = session_facts_are_of_part(profile);
    (void)fprintf(file,
                  "waits were too many to record each: those that are stand for others, and %s off "
                  "by up to %s (95 %%)",
                  is_part ? "the sum of these is" : "their sum over all tasks is",
                  measure_words(&profile->event, (uint64_t)(error_ns + 0.5), value));
    if (is_part) {
        write_spent(profile, file);
    }
}

/* By how much it is off depends on what other tasks count, and on how long turns are. */
static void estimated_follower(const struct profile *profile, FILE *file)
{
    cleanup_(freep) char *leader = books_print_leader(profile->books_json, profile->event.name);
    const uint64_t counted = sum_of(profile, "counted");
    if (leader == NULL || percent_of(profile_total(profile), counted) >= 100 - DOUBT_PERCENT) {
        return;
    }
    if (is_of_each_switch(profile, leader)) {
        (void)fputs("what the samples stand for is too low by some microseconds a switch: what the "
                    "kernel takes around a sample counts for the next task on that CPU",
                    file);
        return;
    }
    (void)fputs("what the samples stand for is an estimate whose error is not known: what a task "
                "counts after its last sample of ",
                file);
    text_print(file, leader);
    (void)fputs(" counts for the next task on that CPU; where others count less, the sum is too "
                "low",
                file);
}

static void estimated_part(const struct profile *profile, const struct summary *summary, FILE *file)
{
    char value[MEASURE_WORDS_BYTES];
    double error = 0;
    (void)summary;
    if (profile->event.is_wait) {
        return;
    }
    if (!doubts_event_error(profile, &error)) {
        estimated_follower(profile, file);
    } else if (100 * error > DOUBT_PERCENT * (double)profile_total(profile)) {
        (void)fprintf(file,
                      "what the samples stand for is an estimate, since each stands for what its "
                      "CPU counted since the sample before, by any task: it is off by up to %s "
                      "(95 %%)",
                      measure_words(&profile->event, (uint64_t)(2 * error + 0.5), value));
    }
}

doubts_clause_fn *const doubts_of_events[DOUBTS_OF_EVENTS] = {
    missing_samples, missing_books,      missing_counts, missing_time,
    estimated,       unfollowed_threads, estimated_part,
};
