/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Whatever stands in code, and wherever functions are said to begin in it: both looks come to an
 * end, and each rule is one that a table takes. The input is where functions begin, as 8 numbers of
 * bytes to the next, and then the code.
 */
#include "code_forks.h"
#include "code_proof.h"
#include "code_returns.h"
#include "fuzz_target.h"

#include <stdlib.h>
#include <string.h>

#define START       UINT64_C(0x401000)
#define START_COUNT 8
#define BYTES_MAX   ((size_t)4096)

static struct cfi_table empty_table(void **ret_bytes)
{
    const struct symbol_segment segment = {.vaddr = START, .size_bytes = BYTES_MAX};
    struct cfi_builder *builder = cfi_builder_new();
    struct cfi_table table = {0};
    size_t size_bytes = 0;
    if (builder == NULL || cfi_builder_segment(builder, &segment) < 0 ||
        cfi_builder_finish(builder, ret_bytes, &size_bytes) < 0 ||
        cfi_table_open(*ret_bytes, size_bytes, &table) < 0) {
        abort();
    }
    cfi_builder_free(builder);
    return table;
}

static struct code_starts *make_starts(const uint8_t *bytes)
{
    struct code_starts *starts = code_starts_new();
    uint64_t at = START;
    for (size_t i = 0; starts != NULL && i < START_COUNT; i++) {
        enum code_start kind = CODE_START_LABEL + bytes[i] % 3;
        (void)code_starts_add(starts, at, bytes[i] % 3 == 0 ? bytes[i] : 0, kind);
        at += bytes[i];
    }
    if (starts == NULL || code_starts_sort(starts) < 0) {
        abort();
    }
    return starts;
}

static bool is_rule_valid(const struct cfi_rule *rule)
{
    bool is_call = rule->ra_saved == CFI_AT_CFA && rule->ra_offset == -CODE_WORD_BYTES;
    bool is_above = rule->cfa_register != ARCH_DWARF_SP ||
                    rule->cfa_offset >= (rule->kind == CFI_DEREF ? 0 : CODE_WORD_BYTES);
    return rule->kind < CFI_END && rule->cfa_register < ARCH_REGISTERS_COUNT && is_above &&
           (is_call || rule->signal_frame == 1) && rule->bp_saved <= CFI_LOST &&
           rule->bx_saved <= CFI_LOST;
}

static void check(struct code_region *region, const struct cfi_table *table)
{
    struct code_forward *forward = calloc(region->site_count + 1, sizeof *forward);
    uint64_t left_visits = UINT64_MAX;
    struct code_backward *backward = calloc(region->site_count + 1, sizeof *backward);
    if (forward == NULL || backward == NULL) {
        abort();
    }
    region->left_visits = &left_visits;
    bool is_settled = code_backward_run(region, table, backward) &&
                      code_returns_run(region, table, backward) &&
                      code_forward_run(region, backward, forward);
    code_proof_prepare(region, forward, backward);
    for (size_t i = 0; is_settled && i < region->site_count; i++) {
        bool by_symbol = false;
        struct cfi_rule rule = code_forks_rule(region, i, &forward[i], &backward[i], &by_symbol);
        if (rule.kind > CFI_ROOT && rule.kind != CFI_END && !is_rule_valid(&rule)) {
            abort();
        }
    }
    free(forward);
    free(backward);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static void *table_bytes;
    static struct cfi_table table;
    struct code_region region;
    if (table_bytes == NULL) {
        table = empty_table(&table_bytes);
    }
    if (size <= START_COUNT || size - START_COUNT > BYTES_MAX) {
        return 0;
    }
    struct code_starts *starts = make_starts(bytes);
    if (code_region_init(&region, bytes + START_COUNT, size - START_COUNT, START, &table, starts) ==
        0) {
        check(&region, &table);
        code_region_done(&region);
    }
    (void)code_starts_free(starts);
    return 0;
}
