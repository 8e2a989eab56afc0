/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A program with more small stretches of code without rows than its own table may have rows for:
 * the last ones are left to the table of all rows. The table is that of this very program.
 */
#include "built_tables.h"
#include "code_rows.h"

#define STRETCH_COUNT 1100 /* of 31 bytes, in front of each a function with a row */
#define STEP_BYTES    32
#define POP_AT        17 /* from the beginning of that function */

__asm__(".pushsection .text\n.p2align 5\n.globl stretches\nstretches:\n"
        ".rept 1100\n.cfi_startproc\nret\n.cfi_endproc\n"
        ".p2align 4\npush %rbx\npop %rbx\nret\n.p2align 5\n.endr\n"
        ".cfi_startproc\nret\n.cfi_endproc\n.popsection\n");
extern const char stretches, __executable_start;

static struct made_cfi read_table(enum code_rows_extent extent)
{
    cleanup_(closep) int fd = open_self();
    struct cfi_builder *builder = cfi_builder_new();
    assert_int_equal(code_rows_read(fd, extent, builder), 0);
    return finish_cfi(builder);
}

static uint64_t pop_in(size_t stretch)
{
    return (uint64_t)(&stretches - &__executable_start) + stretch * STEP_BYTES + POP_AT;
}

TEST(leaves_stretches_beyond_its_bound_to_the_table_of_all_rows)
{
    cleanup_(free_cfi) struct made_cfi own = read_table(CODE_ROWS_OWN);
    cleanup_(free_cfi) struct made_cfi all = read_table(CODE_ROWS_ALL);
    assert_true(own.table.lacks_small);
    assert_int_equal(cfi_table_find(&own.table, pop_in(0))->cfa_offset, 16);
    for (size_t i = 1024; i < STRETCH_COUNT; i++) {
        assert_int_equal(cfi_table_find(&all.table, pop_in(i))->cfa_offset, 16);
        assert_int_equal(cfi_table_find(&own.table, pop_in(i))->kind, CFI_NONE);
        assert_false(cfi_table_is_settled(&own.table, pop_in(i)));
    }
}
