/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Runs of plain ASCII as they are, the rest character by character through the decoder. Widths are
 * those of glibc's UTF-8 locale, whatever the locale is: names are printed as UTF-8 in each.
 */
#include "text_out.h"

#include "utf8.h"

#include <inttypes.h>
#include <locale.h>
#include <stdbool.h>
#include <string.h>
#include <wchar.h>

#define LABEL_WIDTH 20
#define ELLIPSIS    "..."

/* How many bytes from the front are ASCII that may be printed. */
static size_t count_ascii(const char *text, size_t text_bytes)
{
    size_t count = 0;
    while (count < text_bytes && text[count] >= 0x20 && text[count] < 0x7f) {
        count++;
    }
    return count;
}

void text_print_bytes(FILE *file, const char *text, size_t text_bytes)
{
    while (text_bytes > 0) {
        uint32_t character = 'a';
        size_t length = count_ascii(text, text_bytes);
        if (length == 0) {
            length = utf8_character(text, text_bytes, &character);
        }
        if (length == 0 || utf8_is_control(character)) {
            (void)fputc('?', file);
        } else {
            (void)fwrite_unlocked(text, 1, length, file);
        }
        length = length == 0 ? 1 : length;
        text += length;
        text_bytes -= length;
    }
}

void text_print(FILE *file, const char *text)
{
    text_print_bytes(file, text, strlen(text));
}

/* Bytes of other than ASCII are not: text_print() may make a '?' of one, which a shell takes for
 * any character. */
static bool is_plain(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || (byte != '\0' && strchr("%+,-./:=@_", byte) != NULL);
}

void text_print_argument(FILE *file, const char *text)
{
    const char *at = text;
    while (is_plain(*at)) {
        at++;
    }
    if (*at == '\0' && at != text) {
        text_print(file, text);
        return;
    }
    (void)fputc('\'', file);
    for (const char *quote = NULL; (quote = strchr(text, '\'')) != NULL; text = quote + 1) {
        text_print_bytes(file, text, (size_t)(quote - text));
        (void)fputs("'\\''", file);
    }
    text_print(file, text);
    (void)fputc('\'', file);
}

/* How many columns a character takes; one of which that is not known takes one. */
static size_t character_width(uint32_t character)
{
    static locale_t utf8;
    if (utf8 == (locale_t)0) {
        utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    }
    if (utf8 == (locale_t)0 || utf8_is_control(character)) {
        return 1;
    }
    const locale_t before = uselocale(utf8);
    const int width = wcwidth((wchar_t)character);
    (void)uselocale(before);
    return width < 0 ? 1 : (size_t)width;
}

/* Takes the next character of a text: its bytes, and the columns that it is printed in. */
static size_t take_character(const char *text, size_t text_bytes, size_t *ret_width)
{
    uint32_t character = 0;
    const size_t length = utf8_character(text, text_bytes, &character);
    *ret_width = length == 0 ? 1 : length == 1 ? 1 : character_width(character);
    return length == 0 ? 1 : length;
}

size_t text_width(const char *text)
{
    size_t width = 0;
    size_t text_bytes = strlen(text);
    while (text_bytes > 0) {
        const size_t ascii_count = count_ascii(text, text_bytes);
        size_t own_width = ascii_count;
        const size_t length =
            ascii_count > 0 ? ascii_count : take_character(text, text_bytes, &own_width);
        text += length;
        text_bytes -= length;
        width += own_width;
    }
    return width;
}

static void print_spaces(FILE *file, size_t count)
{
    for (; count > 0; count--) {
        (void)fputc(' ', file);
    }
}

void text_print_padded(FILE *file, const char *text, size_t width)
{
    text_print(file, text);
    const size_t used = text_width(text);
    print_spaces(file, used < width ? width - used : 0);
}

/* How many bytes the characters take that begin in the first `columns`, with the accents that are
 * put over the last of them. */
static size_t skip_columns(const char *text, size_t columns)
{
    const size_t text_bytes = strlen(text);
    size_t skipped = 0;
    size_t width = 0;
    while (skipped < text_bytes) {
        size_t own_width = 0;
        const size_t length = take_character(text + skipped, text_bytes - skipped, &own_width);
        if (width >= columns && own_width > 0) {
            break;
        }
        width += own_width;
        skipped += length;
    }
    return skipped;
}

