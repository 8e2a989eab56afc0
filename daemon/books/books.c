/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Sums and prints the books. The lines come from cpu_books.c, and what became of the samples from
 * their sink. Only
 * `unexplained` is the result of a subtraction.
 */
#include "books.h"

#include "cleanup.h"

#include <inttypes.h>
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
