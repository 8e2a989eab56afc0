/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Writes progress through a description of the terminal of its own, which does not block. The flag
 * O_NONBLOCK belongs to a description, and that of standard error is shared with the shell. Where
 * the terminal cannot be opened again, as after su, there is no progress. A process in the
 * background writes none either: the terminal could stop it for that.
 */
#include "record_progress.h"

#include "cleanup.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#define LINE_BYTES 160

void record_progress_open(struct record_progress *progress)
{
    if (isatty(STDERR_FILENO)) {
        progress->fd = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    }
}

void record_progress_done(struct record_progress *progress)
{
    progress->fd = close_fd(progress->fd);
}

/* A terminal that is not the process's own says -1, and stops nobody. */
static bool is_in_background(int fd)
{
    pid_t foreground = tcgetpgrp(fd);
    return foreground != -1 && foreground != getpgrp();
}

/* What a line may have: one that wraps cannot be replaced. */
static int find_room(int fd)
{
    struct winsize size = {0};
    return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1 : LINE_BYTES / 2;
}

static void write_line(struct record_progress *progress, const char *text)
{
    char line[LINE_BYTES];
    (void)snprintf(line, sizeof line, "\r%.*s\033[K", find_room(progress->fd), text);
    if (progress->fd >= 0 && !is_in_background(progress->fd)) {
        (void)!write(progress->fd, line, strlen(line));
    }
}

void record_progress_say(const struct record_progress *progress, const char *lines)
{
    if (progress->fd >= 0 && !is_in_background(progress->fd)) {
        (void)!write(progress->fd, lines, strlen(lines));
    }
}

void record_progress_show(struct record_progress *progress, const char *text)
{
    write_line(progress, text);
    progress->is_shown = true;
}

void record_progress_clear(struct record_progress *progress)
{
    if (progress->is_shown) {
        write_line(progress, "");
        progress->is_shown = false;
    }
}
