/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Tables through their whole way: collected, serialised, checked, asked. The model keeps a rule for
 * every sixteen bytes and knows one law: what came first stays, until it is settled. Damage is done
 * to the bytes that cfi_format.h describes, which is why this test includes it.
 */
#include "arch_x86_64.h"
#include "built_tables.h"
#include "cfi_format.h"
#include "failing_allocation.h"

#define BASE          UINT64_C(0x7fff0010)
#define UNIT          UINT64_C(16)
#define UNITS         ((size_t)13000) /* four pages, the first and last in part */
#define PROPERTY_RUNS 300
#define RANGES_MAX    40

static struct cfi_rule rule_with(int32_t offset)
{
    return (struct cfi_rule){
        .kind = CFI_OFFSET,
        .cfa_register = 7,
        .ra_saved = CFI_AT_CFA,
        .cfa_offset = offset,
        .ra_offset = -8,
    };
}

static void add(struct cfi_builder *builder, uint64_t start, uint64_t end, int32_t offset)
{
    const struct cfi_rule rule = rule_with(offset);
    assert_int_equal(cfi_builder_add(builder, start, end, &rule), 0);
}

static int32_t offset_at(const struct cfi_table *table, uint64_t vaddr)
{
    return cfi_table_find(table, vaddr)->cfa_offset;
}

static uint32_t draw(uint32_t *state, size_t below)
{
    *state = *state * 1664525 + 1013904223;
    return (uint32_t)((*state >> 8) % below);
}

static void add_to_model(uint8_t *model, size_t start, size_t end, uint8_t offset)
{
    for (size_t i = start; i < end; i++) {
        model[i] = model[i] == 0 ? offset : model[i];
    }
}

/* From one span to the next, to the end of all addresses: each is what its address finds. */
static void walk_spans(const struct cfi_table *table)
{
    struct cfi_span span = cfi_table_span(table, 0);
    assert_int_equal(span.start, 0);
    while (span.end < UINT64_MAX) {
        struct cfi_span behind = cfi_table_span_behind(table, &span);
        struct cfi_span found = cfi_table_span(table, span.end);
        assert_int_equal(behind.start, span.end);
        assert_true(behind.end > behind.start);
        assert_true(behind.end == found.end && behind.rule == found.rule &&
                    behind.carried == found.carried && behind.row == found.row);
        span = behind;
    }
    struct cfi_span last = cfi_table_span_behind(table, &span);
    assert_int_equal(last.end, UINT64_MAX);
}

/* Many overlapping ranges, in runs without gaps too, as one function's rows come. */
static void add_ranges(struct cfi_builder *builder, uint8_t *model, uint32_t *state)
{
    size_t start = 0;
    memset(model, 0, UNITS);
    for (size_t i = draw(state, RANGES_MAX); i > 0; i--) {
        start = draw(state, 3) == 0 ? start : draw(state, UNITS);
        size_t size = draw(state, draw(state, 2) == 0 ? 8 : UNITS / 4);
        size_t end = size < UNITS - start ? start + size : UNITS;
        uint8_t offset = (uint8_t)(1 + draw(state, 5));
        add(builder, BASE + start * UNIT, BASE + end * UNIT, offset);
        add_to_model(model, start, end, offset);
        start = end % UNITS;
    }
}

static void run_property(uint32_t seed, size_t settle_count, uint8_t *model, uint8_t *settled)
{
    struct cfi_builder *builder = cfi_builder_new();
    uint32_t state = seed;
    assert_non_null(builder);
    add_ranges(builder, model, &state);
    for (size_t i = 0; i < settle_count; i++) {
        const struct cfi_table *before = NULL;
        assert_int_equal(cfi_builder_settle(builder, &before), 0);
        memcpy(settled, model, UNITS);
        add_ranges(builder, model, &state);
        for (size_t unit = 0; unit < UNITS; unit++) {
            assert_int_equal(offset_at(before, BASE + unit * UNIT), settled[unit]);
            model[unit] = model[unit] != 0 ? model[unit] : settled[unit];
        }
    }

    cleanup_(free_cfi) struct made_cfi made = finish_cfi(builder);
    uint64_t covered = 0;
    for (size_t i = 0; i < UNITS; i++) {
        covered += model[i] != 0 ? UNIT : 0;
        if (offset_at(&made.table, BASE + i * UNIT) != model[i] ||
            offset_at(&made.table, BASE + i * UNIT + UNIT - 1) != model[i]) {
            fail_msg("seed %u: another rule in unit %zu", seed, i);
        }
    }
    assert_int_equal(cfi_table_find(&made.table, BASE - 1)->kind, CFI_NONE);
    assert_int_equal(cfi_table_find(&made.table, BASE + UNITS * UNIT)->kind, CFI_NONE);
    assert_int_equal(made.table.stats.covered_bytes, covered);
    walk_spans(&made.table);
}

