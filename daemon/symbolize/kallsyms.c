/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads /proc/kallsyms: a line is "ADDRESS TYPE NAME" or, in a module, "ADDRESS TYPE
 * NAME\t[MODULE]". Symbols of data are barriers: the function before them ends there. A line of
 * another form makes the whole text invalid. An address of 0 is hidden, or that of a per-CPU
 * variable, and its symbol is left out.
 */
#include "kallsyms.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_BYTES_MAX    ((size_t)128 << 20)
#define TEXT_BYTES_BEGIN  ((size_t)1 << 20)
#define ADDRESS_DIGIT_MAX 16

struct line {
    uint64_t address;
    char type;
    const char *name;
    size_t name_bytes;
    const char *module; /* with its brackets; module_bytes 0: the kernel itself */
    size_t module_bytes;
};

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool parse_line(const char *text, size_t bytes, struct line *ret)
{
    struct line line = {0};
    size_t at = 0;
    while (at < bytes && at < ADDRESS_DIGIT_MAX && hex_digit(text[at]) >= 0) {
        line.address = line.address << 4 | (uint64_t)hex_digit(text[at]);
        at++;
    }
    if (at == 0 || bytes - at < 4 || text[at] != ' ' || text[at + 2] != ' ') {
        return false;
    }
    line.type = text[at + 1];
    line.name = text + at + 3;
    bytes -= at + 3;

    const char *tab = memchr(line.name, '\t', bytes);
    line.name_bytes = tab == NULL ? bytes : (size_t)(tab - line.name);
    if (tab != NULL) {
        line.module = tab + 1;
        line.module_bytes = bytes - line.name_bytes - 1;
        if (line.module_bytes < 3 || line.module[0] != '[' ||
            line.module[line.module_bytes - 1] != ']') {
            return false;
        }
    }
    *ret = line;
    return line.name_bytes > 0;
}

/* The rank of a function's name, or -1 for what is none. */
static int rank_of(char type)
{
    switch (type) {
    case 'T':
        return 0;
    case 'W':
    case 'w':
        return 1;
    case 't':
        return 2;
    default:
        return -1;
    }
}

static int add_line(struct symbol_builder *builder, const struct line *line, bool *found)
{
    int rank = rank_of(line->type);
    if (line->address == 0) {
        return 0;
    }
    if (rank < 0) {
        return symbol_builder_barrier(builder, line->address);
    }
    char name[SYMBOL_NAME_BYTES_MAX + 1];
    size_t name_bytes = line->name_bytes < sizeof name ? line->name_bytes : sizeof name - 1;
    size_t module_bytes = line->module_bytes < sizeof name ? line->module_bytes : sizeof name - 1;
    (void)snprintf(name, sizeof name, "%.*s%s%.*s", (int)name_bytes, line->name,
                   module_bytes > 0 ? " " : "", (int)module_bytes,
                   module_bytes > 0 ? line->module : "");
    *found = true;
    return symbol_builder_add(builder, line->address, 0, rank, name);
}

int kallsyms_parse(const char *text, size_t bytes, struct symbol_builder *builder)
{
    bool found = false;
    size_t line_count = 0;
    for (size_t at = 0; at < bytes; line_count++) {
        const char *end = memchr(text + at, '\n', bytes - at);
        struct line line;
        if (end == NULL || !parse_line(text + at, (size_t)(end - (text + at)), &line)) {
            return -EBADMSG;
        }
        int r = add_line(builder, &line, &found);
        if (r < 0) {
            return r;
        }
        at = (size_t)(end - text) + 1;
    }
    if (line_count == 0) {
        return -EBADMSG;
    }
    return found ? 0 : -EACCES;
}

int kallsyms_read(int fd, struct symbol_builder *builder)
{
    size_t capacity = 0;
    size_t used = 0;
    char *text = NULL;
    int r = 0;
    for (;;) {
        if (used == capacity) {
            capacity = capacity == 0 ? TEXT_BYTES_BEGIN : capacity * 2;
            char *grown = capacity > TEXT_BYTES_MAX ? NULL : realloc(text, capacity);
            if (grown == NULL) {
                r = capacity > TEXT_BYTES_MAX ? -E2BIG : -ENOMEM;
                break;
            }
            text = grown;
        }
        ssize_t got = pread(fd, text + used, capacity - used, (off_t)used);
        if (got < 0) {
            r = -errno;
            break;
        }
        if (got == 0) {
            r = kallsyms_parse(text, used, builder);
            break;
        }
        used += (size_t)got;
    }
    free(text);
    return r;
}
