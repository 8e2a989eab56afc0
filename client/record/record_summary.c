/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Prints the outcome of a recording. The result goes to the stream that the caller names; what may
 * make the result less than it seems (an early end, targets without a sample, samples that are not
 * in the file) is complained about on standard error in either form.
 */
#include "record_summary.h"

#include "books_print.h"
#include "clock.h"
#include "json_out.h"
#include "options.h"
#include "page.h"
#include "record_targets.h"
#include "recording_length.h"
#include "text_out.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A command that has a CPU for less of a longer time hardly had one. */
#define HARDLY_PERCENT 5
#define LONG_NS        (NS_PER_S / 10)

static uint64_t length_ns(const struct record_outcome *outcome)
{
    return recording_length_ns(outcome->scan->books_json, outcome->sampled_ns);
}

static double length_s(const struct record_outcome *outcome)
{
    return (double)length_ns(outcome) / (double)NS_PER_S;
}

void record_summary_complain_empty(const struct record_outcome *outcome)
{
    const struct record_request *request = outcome->request;
    const char *path = request->output_path;
    const bool asks_for_waits = request->has_waits || request->min_wait_us > 0;
    const char *hint = asks_for_waits ? "" : "; --wall records what it waits for";
    char targets[RECORD_TARGETS_BYTES];
    char kept[512] = "";
    if (strcmp(path, "-") != 0) {
        (void)snprintf(kept, sizeof kept, "; %.400s %s", path,
                       access(path, F_OK) == 0 ? "is unchanged" : "is not written");
    }
    if (request->command != NULL && !request->whole_machine) {
        (void)complain("no sample of '%s' was taken in %.3f s; nothing was recorded%s%s",
                       request->command[0], length_s(outcome), kept, hint);
    } else if (request->targets != NULL) {
        bool has_tasks = cJSON_GetObjectItemCaseSensitive(request->targets, "pids") != NULL ||
                         cJSON_GetObjectItemCaseSensitive(request->targets, "tids") != NULL;
        (void)record_targets_describe(request->targets, targets);
        if (has_tasks) {
            (void)complain("%s did not run; nothing was recorded%s%s", targets, kept, hint);
        } else {
            (void)complain("no process matched %s; nothing was recorded%s", targets, kept);
        }
    } else if (request->config_path != NULL) {
        (void)complain("nothing that %s asks for has run; nothing was recorded%s",
                       request->config_path, kept);
    } else {
        (void)complain("no CPU was busy when a sample was due; nothing was recorded%s", kept);
    }
}

/* Says how to see more of a command that hardly had a CPU: what it did on one is not why it took so
 * long. */
static void hint_at_waits(const struct record_outcome *outcome)
{
    const struct record_request *request = outcome->request;
    const char *books = outcome->scan->books_json;
    double all_ns = (double)length_ns(outcome);
    double cpu_ns = (double)books_print_kept(books) * (double)books_print_period_ns(books);
    if (request->command != NULL && !request->whole_machine && outcome->threads->count == 0 &&
        !outcome->is_empty && outcome->scan->fault.code == 0 && books != NULL &&
        all_ns >= (double)LONG_NS && 100 * cpu_ns < HARDLY_PERCENT * all_ns) {
        (void)complain("note: '%s' had a CPU for %.1f %% of the time; --wall records what it waits "
                       "for",
                       request->command[0], 100 * cpu_ns / all_ns);
    }
}

/* Complains about pids that are targets and have no sample, beside others that have. */
static void complain_unseen_pids(const struct record_outcome *outcome)
{
    const struct record_scan *scan = outcome->scan;
    for (size_t i = 0; i < scan->pid_count && scan->fault.code == 0 && !outcome->is_empty; i++) {
        if (!scan->is_pid_seen[i]) {
            (void)complain("process %d has no sample: it did not run", scan->pids[i]);
        }
    }
}

bool record_outcome_is_cut(const struct record_outcome *outcome)
{
    return strcmp(outcome->stopped_by, "shutdown") == 0 ||
           strcmp(outcome->stopped_by, "max_unread") == 0;
}

/* Complains about a recording that did not end at its time. */
static void complain_odd_end(const struct record_outcome *outcome)
{
    static const struct {
        const char *by; /* what Stop replies */
        const char *text;
    } ends[] = {
        {"shutdown", "the daemon is ending: it was told to, by a signal or its service manager"},
        {"max_duration", "the session's max_duration_s is over"},
        {"max_unread", "the session was not read for max_unread_s of daemon.json"},
    };
    if (outcome->is_limited && strcmp(outcome->stopped_by, "max_duration") == 0) {
        (void)complain("note: sampling went on for %.3f s, not %.3g s: profctl got no CPU in time, "
                       "was stopped, or waited for what it writes to",
                       length_s(outcome), (double)outcome->request->duration_ns / 1e9);
        return;
    }
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        if (strcmp(outcome->stopped_by, ends[i].by) == 0) {
            (void)complain("%s: sampling ended by itself after %.3f s: %s",
                           record_outcome_is_cut(outcome) ? "warning" : "note", length_s(outcome),
                           ends[i].text);
        }
    }
}

/* Complains about what makes the recording less than it seems. */
static void complain_gaps(const struct record_outcome *outcome)
{
    const struct record_scan *scan = outcome->scan;
    uint64_t kept = books_print_kept(scan->books_json);
    if (scan->fault.code != 0) {
        (void)complain("the recording %s; nothing more can be said about it", scan->fault.text);
    } else if (kept > scan->sample_count) {
        (void)complain("warning: %" PRIu64 " of the %" PRIu64 " kept samples are not in this file",
                       kept - scan->sample_count, kept);
    }
    if (outcome->threads->left_out_count > 0) {
        (void)complain("warning: the times of %" PRIu64 " threads are not in these sums: at most "
                       "%zu processes are, and the file has all",
                       outcome->threads->left_out_count, THREAD_SUMS_MAX);
    }
    complain_odd_end(outcome);
    complain_unseen_pids(outcome);
    hint_at_waits(outcome);
}