static void run_properties(size_t settle_count)
{
    cleanup_(freep) uint8_t *model = malloc(UNITS);
    cleanup_(freep) uint8_t *settled = malloc(UNITS);
    assert_true(model != NULL && settled != NULL);
    for (uint32_t seed = 1; seed <= PROPERTY_RUNS; seed++) {
        run_property(seed * 2654435761U, settle_count, model, settled);
    }
}

TEST(finds_the_rule_that_came_first)
{
    run_properties(0);
}

TEST(finds_later_rules_above_those_that_were_settled)
{
    run_properties(1);
    run_properties(3);
}

/* As many as are known, and no more; what does not begin in one, or came before, is as it was. */
TEST(makes_switches_of_what_begins_in_them)
{
    static const size_t known_count = 32;
    struct cfi_builder *builder = cfi_builder_new();
    assert_non_null(builder);
    add(builder, BASE + 8, BASE + 12, 8);
    for (size_t i = 0; i < 2 * known_count; i++) {
        cfi_builder_switch(builder, BASE + i * UNIT, BASE + i * UNIT + UNIT / 2);
    }
    for (size_t i = 0; i < 2 * known_count; i++) {
        add(builder, BASE + i * UNIT, BASE + i * UNIT + UNIT / 2, 16);
        add(builder, BASE + i * UNIT + UNIT / 2, BASE + (i + 1) * UNIT, 24);
    }
    cleanup_(free_cfi) struct made_cfi made = finish_cfi(builder);
    for (size_t i = 0; i < 2 * known_count; i++) {
        const struct cfi_rule *rule = cfi_table_find(&made.table, BASE + i * UNIT);
        assert_int_equal(rule->kind, i < known_count ? CFI_SWITCH : CFI_OFFSET);
        assert_int_equal(rule->cfa_offset, 16);
        rule = cfi_table_find(&made.table, BASE + i * UNIT + UNIT / 2);
        assert_int_equal(rule->kind, CFI_OFFSET);
        assert_int_equal(rule->cfa_offset, i == 0 ? 8 : 24);
    }
    assert_int_equal(made.table.stats.covered_bytes, 2 * known_count * UNIT);
}

/* In a table with rows around [start, end), where it has none. */
static bool is_settled(uint64_t start, uint64_t end, uint64_t vaddr, enum cfi_kind behind,
                       bool lacks_small)
{
    struct cfi_builder *builder = cfi_builder_new();
    add(builder, start - UNIT, start, 8);
    struct cfi_rule rule = rule_with(16);
    rule.kind = (uint8_t)behind;
    assert_int_equal(cfi_builder_add(builder, end, end + UNIT, &rule), 0);
    if (lacks_small) {
        cfi_builder_lacks_small(builder);
    }
    cleanup_(free_cfi) struct made_cfi made = finish_cfi(builder);
    return cfi_table_is_settled(&made.table, vaddr);
}

TEST(settles_small_stretches_between_rows_that_cover)
{
    const uint64_t page = UINT64_C(0x70000);
    const uint64_t most = CFI_SMALL_BYTES;
    for (uint64_t start = page - most - UNIT; start <= page; start += UNIT) {
        assert_true(is_settled(start, start + most, start, CFI_OFFSET, false));
        assert_true(is_settled(start, start + most, start + most - 1, CFI_OFFSET, false));
        assert_false(is_settled(start, start + most + 1, start, CFI_OFFSET, false));
        assert_false(is_settled(start, start + most + 1, start + most, CFI_OFFSET, false));
    }
    assert_false(is_settled(page, page + UNIT, page - 1, CFI_OFFSET, false));
    assert_false(is_settled(page, page + UNIT, page, CFI_UNSUPPORTED, false));
    assert_false(is_settled(page, page + UNIT, page, CFI_OFFSET, true));
    /* In front of all rows and behind them nothing tells how much code there is. */
    assert_false(is_settled(page, page + UNIT, page - 2 * UNIT, CFI_OFFSET, false));
    assert_false(is_settled(page, page + UNIT, page + 3 * UNIT, CFI_OFFSET, false));
}

