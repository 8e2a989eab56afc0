/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Finds single values in texts of lines. A value that does not fit, or is of another form, counts
 * as absent.
 */
#include "parse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECCOMP_FILTER  2 /* the mode of seccomp(2) with a filter */
#define PACKAGE_BYTES   ((size_t)96)
#define DEBUG_SUFFIX    "-dbgsym"
#define PACKAGE_LETTERS "abcdefghijklmnopqrstuvwxyz0123456789+.-"

/* What stands behind `name` at the start of a line; NULL where no line begins so. */
static const char *find_line(const char *text, const char *name)
{
    size_t length = strlen(name);
    for (const char *line = text; line != NULL && *line != '\0';) {
        if (strncmp(line, name, length) == 0) {
            return line + length;
        }
        line = strchr(line, '\n');
        line = line == NULL ? NULL : line + 1;
    }
    return NULL;
}

/* Copies up to one of `ends`; "" where it does not fit. */
static void copy_until(const char *text, const char *ends, char *into, size_t capacity_bytes)
{
    size_t length = strcspn(text, ends);
    length = length < capacity_bytes ? length : 0;
    memcpy(into, text, length);
    into[length] = '\0';
}

void parse_lockdown(const char *text, char *into, size_t capacity_bytes)
{
    const char *begin = strchr(text, '[');
    copy_until(begin == NULL ? "" : begin + 1, "]\n", into, capacity_bytes);
}

bool parse_meminfo(const char *text, const char *member, int64_t *ret)
{
    const char *value = find_line(text, member);
    char *end = NULL;
    if (value == NULL || *value != ':') {
        return false;
    }
    long long number = strtoll(value + 1, &end, 10);
    if (end == value + 1 || number < 0) {
        return false;
    }
    *ret = number;
    return true;
}

bool parse_capabilities(const char *text, uint64_t *ret)
{
    const char *value = find_line(text, "CapEff:");
    char *end = NULL;
    if (value == NULL) {
        return false;
    }
    unsigned long long mask = strtoull(value, &end, 16);
    if (end == value) {
        return false;
    }
    *ret = mask;
    return true;
}

bool parse_filter(const char *text)
{
    const char *value = find_line(text, "Seccomp:");
    return value != NULL && strtol(value, NULL, 10) == SECCOMP_FILTER;
}

pid_t parse_inner_pid(const char *text)
{
    const char *value = find_line(text, "NSpid:");
    long pid = 0;
    while (value != NULL && *value != '\n' && *value != '\0') {
        char *end = NULL;
        long number = strtol(value, &end, 10);
        if (end == value) {
            break;
        }
        pid = number;
        value = end;
    }
    return pid > 0 && pid <= INT32_MAX ? (pid_t)pid : 0;
}

bool parse_uid(const char *text, uid_t *ret)
{
    const char *value = find_line(text, "Uid:");
    char *end = NULL;
    if (value == NULL) {
        return false;
    }
    unsigned long uid = strtoul(value, &end, 10);
    if (end == value || uid > UINT32_MAX) {
        return false;
    }
    *ret = (uid_t)uid;
    return true;
}

bool parse_limit(const char *text, const char *row, int64_t *ret)
{
    static const char unlimited[] = "unlimited";
    const char *value = find_line(text, row);
    char *end = NULL;
    if (value == NULL) {
        return false;
    }
    value += strspn(value, " ");
    if (strncmp(value, unlimited, sizeof unlimited - 1) == 0) {
        *ret = -1;
        return true;
    }
    long long number = strtoll(value, &end, 10);
    if (end == value || number < 0) {
        return false;
    }
    *ret = number;
    return true;
}

void parse_time_offset(const char *text, char *into, size_t capacity_bytes)
{
    const char *value = find_line(text, "boottime");
    into[0] = '\0';
    if (value != NULL) {
        value += strspn(value, " \t");
        copy_until(value, " \t\n", into, capacity_bytes);
    }
    if (strcmp(into, "0") == 0) {
        into[0] = '\0';
    }
}

