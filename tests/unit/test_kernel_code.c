/* SPDX-License-Identifier: Apache-2.0 */

/* Code of the kernel that comes and goes: whose an address is at a time, and how much is kept. */
#include "kernel_code.h"
#include "unit_test.h"

static struct kernel_function make(uint64_t start, uint32_t size_bytes, uint64_t from_ns,
                                   const char *name)
{
    struct kernel_function function = {
        .start = start, .size_bytes = size_bytes, .from_ns = from_ns, .to_ns = UINT64_MAX};
    (void)snprintf(function.name, sizeof function.name, "%s", name);
    return function;
}

static void come(struct kernel_code *code, uint64_t start, uint64_t time_ns, const char *name)
{
    const struct kernel_function function = make(start, 0x40, time_ns, name);
    assert_true(kernel_code_come(code, &function));
}

static void go(struct kernel_code *code, uint64_t start, uint64_t time_ns, const char *name)
{
    const struct kernel_function function = make(start, 0x40, time_ns, name);
    assert_true(kernel_code_go(code, &function, time_ns));
}

static const char *name_at(struct kernel_code *code, uint64_t address, uint64_t time_ns)
{
    bool is_known = false;
    const struct kernel_function *found = kernel_code_find(code, address, time_ns, &is_known);
    assert_true(is_known || found == NULL);
    return found == NULL ? "" : time_ns >= found->to_ns ? "gone" : found->name;
}

#define STORY(name) TEST_MADE(struct kernel_code *code, name, kernel_code_new(), kernel_code_free)

STORY(an_address_is_whose_it_was_at_the_time)
{
    uint32_t epoch = kernel_code_epoch(code);
    assert_string_equal(name_at(code, 0x1000, 100), "");
    come(code, 0x1000, 100, "first");
    assert_int_not_equal(kernel_code_epoch(code), epoch);
    go(code, 0x1000, 200, "first");
    come(code, 0x1020, 300, "second");
    assert_string_equal(name_at(code, 0x1000, 99), "");
    assert_string_equal(name_at(code, 0x1000, 100), "first");
    assert_string_equal(name_at(code, 0x103f, 199), "first");
    assert_string_equal(name_at(code, 0x1040, 199), "");
    assert_string_equal(name_at(code, 0x103f, 200), "gone");
    assert_string_equal(name_at(code, 0x103f, 300), "second");
    assert_string_equal(name_at(code, 0x1000, 300), "gone");
}

STORY(what_was_there_before_is_gone_from_then_on)
{
    go(code, 0x1000, 200, "older");
    assert_string_equal(name_at(code, 0x1000, 199), "older");
    assert_string_equal(name_at(code, 0x1000, 200), "gone");
}

STORY(what_takes_an_address_ends_what_had_it)
{
    come(code, 0x1000, 100, "first");
    come(code, 0x1030, 200, "second");
    assert_string_equal(name_at(code, 0x1030, 199), "first");
    assert_string_equal(name_at(code, 0x1030, 200), "second");
    assert_string_equal(name_at(code, 0x1000, 200), "gone");
}

STORY(is_bounded_and_forgets_the_oldest_that_is_gone)
{
    for (uint64_t i = 0; i < KERNEL_CODE_MAX; i++) {
        come(code, 0x1000 * (i + 1), 100 + i, "f");
    }
    const struct kernel_function more =
        make(UINT64_C(0x1000) * (KERNEL_CODE_MAX + 1), 0x40, 9000, "more");
    assert_false(kernel_code_come(code, &more));
    go(code, 0x3000, 10000, "f");
    go(code, 0x2000, 11000, "f");
    assert_true(kernel_code_come(code, &more));
    assert_string_equal(name_at(code, 0x3000, 9000), "");
    assert_string_equal(name_at(code, 0x2000, 9000), "f");
    assert_string_equal(name_at(code, more.start, 9000), "more");
    assert_null(kernel_code_at(code, KERNEL_CODE_MAX));
}