/* Three equal neighbours are a row; the end is another; page starts repeat what is in force. */
TEST(writes_a_row_only_where_the_rule_changes)
{
    struct cfi_builder *builder = cfi_builder_new();
    add(builder, 0x10000, 0x10010, 8);
    add(builder, 0x10010, 0x10020, 8);
    add(builder, 0x10030, 0x20000, 16);
    add(builder, 0x10020, 0x10030, 8);
    add(builder, 0x20000, 0x30008, 16);
    cleanup_(free_cfi) struct made_cfi made = finish_cfi(builder);
    assert_int_equal(made.table.base, 0x10000);
    assert_int_equal(made.table.page_count, 3);
    assert_int_equal(made.table.row_count, 2 + 1 + 2);
    assert_int_equal(offset_at(&made.table, 0x1002f), 8);
    assert_int_equal(offset_at(&made.table, 0x10030), 16);
    assert_int_equal(offset_at(&made.table, 0x30007), 16);
    assert_int_equal(cfi_table_find(&made.table, 0x30008)->kind, CFI_NONE);
}

/* Rows that lie unevenly in their page: most where few would be if they did not. */
static void find_all(size_t few_begin, size_t many_begin, uint64_t many_bytes)
{
    struct cfi_builder *builder = cfi_builder_new();
    assert_non_null(builder);
    uint64_t starts[600];
    for (size_t i = 0; i < COUNT_OF(starts); i++) {
        starts[i] = i < 8 ? few_begin + i * 4096 : many_begin + (i - 8) * many_bytes;
    }
    for (size_t i = 0; i < COUNT_OF(starts); i++) {
        add(builder, starts[i], starts[i] + many_bytes, 8 + 8 * (int32_t)(i % 97));
    }
    cleanup_(free_cfi) struct made_cfi made = finish_cfi(builder);
    for (size_t i = 0; i < COUNT_OF(starts); i++) {
        for (uint64_t byte = 0; byte < many_bytes; byte++) {
            assert_int_equal(offset_at(&made.table, starts[i] + byte), 8 + 8 * (int32_t)(i % 97));
        }
    }
}

TEST(finds_rows_however_they_lie_in_a_page)
{
    find_all(0x10000, 0x1c000, 16);
    find_all(0x17000, 0x10000, 16);
    find_all(0x10000, 0x18002, 3);
}

TEST(holds_four_gibibytes)
{
    struct cfi_builder *builder = cfi_builder_new();
    add(builder, 0, UINT64_C(3) << 30, 8);
    add(builder, UINT64_C(3) << 30, UINT64_C(4) << 30, 16);
    cleanup_(free_cfi) struct made_cfi made = finish_cfi(builder);
    assert_int_equal(made.table.page_count, CFI_PAGE_COUNT_MAX);
    assert_int_equal(made.table.stats.covered_bytes, UINT64_C(4) << 30);
    assert_int_equal(offset_at(&made.table, 0), 8);
    assert_int_equal(offset_at(&made.table, UINT32_MAX), 16);
}

TEST(ends_a_full_page_without_a_row)
{
    struct cfi_builder *builder = cfi_builder_new();
    add(builder, 0x10000, 0x30000, 8);
    cleanup_(free_cfi) struct made_cfi made = finish_cfi(builder);
    assert_int_equal(made.table.row_count, 2);
    assert_int_equal(offset_at(&made.table, 0x2ffff), 8);
    assert_int_equal(cfi_table_find(&made.table, 0x30000)->kind, CFI_NONE);
}

