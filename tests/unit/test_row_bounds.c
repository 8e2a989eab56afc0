/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Honest programs without call frames, as compilers make them, keep rows: a row that is not proved
 * ends the stack, marked, which no test of false stacks sees. Of the bytes that have a row, at most
 * so many per cent may end stacks. The bounds are what GCC 12, Go 1.19 and Rust gave, and 5
 * more; a stretch that ends stacks is a table of a switch without a limit, or a part that is
 * jumped to from far away.
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
    {"bare", 11},          {"bare_st", 11},       {"bare_fp", 11},      {"bare_fp_st", 10},
    {"bare_quiet", 10},    {"bare_q_st", 9},      {"bare_O0", 7},       {"bare_O0_st", 7},
    {"bare_static", 6},    {"bare_tiny_O0", 17},  {"bare_tiny_O1", 8},  {"bare_tiny_O2", 10},
    {"bare_tiny_O3", 10},  {"bare_tiny_Os", 9},   {"bare_tail", 12},    {"bare_tail_st", 11},
    {"bare_alloca", 8},    {"bare_vla", 10},      {"bare_drap", 24},    {"bare_aligned", 8},
    {"bare_large", 8},     {"bare_qsort", 8},     {"bare_timer", 11},   {"bare_nested", 12},
    {"bare_first", 12},    {"bare_churn", 12},    {"bare_vfork", 9},    {"bare_corout", 9},
    {"bare_fibers", 11},   {"bare_noret", 22},    {"bare_thunks", 24},  {"bare_realign", 18},
    {"bare_altstack", 10}, {"musl_dynamic", 6},   {"mus_dynamic", 6},   {"muq_dynamic", 6},
    {"musl_static", 10},   {"mus_static", 10},    {"muq_static", 11},   {"musl_stripped", 20},
    {"musl_churn", 11},    {"cb_O0_st", 17},      {"cb_O2_st", 8},      {"cb_Os_st", 9},
    {"rust_bare", 5},      {"golang_s", 8},       {"e_mask_O1", 30},    {"e_mask_O2", 21},
    {"e_biased_O1", 20},   {"e_biased_O2", 13},   {"e_signed_O1", 20},  {"e_signed_O2", 13},
    {"e_sparse_O1", 12},   {"e_sparse_O2", 33},   {"e_goto_O1", 46},    {"e_goto_O2", 26},
    {"e_nested_O1", 22},   {"e_nested_O2", 17},   {"e_drap_O1", 32},    {"e_drap_O2", 33},
    {"e_big_O1", 21},      {"e_big_O2", 23},      {"e_alloca_O1", 20},  {"e_alloca_O2", 21},
    {"e_variadic_O1", 19}, {"e_variadic_O2", 21}, {"e_setjmp_O1", 20},  {"e_setjmp_O2", 23},
    {"e_cold_O1", 23},     {"e_cold_O2", 26},     {"e_tailp_O1", 22},   {"e_tailp_O2", 53},
    {"e_bytes_O1", 44},    {"e_bytes_O2", 45},    {"e_unreach_O1", 45}, {"e_unreach_O2", 48},
    {"e_inner_O1", 22},    {"e_inner_O2", 21},    {"e_shrink_O1", 23},  {"e_shrink_O2", 26},
    {"e_enum_O1", 19},     {"e_enum_O2", 13},     {"e_cmp_O1", 24},     {"e_cmp_Og", 25},
    {"e_forked", 21},      {"e_swift", 32},
};

static struct made_cfi read_rows(int fd)
{
    struct cfi_builder *builder = cfi_builder_new();
    assert_int_equal(code_rows_read(fd, CODE_ROWS_ALL, builder), 0);
    return finish_cfi(builder);
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
        const uint64_t ends = rows.table.stats.end_bytes;
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
