/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Builds the call-frame table of a file as the worker does and looks addresses up as an unwinder
 * does; prints lines `METRIC VALUE`. Lookups are of addresses inside functions, since those are
 * what stacks consist of: at random, so that every one misses the caches, and again and again
 * among a few hundred, as in the stacks of one program. All times are of the CPU. It also counts
 * the bytes of which a file's own table says something else than the table of all rows: there must
 * be none.
 */
#include "cfi_table.h"
#include "cleanup.h"
#include "clock.h"
#include "code_rows.h"
#include "extremes.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#define FINDS     ((size_t)4 << 20)
#define HOT_COUNT ((size_t)512)

static uint64_t draw(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static int build(const char *path, enum code_rows_extent extent, void **ret_bytes,
                 size_t *ret_size_bytes)
{
    cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    struct cfi_builder *builder = cfi_builder_new();
    int r = builder == NULL ? -ENOMEM : code_rows_read(fd, extent, builder);
    if (r == 0) {
        r = cfi_builder_finish(builder, ret_bytes, ret_size_bytes);
    }
    cfi_builder_free(builder);
    return r;
}

/* Fills `ret` with addresses that have a rule; false where the table has hardly any. */
static bool draw_addresses(const struct cfi_table *table, uint64_t *ret, size_t count)
{
    uint64_t state = 88172645463325252;
    size_t tries = count * 1000;
    for (size_t i = 0; i < count && tries > 0; tries--) {
        const struct symbol_segment *segment =
            &table->segments[draw(&state) % table->segment_count];
        ret[i] = segment->vaddr + draw(&state) % segment->size_bytes;
        i += cfi_table_find(table, ret[i])->kind != CFI_NONE;
    }
    return tries > 0;
}

/* ns for a lookup; each address depends on the last answer, as an unwinder's does. */
static double time_finds(const struct cfi_table *table, const uint64_t *addresses, size_t count)
{
    uint64_t found = 0;
    uint64_t begin_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (size_t i = 0; i < FINDS; i++) {
        found += cfi_table_find(table, addresses[i % count] + (found >> 63))->kind;
    }
    uint64_t taken_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begin_ns;
    return found == 0 ? 0 : (double)taken_ns / FINDS;
}

/* Bytes that `own` covers by another rule than `all`, and those that `own` calls settled though
 * `all` covers them. */
static uint64_t count_differing(const struct cfi_table *own, const struct cfi_table *all)
{
    uint64_t count = 0;
    struct cfi_span span = cfi_table_span(own, own->base);
    for (; span.row != NULL; span = cfi_table_span_behind(own, &span)) {
        const bool is_covered = cfi_rule_covers(span.rule);
        if (!is_covered && !cfi_table_is_settled(own, span.start)) {
            continue;
        }
        uint64_t at = span.start;
        while (at < span.end) {
            const struct cfi_span other = cfi_table_span(all, at);
            bool is_same = is_covered ? memcmp(span.rule, other.rule, sizeof *span.rule) == 0
                                      : !cfi_rule_covers(other.rule);
            const uint64_t end = min_u64(span.end, other.end);
            count += is_same ? 0 : end - at;
            at = end;
        }
    }
    return count;
}

int main(int argc, char **argv)
{
    cleanup_(freep) void *own_bytes = NULL;
    cleanup_(freep) void *bytes = NULL;
    cleanup_(freep) uint64_t *addresses = calloc(FINDS, sizeof *addresses);
    size_t own_size_bytes = 0;
    size_t size_bytes = 0;
    struct cfi_table own = {0};
    struct cfi_table table = {0};
    uint64_t own_begin_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    int r = argc == 2 ? build(argv[1], CODE_ROWS_OWN, &own_bytes, &own_size_bytes) : -EINVAL;
    uint64_t begin_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    if (r == 0) {
        r = build(argv[1], CODE_ROWS_ALL, &bytes, &size_bytes);
    }
    uint64_t built_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    if (r == 0) {
        r = cfi_table_open(bytes, size_bytes, &table);
    }
    uint64_t opened_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    if (r == 0) {
        r = cfi_table_open(own_bytes, own_size_bytes, &own);
    }
    if (r < 0 || addresses == NULL || table.segment_count == 0) {
        (void)fprintf(stderr, "%s FILE: %s\n", argv[0], strerror(-r));
        return 1;
    }
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    printf("rows %zu\nrules %zu\nbytes %zu\n", table.row_count, table.rule_count, size_bytes);
    printf("bytes_per_row %.2f\n", (double)size_bytes / (double)(table.row_count + 1));
    printf("own_covered_bytes %" PRIu64 "\n", own.stats.covered_bytes);
    printf("own_differs_bytes %" PRIu64 "\n", count_differing(&own, &table));
    printf("own_build_ms %.2f\n", (double)(begin_ns - own_begin_ns) / 1e6);
    printf("build_ms %.2f\n", (double)(built_ns - begin_ns) / 1e6);
    printf("open_ms %.3f\n", (double)(opened_ns - built_ns) / 1e6);
    printf("peak_kib %ld\n", usage.ru_maxrss);
    printf("covered_bytes %" PRIu64 "\n", table.stats.covered_bytes);
    printf("end_bytes %" PRIu64 "\n", table.stats.end_bytes);
    printf("unsupported_bytes %" PRIu64 "\n", table.stats.unsupported_bytes);
    if (draw_addresses(&table, addresses, FINDS)) {
        printf("find_cold_ns %.1f\n", time_finds(&table, addresses, FINDS));
        printf("find_hot_ns %.1f\n", time_finds(&table, addresses, HOT_COUNT));
    }
    return 0;
}