TEST(knows_the_kinds_that_have_no_caller)
{
    static const enum cfi_kind kinds[] = {CFI_NONE, CFI_UNSUPPORTED, CFI_ROOT};
    struct cfi_builder *builder = cfi_builder_new();
    for (size_t i = 0; i < 3; i++) {
        /* What else stands in such a rule does not count. */
        struct cfi_rule rule = {.kind = (uint8_t)kinds[i], .ra_saved = CFI_LOST, .bp_offset = 5};
        assert_int_equal(cfi_builder_add(builder, 0x1000 * i, 0x1000 * (i + 1), &rule), 0);
    }
    add(builder, 0, 0x4000, 8);
    cleanup_(free_cfi) struct made_cfi made = finish_cfi(builder);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(cfi_table_find(&made.table, 0x1000 * i)->kind, kinds[i]);
    }
    assert_int_equal(made.table.stats.unsupported_bytes, 0x1000);
    assert_int_equal(made.table.stats.covered_bytes, 0x2000);
    assert_int_equal(offset_at(&made.table, 0x3fff), 8);
}

TEST(counts_rules_beyond_the_limit_as_unsupported)
{
    struct cfi_builder *builder = cfi_builder_new();
    for (uint32_t i = 0; i < 70000; i++) {
        add(builder, i, i + 1, (int32_t)i * 8);
    }
    cleanup_(free_cfi) struct made_cfi made = finish_cfi(builder);
    size_t kept = CFI_RULE_COUNT_MAX - 2;
    assert_int_equal(made.table.stats.rule_count, CFI_RULE_COUNT_MAX);
    assert_int_equal(made.table.stats.covered_bytes, kept);
    assert_int_equal(made.table.stats.unsupported_bytes, 70000 - kept);
    assert_int_equal(offset_at(&made.table, kept - 1), (kept - 1) * 8);
    assert_int_equal(cfi_table_find(&made.table, kept)->kind, CFI_UNSUPPORTED);
}

TEST(refuses_ranges_that_no_table_holds)
{
    const struct cfi_rule rule = rule_with(8);
    struct cfi_builder *builder = cfi_builder_new();
    void *bytes = NULL;
    size_t size_bytes = 0;
    assert_int_equal(cfi_builder_add(builder, 0, UINT64_C(1) << 32, &rule), -E2BIG);
    assert_int_equal(cfi_builder_add(builder, UINT64_MAX - 1, UINT64_MAX, &rule), -E2BIG);
    assert_int_equal(cfi_builder_add(builder, 9, 9, &rule), 0);
    assert_int_equal(cfi_builder_add(builder, 9, 3, &rule), 0);
    add(builder, 0, 1, 8);
    add(builder, (UINT64_C(1) << 32) - 1, UINT64_C(1) << 32, 16);
    assert_int_equal(cfi_builder_finish(builder, &bytes, &size_bytes), 0);
    free(bytes);
    cfi_builder_free(builder);

    builder = cfi_builder_new();
    add(builder, 0, 1, 8);
    add(builder, UINT64_C(1) << 32, (UINT64_C(1) << 32) + 1, 16);
    assert_int_equal(cfi_builder_finish(builder, &bytes, &size_bytes), -E2BIG);
    cfi_builder_free(builder);
}

/* A table of 2 pages, 3 rules and 5 rows, with a segment and a build-id. */
static struct made_cfi make_table(void)
{
    const struct symbol_segment segment = {.offset = 0x1000, .vaddr = 0x5000, .size_bytes = 0x800};
    struct cfi_builder *builder = cfi_builder_new();
    assert_int_equal(cfi_builder_segment(builder, &segment), 0);
    assert_int_equal(cfi_builder_build_id(builder, (const uint8_t *)"build", 5), 0);
    add(builder, 0x5000, 0x6000, 8);
    add(builder, 0x6000, 0x10008, 8);
    add(builder, 0x10008, 0x10010, 16);
    return finish_cfi(builder);
}

TEST(keeps_segments_and_build_id)
{
    uint64_t vaddr = 0;
    cleanup_(free_cfi) struct made_cfi made = make_table();
    assert_int_equal(made.table.build_id_bytes, 5);
    assert_memory_equal(made.table.build_id, "build", 5);
    assert_true(cfi_table_vaddr(&made.table, 0x17ff, &vaddr));
    assert_int_equal(vaddr, 0x57ff);
    assert_false(cfi_table_vaddr(&made.table, 0x1800, &vaddr));
    assert_false(cfi_table_vaddr(&made.table, 0xfff, &vaddr));
}

