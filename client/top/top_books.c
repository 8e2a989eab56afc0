/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Counts of a session only grow, so a difference is never below 0, whatever a daemon says. CPUs are
 * matched by their numbers, since they come and go.
 */
#include "top_books.h"

#include "cleanup.h"
#include "json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t count_of(const cJSON *object, const char *name)
{
    int64_t count = 0;
    (void)json_read_integer(cJSON_GetObjectItemCaseSensitive(object, name), 0, JSON_INTEGER_MAX,
                            &count);
    return (uint64_t)count;
}

static uint64_t less(uint64_t count, uint64_t before)
{
    return count > before ? count - before : 0;
}

void top_books_done(struct top_books *books)
{
    free(books->cpus);
    *books = (struct top_books){0};
}

/* Ticks that were taken, or would have been, from a CPU that was not idle. */
static uint64_t busy_of(const cJSON *cpu)
{
    return count_of(cpu, "received") + count_of(cpu, "lost") + count_of(cpu, "throttled") +
           count_of(cpu, "missed");
}

int top_books_read(const cJSON *books, const char *session, uint64_t time_ns, struct top_books *ret)
{
    const cJSON *total = cJSON_GetObjectItemCaseSensitive(books, "total");
    const cJSON *cpus = cJSON_GetObjectItemCaseSensitive(books, "cpus");
    const cJSON *cpu = NULL;
    if (!cJSON_IsObject(total) || !cJSON_IsArray(cpus)) {
        return -EBADMSG;
    }
    struct top_books read = {
        .time_ns = time_ns,
        .period_ns = count_of(books, "period_ns"),
        .expected = count_of(total, "expected"),
        .lost = count_of(total, "lost"),
        .missed = count_of(total, "missed") + count_of(total, "throttled"),
        .dropped = count_of(total, "dropped"),
        .cpus = calloc(TOP_CPUS_MAX, sizeof *read.cpus),
    };
    if (read.cpus == NULL) {
        return -ENOMEM;
    }
    const uint64_t other = count_of(total, "filtered") + read.dropped;
    read.wanted = less(count_of(total, "received"), other);
    (void)snprintf(read.session, sizeof read.session, "%s", session);
    cJSON_ArrayForEach(cpu, cpus)
    {
        if (read.cpu_count < TOP_CPUS_MAX) {
            read.cpus[read.cpu_count++] = (struct top_cpu){
                .cpu = (uint32_t)count_of(cpu, "cpu"),
                .expected = count_of(cpu, "expected"),
                .busy = busy_of(cpu),
            };
        }
    }
    struct top_cpu *smaller = realloc(read.cpus, (read.cpu_count + 1) * sizeof *smaller);
    read.cpus = smaller == NULL ? read.cpus : smaller;
    *ret = read;
    return 0;
}

static void forget(struct top_history *history, size_t number)
{
    top_books_done(&history->points[number]);
    history->count--;
    memmove(&history->points[number], &history->points[number + 1],
            (history->count - number) * sizeof *history->points);
}

void top_history_done(struct top_history *history)
{
    while (history->count > 0) {
        forget(history, history->count - 1);
    }
}

void top_history_add(struct top_history *history, struct top_books *books)
{
    uint64_t step_ns = history->window_ns / TOP_BOOKS_POINTS;
    if (history->count > 0 && strcmp(history->points[0].session, books->session) != 0) {
        top_history_done(history);
    }
    /* The last one is always the newest; those before it stand a step apart. */
    if (history->count > 1 &&
        history->points[history->count - 1].time_ns - history->points[history->count - 2].time_ns <
            step_ns) {
        forget(history, history->count - 1);
    }
    while (
        history->count > TOP_BOOKS_POINTS ||
        (history->count > 1 && history->points[1].time_ns + history->window_ns <= books->time_ns)) {
        forget(history, 0);
    }
    history->points[history->count++] = *books;
    *books = (struct top_books){0};
}

bool top_first_look_is_due(struct top_first_look *look, const struct top_history *history,
                           uint64_t now_ns, uint64_t taken_count)
{
    const struct top_books *newest =
        history->count == 0 ? NULL : &history->points[history->count - 1];
    if (!look->is_counted && newest != NULL && newest->time_ns >= look->due_ns) {
        look->is_counted = true;
        look->wanted_count = newest->wanted;
    }
    return (look->is_counted && taken_count >= look->wanted_count) ||
           now_ns >= look->due_ns + TOP_FIRST_LOOK_NS;
}

uint64_t top_history_pending(const struct top_history *history, uint64_t taken_count)
{
    return history->count == 0 ? 0 : less(history->points[history->count - 1].wanted, taken_count);
}

/* The same CPU before, or all zero. CPUs mostly stand at the same place. */
static struct top_cpu cpu_before(const struct top_books *first, const struct top_cpu *cpu,
                                 size_t place)
{
    if (place < first->cpu_count && first->cpus[place].cpu == cpu->cpu) {
        return first->cpus[place];
    }
    for (size_t i = 0; i < first->cpu_count; i++) {
        if (first->cpus[i].cpu == cpu->cpu) {
            return first->cpus[i];
        }
    }
    return (struct top_cpu){0};
}

int top_history_difference(const struct top_history *history, struct top_books *ret)
{
    *ret = (struct top_books){0};
    if (history->count == 0) {
        return 0;
    }
    const struct top_books *last = &history->points[history->count - 1];
    const struct top_books *first = history->count > 1 ? &history->points[0] : ret;
    struct top_books made = *last;
    made.cpus = calloc(last->cpu_count + 1, sizeof *made.cpus);
    if (made.cpus == NULL) {
        return -ENOMEM;
    }
    made.expected = less(last->expected, first->expected);
    made.lost = less(last->lost, first->lost);
    made.missed = less(last->missed, first->missed);
    made.dropped = less(last->dropped, first->dropped);
    for (size_t i = 0; i < last->cpu_count; i++) {
        struct top_cpu before = cpu_before(first, &last->cpus[i], i);
        made.cpus[i] = (struct top_cpu){
            .cpu = last->cpus[i].cpu,
            .expected = less(last->cpus[i].expected, before.expected),
            .busy = less(last->cpus[i].busy, before.busy),
        };
    }
    *ret = made;
    return 0;
}
