/* SPDX-License-Identifier: Apache-2.0 */

/* The values of DWARF 5, 7.6, and of the pointer encodings in the Linux Standard Base, 10.5. */
#include "dwarf_cursor.h"
#include "unit_test.h"

#define ADDRESS      UINT64_C(0x1003)
#define DATA_ADDRESS UINT64_C(0x9000)
#define BYTES_MAX    16

#define BYTES(...) {__VA_ARGS__}, sizeof((uint8_t[]){__VA_ARGS__})

struct number {
    uint8_t bytes[BYTES_MAX];
    size_t size_bytes;
    bool is_valid;
    uint64_t value;
};

/* A cursor over a heap copy, so that a byte too far is found. */
static struct dwarf_cursor copy(const uint8_t *bytes, size_t size_bytes)
{
    uint8_t *heap = malloc(size_bytes);
    assert_non_null(heap);
    memcpy(heap, bytes, size_bytes);
    return (struct dwarf_cursor){.bytes = heap, .left = size_bytes, .address = ADDRESS};
}

static bool read_sleb(struct dwarf_cursor *cursor, uint64_t *ret)
{
    int64_t value = 0;
    bool is_read = dwarf_read_sleb(cursor, &value);
    *ret = (uint64_t)value;
    return is_read;
}

static void expect_numbers(const struct number *numbers, size_t count,
                           bool (*read)(struct dwarf_cursor *, uint64_t *))
{
    for (size_t i = 0; i < count; i++) {
        const struct number *number = &numbers[i];
        struct dwarf_cursor cursor = copy(number->bytes, number->size_bytes);
        const uint8_t *begin = cursor.bytes;
        uint64_t value = 0;
        if (read(&cursor, &value) != number->is_valid ||
            (number->is_valid && value != number->value)) {
            fail_msg("number %zu", i);
        }
        assert_ptr_equal(cursor.bytes, begin + (number->is_valid ? number->size_bytes : 0));
        assert_int_equal(cursor.left, number->is_valid ? 0 : number->size_bytes);
        free((void *)(uintptr_t)begin);
    }
}

TEST(reads_numbers_of_seven_bit_groups)
{
    static const struct number unsigned_ones[] = {
        {BYTES(0x02), true, 2},
        {BYTES(0x7f), true, 127},
        {BYTES(0x80, 0x01), true, 128},
        {BYTES(0xb9, 0x64), true, 12857},
        {BYTES(0x80, 0x80, 0x00), true, 0},
        {BYTES(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01), true, UINT64_MAX},
        {BYTES(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02), false, 0},
        {BYTES(0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00), false, 0},
        {BYTES(0x80, 0x80), false, 0},
    };
    static const struct number signed_ones[] = {
        {BYTES(0x02), true, 2},
        {BYTES(0x7e), true, -UINT64_C(2)},
        {BYTES(0xff, 0x00), true, 127},
        {BYTES(0x81, 0x7f), true, -UINT64_C(127)},
        {BYTES(0x80, 0x01), true, 128},
        {BYTES(0xff, 0x7e), true, -UINT64_C(129)},
        {BYTES(0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f), true,
         UINT64_C(1) << 63},
        {BYTES(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00), true, INT64_MAX},
        {BYTES(0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01), false, 0},
        {BYTES(0xff), false, 0},
    };
    expect_numbers(unsigned_ones, COUNT_OF(unsigned_ones), dwarf_read_uleb);
    expect_numbers(signed_ones, COUNT_OF(signed_ones), read_sleb);
}

