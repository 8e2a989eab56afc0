/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads the table in which Go's runtime looks its functions up. An index, sorted by address, has
 * the address and the place of the record of each function, and at its end the address at which the
 * last function ends. The record repeats the address, and has the place of the name. A function
 * reaches to the next one; a hole that the linker left has no record.
 *
 * The versions differ in where the parts begin (in the first one all places count from the table's
 * first byte), in whether an address is absolute or a 32-bit distance from the beginning of the
 * text, and in the record. Pure; never reads beyond the bytes of the table.
 */
#include "go_functions.h"

#include <errno.h>
#include <string.h>

#define FLAG_WRITES_SP 2
#define COUNT_WORD     0
#define TEXT_WORD      2
#define NOT_THERE      0
#define WORD_BYTES     sizeof(uint64_t)

struct go_layout {
    uint8_t magic; /* the lowest byte; the others are the same in all */
    uint8_t header_words;
    uint8_t names_word;   /* words of the header that have the offset of a part; NOT_THERE: */
    uint8_t records_word; /* the part begins with the table */
    uint8_t field_bytes;  /* of an address, and of a place in the index */
    uint8_t flags_at;     /* in a record */
};

static const struct go_layout layouts[] = {
    {0xfb, 1, NOT_THERE, NOT_THERE, 8, NOT_THERE}, /* Go 1.2 */
    {0xfa, 7, 2, 6, 8, 41},                        /* 1.16; the flags are 0 before 1.17 */
    {0xf0, 8, 3, 7, 4, 37},                        /* 1.18 */
    {0xf1, 8, 3, 7, 4, 41},                        /* 1.20 */
};

static const struct go_layout *find_layout(const uint8_t *bytes)
{
    /* Two zeros, the smallest instruction and the pointers of x86-64. */
    static const uint8_t rest[GO_FUNCTIONS_MAGIC_BYTES - 1] = {0xff, 0xff, 0xff, 0, 0, 1, 8};
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        if (bytes[0] == layouts[i].magic && memcmp(bytes + 1, rest, sizeof rest) == 0) {
            return &layouts[i];
        }
    }
    return NULL;
}

bool go_functions_begin(const void *bytes)
{
    return find_layout(bytes) != NULL;
}

/* The number at `offset`, of as many bytes; they have to be there. */
static uint64_t read_number(const uint8_t *bytes, size_t offset, size_t number_bytes)
{
    uint64_t number = 0;
    memcpy(&number, bytes + offset, number_bytes);
    return number;
}

static bool is_relative(const struct go_layout *layout)
{
    return layout->field_bytes < WORD_BYTES;
}

static uint64_t header_word(const struct go_functions *table, size_t word)
{
    return read_number(table->bytes, GO_FUNCTIONS_MAGIC_BYTES + word * WORD_BYTES, WORD_BYTES);
}

/* Where a part begins; past the end if that is what the header says. */
static uint64_t part_offset(const struct go_functions *table, size_t word)
{
    return word == NOT_THERE ? 0 : header_word(table, word);
}

/* A field of the index: addresses have even numbers, and the records' places the odd ones. */
static uint64_t index_field(const struct go_functions *table, uint64_t number)
{
    size_t field_bytes = table->layout->field_bytes;
    return read_number(table->bytes, table->index_offset + (size_t)number * field_bytes,
                       field_bytes);
}

static int find_parts(struct go_functions *table)
{
    const struct go_layout *layout = table->layout;
    size_t header_bytes = GO_FUNCTIONS_MAGIC_BYTES + layout->header_words * WORD_BYTES;
    if (table->size_bytes < header_bytes) {
        return -EBADMSG;
    }
    uint64_t names = part_offset(table, layout->names_word);
    uint64_t records = part_offset(table, layout->records_word);
    uint64_t index = layout->records_word == NOT_THERE ? header_bytes : records;
    if (names >= table->size_bytes || index >= table->size_bytes) {
        return -EBADMSG;
    }
    const uint8_t *end = memrchr(table->bytes + names, '\0', table->size_bytes - names);
    uint64_t fields = (table->size_bytes - index) / layout->field_bytes;
    table->count = header_word(table, COUNT_WORD);
    if (end == NULL || fields == 0 || table->count == 0 || table->count > (fields - 1) / 2) {
        return -EBADMSG;
    }
    table->index_offset = index;
    table->records_offset = records;
    table->names_offset = names;
    table->names_end = (size_t)(end - table->bytes);
    return 0;
}

int go_functions_open(const void *bytes, size_t size_bytes, struct go_functions *ret)
{
    struct go_functions table = {.bytes = bytes, .size_bytes = size_bytes};
    table.layout = size_bytes < GO_FUNCTIONS_MAGIC_BYTES ? NULL : find_layout(bytes);
    if (table.layout == NULL) {
        return -EBADMSG;
    }
    int r = find_parts(&table);
    if (r < 0) {
        return r;
    }
    if (is_relative(table.layout)) {
        table.text = header_word(&table, TEXT_WORD);
        table.is_text_needed = table.text == 0;
    }
    *ret = table;
    return 0;
}

void go_functions_range(const struct go_functions *table, uint64_t *ret_first, uint64_t *ret_end)
{
    *ret_first = index_field(table, 0);
    *ret_end = index_field(table, table->count * 2);
}

/* The name and the flags of the function that begins at `address`, from a record that says so. */
static bool read_record(const struct go_functions *table, uint64_t place, uint64_t address,
                        struct go_function *function)
{
    const struct go_layout *layout = table->layout;
    size_t name_at = layout->field_bytes;
    size_t record_bytes =
        layout->flags_at == NOT_THERE ? name_at + sizeof(uint32_t) : (size_t)layout->flags_at + 1;
    uint64_t room = table->size_bytes - table->records_offset;
    if (room < record_bytes || place > room - record_bytes) {
        return false;
    }
    const uint8_t *record = table->bytes + table->records_offset + place;
    uint64_t name = read_number(record, name_at, sizeof(uint32_t));
    if (read_number(record, 0, layout->field_bytes) != address ||
        name >= table->names_end - table->names_offset) {
        return false;
    }
    function->name = (const char *)table->bytes + table->names_offset + name;
    function->writes_sp =
        layout->flags_at != NOT_THERE && (record[layout->flags_at] & FLAG_WRITES_SP) != 0;
    return function->name[0] != '\0';
}

int go_functions_walk(const struct go_functions *table, go_function_fn on_function, void *userdata)
{
    int r = 0;
    for (uint64_t i = 0; r >= 0 && i < table->count; i++) {
        uint64_t start = index_field(table, i * 2);
        uint64_t end = index_field(table, i * 2 + 2);
        struct go_function function = {table->text + start, table->text + end, NULL, false};
        if (start < end && end <= UINT64_MAX - table->text &&
            read_record(table, index_field(table, i * 2 + 1), start, &function)) {
            r = on_function(&function, userdata);
        }
    }
    return r < 0 ? r : 0;
}
