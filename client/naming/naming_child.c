/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Begins and ends children that may hang. What they do, and what becomes of it, is others'.
 *
 * Bounded: GIVEN_UP_MAX children that were killed and have not ended; of more the ends are not
 * taken before this process's own.
 */
#include "naming_child.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define GIVEN_UP_MAX 256

/* Children of this process that were killed, and of which the end was not there yet. */
static pid_t given_up[GIVEN_UP_MAX];
static size_t given_up_count;

static int compare(const void *a, const void *b)
{
    int left = *(const int *)a;
    int right = *(const int *)b;
    return (left > right) - (left < right);
}

/* The caller's handlers would end the recording by a signal to this child, or keep the child. What
 * was ignored before a handler came is not known here. */
static void reset_signals(void)
{
    static const int handled[] = {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGCHLD};
    for (size_t i = 0; i < sizeof handled / sizeof handled[0]; i++) {
        struct sigaction now;
        if (sigaction(handled[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN) {
            (void)signal(handled[i], SIG_DFL);
        }
    }
}

void naming_child_begin(int *kept, size_t kept_count)
{
    unsigned next = 0;
    qsort(kept, kept_count, sizeof *kept, compare);
    for (size_t i = 0; i < kept_count; i++) {
        if (kept[i] >= 0) {
            unsigned fd = (unsigned)kept[i];
            if (fd > next) {
                (void)close_range(next, fd - 1, 0);
            }
            next = fd + 1;
        }
    }
    (void)close_range(next, ~0U, 0);
    reset_signals();
    (void)setpgid(0, 0); /* a Ctrl-C at the terminal is not for it: it has something to put back */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
}

void naming_child_end(pid_t child, bool may_hang)
{
    (void)kill(child, SIGKILL);
    if (waitpid(child, NULL, may_hang ? WNOHANG : 0) != child && given_up_count < GIVEN_UP_MAX) {
        given_up[given_up_count++] = child;
    }
}

void naming_child_reap(void)
{
    size_t kept = 0;
    for (size_t i = 0; i < given_up_count; i++) {
        if (waitpid(given_up[i], NULL, WNOHANG) == 0) {
            given_up[kept++] = given_up[i];
        }
    }
    given_up_count = kept;
}
