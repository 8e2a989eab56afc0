/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Honest programs without call frames, as compilers make them, keep rows: a row that is not proved
 * ends the stack, marked, which no test of false stacks sees. Of the bytes that have a row, at most
 * so many per cent may end stacks. The bounds are what GCC 12, Go 1.19 and Rust gave, and 5
 * more; a stretch that ends stacks is a table of a switch without a limit, a part that is jumped to
 * from far away, or what the start files bring (56 bytes).
 */
#include "built_tables.h"
#include "code_rows.h"

#include <errno.h>
#include <stdio.h>

#define PROGRAMS_MIN 60

struct bound {
    const char *program; /* of the truth programs */
    unsigned percent_max;
};

static const struct bound bounds[] = {
    {"bare", 20},          {"bare_st", 19},       {"bare_fp", 21},      {"bare_fp_st", 19},
    {"bare_quiet", 22},    {"bare_q_st", 19},     {"bare_O0", 14},      {"bare_O0_st", 15},
    {"bare_static", 6},    {"bare_tiny_O0", 37},  {"bare_tiny_O1", 18}, {"bare_tiny_O2", 25},
    {"bare_tiny_O3", 24},  {"bare_tiny_Os", 17},  {"bare_tail", 24},    {"bare_tail_st", 21},
    {"bare_alloca", 18},   {"bare_vla", 19},      {"bare_drap", 33},    {"bare_aligned", 20},
    {"bare_large", 19},    {"bare_qsort", 20},    {"bare_timer", 21},   {"bare_nested", 22},
    {"bare_first", 22},    {"bare_churn", 23},    {"bare_vfork", 21},   {"bare_corout", 18},
    {"bare_fibers", 23},   {"bare_noret", 32},    {"bare_thunks", 27},  {"bare_realign", 32},
    {"bare_altstack", 21}, {"musl_dynamic", 11},  {"mus_dynamic", 10},  {"muq_dynamic", 14},
    {"musl_static", 17},   {"mus_static", 20},    {"muq_static", 22},   {"musl_stripped", 33},
    {"musl_churn", 25},    {"cb_O0_st", 26},      {"cb_O2_st", 21},     {"cb_Os_st", 17},
    {"rust_bare", 6},      {"golang_s", 13},      {"e_mask_O1", 34},    {"e_mask_O2", 36},
    {"e_biased_O1", 33},   {"e_biased_O2", 35},   {"e_signed_O1", 33},  {"e_signed_O2", 35},
    {"e_sparse_O1", 16},   {"e_sparse_O2", 40},   {"e_goto_O1", 55},    {"e_goto_O2", 38},
    {"e_nested_O1", 44},   {"e_nested_O2", 42},   {"e_drap_O1", 37},    {"e_drap_O2", 44},
    {"e_big_O1", 15},      {"e_big_O2", 24},      {"e_alloca_O1", 15},  {"e_alloca_O2", 24},
    {"e_variadic_O1", 16}, {"e_variadic_O2", 24}, {"e_setjmp_O1", 15},  {"e_setjmp_O2", 25},
    {"e_cold_O1", 28},     {"e_cold_O2", 35},     {"e_tailp_O1", 18},   {"e_tailp_O2", 60},
    {"e_bytes_O1", 53},    {"e_bytes_O2", 57},    {"e_unreach_O1", 55}, {"e_unreach_O2", 59},
    {"e_inner_O1", 28},    {"e_inner_O2", 35},    {"e_shrink_O1", 28},  {"e_shrink_O2", 35},
    {"e_enum_O1", 33},     {"e_enum_O2", 36},     {"e_cmp_O1", 30},     {"e_cmp_Og", 35},
    {"e_forked", 22},      {"e_swift", 43},
};

static struct made_cfi read_rows(int fd)
{
    struct cfi_builder *builder = cfi_builder_new();
    assert_int_equal(code_rows_read(fd, CODE_ROWS_ALL, builder), 0);
    return finish_cfi(builder);
}

static uint64_t count_ends(const struct cfi_table *table)
{
    uint64_t count = 0;
    struct cfi_span span = cfi_table_span(table, table->base);
    for (; span.row != NULL; span = cfi_table_span_behind(table, &span)) {
        count += span.rule->kind == CFI_END ? span.end - span.start : 0;
    }
    return count;
}

TEST(programs_without_call_frames_keep_their_rows)
{
    size_t judged = 0;
    size_t failed = 0;
    for (size_t i = 0; i < COUNT_OF(bounds); i++) {
        char path[512];
        (void)snprintf(path, sizeof path, "%s/%s.truth", TRUTH_DIR, bounds[i].program);
        cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0) {
            assert_int_equal(errno, ENOENT); /* its compiler is not here */
            continue;
        }
        cleanup_(free_cfi) struct made_cfi rows = read_rows(fd);
        const uint64_t ends = count_ends(&rows.table);
        const uint64_t covered = rows.table.stats.covered_bytes;
        judged++;
        if (ends * 100 > covered * bounds[i].percent_max) {
            printf("%s: %lu of %lu bytes end stacks, more than %u %%\n", bounds[i].program, ends,
                   covered, bounds[i].percent_max);
            failed++;
        }
    }
    assert_int_equal(failed, 0);
    assert_in_range(judged, PROGRAMS_MIN, COUNT_OF(bounds));
}
