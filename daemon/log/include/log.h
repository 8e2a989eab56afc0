/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One line to standard error, with the priority in front as the journal wants it ("<3>"), but on a
 * terminal; where standard error is the journal itself, an entry with fields. Only main.c,
 * daemon.c, control*.c and session.c log; a line starts with its subject ("session 3:", "peer pid
 * 812 uid 1000:"), and what a client can trigger at will is logged within a quota.
 */

#include <sys/types.h>

enum log_level {
    LOG_LEVEL_ERROR = 3,
    LOG_LEVEL_WARNING = 4,
    LOG_LEVEL_INFO = 6,
};

/*
 * Log and return `r`, so that callers can `return log_error(r, "...")`. For a negative errno its
 * text is put behind the line; 0 adds nothing. errno is kept. A failure that is survived is a
 * warning that ends in ", ignoring".
 */
int log_error(int r, const char *format, ...) __attribute__((format(printf, 2, 3)));
int log_warning(int r, const char *format, ...) __attribute__((format(printf, 2, 3)));

void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What the journal keeps beside a line: MESSAGE_ID, CPU_PROFILERD_UID, CPU_PROFILERD_PID,
 * CPU_PROFILERD_SESSION. */
struct log_fields {
    const char *message_id; /* 32 hexadecimal digits */
    uid_t uid;
    pid_t pid;           /* 0: none */
    const char *session; /* NULL: none */
};
void log_event(enum log_level level, const struct log_fields *fields, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