/* How many bytes from the front fit into `columns`, and how many columns these take. */
static size_t take_columns(const char *text, size_t columns, size_t *ret_width)
{
    const size_t text_bytes = strlen(text);
    size_t taken = 0;
    *ret_width = 0;
    while (taken < text_bytes) {
        size_t own_width = 0;
        const size_t length = take_character(text + taken, text_bytes - taken, &own_width);
        if (own_width > columns - *ret_width) {
            break;
        }
        *ret_width += own_width;
        taken += length;
    }
    return taken;
}

size_t text_bytes_of(const char *text, size_t columns)
{
    size_t width = 0;
    return take_columns(text, columns, &width);
}

void text_print_fitted(FILE *file, const char *text, size_t width, bool is_padded)
{
    size_t full_width = text_width(text);
    if (full_width <= width) {
        text_print_padded(file, text, is_padded ? width : 0);
        return;
    }
    const size_t kept = width > strlen(ELLIPSIS) ? width - strlen(ELLIPSIS) : 0;
    size_t used = 0;
    const size_t front_bytes = take_columns(text, kept - kept / 2, &used);
    const char *back = text + skip_columns(text, full_width - kept / 2);
    text_print_bytes(file, text, front_bytes);
    (void)fprintf(file, "%.*s", (int)(width - kept), ELLIPSIS);
    text_print(file, back);
    used += width - kept + text_width(back);
    print_spaces(file, is_padded ? width - used : 0);
}

void text_print_member(FILE *file, const char *label, const char *text)
{
    (void)fputs("  ", file);
    text_print_padded(file, label, LABEL_WIDTH);
    (void)fputc(' ', file);
    text_print(file, text);
    (void)fputc('\n', file);
}

const char *text_rate(uint64_t period_ns, char *into)
{
    into[0] = '\0';
    if (period_ns > 0) {
        (void)snprintf(into, TEXT_RATE_BYTES, ", one every %.6f ms of a CPU (%.1f Hz)",
                       (double)period_ns / 1e6, 1e9 / (double)period_ns);
    }
    return into;
}

const char *text_samples(uint64_t count, char *into)
{
    (void)snprintf(into, TEXT_COUNT_BYTES, "%" PRIu64 " sample%s", count, count == 1 ? "" : "s");
    return into;
}

/* The digits with a comma behind each thousand. `into` has room for 32 bytes. */
static const char *group_digits(uint64_t amount, char *into)
{
    char digits[32];
    size_t count = (size_t)snprintf(digits, sizeof digits, "%" PRIu64, amount);
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && (count - i) % 3 == 0) {
            into[used++] = ',';
        }
        into[used++] = digits[i];
    }
    into[used] = '\0';
    return into;
}

/* How many bytes of a unit's plural its singular has: "faults", "switches", "misses". */
static size_t singular_bytes(const char *unit)
{
    size_t bytes = strlen(unit);
    bool has_es =
        bytes > 3 && (strcmp(unit + bytes - 3, "hes") == 0 || strcmp(unit + bytes - 3, "ses") == 0);
    return has_es ? bytes - 2 : bytes > 1 && unit[bytes - 1] == 's' ? bytes - 1 : bytes;
}

static const char *text_time(uint64_t time_ns, char *into, size_t capacity)
{
    static const struct {
        uint64_t ns;
        const char *name;
    } units[] = {{1000000000, "s"}, {1000000, "ms"}, {1000, "us"}};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (time_ns >= units[i].ns) {
            (void)snprintf(into, capacity, "%.3f %s", (double)time_ns / (double)units[i].ns,
                           units[i].name);
            return into;
        }
    }
    (void)snprintf(into, capacity, "%" PRIu64 " ns", time_ns);
    return into;
}

const char *text_amount(uint64_t amount, const char *unit, char *into, size_t capacity)
{
    char digits[32];
    if (strcmp(unit, "ns") == 0) {
        return text_time(amount, into, capacity);
    }
    size_t unit_bytes = amount == 1 ? singular_bytes(unit) : strlen(unit);
    (void)snprintf(into, capacity, "%s %.*s", group_digits(amount, digits), (int)unit_bytes, unit);
    return into;
}

const char *text_size(uint64_t size_bytes, char *into)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    double amount = (double)size_bytes / 1024;
    size_t unit = 0;
    if (size_bytes < 1024) {
        (void)snprintf(into, 32, "%" PRIu64 " bytes", size_bytes);
        return into;
    }
    while (amount >= 1024 && unit < sizeof units / sizeof units[0] - 1) {
        amount /= 1024;
        unit++;
    }
    (void)snprintf(into, 32, "%.1f %s", amount, units[unit]);
    return into;
}
