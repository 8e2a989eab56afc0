/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Starts a browser, which goes on when profctl has ended. It is in a session of its own, so that
 * Ctrl-C does not end it, and says nothing on this terminal. The whole path is never an option, and
 * no shell reads it.
 */
#include "browser.h"

#include "cleanup.h"
#include "options.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The program to start, or NULL. */
static const char *find_browser(void)
{
    const char *named = getenv("BROWSER");
    bool is_graphical = getenv("DISPLAY") != NULL || getenv("WAYLAND_DISPLAY") != NULL;
    if (named != NULL && named[0] != '\0') {
        return named;
    }
    return is_graphical ? "xdg-open" : NULL;
}

static int start(const char *program, const char *path)
{
    char *const arguments[] = {strdupa(program), strdupa(path), NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    pid_t pid = 0;
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawnattr_init(&attributes);
    int r = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    r = r != 0 ? r
               : posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDWR, 0);
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO && r == 0; fd++) {
        r = posix_spawn_file_actions_adddup2(&actions, STDIN_FILENO, fd);
    }
    r = r != 0 ? r : posix_spawnp(&pid, program, &actions, &attributes, arguments, environ);
    (void)posix_spawnattr_destroy(&attributes);
    (void)posix_spawn_file_actions_destroy(&actions);
    return -r;
}

int browser_show(const char *path)
{
    cleanup_(freep) char *whole = realpath(path, NULL);
    const char *program = find_browser();
    if (whole == NULL) {
        return complain("%s: %m", path);
    }
    if (program == NULL) {
        (void)complain("there is no browser here; open %s in one", whole);
        return EXIT_DONE;
    }
    int r = start(program, whole);
    return r < 0 ? complain("%s does not start: %s; open %s in a browser", program, strerror(-r),
                            whole)
                 : EXIT_DONE;
}
