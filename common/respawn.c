/* SPDX-License-Identifier: Apache-2.0 */

/*
 * respawn() executes the running program again, with posix_spawn: the file that runs, by the link
 * /proc/self/exe, whatever has its name now. Under valgrind the link leads to the tool, and only
 * the link's text is our program. The two differ as files then, and the text is taken.
 *
 * A session of its own would keep a terminal away as a process group does, and would make the child
 * a group for the scheduler (sched_autogroup). Where two programs wake each other without end, a
 * new task in a new group has waited for 30 s before it executed, and its parent with it.
 */
#include "respawn.h"

#include "cleanup.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#define SELF    "/proc/self/exe"
#define DELETED " (deleted)" /* what the link says of a file that has lost its name */

static const char *find_program(char path[PATH_MAX])
{
    struct stat link;
    struct stat named;
    ssize_t bytes = readlink(SELF, path, PATH_MAX - 1);
    path[bytes > 0 ? bytes : 0] = '\0';
    size_t suffix_bytes = strlen(DELETED);
    bool is_deleted =
        bytes > (ssize_t)suffix_bytes && strcmp(path + (size_t)bytes - suffix_bytes, DELETED) == 0;
    bool is_tool = bytes > 0 && !is_deleted && stat(SELF, &link) == 0 && stat(path, &named) == 0 &&
                   (link.st_ino != named.st_ino || link.st_dev != named.st_dev);
    return is_tool ? path : SELF;
}

/* `fds` are above all that the actions overwrite. */
static int fill_actions(posix_spawn_file_actions_t *actions, int null_fd, const int *fds,
                        size_t fd_count)
{
    int r = 0;
    int target = 0;
    for (; target < RESPAWN_FIRST_FD && r == 0; target++) {
        r = posix_spawn_file_actions_adddup2(actions, null_fd, target);
    }
    for (size_t i = 0; i < fd_count && r == 0; i++, target++) {
        r = posix_spawn_file_actions_adddup2(actions, fds[i], target);
    }
    if (r == 0) {
        r = posix_spawn_file_actions_addclosefrom_np(actions, target);
    }
    return -r;
}

static int fill_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none;
    sigset_t all;
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    int r = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                                     POSIX_SPAWN_SETPGROUP);
    if (r == 0) {
        r = posix_spawnattr_setsigmask(attributes, &none);
    }
    if (r == 0) {
        r = posix_spawnattr_setsigdefault(attributes, &all);
    }
    return -r;
}

static int spawn(const char *name, const char *argument, int null_fd, const int *fds,
                 size_t fd_count, pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    char program[PATH_MAX];
    cleanup_(freep) char *own_name = strdup(name);
    cleanup_(freep) char *own_argument = strdup(argument);
    char *const argv[] = {own_name, own_argument, NULL};
    char *const environment[] = {NULL};
    if (own_name == NULL || own_argument == NULL) {
        return -ENOMEM;
    }
    int r = -posix_spawn_file_actions_init(&actions);
    if (r < 0) {
        return r;
    }
    r = -posix_spawnattr_init(&attributes);
    if (r == 0) {
        r = fill_actions(&actions, null_fd, fds, fd_count);
        if (r == 0) {
            r = fill_attributes(&attributes);
        }
        if (r == 0) {
            r = -posix_spawn(ret_pid, find_program(program), &actions, &attributes, argv,
                             environment);
        }
        (void)posix_spawnattr_destroy(&attributes);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    return r;
}

int respawn(const char *name, const char *argument, const int *fds, size_t fd_count, pid_t *ret_pid)
{
    int high_fds[RESPAWN_FDS_MAX + 1];
    size_t high_count = 0;
    int r = fd_count > RESPAWN_FDS_MAX ? -EINVAL : 0;
    cleanup_(closep) int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    r = r == 0 && null_fd < 0 ? -errno : r;
    for (; high_count <= fd_count && r == 0; high_count += r == 0) {
        int fd = high_count < fd_count ? fds[high_count] : null_fd;
        high_fds[high_count] = fcntl(fd, F_DUPFD_CLOEXEC, RESPAWN_FIRST_FD + RESPAWN_FDS_MAX);
        r = high_fds[high_count] < 0 ? -errno : 0;
    }
    if (r == 0) {
        r = spawn(name, argument, high_fds[fd_count], high_fds, fd_count, ret_pid);
    }
    while (high_count > 0) {
        (void)close(high_fds[--high_count]);
    }
    return r;
}
