/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Prints a summary: for a person as the sentences that begin and end a view, and as the first and
 * last members of the JSON object. The sentences are written whole and then fitted to the page.
 */
#include "books_print.h"
#include "cleanup.h"
#include "doubts.h"
#include "doubts_events.h"
#include "json_out.h"
#include "measure.h"
#include "percent.h"
#include "session_facts.h"
#include "summary.h"
#include "text_out.h"
#include "thread_sentence.h"

#include <inttypes.h>
#include <time.h>

#define NANOSECONDS INT64_C(1000000000)

/* What samples of another event than the clock stand for: ", which stand for 30,000 faults", or of
 * waits "12.300 s blocked". */
static void write_amount(FILE *file, const struct profile *profile, const struct summary *summary)
{
    const struct profile_event *event = &profile->event;
    char amount[MEASURE_WORDS_BYTES];
    (void)fputs(" of ", file);
    text_print(file, event->name);
    (void)fputs(event->is_wait ? ", " : ", which stand for ", file);
    text_print(file, measure_words(event, summary->total, amount));
    (void)fprintf(file, "%s%s", event->is_wait ? " " : "", profile_event_state(event));
}

static double length_s(const struct profile *profile)
{
    return (double)profile_span(profile).length_ns / 1e9;
}

static void write_time(FILE *file, const char *before, int64_t realtime_ns)
{
    time_t seconds = (time_t)(realtime_ns / NANOSECONDS);
    struct tm when;
    char text[64];
    if (realtime_ns > 0 && localtime_r(&seconds, &when) != NULL &&
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S %Z", &when) > 0) {
        (void)fprintf(file, "%s%s", before, text);
    }
}

/* "web1 (Linux 6.1.0), 2026-11-26 05:24:15 UTC", or "2 hosts: web1, web2; from ... to ..." */
static void write_place(FILE *file, const struct session_facts *facts)
{
    bool is_several = facts->hosts.item_count > 1;
    session_facts_write_host(file, facts);
    if (facts->session_count > 1) {
        write_time(file, is_several ? "; from " : ", from ", facts->realtime_ns);
        write_time(file, " to ", facts->last_realtime_ns);
    } else {
        write_time(file, ", ", facts->realtime_ns);
    }
}

/* "web1 (Linux 6.1.0), 2026-11-26 05:24:15 UTC: the whole machine, 2.0 s at 998.0 Hz; 123 samples,
 * 0.123 CPU-seconds." Of another event: "..., 2.0 s; 12 samples of off-cpu, 1.300 s blocked." */
static void write_session(FILE *file, const struct profile *profile, const struct summary *summary)
{
    struct session_facts facts;
    char count[TEXT_COUNT_BYTES];
    uint64_t period_ns = profile->event.is_clock ? profile_period_ns(profile) : 0;
    session_facts_take(profile, &facts);
    write_place(file, &facts);
    (void)fputs(": ", file);
    session_facts_write_targets(file, &facts);
    (void)fprintf(file, ", %.3f s", length_s(profile));
    if (period_ns > 0) {
        (void)fprintf(file, " at %.1f Hz", 1e9 / (double)period_ns);
    }
    (void)fprintf(file, "; %s", text_samples(summary->sample_count, count));
    if (profile->unselected_count > 0) {
        (void)fprintf(file, " selected of %" PRIu64,
                      summary->sample_count + profile->unselected_count);
    }
    if (profile->event.is_clock && (period_ns > 0 || profile_has_periods(profile))) {
        (void)fprintf(file, ", %.3f CPU-seconds", profile_cpu_seconds(profile));
    }
    if (!profile->event.is_clock) {
        write_amount(file, profile, summary);
    }
    (void)fputs(".\n", file);
    session_facts_done(&facts);
}

/* What a selection leaves as it is: a part of the time has a length of its own. */
static void write_whole(FILE *file, const struct profile *profile, const struct summary *summary)
{
    (void)summary;
    bool has_length = profile->from_ns == 0 && profile->to_ns == 0;
    bool has_books = profile->books_json != NULL;
    if (profile->unselected_count > 0 && (has_length || has_books)) {
        (void)fprintf(file, "%s of the whole recording.\n",
                      !has_books    ? "The length is"
                      : !has_length ? "The books are"
                                    : "The length and the books are");
    }
}

/* The share of a term of the books in all time. Ticks of sessions differ in length where their
 * periods do. */