/* One member of a unit's block, which ends at `end`. */
static void take_member(const char *block, const char *end, const char *name, char *into,
                        size_t capacity_bytes)
{
    const char *value = find_line(block, name);
    into[0] = '\0';
    if (value != NULL && value < end) {
        copy_until(value, "\n", into, capacity_bytes);
    }
}

bool parse_has_setting(const char *text, const char *name)
{
    size_t length = strlen(name);
    for (const char *line = text; line != NULL && *line != '\0';) {
        line += strspn(line, " \t");
        if (strncmp(line, name, length) == 0 &&
            line[length + strspn(line + length, " \t")] == '=') {
            return true;
        }
        line = strchr(line, '\n');
        line = line == NULL ? NULL : line + 1;
    }
    return false;
}

bool parse_unit(const char *text, const char *unit, struct unit_facts *ret)
{
    char id[64];
    char reload[8];
    for (const char *block = text; *block != '\0';) {
        const char *end = strstr(block, "\n\n");
        end = end == NULL ? block + strlen(block) : end;
        take_member(block, end, "Id=", id, sizeof id);
        if (strcmp(id, unit) == 0) {
            *ret = (struct unit_facts){0};
            take_member(block, end, "LoadState=", ret->load, sizeof ret->load);
            take_member(block, end, "ActiveState=", ret->active, sizeof ret->active);
            take_member(block, end, "UnitFileState=", ret->file, sizeof ret->file);
            take_member(block, end, "Result=", ret->result, sizeof ret->result);
            take_member(block, end, "DropInPaths=", ret->drop_ins, sizeof ret->drop_ins);
            take_member(block, end, "NeedDaemonReload=", reload, sizeof reload);
            ret->needs_reload = strcmp(reload, "yes") == 0;
            return ret->load[0] != '\0';
        }
        block = end + strspn(end, "\n");
    }
    return false;
}

void parse_os_id(const char *text, char *into, size_t capacity_bytes)
{
    const char *value = find_line(text, "ID=");
    into[0] = '\0';
    if (value != NULL) {
        copy_until(value + (*value == '"'), "\"\n", into, capacity_bytes);
    }
}

/* Whether one of the words of a text that spaces separate is `word`. */
static bool has_word(const char *text, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = text; (at = strstr(at, word)) != NULL; at += length) {
        if ((at == text || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0')) {
            return true;
        }
    }
    return false;
}

static void add_word(const char *word, char *into, size_t capacity_bytes)
{
    size_t used_bytes = strlen(into);
    if (!has_word(into, word) && used_bytes + strlen(word) + 2 <= capacity_bytes) {
        (void)snprintf(into + used_bytes, capacity_bytes - used_bytes, "%s%s",
                       used_bytes == 0 ? "" : " ", word);
    }
}

void parse_owners(const char *text, char *into, size_t capacity_bytes)
{
    into[0] = '\0';
    for (const char *line = text; line != NULL && *line != '\0';) {
        char name[PACKAGE_BYTES + sizeof DEBUG_SUFFIX];
        size_t length = strspn(line, PACKAGE_LETTERS);
        if (length > 0 && length < PACKAGE_BYTES && line[length] == ':') {
            memcpy(name, line, length);
            memcpy(name + length, DEBUG_SUFFIX, sizeof DEBUG_SUFFIX);
            add_word(name, into, capacity_bytes);
        }
        line = strchr(line, '\n');
        line = line == NULL ? NULL : line + 1;
    }
}

void parse_shown(const char *text, const char *packages, char *into, size_t capacity_bytes)
{
    static const char member[] = "Package: ";
    into[0] = '\0';
    for (const char *line = text; (line = find_line(line, member)) != NULL;) {
        char name[PACKAGE_BYTES + sizeof DEBUG_SUFFIX];
        copy_until(line, "\n", name, sizeof name);
        if (name[0] != '\0' && has_word(packages, name)) {
            add_word(name, into, capacity_bytes);
        }
        line = strchr(line, '\n');
        if (line == NULL) {
            return;
        }
    }
}
