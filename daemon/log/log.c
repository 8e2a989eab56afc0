/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Writes log lines. A line is one write(), so that lines of several threads do not mix, and has at
 * most LINE_BYTES_MAX bytes. Control characters become '?', so that no foreign text can begin a
 * line. If standard error is the journal's, as JOURNAL_STREAM says, entries go to the journal.
 */
#include "log.h"

#define SD_JOURNAL_SUPPRESS_LOCATION

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <systemd/sd-journal.h>
#include <unistd.h>

#define LINE_BYTES_MAX  1024
#define FIELD_BYTES_MAX 64
#define FIELDS_MAX      7
#define IDENTIFIER      "cpu-profilerd"

/* What snprintf() put into `room_bytes`, given what it returned. */
static size_t written_bytes(int printed, size_t room_bytes)
{
    if (printed < 0) {
        return 0;
    }
    return (size_t)printed < room_bytes ? (size_t)printed : room_bytes - 1;
}

/* "DEVICE:INODE", both decimal. */
static bool is_stderr_the_journal(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    struct stat status;
    char *end = NULL;
    if (stream == NULL || fstat(STDERR_FILENO, &status) != 0) {
        return false;
    }
    unsigned long long device = strtoull(stream, &end, 10);
    if (end == stream || *end != ':') {
        return false;
    }
    return status.st_dev == device && status.st_ino == strtoull(end + 1, NULL, 10);
}

/* The fields of an entry, each "NAME=value". */
struct entry {
    char texts[FIELDS_MAX][FIELD_BYTES_MAX];
    struct iovec fields[FIELDS_MAX];
    int count;
};

static void add_text(struct entry *entry, const char *name, const char *value)
{
    char *text = entry->texts[entry->count];
    int printed = snprintf(text, FIELD_BYTES_MAX, "%s=%s", name, value);
    entry->fields[entry->count++] =
        (struct iovec){.iov_base = text, .iov_len = written_bytes(printed, FIELD_BYTES_MAX)};
}

static void add_number(struct entry *entry, const char *name, long long value)
{
    char digits[24];
    (void)snprintf(digits, sizeof digits, "%lld", value);
    add_text(entry, name, digits);
}

/* `message` is "MESSAGE=" and the line. Returns whether the journal has taken it. */
static bool send_entry(enum log_level level, const struct log_fields *fields, char *message,
                       size_t message_bytes)
{
    struct entry entry = {.count = 0};
    entry.fields[entry.count++] = (struct iovec){.iov_base = message, .iov_len = message_bytes};
    add_number(&entry, "PRIORITY", level);
    add_text(&entry, "SYSLOG_IDENTIFIER", IDENTIFIER);
    if (fields != NULL) {
        add_text(&entry, "MESSAGE_ID", fields->message_id);
        add_number(&entry, "CPU_PROFILERD_UID", fields->uid);
    }
    if (fields != NULL && fields->pid != 0) {
        add_number(&entry, "CPU_PROFILERD_PID", fields->pid);
    }
    if (fields != NULL && fields->session != NULL) {
        add_text(&entry, "CPU_PROFILERD_SESSION", fields->session);
    }
    return sd_journal_sendv(entry.fields, entry.count) == 0;
}

/* `text` has room for a newline behind its bytes. The journal wants the priority before it. */
static void write_text(enum log_level level, bool is_journal, char *text, size_t bytes)
{
    char priority[8] = "";
    struct iovec parts[2] = {{.iov_base = priority}, {.iov_base = text, .iov_len = bytes + 1}};
    if (is_journal) {
        parts[0].iov_len =
            written_bytes(snprintf(priority, sizeof priority, "<%d>", (int)level), sizeof priority);
    }
    text[bytes] = '\n';
    (void)!writev(STDERR_FILENO, parts, 2);
}

__attribute__((format(printf, 4, 0))) static void write_line(enum log_level level, int r,
                                                             const struct log_fields *fields,
                                                             const char *format, va_list args)
{
    static const char begin[] = "MESSAGE=";
    const size_t begin_bytes = sizeof begin - 1;
    char entry[sizeof begin - 1 + LINE_BYTES_MAX];
    char *line = entry + begin_bytes;
    int saved_errno = errno;
    size_t room_bytes = LINE_BYTES_MAX - sizeof "<3>"; /* which, with a newline, is of the line */
    memcpy(entry, begin, begin_bytes);
    size_t bytes = written_bytes(vsnprintf(line, room_bytes, format, args), room_bytes);
    if (r < 0) {
        bytes += written_bytes(snprintf(line + bytes, room_bytes - bytes, ": %s", strerror(-r)),
                               room_bytes - bytes);
    }
    for (size_t i = 0; i < bytes; i++) {
        unsigned char byte = (unsigned char)line[i];
        line[i] = byte < ' ' || byte == 0x7f ? '?' : line[i];
    }
    bool is_journal = is_stderr_the_journal();
    if (!is_journal || !send_entry(level, fields, entry, begin_bytes + bytes)) {
        write_text(level, is_journal, line, bytes);
    }
    errno = saved_errno;
}

int log_error(int r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_line(LOG_LEVEL_ERROR, r, NULL, format, args);
    va_end(args);
    return r;
}

int log_warning(int r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_line(LOG_LEVEL_WARNING, r, NULL, format, args);
    va_end(args);
    return r;
}

void log_info(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_line(LOG_LEVEL_INFO, 0, NULL, format, args);
    va_end(args);
}

void log_event(enum log_level level, const struct log_fields *fields, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_line(level, 0, fields, format, args);
    va_end(args);
}