static bool find_share(const struct profile *profile, const char *term, double *ret_percent)
{
    double part = 0;
    double whole = 0;
    bool differ = profile_period_ns(profile) == 0 && profile_has_periods(profile);
    for (size_t i = 0; i < profile->session_time_count; i++) {
        const struct profile_session_time *time = &profile->session_times[i];
        double length = differ ? (double)time->period_ns : 1;
        int64_t ticks = 0;
        int64_t expected = 0;
        if (time->books_json == NULL) {
            continue;
        }
        if (!books_print_total(time->books_json, term, &ticks) || ticks < 0 ||
            !books_print_total(time->books_json, "expected", &expected) || expected < ticks) {
            return false;
        }
        part += (double)ticks * length;
        whole += (double)expected * length;
    }
    *ret_percent = whole > 0 ? 100 * part / whole : 0;
    return whole > 0;
}

/* "; the CPUs were idle for 12.0 % of the time": a term of the books, where they know it of all
 * that was sampled. */
static void write_part(FILE *file, const struct profile *profile, const char *term,
                       const char *words)
{
    double percent = 0;
    if (profile->books_json != NULL && find_share(profile, term, &percent)) {
        (void)fprintf(file, "; %s %.1f %% of the time", words, percent);
    }
}

/* What of a whole machine's time is in no row: without targets only the profiler itself is
 * filtered. */
static void write_rest(FILE *file, const struct profile *profile)
{
    struct session_facts facts;
    int64_t filtered = 0;
    session_facts_take(profile, &facts);
    if (facts.is_whole) {
        write_part(file, profile, "idle", "the CPUs were idle for");
    }
    if (facts.is_whole && books_print_total(profile->books_json, "filtered", &filtered) &&
        filtered > 0) {
        write_part(file, profile, "filtered", "the profiler itself, which is not shown, took");
    }
    session_facts_done(&facts);
}

/* What is by command. */
static void write_what(FILE *file, const struct profile *profile)
{
    const struct profile_event *event = &profile->event;
    if (event->is_clock) {
        (void)fputs(profile_periods_differ(profile) ? "Samples" : "CPU time", file);
    } else if (event->is_wait) {
        (void)fprintf(file, "Time %s", profile_event_state(event));
    } else {
        text_print(file, event->name);
    }
}

/* "CPU time by command: cc1 62.3 % (45 processes), as 12.0 %, make 3.1 %, 12 more 20.1 %, threads
 * of the kernel 2.5 %." */
static void write_commands(FILE *file, const struct profile *profile, const struct summary *summary)
{
    uint64_t rest = summary->total - summary->kernel_thread_count;
    uint64_t more = summary->command_count;
    if (summary->sample_count == 0) {
        return;
    }
    write_what(file, profile);
    (void)fputs(" by command:", file);
    for (size_t i = 0; i < SUMMARY_COMMANDS_MAX && summary->commands[i].value > 0; i++) {
        const struct summary_command *command = &summary->commands[i];
        (void)fputs(i == 0 ? " " : ", ", file);
        text_print(file, profile_text(profile, command->name));
        (void)fprintf(file, " %.1f %%", percent_of(command->value, summary->total));
        if (command->process_count > 1) {
            (void)fprintf(file, " (%" PRIu64 " processes)", command->process_count);
        }
        rest -= command->value;
        more--;
    }
    if (more > 0) {
        (void)fprintf(file, ", %" PRIu64 " more %.1f %%", more, percent_of(rest, summary->total));
    }
    if (summary->kernel_thread_count > 0) {
        (void)fprintf(file, "%s threads of the kernel %.1f %%",
                      summary->command_count > 0 ? "," : "",
                      percent_of(summary->kernel_thread_count, summary->total));
    }
    if (profile->event.is_clock) {
        write_rest(file, profile);
    }
    (void)fputs(".\n", file);
}

struct writing {
    FILE *file;
    bool has_title;
};

static void on_doubt(const char *text, void *userdata)
{
    struct writing *writing = userdata;
    (void)fprintf(writing->file, "%s- %s\n", writing->has_title ? "" : "But mind:\n", text);
    writing->has_title = true;
}

/* A line each. */
static void write_doubts(FILE *file, const struct profile *profile, const struct summary *summary)
{
    struct writing writing = {.file = file};
    (void)doubts_find(profile, summary, on_doubt, &writing);
}

static void on_no_matter(const char *text, void *userdata)
{
    (void)text;
    (void)userdata;
}

/* What is not missing: of another event than the clock what was counted. */
static void write_event_praise(FILE *file, const struct profile *profile)
{
    double percent = 0;
    if (doubts_event_percent(profile, &percent)) {
        (void)fprintf(file, ", and samples stand for %.2f %% of the ", percent);
        text_print(file, measure_whole(&profile->event));
        (void)fputs(measure_is_one(&profile->event) ? " that was counted" : " that were counted",
                    file);
    }
    (void)fputs(".\n", file);
}

