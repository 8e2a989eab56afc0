/* SPDX-License-Identifier: Apache-2.0 */

/* Rows that rest on a symbol hold, or end the stack, by where other code jumps. */
#include "code_doubts.h"

#include "built_tables.h"

#define FIRST  UINT64_C(0x1000)
#define SECOND UINT64_C(0x2000)
#define THIRD  UINT64_C(0x3000)
#define BYTES  16

static const struct cfi_rule rule = {.kind = CFI_OFFSET,
                                     .cfa_register = ARCH_DWARF_SP,
                                     .cfa_offset = 24,
                                     .ra_saved = CFI_AT_CFA,
                                     .ra_offset = -8};

/* Two functions, of two rows each. */
static struct code_doubts *two_functions(void)
{
    struct code_doubts *doubts = code_doubts_new();
    assert_false(code_doubts_has_rows(doubts));
    assert_int_equal(code_doubts_add(doubts, FIRST, FIRST + 4, &rule, FIRST), 0);
    assert_int_equal(code_doubts_add(doubts, FIRST + 4, FIRST + BYTES, &rule, FIRST), 0);
    assert_int_equal(code_doubts_add(doubts, SECOND, SECOND + 4, &rule, SECOND), 0);
    assert_int_equal(code_doubts_add(doubts, SECOND + 4, SECOND + BYTES, &rule, SECOND), 0);
    assert_true(code_doubts_has_rows(doubts));
    return doubts;
}

static void check(struct code_doubts *doubts, enum cfi_kind first, enum cfi_kind second)
{
    struct cfi_builder *builder = cfi_builder_new();
    assert_int_equal(code_doubts_settle(doubts, builder), 0);
    code_doubts_free(doubts);
    cleanup_(free_cfi) struct made_cfi made = finish_cfi(builder);
    const struct {
        uint64_t at;
        enum cfi_kind kind;
    } cases[] = {
        {FIRST - 1, CFI_NONE},     {FIRST, first},   {FIRST + BYTES - 1, first},
        {FIRST + BYTES, CFI_NONE}, {SECOND, second}, {SECOND + BYTES - 1, second},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct cfi_rule *found = cfi_table_find(&made.table, cases[i].at);
        assert_int_equal(found->kind, cases[i].kind);
        assert_int_equal(found->cfa_offset, found->kind == CFI_OFFSET ? rule.cfa_offset : 0);
    }
}

TEST(asks_for_pointers_until_a_jump_may_lead_anywhere)
{
    struct code_doubts *none = code_doubts_new();
    assert_false(code_doubts_asks_for_pointers(none));
    code_doubts_free(none);
    struct code_doubts *doubts = two_functions();
    assert_int_equal(code_doubts_jump(doubts, FIRST), 0);
    assert_true(code_doubts_asks_for_pointers(doubts));
    assert_int_equal(code_doubts_jump(doubts, CODE_DOUBTS_ANYWHERE), 0);
    assert_false(code_doubts_asks_for_pointers(doubts));
    code_doubts_free(doubts);
}

TEST(rows_hold_where_nothing_jumps_to_the_function)
{
    struct code_doubts *doubts = two_functions();
    assert_int_equal(code_doubts_jump(doubts, FIRST - 1), 0);
    assert_int_equal(code_doubts_jump(doubts, FIRST + BYTES), 0);
    assert_int_equal(code_doubts_jump(doubts, SECOND - 1), 0);
    check(doubts, CFI_OFFSET, CFI_OFFSET);
}

TEST(a_jump_to_its_start_ends_all_of_a_function)
{
    struct code_doubts *doubts = two_functions();
    assert_int_equal(code_doubts_jump(doubts, UINT64_MAX - 1), 0);
    assert_int_equal(code_doubts_jump(doubts, SECOND), 0);
    assert_int_equal(code_doubts_jump(doubts, 1), 0);
    check(doubts, CFI_OFFSET, CFI_END);
}

