/* SPDX-License-Identifier: Apache-2.0 */

/* Making the control socket: what is replaced, what is not, and who may connect. */
#include "cleanup.h"
#include "control.h"
#include "sampler.h"
#include "unit_test.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define GROUP 4711

static bool is_denied; /* giving a file away */

/* Those of libc are not reached: the group is there, and the caller counts as root. */
int getgrnam_r(const char *name, struct group *group, char *buffer, size_t bytes,
               struct group **ret)
{
    (void)buffer;
    (void)bytes;
    assert_string_equal(name, SAMPLER_GROUP);
    *group = (struct group){.gr_gid = GROUP};
    *ret = group;
    return 0;
}

uid_t geteuid(void)
{
    return 0;
}

int lchown(const char *file, uid_t owner, gid_t group)
{
    if (is_denied) {
        errno = EPERM;
        return -1;
    }
    return fchownat(AT_FDCWD, file, owner, group, AT_SYMLINK_NOFOLLOW);
}

static char folder[] = "/tmp/test-control-listen-XXXXXX";
static char path[64];

static int make_folder(void **state)
{
    (void)state;
    if (mkdtemp(folder) == NULL) {
        return -1;
    }
    (void)snprintf(path, sizeof path, "%s/socket", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}
TEST_GROUP(make_folder, remove_folder)

TEST(lets_in_the_caller_or_the_group)
{
    struct stat status;
    cleanup_(closep) int fd = control_listen(path, NULL);
    assert_true(fd >= 0);
    assert_int_equal(lstat(path, &status), 0);
    assert_true(S_ISSOCK(status.st_mode));
    assert_int_equal(status.st_mode & 0777, status.st_gid == GROUP ? 0660 : 0600);
    assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    assert_int_equal(unlink(path), 0);
}

TEST(says_that_the_group_cannot_have_the_socket)
{
    int pipe_fds[2];
    char line[256] = "";
    char expected[256];
    struct stat status;
    int saved = dup(STDERR_FILENO);
    assert_int_equal(pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK), 0);
    assert_true(dup2(pipe_fds[1], STDERR_FILENO) >= 0);
    is_denied = true;
    cleanup_(closep) int fd = control_listen(path, NULL);
    is_denied = false;
    assert_true(dup2(saved, STDERR_FILENO) >= 0);
    assert_int_equal(close(saved), 0);
    assert_true(fd >= 0);
    assert_true(read(pipe_fds[0], line, sizeof line - 1) > 0);
    (void)snprintf(expected, sizeof expected,
                   "cannot give '%s' to the group " SAMPLER_GROUP
                   ", so only root can connect (it takes CAP_CHOWN), ignoring: "
                   "Operation not permitted\n",
                   path);
    assert_string_equal(line, expected);
    assert_int_equal(lstat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_int_equal(close(pipe_fds[0]) | close(pipe_fds[1]), 0);
    assert_int_equal(unlink(path), 0);
}

TEST(replaces_a_socket_on_which_nobody_listens)
{
    assert_int_equal(close(control_listen(path, NULL)), 0);
    cleanup_(closep) int fd = control_listen(path, NULL);
    assert_true(fd >= 0);
    assert_int_equal(unlink(path), 0);
}

TEST(takes_its_socket_away_when_nobody_listens)
{
    struct stat status;
    int fd = control_listen(path, NULL);
    assert_true(fd >= 0);
    control_unlisten(path); /* somebody else's by now */
    assert_int_equal(lstat(path, &status), 0);
    assert_int_equal(close(fd), 0);
    control_unlisten(path);
    assert_int_equal(lstat(path, &status), -1);
    control_unlisten(path);
    fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_int_equal(close(fd), 0);
    control_unlisten(path); /* no socket */
    assert_int_equal(unlink(path), 0);
}

/* It says what stands before and behind the path; nothing before: whatever it says. */
static void expect_refused(const char *at, int error, const char *begin, const char *end)
{
    struct fault fault = {0};
    char text[256];
    assert_int_equal(control_listen(at, &fault), error);
    (void)snprintf(text, sizeof text, "%s%s%s", begin, at, end);
    if (begin[0] != '\0') {
        assert_string_equal(fault.text, text);
    }
}

TEST(refuses_a_path_where_it_can_make_no_socket)
{
    char long_path[200] = "";
    char deep_path[96];
    memset(long_path, 'x', sizeof long_path - 1);
    (void)snprintf(deep_path, sizeof deep_path, "%s/none/socket", folder);
    expect_refused("", -EINVAL, "the socket's path is empty; give a path", "");
    expect_refused(long_path, -ENAMETOOLONG, "", "");
    expect_refused(deep_path, -ENOENT, "", ""); /* it makes no folder but its own */
}

TEST(leaves_a_socket_alone_on_which_somebody_listens)
{
    cleanup_(closep) int fd = control_listen(path, NULL);
    assert_true(fd >= 0);
    expect_refused(path, -EADDRINUSE, "another daemon listens at '",
                   "'; use that one, or give another path with --socket");
    assert_int_equal(unlink(path), 0);
}

TEST(leaves_other_files_alone)
{
    cleanup_(closep) int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    expect_refused(path, -EEXIST, "'",
                   "' is there and is no socket; give another path with --socket");
    assert_int_equal(unlink(path), 0);
}