static void write_first_lines(FILE *to, const struct record_outcome *outcome)
{
    const struct record_request *request = outcome->request;
    const char *books = outcome->scan->books_json;
    char text[RECORD_CHILD_TEXT_BYTES];
    char rate[TEXT_RATE_BYTES];
    char targets[TARGET_WATCH_TEXT_BYTES];
    char count[TEXT_COUNT_BYTES];
    char size[32];
    if (outcome->ended_targets != NULL) {
        (void)fprintf(to, "%s; recorded %.1f s\n",
                      target_watch_describe(outcome->ended_targets, targets), length_s(outcome));
    }
    if (request->command != NULL) {
        text_print(to, request->command[0]);
        (void)fprintf(to, ": %s\n", record_child_describe(outcome->child, text));
    }
    (void)fprintf(to, "%s in %.3f s%s", text_samples(outcome->scan->sample_count, count),
                  length_s(outcome), text_rate(books_print_period_ns(books), rate));
    if (!outcome->is_empty) {
        (void)fprintf(to, ", %s", text_size(outcome->size_bytes, size));
        if (strcmp(request->output_path, "-") != 0) {
            (void)fputs(" in ", to);
            text_print(to, request->output_path);
        }
    }
    (void)fputc('\n', to);
    output_print_old(to, outcome->output);
}

static void print_first_lines(FILE *to, const struct record_outcome *outcome)
{
    struct page page;
    struct page_text text;
    page_describe_summary(to, &page);
    if (page_text_begin(&text)) {
        write_first_lines(text.file, outcome);
        page_text_end(&text, &page, PAGE_PLAIN);
    }
}

/* What shows the recording: the clock's samples, and the waits, or how long they were. */
static void print_last_lines(FILE *to, const struct record_outcome *outcome)
{
    const char *path = outcome->request->output_path;
    struct page page;
    page_describe_summary(to, &page);
    if (outcome->scan->sample_count > 0 || outcome->threads->count == 0) {
        page_print_command(&page, "profctl report", path, "shows where the time went");
    }
    int64_t wait_count = 0;
    (void)books_print_event(outcome->scan->books_json, "off-cpu", "kept", &wait_count);
    if (wait_count > 0) {
        page_print_command(&page, "profctl report --event off-cpu", path,
                           "shows what threads waited for");
    } else if (outcome->threads->count > 0) {
        page_print_command(&page, "profctl report --threads", path,
                           "shows for how long threads were blocked");
    }
}

/* Whether what was written can be read again: not from a pipe or /dev/null. */
static bool is_readable(const char *path)
{
    struct stat status;
    return strcmp(path, "-") != 0 && (stat(path, &status) < 0 || S_ISREG(status.st_mode));
}

void record_summary_print(FILE *to, const struct record_outcome *outcome)
{
    print_first_lines(to, outcome);
    complain_gaps(outcome);
    if (outcome->request->shows_books) {
        (void)fputc('\n', to);
        books_print_print(to, outcome->scan->books_json);
    } else if (!outcome->is_empty) {
        const struct unread_modules *found = &outcome->scan->unread;
        const struct books_unread unread = {found->paths, found->count,
                                            unread_modules_has_kernel(found)};
        books_print_short(to, outcome->scan->books_json, "--books", &unread);
    }
    thread_sums_print(to, outcome->threads);
    if (!outcome->is_empty && is_readable(outcome->request->output_path)) {
        (void)fputs(outcome->request->shows_books ? "\n" : "", to);
        print_last_lines(to, outcome);
    }
}

static void print_command(struct json_out *out, const struct record_outcome *outcome)
{
    if (outcome->child->pid <= 0) {
        json_out_raw(out, "command", NULL);
        return;
    }
    json_out_begin(out, "command", '{');
    json_out_u64(out, "pid", (uint64_t)outcome->child->pid);
    json_out_raw(out, "running", outcome->child->is_running ? "true" : "false");
    json_out_i64(out, "status", record_child_status(outcome->child));
    json_out_end(out, '}');
}

void record_summary_print_json(FILE *to, const struct record_outcome *outcome)
{
    struct json_out out = {.file = to};
    const char *books = outcome->scan->books_json;
    complain_gaps(outcome);
    json_out_begin(&out, NULL, '{');
    json_out_string(&out, "file", outcome->is_empty ? NULL : outcome->request->output_path);
    json_out_string(&out, "old_file", output_old_path(outcome->output));
    json_out_u64(&out, "size_bytes", outcome->is_empty ? 0 : outcome->size_bytes);
    json_out_u64(&out, "samples", outcome->scan->sample_count);
    json_out_u64(&out, "event_samples", outcome->scan->event_sample_count);
    json_out_u64(&out, "period_ns", books_print_period_ns(books));
    json_out_u64(&out, "duration_ns", length_ns(outcome));
    json_out_string(&out, "stopped_by", outcome->stopped_by);
    print_command(&out, outcome);
    json_out_raw(&out, "books", books);
    if (outcome->threads->count > 0) {
        thread_sums_print_json(&out, outcome->threads);
    }
    json_out_end(&out, '}');
    (void)fputc('\n', to);
}
