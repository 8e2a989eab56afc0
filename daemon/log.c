/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Writes log lines. A line is one write(), so that lines of several threads do not mix, and at most
 * LINE_BYTES_MAX long; control characters become '?', so that no text from outside can begin a
 * line. The level is the one variable at file scope in the daemon.
 */
#include "log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LINE_BYTES_MAX 1024

static enum log_level last_level = LOG_LEVEL_INFO;

void log_set_level(enum log_level level)
{
    last_level = level;
}

/* What snprintf() put into `room_bytes`, given what it returned. */
static size_t written_bytes(int printed, size_t room_bytes)
{
    if (printed < 0) {
        return 0;
    }
    return (size_t)printed < room_bytes ? (size_t)printed : room_bytes - 1;
}

__attribute__((format(printf, 3, 0))) static void write_line(enum log_level level, int r,
                                                             const char *format, va_list args)
{
    char line[LINE_BYTES_MAX];
    int saved_errno = errno;
    if (level > last_level) {
        return;
    }
    size_t room_bytes = sizeof line - 1; /* one is for the newline */
    size_t bytes = 0;
    if (isatty(STDERR_FILENO) == 0) { /* the journal wants the priority, a person does not */
        bytes = written_bytes(snprintf(line, room_bytes, "<%d>", (int)level), room_bytes);
    }
    bytes += written_bytes(vsnprintf(line + bytes, room_bytes - bytes, format, args),
                           room_bytes - bytes);
    if (r < 0) {
        bytes += written_bytes(snprintf(line + bytes, room_bytes - bytes, ": %s", strerror(-r)),
                               room_bytes - bytes);
    }
    for (size_t i = 0; i < bytes; i++) {
        unsigned char byte = (unsigned char)line[i];
        line[i] = byte < ' ' || byte == 0x7f ? '?' : line[i];
    }
    line[bytes++] = '\n';
    (void)!write(STDERR_FILENO, line, bytes);
    errno = saved_errno;
}

int log_error(int r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_line(LOG_LEVEL_ERROR, r, format, args);
    va_end(args);
    return r;
}

int log_warning(int r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_line(LOG_LEVEL_WARNING, r, format, args);
    va_end(args);
    return r;
}

void log_info(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_line(LOG_LEVEL_INFO, 0, format, args);
    va_end(args);
}

void log_debug(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_line(LOG_LEVEL_DEBUG, 0, format, args);
    va_end(args);
}
