/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Makes the control socket for a daemon that got none from its service manager, and removes it. Two
 * rules hold. A socket on which a program listens is never removed. At no moment may more users
 * connect than in the end: so the mode is set before bind(), and widened only once the group is
 * right.
 */
#include "cleanup.h"
#include "control.h"
#include "log.h"
#include "sampler.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define BACKLOG            64
#define GROUP_BUFFER_BYTES 16384

/* What helps against a path that bind() refuses; "" where nothing is known. */
static const char *remedy_for(int code)
{
    switch (code) {
    case EADDRINUSE:
        return "; remove what is there, or give another path with --socket";
    case ENOENT:
    case ENOTDIR:
    case EACCES:
    case EPERM:
    case EROFS:
        return "; give a path with --socket whose folder exists and lets this user write";
    default:
        return "";
    }
}

static int make_default_directory(const char *path, struct fault *reterr)
{
    if (strcmp(path, SAMPLER_SOCKET_PATH) != 0 || mkdir(SAMPLER_SOCKET_DIRECTORY, 0755) == 0 ||
        errno == EEXIST) {
        return 0;
    }
    int r = errno;
    return fault_set(reterr, r, "cannot make the folder '%s': %s%s", SAMPLER_SOCKET_DIRECTORY,
                     strerror(r), remedy_for(r));
}

/* Removes a socket on which no process listens. Anything else at the path stays, and is refused. */
static int remove_stale(const struct sockaddr_un *address, struct fault *reterr)
{
    struct stat status;
    if (lstat(address->sun_path, &status) != 0) {
        return 0;
    }
    if (!S_ISSOCK(status.st_mode)) {
        return fault_set(reterr, EEXIST,
                         "'%s' is there and is no socket; give another path with --socket",
                         address->sun_path);
    }
    cleanup_(closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        int r = errno;
        return fault_set(reterr, r, "cannot make a socket: %s", strerror(r));
    }
    if (connect(fd, (const struct sockaddr *)address, sizeof *address) == 0 || errno == EAGAIN) {
        return fault_set(reterr, EADDRINUSE,
                         "another daemon listens at '%s'; use that one, or give another path with "
                         "--socket",
                         address->sun_path);
    }
    if (errno == ECONNREFUSED) {
        (void)unlink(address->sun_path);
    }
    return 0;
}

/* Whether the access group exists. */
static bool find_group(gid_t *ret)
{
    char buffer[GROUP_BUFFER_BYTES];
    struct group group;
    struct group *found = NULL;
    if (getgrnam_r(SAMPLER_GROUP, &group, buffer, sizeof buffer, &found) != 0 || found == NULL) {
        return false;
    }
    *ret = group.gr_gid;
    return true;
}

/* If the group cannot be set, the socket stays the owner's alone. */
static int open_to_group(const char *path, struct fault *reterr)
{
    gid_t group = 0;
    bool has_group = find_group(&group);
    if (!has_group && geteuid() == 0) {
        log_warning(0, "there is no group " SAMPLER_GROUP ", so only root can connect; make it "
                       "with: groupadd --system " SAMPLER_GROUP);
    }
    if (!has_group) {
        return 0;
    }
    if (lchown(path, (uid_t)-1, group) != 0) {
        /* A user who is not in the group cannot give it a socket; root lacks a right. */
        if (geteuid() == 0) {
            log_warning(-errno,
                        "cannot give '%s' to the group " SAMPLER_GROUP
                        ", so only root can connect (it takes CAP_CHOWN), ignoring",
                        path);
        }
        return 0;
    }
    if (fchmodat(AT_FDCWD, path, 0660, AT_SYMLINK_NOFOLLOW) == 0) {
        return 0;
    }
    int r = errno;
    return fault_set(reterr, r, "cannot open '%s' to the group " SAMPLER_GROUP ": %s", path,
                     strerror(r));
}

void control_unlisten(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) < sizeof address.sun_path) {
        (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
        (void)remove_stale(&address, NULL);
    }
}

int control_listen(const char *path, struct fault *reterr)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (path[0] == '\0') {
        /* The kernel would take it for an abstract name, to which all users may connect. */
        return fault_set(reterr, EINVAL, "the socket's path is empty; give a path");
    }
    if (strlen(path) >= sizeof address.sun_path) {
        return fault_set(reterr, ENAMETOOLONG, "the socket's path has more than %zu bytes: '%.60s'",
                         sizeof address.sun_path - 1, path);
    }
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int r = make_default_directory(path, reterr);
    if (r >= 0) {
        r = remove_stale(&address, reterr);
    }
    if (r < 0) {
        return r;
    }
    cleanup_(closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || fchmod(fd, 0600) != 0 ||
        bind(fd, (const struct sockaddr *)&address, sizeof address) != 0 ||
        listen(fd, BACKLOG) != 0) {
        r = errno;
        return fault_set(reterr, r, "cannot listen at '%s': %s%s", path, strerror(r),
                         remedy_for(r));
    }
    r = open_to_group(path, reterr);
    return r < 0 ? r : take_fd(fd);
}