/* One number somewhere in the serialised bytes. */
struct damage {
    const char *what;
    size_t offset;
    size_t size_bytes;
    uint64_t value;
};

#define SEGMENT          (sizeof(struct cfi_header))
#define RULE(n)          (SEGMENT + sizeof(struct symbol_segment) + (n) * sizeof(struct cfi_rule))
#define PAGE(n)          (RULE(4) + (n) * sizeof(struct cfi_page))
#define ROW(n)           (PAGE(3) + (n) * sizeof(struct cfi_row))
#define HEADER(member)   offsetof(struct cfi_header, member)
#define OF_RULE(member)  (RULE(2) + offsetof(struct cfi_rule, member))
#define OF_SEGMENT(name) (SEGMENT + offsetof(struct symbol_segment, name))

TEST(refuses_every_damage_that_a_lookup_would_meet)
{
    static const struct damage damages[] = {
        {"another format", HEADER(magic), 8, 0},
        {"a base inside a page", HEADER(base), 8, 8},
        {"pages around the end", HEADER(base), 8, UINT64_C(0xffffffffffff0000)},
        {"more segments than bytes", HEADER(segment_count), 4, 2},
        {"too many segments", HEADER(segment_count), 4, UINT32_MAX},
        {"no rules", HEADER(rule_count), 4, 0},
        {"too many rules", HEADER(rule_count), 4, UINT32_MAX},
        {"more pages than bytes", HEADER(page_count), 4, 3},
        {"too many pages", HEADER(page_count), 4, UINT32_MAX},
        {"fewer rows than bytes", HEADER(row_count), 4, 4},
        {"too many rows", HEADER(row_count), 4, UINT32_MAX},
        {"a long build-id", HEADER(build_id_bytes), 4, 65},
        {"an empty segment", OF_SEGMENT(size_bytes), 8, 0},
        {"a segment around the end", OF_SEGMENT(vaddr), 8, UINT64_MAX},
        {"a segment around the end of files", OF_SEGMENT(offset), 8, UINT64_MAX},
        {"a first rule that is one", RULE(0), 1, CFI_ROOT},
        {"no such kind", OF_RULE(kind), 1, CFI_END + 1},
        {"no such register", OF_RULE(cfa_register), 1, 16},
        {"no such index", OF_RULE(cfa_index), 1, 16},
        {"half a signal", OF_RULE(signal_frame), 1, 2},
        {"a return address in a register", OF_RULE(ra_saved), 1, CFI_SAME},
        {"a return address at rbp", OF_RULE(ra_saved), 1, CFI_AT_BP},
        {"a return address nowhere", OF_RULE(ra_saved), 1, CFI_LOST},
        {"no such place for rbp", OF_RULE(bp_saved), 1, CFI_LOST + 1},
        {"no such place for rbx", OF_RULE(bx_saved), 1, CFI_LOST + 1},
        {"a kept rsp", OF_RULE(kept), 4, 1U << ARCH_DWARF_SP},
        {"no such kept register", OF_RULE(kept), 4, 1U << ARCH_REGISTERS_COUNT},
        {"a first page that skips rows", PAGE(0), 4, 1},
        {"an empty page", PAGE(1), 4, 0},
        {"a page beyond the rows", PAGE(1), 4, 6},
        {"rows behind the last page", PAGE(2), 4, 4},
        {"a last page beyond the rows", PAGE(2), 4, 6},
        {"a page whose first row comes late", ROW(0), 2, 1},
        {"rows of one address", ROW(1), 2, 0},
        {"rows that fall", ROW(3), 2, 0x11},
        {"no such rule", ROW(1) + 2, 2, 4},
    };
    struct cfi_table table;
    cleanup_(free_cfi) struct made_cfi made = make_table();
    char *bytes = made.bytes;
    assert_int_equal(made.table.rule_count, 4);
    assert_int_equal(made.size_bytes, ROW(5));
    for (size_t i = 0; i < COUNT_OF(damages); i++) {
        char before[8];
        memcpy(before, bytes + damages[i].offset, sizeof before);
        memcpy(bytes + damages[i].offset, &damages[i].value, damages[i].size_bytes);
        if (cfi_table_open(bytes, made.size_bytes, &table) != -EBADMSG) {
            fail_msg("%s is accepted", damages[i].what);
        }
        memcpy(bytes + damages[i].offset, before, sizeof before);
    }
    assert_int_equal(cfi_table_open(bytes, made.size_bytes, &table), 0);
}

