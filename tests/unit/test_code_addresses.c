/* SPDX-License-Identifier: Apache-2.0 */

/* Which functions lose their rows since other code has their address near a jump with a frame. */
#include "code_addresses.h"

#include "built_tables.h"

#include <string.h>

#define CODE       UINT64_C(0x400000)
#define FIRST      UINT64_C(0x400800) /* two functions whose rows are in doubt, */
#define LAST       UINT64_C(0x400900) /* the first and the last of them */
#define BYTES      16
#define CODE_BYTES 200
#define JUMP_AT    150

static const struct cfi_rule rule = {.kind = CFI_OFFSET,
                                     .cfa_register = ARCH_DWARF_SP,
                                     .cfa_offset = 24,
                                     .ra_saved = CFI_AT_CFA,
                                     .ra_offset = -8};

static const struct cfi_rule no_frame = {.kind = CFI_OFFSET,
                                         .cfa_register = ARCH_DWARF_SP,
                                         .cfa_offset = 8,
                                         .ra_saved = CFI_AT_CFA,
                                         .ra_offset = -8};

/* Code that has `number` at a place, and elsewhere a jump to what a
 * register tells. */
struct code {
    uint8_t bytes[CODE_BYTES];
};

static struct code code_with(size_t at, uint32_t number)
{
    const uint8_t jump[] = {0xff, 0xe0};
    struct code code = {{0}};
    memcpy(code.bytes + JUMP_AT, jump, sizeof jump);
    memcpy(code.bytes + at, &number, sizeof number);
    return code;
}

/* Whether a function keeps its row beside code that has this rule. */
static bool does_hold(uint64_t function, const struct code *code, const struct cfi_rule *code_rule,
                      bool is_fixed)
{
    struct cfi_builder *with_frames = cfi_builder_new();
    struct cfi_builder *settled = cfi_builder_new();
    struct code_doubts *doubts = code_doubts_new();
    assert_int_equal(cfi_builder_add(with_frames, CODE, CODE + CODE_BYTES, code_rule), 0);
    cleanup_(free_cfi) struct made_cfi frames = finish_cfi(with_frames);
    assert_int_equal(code_doubts_add(doubts, FIRST, FIRST + BYTES, &rule, FIRST), 0);
    assert_int_equal(code_doubts_add(doubts, LAST, LAST + BYTES, &rule, LAST), 0);
    int r = code_addresses_note(code->bytes, CODE_BYTES, CODE, is_fixed, &frames.table, doubts);
    assert_int_equal(r, 0);
    assert_int_equal(code_doubts_settle(doubts, settled), 0);
    code_doubts_free(doubts);
    cleanup_(free_cfi) struct made_cfi made = finish_cfi(settled);
    return cfi_table_find(&made.table, function)->kind == CFI_OFFSET;
}

TEST(a_number_at_any_place_is_found)
{
    for (size_t at = 0; at + sizeof(uint32_t) <= JUMP_AT; at++) {
        struct code first = code_with(at, FIRST);
        struct code last = code_with(at, LAST);
        assert_false(does_hold(FIRST, &first, &rule, true));
        assert_true(does_hold(LAST, &first, &rule, true));
        assert_false(does_hold(LAST, &last, &rule, true));
        assert_true(does_hold(FIRST, &last, &rule, true));
    }
    struct code code = code_with(CODE_BYTES - sizeof(uint32_t), LAST);
    assert_false(does_hold(LAST, &code, &rule, true));
}

TEST(what_is_no_such_number_is_none)
{
    const uint32_t others[] = {FIRST - 1, FIRST + 1, LAST - 1, LAST + 1, 0x80000000U | FIRST, 0};
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        struct code code = code_with(7, others[i]);
        assert_true(does_hold(FIRST, &code, &rule, true));
        assert_true(does_hold(LAST, &code, &rule, true));
    }
    struct code code = code_with(7, FIRST);
    assert_true(does_hold(FIRST, &code, &rule, false)); /* the file can be mapped anywhere */
    assert_true(does_hold(FIRST, &code, &no_frame, true));
}

TEST(an_address_that_is_computed_is_found)
{
    for (size_t at = 0; at + 2 + sizeof(uint32_t) <= JUMP_AT; at++) {
        struct code code = code_with(at + 2, (uint32_t)(LAST - (CODE + at + 6)));
        code.bytes[at] = 0x8d; /* lea LAST(%rip), %edi */
        code.bytes[at + 1] = 0x3d;
        assert_false(does_hold(LAST, &code, &rule, false));
        assert_true(does_hold(FIRST, &code, &rule, false));
        assert_true(does_hold(LAST, &code, &no_frame, false));
    }
}
