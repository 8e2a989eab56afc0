/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Sums and prints the books. The counts come from whoever measured them: the collector (received,
 * lost, kept, filtered, dropped), the kernel (running time), cpu_time (idle, steal). Nothing here
 * is derived by subtraction but `unexplained`.
 */
#include "books.h"

#include "cleanup.h"

#include <inttypes.h>
#include <stdio.h>

uint64_t books_expected(const struct books *books, const struct books_cpu *cpu)
{
    return (cpu->running_ns + books->period_ns / 2) / books->period_ns;
}

int64_t books_unexplained(const struct books *books, const struct books_cpu *cpu)
{
    return (int64_t)(books_expected(books, cpu) - cpu->received - cpu->lost - cpu->idle);
}

static void print_counts(FILE *out, const struct books *books, const struct books_cpu *cpu,
                         uint64_t expected, int64_t unexplained)
{
    (void)fprintf(out,
                  "\"expected\":%" PRIu64 ",\"received\":%" PRIu64 ",\"lost\":%" PRIu64
                  ",\"throttled\":null,\"missed\":null,",
                  expected, cpu->received, cpu->lost);
    if (books->idle_source != NULL) {
        (void)fprintf(out, "\"idle\":%" PRIu64 ",", cpu->idle);
    } else {
        (void)fprintf(out, "\"idle\":null,");
    }
    (void)fprintf(out,
                  "\"unexplained\":%" PRId64 ",\"kept\":%" PRIu64 ",\"filtered\":%" PRIu64
                  ",\"dropped\":%" PRIu64 ",\"steal_ns\":%" PRIu64 ",\"offline_ns\":null}",
                  unexplained, cpu->kept, cpu->filtered, cpu->dropped, cpu->steal_ns);
}

static void print_all(FILE *out, const struct books *books)
{
    struct books_cpu total = {0};
    uint64_t expected = 0;
    int64_t unexplained = 0;

    (void)fprintf(out, "{\"period_ns\":%" PRIu64 ",\"cpus\":[", books->period_ns);
    for (size_t i = 0; i < books->cpu_count; i++) {
        const struct books_cpu *cpu = &books->cpus[i];
        if (!books->totals_only) {
            (void)fprintf(out, "%s{\"cpu\":%" PRIu32 ",", i == 0 ? "" : ",", cpu->cpu);
            print_counts(out, books, cpu, books_expected(books, cpu),
                         books_unexplained(books, cpu));
        }
        expected += books_expected(books, cpu);
        unexplained += books_unexplained(books, cpu);
        total.received += cpu->received;
        total.lost += cpu->lost;
        total.idle += cpu->idle;
        total.kept += cpu->kept;
        total.filtered += cpu->filtered;
        total.dropped += cpu->dropped;
        total.steal_ns += cpu->steal_ns;
    }
    (void)fprintf(out, "],\"total\":{");
    print_counts(out, books, &total, expected, unexplained);
    if (books->idle_source != NULL) {
        (void)fprintf(out, ",\"idle_source\":\"%s\"", books->idle_source);
    } else {
        (void)fprintf(out, ",\"idle_source\":null");
    }
    const struct {
        const char *name;
        uint64_t count;
    } others[] = {
        {"orphan_partials", books->orphan_partials},
        {"orphan_completions", books->orphan_completions},
        {"truncated_stacks", books->truncated_stacks},
        {"stitched_stacks", books->stitched_stacks},
        {"cold_stacks", books->cold_stacks},
        {"code_lookups", books->code_lookups},
        {"code_lookups_kept", books->code_lookups_kept},
        {"mapping_uncertain", books->mapping_uncertain},
        {"modules_unread", books->modules_unread},
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        (void)fprintf(out, ",\"%s\":%" PRIu64, others[i].name, others[i].count);
    }
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
