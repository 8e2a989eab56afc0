/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lines come thread by thread, in any order, and as many as threads began. They are kept one by
 * one, and those of a process are brought together by sorting: when there is no place left, and
 * when all have come. Of too many processes those with the highest pids are left out, and so are
 * their later lines: no sum lacks a part of its threads.
 */
#include "thread_sums.h"

#include "grow.h"
#include "page.h"
#include "text_out.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN_MAX    ((size_t)5)
#define NAME_WIDTH   ((size_t)16)
#define TABLE_WIDTH  ((size_t)79)
#define NARROW_WIDTH ((size_t)30)          /* of the numbers on a narrow page, with their gaps */
#define LINES_MAX    (2 * THREAD_SUMS_MAX) /* before they are brought together */

void thread_sums_done(struct thread_sums *sums)
{
    free(sums->all);
    *sums = (struct thread_sums){0};
}

/* The leader goes first. */
static int by_process(const void *left, const void *right)
{
    const struct thread_sum *a = left;
    const struct thread_sum *b = right;
    return a->pid != b->pid ? (a->pid > b->pid) - (a->pid < b->pid)
                            : (int)b->has_leader - (int)a->has_leader;
}

/* Leaves one sum of each process, in the order of their pids. */
static void bring_together(struct thread_sums *sums)
{
    size_t count = 0;
    qsort(sums->all, sums->count, sizeof *sums->all, by_process);
    for (size_t i = 0; i < sums->count; i++) {
        struct thread_sum *thread = &sums->all[i];
        if (count > 0 && sums->all[count - 1].pid == thread->pid) {
            sums->all[count - 1].thread_count += thread->thread_count;
            sums->all[count - 1].unread_count += thread->unread_count;
            thread_split_add(&sums->all[count - 1].times, &thread->times);
        } else {
            sums->all[count++] = *thread;
        }
    }
    for (; count > THREAD_SUMS_MAX; count--) {
        sums->left_out_count += sums->all[count - 1].thread_count;
        sums->last_pid = sums->all[count - 2].pid;
        sums->is_cut = true;
    }
    sums->count = count;
}

int thread_sums_take(const cJSON *line, void *userdata)
{
    struct thread_sums *sums = userdata;
    struct thread_books books;
    if (!thread_books_read(line, &books)) {
        return 0;
    }
    if (sums->is_cut && books.pid > sums->last_pid) {
        sums->left_out_count++;
        return 0;
    }
    if (sums->count == LINES_MAX) {
        bring_together(sums);
    }
    if (grow(sums->all, sums->capacity, sums->count + 1) < 0) {
        return -ENOMEM;
    }
    struct thread_sum *sum = &sums->all[sums->count++];
    *sum = (struct thread_sum){
        .pid = books.pid,
        .thread_count = 1,
        .unread_count = books.is_unread,
        .has_leader = books.tid == books.pid,
        .times = books.times,
    };
    (void)snprintf(sum->name, sizeof sum->name, "%s", books.name == NULL ? "" : books.name);
    return 0;
}

static int by_activity(const void *left, const void *right)
{
    const struct thread_sum *a = left;
    const struct thread_sum *b = right;
    const int64_t a_ns = a->times.running_ns + a->times.ready_ns;
    const int64_t b_ns = b->times.running_ns + b->times.ready_ns;
    return a_ns != b_ns ? (a_ns < b_ns) - (a_ns > b_ns) : (a->pid > b->pid) - (a->pid < b->pid);
}

void thread_sums_order(struct thread_sums *sums)
{
    if (sums->count == 0) {
        return;
    }
    bring_together(sums);
    qsort(sums->all, sums->count, sizeof *sums->all, by_activity);
}

static double ms(int64_t time_ns)
{
    return (double)time_ns / 1e6;
}

static void print_row(FILE *to, const struct thread_sum *sum, size_t name_width, bool is_narrow)
{
    (void)fprintf(to, "%7" PRId64 " ", sum->pid);
    text_print_fitted(to, sum->name[0] == '\0' ? "[unknown]" : sum->name, name_width, true);
    if (is_narrow) {
        (void)fprintf(to, " %10.1f %10.1f\n", ms(sum->times.running_ns), ms(sum->times.blocked_ns));
    } else {
        (void)fprintf(to, " %7" PRIu64 " %10.1f %10.1f %11.1f %11.1f\n", sum->thread_count,
                      ms(sum->times.running_ns), ms(sum->times.ready_ns), ms(sum->times.blocked_ns),
                      ms(sum->times.unexplained_ns));
    }
}

/* Says what the times of threads that were not read again do not tell apart. */
static void print_unread(const struct page *page, const struct thread_sums *sums, size_t shown)
{
    struct page_text text;
    uint64_t count = 0;
    for (size_t i = 0; i < shown; i++) {
        count += sums->all[i].unread_count;
    }
    if (count > 0 && page_text_begin(&text)) {
        if (count == 1) {
            (void)fputs("blocked_ms of the thread that had ended or could not be read again",
                        text.file);
        } else {
            (void)fprintf(text.file,
                          "blocked_ms of the %" PRIu64
                          " threads that had ended or could not be read again",
                          count);
        }
        (void)fputs(" has the ready time after each waking, too\n", text.file);
        page_text_end(&text, page, PAGE_PLAIN);
    }
}

void thread_sums_print(FILE *to, const struct thread_sums *sums)
{
    const size_t shown = sums->count < SHOWN_MAX ? sums->count : SHOWN_MAX;
    size_t name_width = NAME_WIDTH;
    struct page page;
    if (shown == 0) {
        return;
    }
    page_describe_summary(to, &page);
    bool is_narrow = page.columns < TABLE_WIDTH;
    if (is_narrow && page.columns < NARROW_WIDTH + NAME_WIDTH) {
        name_width = page.columns - NARROW_WIDTH;
    }
    (void)fputs("\n    pid ", to);
    text_print_padded(to, "process", name_width);
    (void)fputs(is_narrow ? " running_ms blocked_ms\n"
                          : " threads running_ms   ready_ms  blocked_ms unexplained\n",
                to);
    for (size_t i = 0; i < shown; i++) {
        print_row(to, &sums->all[i], name_width, is_narrow);
    }
    if (shown < sums->count) {
        (void)fprintf(to, "and %zu more processes\n", sums->count - shown);
    }
    print_unread(&page, sums, shown);
}

void thread_sums_print_json(struct json_out *out, const struct thread_sums *sums)
{
    json_out_begin(out, "processes", '[');
    for (size_t i = 0; i < sums->count; i++) {
        const struct thread_sum *sum = &sums->all[i];
        json_out_begin(out, NULL, '{');
        json_out_i64(out, "pid", sum->pid);
        json_out_string(out, "name", sum->name[0] == '\0' ? NULL : sum->name);
        json_out_u64(out, "threads", sum->thread_count);
        json_out_i64(out, "wall_ns", sum->times.wall_ns);
        json_out_i64(out, "running_ns", sum->times.running_ns);
        json_out_i64(out, "waiting_ns", sum->times.ready_ns);
        json_out_i64(out, "blocked_ns", sum->times.blocked_ns);
        json_out_i64(out, "unexplained_ns", sum->times.unexplained_ns);
        json_out_end(out, '}');
    }
    json_out_end(out, ']');
}
