/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Parses by hand: numbers have the length that they have, and what does not look like the kernel's
 * own text is refused whole.
 */
#include "proc_parse.h"

#include "clock.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define PF_KTHREAD      0x00200000
#define DELETED_SUFFIX  " (deleted)"
#define SYSTEM_V_DIGITS 8 /* of a key, in hexadecimal */

static bool parse_hex(char **cursor, uint64_t *ret)
{
    uint64_t value = 0;
    size_t digit_count = 0;
    for (char *at = *cursor;; at++, digit_count++) {
        unsigned digit;
        if (*at >= '0' && *at <= '9') {
            digit = (unsigned)(*at - '0');
        } else if (*at >= 'a' && *at <= 'f') {
            digit = (unsigned)(*at - 'a') + 10;
        } else {
            *cursor = at;
            break;
        }
        value = value << 4 | digit;
    }
    *ret = value;
    return digit_count > 0 && digit_count <= 16;
}

static bool parse_decimal(const char **cursor, uint64_t *ret)
{
    uint64_t value = 0;
    const char *at = *cursor;
    for (; *at >= '0' && *at <= '9'; at++) {
        if (__builtin_mul_overflow(value, UINT64_C(10), &value) ||
            __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value)) {
            return false;
        }
    }
    bool any = at != *cursor;
    *cursor = at;
    *ret = value;
    return any;
}

static bool skip(char **cursor, char expected)
{
    bool found = **cursor == expected;
    *cursor += found ? 1 : 0;
    return found;
}

/* "START-END PERM OFFSET MAJOR:MINOR INODE"; a missing flag is '-'. */
static bool parse_maps_fields(char **cursor, struct mapping_description *description,
                              bool *ret_executable)
{
    uint64_t major = 0;
    uint64_t minor = 0;
    if (!parse_hex(cursor, &description->start) || !skip(cursor, '-') ||
        !parse_hex(cursor, &description->end) || !skip(cursor, ' ') ||
        strspn(*cursor, "rwxps-") != 4) {
        return false;
    }
    *ret_executable = (*cursor)[2] == 'x';
    *cursor += 4;
    if (!skip(cursor, ' ') || !parse_hex(cursor, &description->file_offset) || !skip(cursor, ' ') ||
        !parse_hex(cursor, &major) || !skip(cursor, ':') || !parse_hex(cursor, &minor) ||
        !skip(cursor, ' ')) {
        return false;
    }
    const char *inode = *cursor;
    if (!parse_decimal(&inode, &description->inode)) {
        return false;
    }
    *cursor += inode - *cursor;
    description->device_major = (uint32_t)major;
    description->device_minor = (uint32_t)minor;
    return major <= UINT32_MAX && minor <= UINT32_MAX && (**cursor == ' ' || **cursor == '\0') &&
           description->start < description->end;
}

/* The kernel writes a newline in a path as \012, and escapes nothing else. */
static void undo_escapes(char *path)
{
    char *to = path;
    for (const char *from = path; *from != '\0'; to++) {
        bool newline = strncmp(from, "\\012", 4) == 0;
        *to = newline ? '\n' : *from;
        from += newline ? 4 : 1;
    }
    *to = '\0';
}

void proc_parse_undo_deleted(char *path)
{
    const size_t suffix_bytes = sizeof DELETED_SUFFIX - 1;
    size_t path_bytes = strlen(path);
    if (path_bytes >= suffix_bytes &&
        strcmp(path + path_bytes - suffix_bytes, DELETED_SUFFIX) == 0) {
        path[path_bytes - suffix_bytes] = '\0';
    }
}

/* Behind a name of the kernel's: its end, or the mark of a file without a name. Memory has none, so
 * records have the mark; what reads /proc removes it. */
static bool is_end(const char *text)
{
    return *text == '\0' || strcmp(text, DELETED_SUFFIX) == 0;
}

/* "/SYSV" and the segment's key. */
static bool is_system_v(const char *path)
{
    static const char begin[] = "/SYSV";
    if (strncmp(path, begin, strlen(begin)) != 0) {
        return false;
    }
    const char *key = path + strlen(begin);
    return strspn(key, "0123456789abcdef") == SYSTEM_V_DIGITS && is_end(key + SYSTEM_V_DIGITS);
}

bool proc_parse_is_file(const char *path)
{
    static const char *const memory[] = {"/dev/zero", "/anon_hugepage", "/memfd:doublemapper"};
    if (path[0] != '/' || path[1] == '/' || is_system_v(path)) {
        return false;
    }
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) {
        size_t bytes = strlen(memory[i]);
        if (strncmp(path, memory[i], bytes) == 0 && is_end(path + bytes)) {
            return false;
        }
    }
    return true;
}