TEST(and_so_does_one_into_its_middle)
{
    struct code_doubts *doubts = two_functions();
    assert_int_equal(code_doubts_jump(doubts, FIRST + BYTES - 1), 0);
    check(doubts, CFI_END, CFI_OFFSET);
}

TEST(a_jump_to_anywhere_ends_all)
{
    struct code_doubts *doubts = two_functions();
    assert_int_equal(code_doubts_jump(doubts, CODE_DOUBTS_ANYWHERE), 0);
    check(doubts, CFI_END, CFI_END);
}

TEST(a_function_that_is_called_holds_nevertheless)
{
    struct code_doubts *doubts = two_functions();
    assert_int_equal(code_doubts_jump(doubts, CODE_DOUBTS_ANYWHERE), 0);
    assert_int_equal(code_doubts_call(doubts, SECOND), 0);
    check(doubts, CFI_END, CFI_OFFSET);
}

TEST(a_function_that_a_pointer_leads_to_ends)
{
    struct code_doubts *doubts = two_functions();
    assert_int_equal(code_doubts_point(doubts, SECOND), 0);
    assert_int_equal(code_doubts_point(doubts, FIRST - 1), 0);
    assert_int_equal(code_doubts_point(doubts, FIRST + 1), 0);
    check(doubts, CFI_OFFSET, CFI_END);
}

TEST(and_holds_where_it_is_called)
{
    struct code_doubts *doubts = two_functions();
    assert_int_equal(code_doubts_point(doubts, SECOND), 0);
    assert_int_equal(code_doubts_call(doubts, SECOND), 0);
    check(doubts, CFI_OFFSET, CFI_OFFSET);
}

TEST(unless_it_is_jumped_to_as_well)
{
    struct code_doubts *doubts = two_functions();
    assert_int_equal(code_doubts_call(doubts, SECOND), 0);
    assert_int_equal(code_doubts_jump(doubts, SECOND), 0);
    check(doubts, CFI_OFFSET, CFI_END);
}

TEST(a_function_passes_on_the_stack_that_it_was_jumped_to_with)
{
    struct code_doubts *doubts = two_functions();
    assert_int_equal(code_doubts_pass(doubts, SECOND, FIRST), 0);
    assert_int_equal(code_doubts_pass(doubts, THIRD, SECOND), 0);
    assert_int_equal(code_doubts_pass(doubts, FIRST, THIRD), 0);
    assert_int_equal(code_doubts_jump(doubts, THIRD), 0);
    check(doubts, CFI_END, CFI_END);
}

TEST(and_where_it_was_called_none)
{
    struct code_doubts *doubts = two_functions();
    assert_int_equal(code_doubts_pass(doubts, SECOND, FIRST), 0);
    assert_int_equal(code_doubts_pass(doubts, SECOND, CODE_DOUBTS_ANYWHERE), 0);
    assert_int_equal(code_doubts_jump(doubts, THIRD), 0);
    check(doubts, CFI_OFFSET, CFI_OFFSET);
}

TEST(it_may_pass_it_on_to_anywhere)
{
    struct code_doubts *doubts = two_functions();
    assert_int_equal(code_doubts_pass(doubts, THIRD, CODE_DOUBTS_ANYWHERE), 0);
    assert_int_equal(code_doubts_jump(doubts, THIRD), 0);
    check(doubts, CFI_END, CFI_END);
}

TEST(the_number_of_rows_is_bounded)
{
    const uint64_t many = UINT64_C(1) << 20;
    struct code_doubts *doubts = code_doubts_new();
    uint64_t kept = 0;
    for (; kept < many && code_doubts_has_room(doubts); kept++) {
        assert_int_equal(code_doubts_add(doubts, kept * BYTES, kept * BYTES + 1, &rule, 0), 0);
    }
    assert_in_range(kept, 1 << 10, many - 1);
    code_doubts_free(doubts);
}