static void write_praise(FILE *file, const struct profile *profile, const struct summary *summary)
{
    uint64_t stacks = summary->total - summary->none_count;
    uint64_t missing = 0;
    uint64_t expected = 0;
    if (doubts_find(profile, summary, on_no_matter, NULL) > 0 || summary->sample_count == 0) {
        return;
    }
    (void)fprintf(file, "Nothing casts doubt on it: %.1f %% of the stacks are whole",
                  stacks == 0 ? 100 : percent_of(summary->complete_count, stacks));
    if (!profile->event.is_clock) {
        write_event_praise(file, profile);
        return;
    }
    (void)fputs(", and ", file);
    doubts_count_missing(profile, &missing, &expected);
    if (percent_of(missing, expected) < 1) {
        (void)fputs("less than 1 % of the ticks are missing.\n", file);
    } else {
        (void)fprintf(file, "%" PRIu64 " of %" PRIu64 " ticks %s missing.\n", missing, expected,
                      missing == 1 ? "is" : "are");
    }
}

/* Prints what `write` writes. */
static void print_sentence(const struct page *page, enum page_style style,
                           const struct profile *profile, const struct summary *summary,
                           void (*write)(FILE *, const struct profile *, const struct summary *))
{
    struct page_text text;
    if (page_text_begin(&text)) {
        write(text.file, profile, summary);
        page_text_end(&text, page, style);
    }
}

void summary_print_session(const struct page *page, const struct profile *profile,
                           const struct summary *summary)
{
    print_sentence(page, PAGE_PLAIN, profile, summary, write_session);
}

void summary_print_head(const struct page *page, const struct profile *profile,
                        const struct summary *summary)
{
    summary_print_session(page, profile, summary);
    print_sentence(page, PAGE_PLAIN, profile, summary, write_whole);
    print_sentence(page, PAGE_PLAIN, profile, summary, write_commands);
    print_sentence(page, PAGE_PLAIN, profile, summary, write_praise);
    print_sentence(page, PAGE_WARNING, profile, summary, write_doubts);
    (void)fputc('\n', page->file);
    if (profile->event.is_clock) {
        thread_sentence_print(page, profile, summary->path);
    } else if (profile->event.is_wait) {
        thread_sentence_print_ready(page, profile, summary->path);
    }
}

static void write_stacks(FILE *file, const struct profile *profile, const struct summary *summary)
{
    uint64_t stacks = summary->total - summary->none_count;
    if (!profile->event.is_clock) {
        (void)fputs("stacks, by what they stand for, in ", file);
        text_print(file, profile->event.unit);
        (void)fputs(": ", file);
    } else {
        (void)fputs("stacks: ", file);
    }
    (void)fprintf(file, "%" PRIu64 " complete (%.2f %%), ", summary->complete_count,
                  percent_of(summary->complete_count, stacks));
    if (summary->unproved_count > 0) {
        (void)fprintf(file, "%" PRIu64 " not proved, ", summary->unproved_count);
    }
    (void)fprintf(file, "%" PRIu64 " truncated", summary->truncated_count);
    if (summary->stitched_count > 0) {
        (void)fprintf(file, " (%" PRIu64 " stitched)", summary->stitched_count);
    }
    (void)fprintf(file, "; without one: %" PRIu64 " of kernel threads, %" PRIu64 " others\n",
                  summary->kernel_thread_count, summary->none_count - summary->kernel_thread_count);
}

/* Whether some sessions have books and others have none. */
static bool has_partial_books(const struct profile *profile)
{
    return profile->bookless_session_count > 0 &&
           profile->bookless_session_count < profile->sampled_session_count;
}

static void write_partial_books(FILE *file, const struct profile *profile,
                                const struct summary *summary)
{
    (void)summary;
    (void)fprintf(file,
                  "books: not of %zu of the %zu sessions; the account of ticks comes with the last "
                  "part of a session\n",
                  profile->bookless_session_count, profile->sampled_session_count);
}

void summary_print_foot(const struct page *page, const struct profile *profile,
                        const struct summary *summary, bool has_table)
{
    if (has_table) {
        print_sentence(page, PAGE_PLAIN, profile, summary, write_stacks);
        (void)fputc('\n', page->file);
    }
    if (has_partial_books(profile)) {
        print_sentence(page, PAGE_PLAIN, profile, summary, write_partial_books);
    } else if (has_table) {
        books_print_table(page, profile->books_json);
    } else if (!profile->event.is_clock) {
        books_print_event_brief(page, profile->books_json, profile->event.name);
    } else {
        books_print_brief(page, profile->books_json);
    }
    if (profile->event.is_wait) {
        thread_sentence_print_exact(page, profile);
    }
}

static void print_period(struct json_out *out, uint64_t period_ns)
{
    if (period_ns > 0) {
        json_out_u64(out, "period_ns", period_ns);
    } else {
        json_out_raw(out, "period_ns", NULL);
    }
}

