/* SPDX-License-Identifier: Apache-2.0 */

/* Numbers as printf() has them, and bytes that come out as they went in, however long. */
#include "byte_out.h"
#include "unit_test.h"

#include <inttypes.h>

TEST(prints_numbers_as_printf_does)
{
    static const uint64_t numbers[] = {
        0, 1, 9, 10, 15, 16, 99, 255, 256, 1000000007, INT64_MAX, UINT64_C(1) << 63, UINT64_MAX,
    };
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        char expected[64];
        char digits[DIGITS_MAX];
        size_t bytes = (size_t)snprintf(expected, sizeof expected, "%" PRIu64, numbers[i]);
        assert_int_equal(digits_decimal(numbers[i], digits), bytes);
        assert_memory_equal(digits, expected, bytes);
        bytes = (size_t)snprintf(expected, sizeof expected, "%" PRIx64, numbers[i]);
        assert_int_equal(digits_hex(numbers[i], digits), bytes);
        assert_memory_equal(digits, expected, bytes);
        bytes = (size_t)snprintf(expected, sizeof expected, "%09" PRIu64, numbers[i]);
        assert_int_equal(digits_decimal_padded(numbers[i], 9, digits), bytes);
        assert_memory_equal(digits, expected, bytes);
    }
}

static void put_pieces(FILE *file)
{
    struct byte_out out = {.file = file};
    static char long_piece[BYTE_OUT_BYTES + 1];
    memset(long_piece, 'x', sizeof long_piece);
    for (uint64_t i = 0; i < BYTE_OUT_BYTES; i++) {
        byte_out_decimal(&out, i);
        byte_out_text(&out, ",");
        byte_out_hex(&out, i);
    }
    byte_out_put(&out, long_piece, sizeof long_piece);
    byte_out_put(&out, long_piece, sizeof long_piece - 1);
    byte_out_text(&out, ".");
    byte_out_flush(&out);
}

static void print_pieces(FILE *file)
{
    for (size_t i = 0; i < BYTE_OUT_BYTES; i++) {
        (void)fprintf(file, "%zu,%zx", i, i);
    }
    for (size_t i = 0; i < 2 * BYTE_OUT_BYTES + 1; i++) {
        (void)fputc('x', file);
    }
    (void)fputc('.', file);
}

static char *printed(void (*print)(FILE *file))
{
    char *text = NULL;
    size_t text_bytes = 0;
    FILE *file = open_memstream(&text, &text_bytes);
    assert_non_null(file);
    print(file);
    assert_int_equal(fclose(file), 0);
    return text;
}

TEST(keeps_the_order_of_bytes)
{
    char *expected = printed(print_pieces);
    char *text = printed(put_pieces);
    assert_string_equal(text, expected);
    free(expected);
    free(text);
}
