/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Rows of a tree are numbered as they come, and found again under their numbers.
 */
#include "call_nodes.h"

#include "unit_test.h"

#define ROWS 100000u

/* Every row has one of 16 frames, and most are below another row. */
static struct call_node make_row(uint32_t number)
{
    return (struct call_node){.parent = number < 16 ? CALL_NODE_NONE : number / 16 - 1,
                              .frame = number % 16};
}

static void add_rows(struct call_nodes *table)
{
    for (uint32_t i = 0; i < ROWS; i++) {
        const struct call_node row = make_row(i);
        uint32_t number = 0;
        assert_int_equal(call_nodes_add(table, &row, &number), 0);
        assert_int_equal(number, i);
    }
}

TEST(numbers_rows_as_they_come_and_finds_them_again)
{
    struct call_nodes table = {0};
    add_rows(&table);
    add_rows(&table);
    assert_int_equal(table.count, ROWS);
    for (uint32_t i = 0; i < ROWS; i++) {
        assert_int_equal(table.rows[i].parent, make_row(i).parent);
        assert_int_equal(table.rows[i].frame, make_row(i).frame);
    }
    call_nodes_done(&table);
    assert_null(table.rows);
}