static void print_error(struct json_out *out, const struct profile *profile)
{
    double error = 0;
    if (doubts_event_error(profile, &error)) {
        json_out_double(out, "standard_error", error);
    } else {
        json_out_raw(out, "standard_error", NULL);
    }
}

void summary_json_head(struct json_out *out, const struct profile *profile,
                       const struct summary *summary)
{
    uint64_t period_ns = profile->event.is_clock ? profile_period_ns(profile) : 0;
    json_out_begin(out, NULL, '{');
    json_out_u64(out, "samples", profile->event.is_clock ? summary->total : summary->sample_count);
    if (!profile->event.is_clock) {
        json_out_string(out, "event", profile->event.name);
        json_out_string(out, "unit", profile->event.unit);
        json_out_u64(out, "value", summary->total);
        print_error(out, profile);
        if (profile->event.is_wait) {
            json_out_double(out, "error_95", doubts_wait_error_95(profile));
        }
    }
    print_period(out, period_ns);
    json_out_u64(out, "duration_ns", profile_span(profile).length_ns);
}

static void on_json_doubt(const char *text, void *userdata)
{
    json_out_string(userdata, NULL, text);
}

/* Of several sessions, what each has. */
static void print_json_sessions(struct json_out *out, const struct profile *profile)
{
    if (profile->session_count <= 1) {
        return;
    }
    json_out_begin(out, "sessions", '[');
    for (size_t i = 0; i < profile->session_time_count; i++) {
        const struct profile_session_time *time = &profile->session_times[i];
        struct session_facts facts;
        if (time->session_json == NULL) {
            continue;
        }
        session_facts_take_one(time->session_json, &facts);
        json_out_begin(out, NULL, '{');
        json_out_string(out, "host", facts.host);
        json_out_string(out, "kernel", facts.kernel);
        json_out_string(out, "targets", facts.targets);
        json_out_string(out, "cpus", facts.cpus);
        print_period(out, time->period_ns);
        json_out_u64(out, "duration_ns", time->length_ns);
        json_out_raw(out, "books", time->books_json);
        json_out_end(out, '}');
        session_facts_done(&facts);
    }
    json_out_end(out, ']');
}

static void print_json_summary(struct json_out *out, const struct profile *profile,
                               const struct summary *summary)
{
    struct session_facts facts;
    session_facts_take(profile, &facts);
    json_out_begin(out, "summary", '{');
    json_out_string(out, "host", facts.host);
    json_out_string(out, "kernel", facts.kernel);
    json_out_string(out, "targets", facts.targets);
    json_out_string(out, "command", facts.command);
    print_json_sessions(out, profile);
    json_out_double(out, "length_s", length_s(profile));
    if (profile->event.is_clock) {
        json_out_double(out, "cpu_s", profile_cpu_seconds(profile));
    } else {
        json_out_raw(out, "cpu_s", NULL);
    }
    json_out_u64(out, "in_kernel", summary->in_kernel_count);
    json_out_u64(out, "kernel_unseen", summary->kernel_unseen_count);
    json_out_u64(out, "command_count", summary->command_count);
    json_out_begin(out, "commands", '[');
    for (size_t i = 0; i < SUMMARY_COMMANDS_MAX && summary->commands[i].value > 0; i++) {
        json_out_begin(out, NULL, '{');
        json_out_string(out, "name", profile_text(profile, summary->commands[i].name));
        json_out_u64(out, "processes", summary->commands[i].process_count);
        json_out_u64(out, profile->event.is_clock ? "samples" : "value",
                     summary->commands[i].value);
        json_out_end(out, '}');
    }
    json_out_end(out, ']');
    thread_sentence_print_json_sum(out, profile);
    json_out_begin(out, "doubts", '[');
    (void)doubts_find(profile, summary, on_json_doubt, out);
    json_out_end(out, ']');
    json_out_end(out, '}');
    session_facts_done(&facts);
}

void summary_json_foot(struct json_out *out, const struct profile *profile,
                       const struct summary *summary)
{
    json_out_begin(out, "stacks", '{');
    json_out_u64(out, "complete", summary->complete_count);
    json_out_u64(out, "unproved", summary->unproved_count);
    json_out_u64(out, "truncated", summary->truncated_count);
    json_out_u64(out, "stitched", summary->stitched_count);
    json_out_u64(out, "none", summary->none_count);
    json_out_u64(out, "kernel_threads", summary->kernel_thread_count);
    json_out_end(out, '}');
    json_out_raw(out, "books", profile->books_json);
    print_json_summary(out, profile, summary);
    json_out_end(out, '}');
    (void)fputc('\n', out->file);
}
