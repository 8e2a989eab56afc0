/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Removes a file that is not whole when a signal ends the process. The handler knows the path from
 * a place of its own, which does not change while `is_armed`; the process ends by the same signal
 * as without it.
 */
#include "unfinished.h"

#include <limits.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static char unfinished_path[PATH_MAX];
static volatile sig_atomic_t is_armed;

static void on_signal(int number)
{
    if (is_armed) {
        (void)unlink(unfinished_path);
    }
    (void)raise(number); /* as by default, since the handler is there once only */
}

void unfinished_remove_on_signals(const char *path)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    size_t size_bytes = strlen(path) + 1;
    if (size_bytes > sizeof unfinished_path) {
        return;
    }
    memcpy(unfinished_path, path, size_bytes);
    is_armed = 1;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
        struct sigaction before;
        if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL) {
            (void)sigaction(signals[i], &action, NULL);
        }
    }
}

void unfinished_end(void)
{
    is_armed = 0;
}
