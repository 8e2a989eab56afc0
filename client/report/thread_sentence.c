/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Sums the books of the threads that are selected (docs/books.md#threads). They are exact, whatever
 * was sampled: so the sum says how much CPU time, which most views show, is of all, and for how
 * much of the waits the samples stand.
 */
#include "thread_sentence.h"

#include "books_print.h"
#include "json_out.h"
#include "session_facts.h"

#include <math.h>
#include <string.h>

struct thread_split thread_sentence_sum(const struct profile *profile)
{
    struct thread_split sum = {0};
    for (size_t i = 0; i < profile->thread_count; i++) {
        thread_split_add(&sum, &profile->threads[i].times);
    }
    return sum;
}

/* ", ready 2.096 s (25.4 %)" */
static void write_part(FILE *file, const char *before, const char *state, int64_t time_ns,
                       const struct thread_split *sum)
{
    (void)fprintf(file, "%s%s %.3f s", before, state, (double)time_ns / 1e9);
    if (sum->wall_ns > 0) {
        (void)fprintf(file, " (%.1f %%)", 100 * (double)time_ns / (double)sum->wall_ns);
    }
}

void thread_sentence_write(FILE *file, const struct profile *profile)
{
    const struct thread_split sum = thread_sentence_sum(profile);
    (void)fprintf(file, "Time of %zu thread%s:", profile->thread_count,
                  profile->thread_count == 1 ? "" : "s");
    write_part(file, " ", "running", sum.running_ns, &sum);
    write_part(file, ", ", "ready", sum.ready_ns, &sum);
    write_part(file, ", ", "blocked", sum.blocked_ns, &sum);
    bool is_unexplained = fabs((double)sum.unexplained_ns) >= 0.01 * (double)sum.wall_ns;
    if (is_unexplained) {
        write_part(file, ", ", "unexplained", sum.unexplained_ns, &sum);
    }
    (void)fputc('.', file);
    int64_t held_back_ns = 0;
    if (is_unexplained &&
        books_print_event(profile->books_json, PROFILE_EVENT_OFF_CPU, "held_back_ns",
                          &held_back_ns) &&
        held_back_ns > 0) {
        (void)fprintf(file,
                      " Switches came too fast to be recorded for %.3f s of a CPU: a higher "
                      "max_cost_percent in the config of record leaves less unexplained.",
                      (double)held_back_ns / 1e9);
    }
}

void thread_sentence_print(const struct page *page, const struct profile *profile, const char *path)
{
    const struct thread_split sum = thread_sentence_sum(profile);
    const bool is_ready = sum.ready_ns > sum.blocked_ns;
    struct page_text text;
    if (profile->thread_count == 0 || !page_text_begin(&text)) {
        return;
    }
    thread_sentence_write(text.file, profile);
    (void)fputs(" The rows below are of the running time.\n", text.file);
    page_text_end(&text, page, PAGE_PLAIN);
    if (path != NULL) {
        page_print_command(
            page, is_ready ? "profctl report --event preempted" : "profctl report --event off-cpu",
            path, is_ready ? "shows where threads were ready" : "shows where threads were blocked");
    }
    (void)fputc('\n', page->file);
}

static size_t unread_count(const struct profile *profile)
{
    size_t count = 0;
    for (size_t i = 0; i < profile->thread_count; i++) {
        count += profile->threads[i].is_unread;
    }
    return count;
}

void thread_sentence_write_unread(FILE *file, const struct profile *profile, const char *before)
{
    const size_t count = unread_count(profile);
    if (count > 0) {
        (void)fprintf(file,
                      "%sblocked time of the %zu that had ended has the ready time after each "
                      "waking, too",
                      before, count);
    }
}

static bool are_part(const struct profile *profile)
{
    struct session_facts facts;
    session_facts_take(profile, &facts);
    bool is_part = profile->has_chosen_threads || !facts.is_whole;
    session_facts_done(&facts);
    return profile->thread_count > 0 && is_part;
}

/* Why samples stand for less than the books of threads have. */
static void write_causes(FILE *file, const struct profile *profile, const struct thread_split *sum,
                         int64_t exact_ns)
{
    int64_t short_ns = 0;
    (void)books_print_event(profile->books_json, profile->event.name, "short_ns", &short_ns);
    if (short_ns > 0 && (double)profile_total(profile) < 0.99 * (double)exact_ns) {
        (void)fprintf(
            file,
            "; waits shorter than min_wait_us (--min-wait) have no sample, %.3f s of them "
            "on the machine",
            (double)short_ns / 1e9);
    }
    if ((double)sum->unexplained_ns > 0.01 * (double)sum->wall_ns) {
        (void)fprintf(file,
                      "; %.3f s of theirs is unexplained, as where switches were not recorded",
                      (double)sum->unexplained_ns / 1e9);
    }
}

void thread_sentence_print_exact(const struct page *page, const struct profile *profile)
{
    const struct thread_split sum = thread_sentence_sum(profile);
    const bool is_preempted = strcmp(profile->event.name, PROFILE_EVENT_PREEMPTED) == 0;
    const int64_t exact_ns = is_preempted ? sum.ready_ns : sum.blocked_ns;
    struct page_text text;
    if (!are_part(profile) || !page_text_begin(&text)) {
        return;
    }
    (void)fprintf(
        text.file,
        "threads: the %zu shown %s blocked for %.3f s and ready for %.3f s%s; these samples stand "
        "for %.3f s%s",
        profile->thread_count, profile->thread_count == 1 ? "was" : "were",
        (double)sum.blocked_ns / 1e9, (double)sum.ready_ns / 1e9,
        unread_count(profile) > 0 ? "" : ", exactly", (double)profile_total(profile) / 1e9,
        is_preempted ? " of the ready time; that after a thread was woken is in off-cpu, at the "
                       "end of what it waited for"
                     : ", with the ready time after a thread was woken");
    write_causes(text.file, profile, &sum, exact_ns);
    thread_sentence_write_unread(text.file, profile, "; ");
    (void)fputc('\n', text.file);
    page_text_end(&text, page, PAGE_PLAIN);
}

void thread_sentence_print_json_times(struct json_out *out, const struct thread_split *times)
{
    json_out_i64(out, "wall_ns", times->wall_ns);
    json_out_i64(out, "running_ns", times->running_ns);
    json_out_i64(out, "waiting_ns", times->ready_ns);
    json_out_i64(out, "blocked_ns", times->blocked_ns);
    json_out_i64(out, "unexplained_ns", times->unexplained_ns);
}

void thread_sentence_print_json_sum(struct json_out *out, const struct profile *profile)
{
    const struct thread_split sum = thread_sentence_sum(profile);
    if (profile->thread_count > 0) {
        json_out_begin(out, "threads", '{');
        json_out_u64(out, "count", profile->thread_count);
        thread_sentence_print_json_times(out, &sum);
        json_out_end(out, '}');
    }
}