TEST(refuses_bytes_of_another_size_or_place)
{
    struct cfi_table table;
    cleanup_(free_cfi) struct made_cfi made = make_table();
    const size_t size_bytes = made.size_bytes;
    cleanup_(freep) char *moved = malloc(size_bytes + 8);
    assert_non_null(moved);
    memcpy(moved + 4, made.bytes, size_bytes);
    assert_int_equal(cfi_table_open(moved + 4, size_bytes, &table), -EBADMSG);
    memcpy(moved, made.bytes, size_bytes);
    for (size_t size = 0; size < size_bytes; size++) {
        assert_int_equal(cfi_table_open(moved, size, &table), -EBADMSG);
    }
    memset(moved + size_bytes, 0, 8);
    assert_int_equal(cfi_table_open(moved, size_bytes + 4, &table), -EBADMSG);
}

static struct cfi_builder *settled_builder(void)
{
    const struct cfi_table *settled = NULL;
    struct cfi_builder *builder = cfi_builder_new();
    assert_non_null(builder);
    assert_null(cfi_builder_rewind(builder));
    for (int i = 0; i < 300; i++) {
        add(builder, BASE + (uint64_t)i * 2 * UNIT, BASE + (uint64_t)(i * 2 + 1) * UNIT, 8 * i);
    }
    assert_int_equal(cfi_builder_settle(builder, &settled), 0);
    return builder;
}

static void add_late(struct cfi_builder *builder)
{
    add(builder, BASE + UNIT, BASE + 4 * UNIT, 4000);
    add(builder, BASE + 9 * UNIT, BASE + 10 * UNIT, 16);
}

TEST(rewinds_to_what_was_settled)
{
    struct cfi_builder *builder = settled_builder();
    cleanup_(free_cfi) struct made_cfi first = {0};
    cfi_builder_lacks_small(builder);
    for (int i = 0; i < 2000; i++) {
        add(builder, BASE + (uint64_t)i * UNIT, BASE + (uint64_t)(i + 1) * UNIT, 8 * i + 4);
    }
    assert_int_equal(cfi_builder_finish(builder, &first.bytes, &first.size_bytes), 0);
    const struct cfi_table *settled = cfi_builder_rewind(builder);
    assert_non_null(settled);
    assert_int_equal(offset_at(settled, BASE + 2 * UNIT), 8);
    add_late(builder);
    cleanup_(free_cfi) struct made_cfi rewound = finish_cfi(builder);

    struct cfi_builder *other = settled_builder();
    add_late(other);
    cleanup_(free_cfi) struct made_cfi made = finish_cfi(other);
    assert_int_equal(rewound.size_bytes, made.size_bytes);
    assert_memory_equal(rewound.bytes, made.bytes, made.size_bytes);
}

/* Whichever allocation fails, the caller hears of it. */
TEST(no_table_hides_that_there_was_too_little_memory)
{
    bool has_failed = true;
    for (size_t good = 0; has_failed; good++) {
        void *bytes = NULL;
        size_t size_bytes = 0;
        int r = -ENOMEM;
        const struct cfi_rule rules[] = {rule_with(8), rule_with(16)};
        good_allocations = good;
        struct cfi_builder *builder = cfi_builder_new();
        if (builder != NULL) {
            r = cfi_builder_segment(
                builder, &(struct symbol_segment){.vaddr = BASE, .size_bytes = UNITS * UNIT});
            for (size_t i = 0; i < COUNT_OF(rules) && r == 0; i++) {
                r = cfi_builder_add(builder, BASE + i * UNIT, BASE + (i + 1) * UNIT, &rules[i]);
            }
            r = r < 0 ? r : cfi_builder_finish(builder, &bytes, &size_bytes);
            cfi_builder_free(builder);
        }
        has_failed = good_allocations > good;
        good_allocations = SIZE_MAX;
        assert_int_equal(r, has_failed ? -ENOMEM : 0);
        assert_int_equal(bytes == NULL, has_failed);
        free(bytes);
    }
}
