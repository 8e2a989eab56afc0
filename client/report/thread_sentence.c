/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Writes the sum of the books of the threads that are selected (docs/books.md#threads). They are no
 * estimate, whatever was sampled: so the sum says how much CPU time, which most views show, is of
 * all, and for how much of the waits the samples stand. doubts_threads.c knows where they are not
 * whole. A thread is ready after it was preempted, which is an event; after it was woken, which is
 * the end of a wait of off-cpu; and after its start, which is in no event. Only the sum has the
 * last two apart from the first.
 */
#include "thread_sentence.h"

#include "books_print.h"
#include "doubts_threads.h"
#include "json_out.h"
#include "measure.h"
#include "percent.h"
#include "session_facts.h"
#include "text_out.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define LITTLE_PERCENT 1  /* of the ready time */
#define ABOUT_PARTS    10 /* by which so much of a thread's ready time may be off */
#define MUCH_PERCENT   5  /* of the time of a view */
#define READY_PERCENT  10 /* of the time for which threads had a CPU, or wanted one */

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
    const struct thread_split sum = profile_threads_sum(profile);
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

/* The ready time of a thread for which it has no samples of preemptions. */
static uint64_t other_ready_ns(const struct profile_thread *thread)
{
    const struct thread_split *times = &thread->times;
    return times->ready_ns > times->preempted_ns
               ? (uint64_t)times->ready_ns - (uint64_t)times->preempted_ns
               : 0;
}

/* That after wakings, and a start. Where switches alone tell the times, they do not have wakings.
 */
static uint64_t woken_ns(const struct profile_thread *thread)
{
    return thread->is_unread ? 0 : other_ready_ns(thread);
}

/* A new thread is ready from its fork to its first run. One that never waited for anything was
 * ready then, and not after a waking. */
static bool is_only_begun(const struct profile_thread *thread)
{
    return thread->voluntary_count == 0 && thread->times.blocked_ns <= 0 &&
           doubts_threads_is_explained(thread);
}

/* Whether the samples of a thread have all its waits of off-cpu, and so that time, too. */
static bool is_sampled(const struct profile_thread *thread)
{
    const uint64_t ready_ns = woken_ns(thread);
    const uint64_t blocked_ns =
        thread->times.blocked_ns > 0 ? (uint64_t)thread->times.blocked_ns : 0;
    const uint64_t wait_ns = blocked_ns + ready_ns;
    const uint64_t apart_ns =
        thread->off_cpu_ns < wait_ns ? wait_ns - thread->off_cpu_ns : thread->off_cpu_ns - wait_ns;
    return apart_ns <= ready_ns / ABOUT_PARTS;
}

/* The ready time of all threads that follows no preemption. */
struct woken {
    uint64_t time_ns;
    uint64_t begun_ns;     /* after the start of threads, for certain */
    uint64_t unsampled_ns; /* in rows of off-cpu only in part, or not */
    uint64_t unread_ns;    /* by switches alone, and in none of the above: it has no waking */
    const struct profile_thread *most;
};

static struct woken find_woken(const struct profile *profile)
{
    struct woken woken = {.most = &profile->threads[0]};
    for (size_t i = 0; i < profile->thread_count; i++) {
        const struct profile_thread *thread = &profile->threads[i];
        const uint64_t time_ns = woken_ns(thread);
        woken.time_ns += time_ns;
        woken.begun_ns += is_only_begun(thread) ? time_ns : 0;
        woken.unsampled_ns += is_sampled(thread) ? 0 : time_ns;
        woken.unread_ns += thread->is_unread ? other_ready_ns(thread) : 0;
        woken.most = time_ns > woken_ns(woken.most) ? thread : woken.most;
    }
    return woken;
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
                           const struct woken *woken, const char *path)
{
    const bool is_ready = is_ready_much(sum);
    if (is_ready && (uint64_t)sum->preempted_ns >= woken->time_ns) {
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

/* Some preemptions have no sample, and their time is in no row. */
static bool has_unsampled_preemptions(const struct profile *profile)
{
    int64_t short_ns = 0;
    int64_t lost_ns = 0;
    (void)books_print_event(profile->books_json, PROFILE_EVENT_PREEMPTED, "short_ns", &short_ns);
    (void)books_print_event(profile->books_json, PROFILE_EVENT_PREEMPTED, "lost_ns", &lost_ns);
    return short_ns > 0 || lost_ns > 0;
}

void thread_sentence_print(const struct page *page, const struct profile *profile, const char *path)
{
    const struct thread_split sum = profile_threads_sum(profile);
    struct page_text text;
    if (profile->thread_count == 0 || !page_text_begin(&text)) {
        return;
    }
    const struct woken woken = find_woken(profile);
    thread_sentence_write(text.file, profile);
    if (is_ready_much(&sum)) {
        const bool has_rest = percent_of(woken.time_ns, (uint64_t)sum.ready_ns) > LITTLE_PERCENT;
        (void)fprintf(text.file, " Of the ready time %.1f %% followed preemptions%s.",
                      percent_of((uint64_t)sum.preempted_ns, (uint64_t)sum.ready_ns),
                      !has_rest                            ? ""
                      : has_unsampled_preemptions(profile) ? ", the rest wakings, the start of "
                                                             "threads or preemptions without a "
                                                             "sample"
                                                           : ", the rest wakings or the start of "
                                                             "threads");
    }
    if (doubts_threads_write_lacks(text.file, profile, " Mind: ")) {
        (void)fputc('.', text.file);
    }
    (void)fputs(" The rows below are of the running time.\n", text.file);
    page_text_end(&text, page, PAGE_PLAIN);
    if (path != NULL) {
        print_commands(page, &sum, &woken, path);
    }
    (void)fputc('\n', page->file);
}

/* "; 'svc' (tid 3636) had the most, 0.608 s", where there are several. */
static void write_most_woken(FILE *file, const struct profile *profile, const struct woken *woken)
{
    if (profile->thread_count == 1) {
        return;
    }
    (void)fputs("; ", file);
    if (woken->most->task.thread_name != INTERN_NONE) {
        (void)fputc('\'', file);
        text_print(file, profile_text(profile, woken->most->task.thread_name));
        (void)fputs("' ", file);
    }
    (void)fprintf(file, "(tid %" PRIu64 ") had the most, %.3f s%s", woken->most->task.tid,
                  (double)woken_ns(woken->most) / 1e9,
                  is_only_begun(woken->most) ? ", after its start" : "");
}

/* Of preempted. Returns whether some of the ready time is elsewhere. */
static bool write_preempted_part(FILE *file, const struct profile *profile,
                                 const struct thread_split *sum, const struct woken *woken)
{
    const uint64_t ready_ns = (uint64_t)sum->ready_ns;
    const bool has_rest = percent_of(woken->time_ns, ready_ns) > LITTLE_PERCENT;
    (void)fprintf(file, "%.2f %% of the %.3f s for which %s ready is in these rows",
                  percent_of((uint64_t)sum->preempted_ns, ready_ns), (double)ready_ns / 1e9,
                  profile->thread_count == 1 ? "the thread was" : "the threads were");
    if (has_rest && woken->begun_ns == woken->time_ns) {
        (void)fprintf(file, ". Another %.3f s followed the start of %s, and is in no event",
                      (double)woken->time_ns / 1e9,
                      profile->thread_count == 1 ? "the thread" : "threads");
    } else if (has_rest) {
        (void)fprintf(file,
                      ". Another %.3f s followed wakings, and is in off-cpu, at the end of waits, "
                      "or followed the start of %s, and is in no event%s",
                      (double)woken->time_ns / 1e9,
                      profile->thread_count == 1 ? "the thread" : "threads",
                      has_unsampled_preemptions(profile)
                          ? ", or is of preemptions without a sample, which were shorter than "
                            "min_wait_us or are not certain"
                          : "");
    }
    if (has_rest) {
        write_most_woken(file, profile, woken);
    } else if (percent_of(woken->unread_ns, ready_ns) > LITTLE_PERCENT) {
        (void)fputs(". Ready time from the start of a thread to its first run is in no event",
                    file);
    }
    return has_rest;
}

/* Of off-cpu, where samples do not have all of that time: it is that of the lines. */
static void write_woken_of_lines(FILE *file, const struct profile *profile,
                                 const struct woken *woken)
{
    const bool is_one = profile->thread_count == 1;
    (void)fprintf(file, "By %s the %s ready for %s%.3f s after ",
                  is_one ? "its line" : "their lines", is_one ? "thread was" : "threads were",
                  doubts_threads_at_least(profile), (double)woken->time_ns / 1e9);
    if (woken->begun_ns == woken->time_ns) {
        (void)fprintf(file, "%s start, which is in no event", is_one ? "its" : "their");
    } else {
        (void)fprintf(file,
                      "wakings, at the end of waits, or after %s start, which is in no event; how "
                      "much of that is in these rows is not known",
                      is_one ? "its" : "their");
    }
}

/* Of off-cpu. */
static bool write_woken_part(FILE *file, const struct profile *profile,
                             const struct thread_split *sum, const struct woken *woken)
{
    const uint64_t total_ns = profile_total(profile);
    if (woken->time_ns == 0 ||
        (percent_of(woken->time_ns, total_ns) < MUCH_PERCENT && !is_ready_much(sum))) {
        return false;
    }
    if (percent_of(woken->unsampled_ns, woken->time_ns) > LITTLE_PERCENT) {
        write_woken_of_lines(file, profile, woken);
    } else {
        (void)fprintf(file,
                      "%.3f s of this, %.1f %%, was ready time at the end of waits: %s been woken, "
                      "and had no CPU yet",
                      (double)woken->time_ns / 1e9, percent_of(woken->time_ns, total_ns),
                      profile->thread_count == 1 ? "the thread had" : "the threads had");
    }
    write_most_woken(file, profile, woken);
    return true;
}

void thread_sentence_print_ready(const struct page *page, const struct profile *profile,
                                 const char *path)
{
    const struct thread_split sum = profile_threads_sum(profile);
    const bool is_preempted = strcmp(profile->event.name, PROFILE_EVENT_PREEMPTED) == 0;
    struct page_text text;
    if (profile->thread_count == 0 || sum.ready_ns <= 0 || !page_text_begin(&text)) {
        return;
    }
    const struct woken woken = find_woken(profile);
    const bool has_more = is_preempted ? write_preempted_part(text.file, profile, &sum, &woken)
                                       : write_woken_part(text.file, profile, &sum, &woken);
    if (is_preempted || has_more) {
        (void)fputc('.', text.file);
        (void)doubts_threads_write_lacks(text.file, profile, " Mind: ");
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

void thread_sentence_print_exact(const struct page *page, const struct profile *profile)
{
    const struct thread_split sum = profile_threads_sum(profile);
    const bool is_preempted = strcmp(profile->event.name, PROFILE_EVENT_PREEMPTED) == 0;
    const int64_t exact_ns = is_preempted ? sum.ready_ns : sum.blocked_ns;
    int64_t short_ns = 0;
    struct page_text text;
    if (profile->thread_count == 0 || !session_facts_are_of_part(profile) ||
        !page_text_begin(&text)) {
        return;
    }
    (void)fprintf(text.file, "threads: the %zu shown %s ", profile->thread_count,
                  profile->thread_count == 1 ? "was" : "were");
    doubts_threads_write_spent(text.file, profile);
    (void)fprintf(text.file, "; these samples stand for %.3f s%s",
                  (double)profile_total(profile) / 1e9,
                  is_preempted ? " of the ready time; that after a thread was woken is in off-cpu, "
                                 "at the end of what it waited for, and that after its start in no "
                                 "event"
                               : ", with the ready time after a thread was woken");
    (void)books_print_event(profile->books_json, profile->event.name, "short_ns", &short_ns);
    if (short_ns > 0 && (double)profile_total(profile) < 0.99 * (double)exact_ns) {
        (void)fprintf(text.file,
                      "; waits shorter than min_wait_us (--min-wait) have no sample, %.3f s of "
                      "them on the machine",
                      (double)short_ns / 1e9);
    }
    (void)doubts_threads_write_lacks(text.file, profile, "; ");
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
    const struct thread_split sum = profile_threads_sum(profile);
    if (profile->thread_count > 0) {
        json_out_begin(out, "threads", '{');
        json_out_u64(out, "count", profile->thread_count);
        thread_sentence_print_json_times(out, &sum);
        json_out_end(out, '}');
    }
}