int proc_parse_maps_line(char *line, struct mapping_description *ret)
{
    struct mapping_description description = {0};
    char *cursor = line;
    bool executable = false;
    if (!parse_maps_fields(&cursor, &description, &executable)) {
        return -EBADMSG;
    }
    if (!executable) {
        *ret = description;
        return 0;
    }
    cursor += strspn(cursor, " ");
    proc_parse_undo_deleted(cursor);
    undo_escapes(cursor);
    description.path = cursor;
    *ret = description;
    return 1;
}

int proc_parse_stat(const char *text, struct proc_stat *ret)
{
    enum {
        STATE = 3,
        PARENT = 4,
        FLAGS = 9,
        THREADS = 20,
        START_TIME = 22,
        STACK = 28
    };
    /* Nothing after the comm holds a parenthesis. */
    const char *cursor = strrchr(text, ')');
    if (cursor == NULL || cursor[1] != ' ' || cursor[2] <= ' ') {
        return -EBADMSG;
    }
    uint64_t fields[STACK + 1] = {0};
    const char state = cursor[2];
    cursor += 3;
    for (size_t i = STATE + 1; i <= STACK; i++) {
        if (*cursor != ' ') {
            return -EBADMSG;
        }
        cursor += cursor[1] == '-' ? 2 : 1; /* none of those that we take is negative */
        if (!parse_decimal(&cursor, &fields[i])) {
            return -EBADMSG;
        }
    }
    if (fields[PARENT] > INT32_MAX) {
        return -EBADMSG;
    }
    *ret = (struct proc_stat){
        .state = state,
        .parent_pid = (int32_t)fields[PARENT],
        .kernel_thread = (fields[FLAGS] & PF_KTHREAD) != 0,
        .thread_count = fields[THREADS],
        .start_time_ticks = fields[START_TIME],
        .stack_start = fields[STACK],
    };
    return 0;
}

int proc_parse_start_time(const struct proc_stat *stat, uint64_t *ret_ns)
{
    const long ticks_per_s = sysconf(_SC_CLK_TCK);
    uint64_t start_ns = 0;
    if (ticks_per_s <= 0 || __builtin_mul_overflow(stat->start_time_ticks,
                                                   NS_PER_S / (uint64_t)ticks_per_s, &start_ns)) {
        return -EBADMSG;
    }
    *ret_ns = start_ns;
    return 0;
}

static int parse_uids(const char *text, uint32_t *ret_real, uint32_t *ret_effective)
{
    /* Newlines in the name, which is the first line, are escaped. */
    const char *cursor = strstr(text, "\nUid:\t");
    uint64_t real = 0;
    uint64_t effective = 0;
    if (cursor == NULL) {
        return -EBADMSG;
    }
    cursor += strlen("\nUid:\t");
    if (!parse_decimal(&cursor, &real) || *cursor++ != '\t' ||
        !parse_decimal(&cursor, &effective) || *cursor != '\t' || real > UINT32_MAX ||
        effective > UINT32_MAX) {
        return -EBADMSG;
    }
    *ret_real = (uint32_t)real;
    *ret_effective = (uint32_t)effective;
    return 0;
}

int proc_parse_uid(const char *text, uint32_t *ret)
{
    uint32_t real = 0;
    return parse_uids(text, &real, ret);
}

int proc_parse_real_uid(const char *text, uint32_t *ret)
{
    uint32_t effective = 0;
    return parse_uids(text, ret, &effective);
}

int proc_parse_only_uid(const char *text, uint32_t *ret)
{
    enum {
        UIDS = 4
    };
    const char *cursor = strstr(text, "\nUid:");
    uint64_t uids[UIDS] = {0};
    cursor = cursor == NULL ? "" : cursor + strlen("\nUid:");
    for (size_t i = 0; i < UIDS; i++) {
        if (*cursor++ != '\t' || !parse_decimal(&cursor, &uids[i]) || uids[i] > UINT32_MAX) {
            return -EBADMSG;
        }
        if (uids[i] != uids[0]) {
            return -EPERM;
        }
    }
    if (*cursor != '\n') {
        return -EBADMSG;
    }
    *ret = (uint32_t)uids[0];
    return 0;
}

int32_t proc_parse_id(const char *name)
{
    uint64_t id = 0;
    bool whole = parse_decimal(&name, &id) && *name == '\0';
    return whole && id > 0 && id <= INT32_MAX ? (int32_t)id : -1;
}

int proc_parse_times(const char *text, struct thread_reading *ret)
{
    uint64_t *const values[] = {&ret->run_ns, &ret->delay_ns, &ret->run_count};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        text += *text == ' ' && i > 0;
        if (!parse_decimal(&text, values[i])) {
            return -EBADMSG;
        }
    }
    return *text == '\n' || *text == '\0' ? 0 : -EBADMSG;
}
