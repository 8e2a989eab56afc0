/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Makes a session's books from the counts of the collector and the kernel. Counts only steal by
 * itself, from /proc/stat. A CPU that was never online since the session was created is left out.
 */
#include "session_books.h"

#include "books.h"
#include "cleanup.h"
#include "cpu_time.h"

#include <string.h>

/* Of a CPU that is offline: /proc/stat has no line for it. */
#define STEAL_UNKNOWN UINT64_MAX

struct session_books {
    const struct perf_source *source;
    bool running;
    struct cpu_time *since; /* cpu_count of the source; /proc/stat as it was at the last start */
    struct cpu_time *now;   /* of them: what it is read into */
    uint64_t *steal_ns;     /* of them: over the times that sampling ran */
};

struct session_books *session_books_new(const struct perf_source *source)
{
    struct session_books *books = calloc(1, sizeof *books);
    if (books == NULL) {
        return NULL;
    }
    books->source = source;
    books->since = calloc(source->cpu_count, sizeof *books->since);
    books->steal_ns = calloc(source->cpu_count, sizeof *books->steal_ns);
    books->now = calloc(source->cpu_count, sizeof *books->now);
    if (books->since == NULL || books->steal_ns == NULL || books->now == NULL) {
        return session_books_free(books);
    }
    for (size_t i = 0; i < source->cpu_count; i++) {
        books->since[i].cpu = source->cpus[i].cpu;
    }
    return books;
}

struct session_books *session_books_free(struct session_books *books)
{
    if (books != NULL) {
        free(books->since);
        free(books->now);
        free(books->steal_ns);
        free(books);
    }
    return NULL;
}

/* Adds what was stolen since the last start to `steal_ns`. The kernel's columns may go back by a
 * tick; time does not. Nothing is more than STEAL_UNKNOWN. */
static void add_steal(const struct session_books *books, uint64_t *steal_ns)
{
    size_t cpu_count = books->source->cpu_count;
    struct cpu_time *now = books->now;
    memcpy(now, books->since, cpu_count * sizeof *now);
    if (cpu_time_read(now, cpu_count) < 0) {
        return;
    }
    for (size_t i = 0; i < cpu_count; i++) {
        uint64_t since_ns = books->since[i].steal_ns;
        steal_ns[i] += now[i].steal_ns > since_ns ? now[i].steal_ns - since_ns : 0;
    }
}

void session_books_start(struct session_books *books)
{
    books->running = true;
    for (size_t i = 0; i < books->source->cpu_count; i++) {
        books->since[i].steal_ns = STEAL_UNKNOWN;
    }
    session_books_look(books);
}

void session_books_look(struct session_books *books)
{
    size_t cpu_count = books->source->cpu_count;
    struct cpu_time *now = books->now;
    memcpy(now, books->since, cpu_count * sizeof *now);
    (void)cpu_time_read(now, cpu_count);
    for (size_t i = 0; i < cpu_count; i++) {
        if (books->since[i].steal_ns == STEAL_UNKNOWN) {
            books->since[i].steal_ns = now[i].steal_ns;
        }
    }
}

void session_books_stop(struct session_books *books)
{
    add_steal(books, books->steal_ns);
    books->running = false;
}

/* The source of a CPU's idle time; static text. */
static const char *name_idle_source(const struct perf_source *source,
                                    const struct tick_counts *ticks, const char *fallback)
{
    bool is_cpuidle = strcmp(fallback, "cpuidle") == 0;
    if (!source->has_switches) {
        return fallback;
    }
    if (ticks->blind == 0) {
        return "switches";
    }
    return is_cpuidle ? "switches,cpuidle" : "switches,proc_stat";
}

/*
 * A LOST record is written when the next record fits, so what is lost last is never told of by one;
 * the kernel's own count knows that too, where it has one, and the records where it has none. The
 * larger of the two has every sample that was lost.
 */
static struct books_cpu account_cpu(const struct session_books *books, size_t index,
                                    const struct collector_cpu *cpu, const char *fallback)
{
    const struct drain_cpu_counts *counts = &cpu->drain;
    const struct tick_counts *ticks = &counts->ticks;
    uint64_t kernel_lost = cpu->kernel.lost_count;
    return (struct books_cpu){
        .cpu = books->since[index].cpu,
        .running_ns = cpu->kernel.time_running_ns,
        .received = counts->received,
        .lost = kernel_lost > ticks->lost ? kernel_lost : ticks->lost,
        .throttled = ticks->throttled,
        .missed = ticks->missed,
        .crowded = ticks->crowded,
        .idle = ticks->idle,
        .held = ticks->samples > counts->received ? ticks->samples - counts->received : 0,
        .kept = counts->kept,
        .filtered = counts->filtered,
        .dropped = counts->dropped,
        .offline_ns = cpu->offline_ns,
        .idle_source = name_idle_source(books->source, ticks, fallback),
    };
}

char *session_books_print(const struct session_books *books, struct collector *collector,
                          uint64_t period_ns, bool totals_only)
{
    size_t cpu_count = books->source->cpu_count;
    size_t known_count = 0;
    struct collector_counts counts;
    cleanup_(freep) struct collector_cpu *collected = calloc(cpu_count, sizeof *collected);
    cleanup_(freep) struct books_cpu *cpus = calloc(cpu_count, sizeof *cpus);
    cleanup_(freep) uint64_t *steal_ns = calloc(cpu_count, sizeof *steal_ns);
    if (collected == NULL || cpus == NULL || steal_ns == NULL) {
        return NULL;
    }
    memcpy(steal_ns, books->steal_ns, cpu_count * sizeof *steal_ns);
    if (books->running) {
        add_steal(books, steal_ns);
    }
    collector_snapshot(collector, &counts, collected);
    for (size_t i = 0; i < cpu_count; i++) {
        if (collected[i].known) {
            cpus[known_count] = account_cpu(books, i, &collected[i], counts.idle_source);
            cpus[known_count++].steal_ns = steal_ns[i];
        }
    }
    return books_print(&(struct books){
        .period_ns = period_ns,
        .cpus = cpus,
        .cpu_count = known_count,
        .totals_only = totals_only,
        .counters = counts.counters,
    });
}
