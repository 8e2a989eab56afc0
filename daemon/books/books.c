/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Sums and prints the books. The lines come from cpu_books.c, and what became of the samples from
 * their sink. Only
 * `unexplained` is the result of a subtraction.
 */
#include "books.h"

#include "cleanup.h"
#include "extremes.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

uint64_t books_expected(const struct books *books, const struct books_cpu *cpu)
{
    uint64_t ticks = (cpu->running_ns + books->period_ns / 2) / books->period_ns;
    return ticks > cpu->held ? ticks - cpu->held : 0;
}

int64_t books_unexplained(const struct books *books, const struct books_cpu *cpu)
{
    return (int64_t)(books_expected(books, cpu) - cpu->received - cpu->lost - cpu->throttled -
                     cpu->missed - cpu->idle);
}

static void print_counts(FILE *out, const struct books_cpu *cpu, uint64_t expected,
                         int64_t unexplained)
{
    (void)fprintf(out,
                  "\"expected\":%" PRIu64 ",\"received\":%" PRIu64 ",\"lost\":%" PRIu64
                  ",\"throttled\":%" PRIu64 ",\"missed\":%" PRIu64 ",\"idle\":%" PRIu64
                  ",\"unexplained\":%" PRId64 ",\"kept\":%" PRIu64 ",\"filtered\":%" PRIu64
                  ",\"dropped\":%" PRIu64 ",\"steal_ns\":%" PRIu64 ",\"offline_ns\":%" PRIu64
                  ",\"crowded\":%" PRIu64,
                  expected, cpu->received, cpu->lost, cpu->throttled, cpu->missed, cpu->idle,
                  unexplained, cpu->kept, cpu->filtered, cpu->dropped, cpu->steal_ns,
                  cpu->offline_ns, cpu->crowded);
}

/* What was counted, less what waits. */
static uint64_t counted_of(const struct books_event *line, uint64_t period)
{
    uint64_t held = line->held_weight * (period > 0 ? period : 1);
    return line->counted > held ? line->counted - held : 0;
}

static int64_t unexplained_of(const struct books_event *line, const struct books_event_name *name)
{
    const uint64_t period = name->period;
    uint64_t lost = period > 0 ? line->lost : 0;
    if (name->is_wait) {
        lost = line->lost_weight + line->short_weight;
    }
    return (int64_t)(counted_of(line, period) - (line->weight + lost) * (period > 0 ? period : 1));
}

double books_error_95(const struct books_event *line)
{
    return 2 * sqrt(line->variance) + (double)line->largest_weight / 2;
}

static void print_event_counts(FILE *out, const struct books_event *line,
                               const struct books_event_name *name)
{
    const uint64_t period = name->period;
    (void)fprintf(out,
                  "\"counted\":%" PRIu64 ",\"sampled\":%" PRIu64 ",\"unexplained\":%" PRId64
                  ",\"received\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"kept\":%" PRIu64
                  ",\"filtered\":%" PRIu64 ",\"dropped\":%" PRIu64 ",\"throttled\":%" PRIu64
                  ",\"throttled_ns\":%" PRIu64 ",\"held_back_ns\":%" PRIu64
                  ",\"enabled_ns\":%" PRIu64 ",\"running_ns\":%" PRIu64,
                  counted_of(line, period), line->weight * (period > 0 ? period : 1),
                  unexplained_of(line, name), line->received, line->lost, line->kept,
                  line->filtered, line->dropped, line->throttled, line->throttled_ns,
                  line->held_back_ns, line->enabled_ns, line->running_ns);
    if (name->is_wait) {
        (void)fprintf(out,
                      ",\"lost_ns\":%" PRIu64 ",\"short\":%" PRIu64 ",\"short_ns\":%" PRIu64
                      ",\"without_stack\":%" PRIu64 ",\"lost_samples\":%" PRIu64
                      ",\"not_sampled\":%" PRIu64 ",\"standard_error_ns\":%.0f"
                      ",\"error_95_ns\":%.0f",
                      line->lost_weight, line->short_count, line->short_weight, line->bare,
                      line->unread_count, line->thinned_count, sqrt(line->variance),
                      books_error_95(line));
    }
}

static void add_event(struct books_event *total, const struct books_event *line)
{
    total->counted += line->counted;
    total->weight += line->weight;
    total->held_weight += line->held_weight;
    total->received += line->received;
    total->lost += line->lost;
    total->kept += line->kept;
    total->filtered += line->filtered;
    total->dropped += line->dropped;
    total->throttled += line->throttled;
    total->throttled_ns += line->throttled_ns;
    total->held_back_ns += line->held_back_ns;
    total->enabled_ns += line->enabled_ns;
    total->running_ns += line->running_ns;
    total->lost_weight += line->lost_weight;
    total->short_count += line->short_count;
    total->short_weight += line->short_weight;
    total->bare += line->bare;
    total->unread_count += line->unread_count;
    total->thinned_count += line->thinned_count;
    total->variance += line->variance;
    total->largest_weight = max_u64(total->largest_weight, line->largest_weight);
}

