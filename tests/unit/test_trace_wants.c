/* SPDX-License-Identifier: Apache-2.0 */

/* How many addresses of an account may wait for names. */
#include "trace_wants.h"
#include "unit_test.h"

#define FILES 64

/* As many files of one owner as there are, each with as many addresses as it may have. */
static size_t fill(struct trace_wants *wants, struct wanted_addresses *lists, uint32_t owner)
{
    size_t count = 0;
    for (size_t i = 0; i < FILES; i++) {
        lists[i].owner = owner;
        for (uint64_t address = 0; address < TRACE_WANTS_MAX / FILES; address++) {
            trace_wants_note(wants, &lists[i], address);
        }
        count += lists[i].count;
    }
    return count;
}

static void clear(struct trace_wants *wants, struct wanted_addresses *lists)
{
    for (size_t i = 0; i < FILES; i++) {
        trace_wants_clear(wants, &lists[i]);
    }
}

#define STORY(name) TEST_MADE(struct trace_wants *wants, name, trace_wants_new(), trace_wants_free)

STORY(many_files_of_one_user_leave_half_to_others)
{
    struct wanted_addresses hostile[FILES] = {0};
    struct wanted_addresses other[FILES] = {0};
    assert_int_equal(fill(wants, hostile, 1000), TRACE_WANTS_MAX / 2);
    assert_int_equal(trace_wants_refused_count(wants), TRACE_WANTS_MAX / 2);
    assert_int_equal(fill(wants, other, 0), TRACE_WANTS_MAX / 4);
    clear(wants, hostile);
    clear(wants, other);
    assert_int_equal(fill(wants, other, 0), TRACE_WANTS_MAX / 2);
    clear(wants, other);
}

STORY(one_file_has_a_bound_of_its_own)
{
    struct wanted_addresses list = {.owner = 1000};
    for (uint64_t address = 0; address < TRACE_WANTS_MAX / 4; address++) {
        trace_wants_note(wants, &list, address);
    }
    assert_int_equal(list.count, TRACE_WANTS_MAX / 8);
    trace_wants_pop(wants, &list);
    assert_int_equal(list.count, TRACE_WANTS_MAX / 8 - 1);
    trace_wants_note(wants, &list, 42);
    assert_int_equal(list.items[list.count - 1], 42);
    assert_int_equal(trace_wants_refused_count(wants), TRACE_WANTS_MAX / 8);
    trace_wants_clear(wants, &list);
}