TEST(reads_pointers_of_every_encoding)
{
    static const struct {
        uint8_t encoding;
        struct number pointer;
    } pointers[] = {
        {0x00, {BYTES(1, 2, 3, 4, 5, 6, 7, 8), true, UINT64_C(0x0807060504030201)}},
        {0x00, {BYTES(1, 2, 3, 4, 5, 6, 7), false, 0}},
        {0x01, {BYTES(0x80, 0x01), true, 128}},
        {0x02, {BYTES(0xfe, 0xff), true, 0xfffe}},
        {0x03, {BYTES(0xfe, 0xff, 0xff, 0xff), true, 0xfffffffe}},
        {0x04, {BYTES(1, 0, 0, 0, 0, 0, 0, 0), true, 1}},
        {0x09, {BYTES(0x7e), true, -UINT64_C(2)}},
        {0x0a, {BYTES(0xfe, 0xff), true, -UINT64_C(2)}},
        {0x0b, {BYTES(0xfe, 0xff, 0xff, 0xff), true, -UINT64_C(2)}},
        {0x0c, {BYTES(0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), true, -UINT64_C(2)}},
        {0x1b, {BYTES(0xfd, 0xff, 0xff, 0xff), true, 0x1000}},
        {0x12, {BYTES(0x10, 0x00), true, 0x1013}},
        {0x22, {BYTES(0x10, 0x00), true, 0x10}},
        {0x3b, {BYTES(0xff, 0xff, 0xff, 0xff), true, 0x8fff}},
        {0x50, {BYTES(9, 9, 9, 9, 9, 1, 0, 0, 0, 0, 0, 0, 0), true, 1}},
        {0x50, {BYTES(9, 9, 9, 9), false, 0}},
        {0x40, {BYTES(1, 0, 0, 0, 0, 0, 0, 0), false, 0}},
        {0x60, {BYTES(1, 0, 0, 0, 0, 0, 0, 0), false, 0}},
        {0x05, {BYTES(1, 0, 0, 0, 0, 0, 0, 0), false, 0}},
        {0x0f, {BYTES(1, 0, 0, 0, 0, 0, 0, 0), false, 0}},
        {0x9b, {BYTES(1, 0, 0, 0), false, 0}},
        {0xff, {BYTES(1, 0, 0, 0, 0, 0, 0, 0), false, 0}},
    };
    for (size_t i = 0; i < COUNT_OF(pointers); i++) {
        const struct number *number = &pointers[i].pointer;
        struct dwarf_cursor cursor = copy(number->bytes, number->size_bytes);
        const uint8_t *begin = cursor.bytes;
        uint64_t value = 0;
        bool is_read = dwarf_read_pointer(&cursor, pointers[i].encoding, DATA_ADDRESS, &value);
        if (is_read != number->is_valid || (is_read && value != number->value)) {
            fail_msg("pointer %zu", i);
        }
        assert_int_equal(cursor.left, is_read ? 0 : number->size_bytes);
        assert_int_equal(cursor.address, ADDRESS + (is_read ? number->size_bytes : 0));
        free((void *)(uintptr_t)begin);
    }
}

TEST(refuses_pointers_to_data_that_nobody_knows)
{
    static const uint8_t bytes[4] = {0};
    struct dwarf_cursor cursor = {.bytes = bytes, .left = sizeof bytes};
    uint64_t value = 0;
    assert_false(dwarf_read_pointer(&cursor, 0x3b, 0, &value));
}

TEST(stays_where_a_string_or_block_does_not_end)
{
    static const uint8_t bytes[] = {'z', 'R', 0, 'x'};
    struct dwarf_cursor cursor = {.bytes = bytes, .left = sizeof bytes};
    struct dwarf_cursor block;
    const char *text = NULL;
    assert_true(dwarf_read_string(&cursor, &text));
    assert_string_equal(text, "zR");
    assert_false(dwarf_read_string(&cursor, &text));
    assert_false(dwarf_read_block(&cursor, 2, &block));
    assert_false(dwarf_read_block(&cursor, UINT64_MAX, &block));
    assert_int_equal(cursor.left, 1);
    assert_true(dwarf_read_block(&cursor, 1, &block));
    assert_int_equal(block.bytes[0], 'x');
    assert_false(dwarf_read_u8(&cursor, (uint8_t[1]){0}));
}