/* The name stands in the config too; here it is a JSON string since names have no character that
 * is escaped. */
static void print_event(FILE *out, const struct books *books, size_t event)
{
    const struct books_event_name *name = &books->events[event];
    struct books_event total = {0};
    const char *comma = "";
    (void)fprintf(out, "{\"event\":\"%s\",\"unit\":\"%s\",\"period\":%" PRIu64, name->name,
                  name->unit, name->period);
    if (name->leader != NULL) {
        (void)fprintf(out, ",\"leader\":\"%s\"", name->leader);
    }
    (void)fputs(",\"cpus\":[", out);
    for (size_t i = 0; i < books->cpu_count; i++) {
        const struct books_cpu *cpu = &books->cpus[i];
        if (cpu->is_known) {
            add_event(&total, &cpu->events[event]);
        }
        if (cpu->is_known && !books->totals_only) {
            (void)fprintf(out, "%s{\"cpu\":%" PRIu32 ",", comma, cpu->cpu);
            print_event_counts(out, &cpu->events[event], name);
            (void)fputc('}', out);
            comma = ",";
        }
    }
    (void)fprintf(out, "],\"total\":{");
    print_event_counts(out, &total, name);
    (void)fprintf(out, "}}");
}

static void print_events(FILE *out, const struct books *books)
{
    if (books->event_count == 0) {
        return;
    }
    (void)fprintf(out, ",\"events\":[");
    for (size_t i = 0; i < books->event_count; i++) {
        (void)fputs(i > 0 ? "," : "", out);
        print_event(out, books, i);
    }
    (void)fputc(']', out);
}

static void print_cpus(FILE *out, const struct books *books)
{
    const char *comma = "";
    for (size_t i = 0; i < books->cpu_count; i++) {
        const struct books_cpu *cpu = &books->cpus[i];
        if (cpu->is_known) {
            (void)fprintf(out, "%s{\"cpu\":%" PRIu32 ",", comma, cpu->cpu);
            print_counts(out, cpu, books_expected(books, cpu), books_unexplained(books, cpu));
            (void)fprintf(out, ",\"idle_source\":\"%s\"}", cpu->idle_source);
            comma = ",";
        }
    }
}

static void add_cpu(struct books_cpu *total, const struct books_cpu *cpu)
{
    total->received += cpu->received;
    total->lost += cpu->lost;
    total->throttled += cpu->throttled;
    total->missed += cpu->missed;
    total->crowded += cpu->crowded;
    total->idle += cpu->idle;
    total->kept += cpu->kept;
    total->filtered += cpu->filtered;
    total->dropped += cpu->dropped;
    total->steal_ns += cpu->steal_ns;
    total->offline_ns += cpu->offline_ns;
    /* The longest name contains the others. */
    if (strlen(cpu->idle_source) > strlen(total->idle_source)) {
        total->idle_source = cpu->idle_source;
    }
}

static void print_all(FILE *out, const struct books *books)
{
    struct books_cpu total = {.idle_source = ""};
    uint64_t expected = 0;
    int64_t unexplained = 0;

    (void)fprintf(out, "{\"period_ns\":%" PRIu64 ",\"cpus\":[", books->period_ns);
    if (!books->totals_only) {
        print_cpus(out, books);
    }
    for (size_t i = 0; i < books->cpu_count; i++) {
        const struct books_cpu *cpu = &books->cpus[i];
        if (cpu->is_known) {
            expected += books_expected(books, cpu);
            unexplained += books_unexplained(books, cpu);
            add_cpu(&total, cpu);
        }
    }
    (void)fprintf(out, "],\"total\":{");
    print_counts(out, &total, expected, unexplained);
    (void)fprintf(out, "},\"idle_source\":\"%s\"", total.idle_source);
#define PRINT_COUNTER(name, unit, meaning)                                                         \
    (void)fprintf(out, ",\"" #name "\":%" PRIu64, books->counters.name);
    COUNTERS(PRINT_COUNTER)
#undef PRINT_COUNTER
    print_events(out, books);
    (void)fputc('}', out);
}

char *books_print(const struct books *books)
{
    cleanup_(freep) char *text = NULL;
    size_t text_bytes = 0;
    FILE *out = open_memstream(&text, &text_bytes);
    if (out == NULL) {
        return NULL;
    }
    print_all(out, books);
    if (fclose(out) != 0) {
        return NULL;
    }
    return take_ptr(text);
}
