/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Sums the books of the threads that are selected (docs/books.md#threads). They are exact, whatever
 * was sampled: so the sum says how much CPU time, which most views show, is of all, and for how
 * much of the waits the samples stand. A thread is ready after it was preempted, which is an event,
 * and after it was woken, which is in no view but the sum: the end of each wait of off-cpu.
 */
#include "thread_sentence.h"

#include "books_print.h"
#include "json_out.h"
#include "measure.h"
#include "percent.h"
#include "session_facts.h"
#include "text_out.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define LITTLE_PERCENT 1  /* of the ready time */
#define MUCH_PERCENT   5  /* of the time of a view */
#define READY_PERCENT  10 /* of the time for which threads had a CPU, or wanted one */

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

/* The ready time after threads were woken. */
static uint64_t woken_ns(const struct thread_split *times)
{
    return times->ready_ns > times->preempted_ns
               ? (uint64_t)times->ready_ns - (uint64_t)times->preempted_ns
               : 0;
}

/* Threads lacked a CPU for a part of the time that is worth a look. */
static bool is_ready_much(const struct thread_split *sum)
{
    return sum->ready_ns > 0 && sum->running_ns >= 0 &&
           percent_of((uint64_t)sum->ready_ns,
                      (uint64_t)sum->ready_ns + (uint64_t)sum->running_ns) >= READY_PERCENT;
}

static void print_ready_command(const struct page *page, const char *path)
{
    if (path != NULL) {
        page_print_command(page, "profctl report --threads", path,
                           "has the ready time of each thread");
    }
}

/* Which view has most of what the sentence says. */
static void print_commands(const struct page *page, const struct thread_split *sum,
                           const char *path)
{
    const bool is_ready = is_ready_much(sum);
    if (is_ready && (uint64_t)sum->preempted_ns >= woken_ns(sum)) {
        page_print_command(page, "profctl report --event preempted", path,
                           "shows where threads were preempted");
    } else if (is_ready) {
        print_ready_command(page, path);
    }
    if (!is_ready || sum->blocked_ns >= sum->ready_ns) {
        page_print_command(page, "profctl report --event off-cpu", path,
                           "shows where threads were blocked");
    }
}

void thread_sentence_print(const struct page *page, const struct profile *profile, const char *path)
{
    const struct thread_split sum = thread_sentence_sum(profile);
    struct page_text text;
    if (profile->thread_count == 0 || !page_text_begin(&text)) {
        return;
    }
    thread_sentence_write(text.file, profile);
    if (is_ready_much(&sum)) {
        (void)fprintf(text.file,
                      " Of the ready time %.1f %% followed preemptions, the rest wakings.",
                      percent_of((uint64_t)sum.preempted_ns, (uint64_t)sum.ready_ns));
    }
    if (unread_count(profile) > 0) {
        thread_sentence_write_unread(text.file, profile, " Mind: ");
        (void)fputc('.', text.file);
    }
    (void)fputs(" The rows below are of the running time.\n", text.file);
    page_text_end(&text, page, PAGE_PLAIN);
    if (path != NULL) {
        print_commands(page, &sum, path);
    }
    (void)fputc('\n', page->file);
}

/* "; 'svc' (tid 3636) had the most, 0.608 s", where there are several. */
static void write_most_woken(FILE *file, const struct profile *profile)
{
    const struct profile_thread *most = &profile->threads[0];
    for (size_t i = 1; i < profile->thread_count; i++) {
        const struct profile_thread *thread = &profile->threads[i];
        most = woken_ns(&thread->times) > woken_ns(&most->times) ? thread : most;
    }
    if (profile->thread_count == 1) {
        return;
    }
    (void)fputs("; ", file);
    if (most->task.thread_name != INTERN_NONE) {
        (void)fputc('\'', file);
        text_print(file, profile_text(profile, most->task.thread_name));
        (void)fputs("' ", file);
    }
    (void)fprintf(file, "(tid %" PRIu64 ") had the most, %.3f s", most->task.tid,
                  (double)woken_ns(&most->times) / 1e9);
}

/* Of preempted. Returns whether some of the ready time is elsewhere. */
static bool write_preempted_part(FILE *file, const struct profile *profile,
                                 const struct thread_split *sum)
{
    const uint64_t ready_ns = (uint64_t)sum->ready_ns;
    int64_t short_ns = 0;
    (void)books_print_event(profile->books_json, profile->event.name, "short_ns", &short_ns);
    const bool has_rest = percent_of(woken_ns(sum), ready_ns) > LITTLE_PERCENT;
    (void)fprintf(file, "%.2f %% of the %.3f s for which %s ready is in these rows",
                  percent_of((uint64_t)sum->preempted_ns, ready_ns), (double)ready_ns / 1e9,
                  profile->thread_count == 1 ? "the thread was" : "the threads were");
    if (has_rest) {
        (void)fprintf(file, ". The rest followed wakings%s, and is in off-cpu, at the end of waits",
                      short_ns > 0 ? " or was shorter than min_wait_us" : "");
        write_most_woken(file, profile);
    }
    return has_rest;
}

/* Of off-cpu. */
static bool write_woken_part(FILE *file, const struct profile *profile,
                             const struct thread_split *sum)
{
    const uint64_t total_ns = profile_total(profile);
    const uint64_t ready_ns = woken_ns(sum);
    if (ready_ns == 0 || ready_ns > total_ns ||
        (percent_of(ready_ns, total_ns) < MUCH_PERCENT && !is_ready_much(sum))) {
        return false;
    }
    (void)fprintf(file,
                  "%.3f s of this, %.1f %%, was ready time at the end of waits: %s been woken, and "
                  "had no CPU yet",
                  (double)ready_ns / 1e9, percent_of(ready_ns, total_ns),
                  profile->thread_count == 1 ? "the thread had" : "the threads had");
    write_most_woken(file, profile);
    return true;
}

void thread_sentence_print_ready(const struct page *page, const struct profile *profile,
                                 const char *path)
{
    const struct thread_split sum = thread_sentence_sum(profile);
    const bool is_preempted = strcmp(profile->event.name, PROFILE_EVENT_PREEMPTED) == 0;
    struct page_text text;
    if (profile->thread_count == 0 || sum.ready_ns <= 0 || !page_text_begin(&text)) {
        return;
    }
    const bool has_more = is_preempted ? write_preempted_part(text.file, profile, &sum)
                                       : write_woken_part(text.file, profile, &sum);
    if (is_preempted || has_more) {
        (void)fputc('.', text.file);
        thread_sentence_write_unread(text.file, profile, " Mind: ");
        (void)fputc('\n', text.file);
    }
    page_text_end(&text, page, PAGE_PLAIN);
    if (has_more) {
        print_ready_command(page, path);
    }
    if (is_preempted || has_more) {
        (void)fputc('\n', page->file);
    }
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
    if (profile->thread_count == 0 || !session_facts_are_of_part(profile) ||
        !page_text_begin(&text)) {
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
    json_out_i64(out, "preempted_ns", times->preempted_ns);
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
