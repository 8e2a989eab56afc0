/* SPDX-License-Identifier: Apache-2.0 */

/* Filters with what the worker's does not have, tried out in forks: mapped files, refused calls. */
#include "confine.h"
#include "unit_test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int file_fd = -1;

static bool maps(int protection, int flags)
{
    return mmap(NULL, 4096, protection, flags, file_fd, 0) != MAP_FAILED;
}

static bool maps_privately(void)
{
    return maps(PROT_READ, MAP_PRIVATE);
}

static bool maps_shared(void)
{
    return maps(PROT_READ, MAP_SHARED);
}

static bool maps_to_execute(void)
{
    return maps(PROT_READ | PROT_EXEC, MAP_PRIVATE);
}

static bool fails_to_open(void)
{
    return open("/", O_RDONLY | O_CLOEXEC) < 0 && errno == EPERM;
}

static bool makes_a_memfd(void)
{
    return syscall(SYS_memfd_create, "x", MFD_CLOEXEC) >= 0;
}

static bool sends(void)
{
    return syscall(SYS_sendto, 0, "", 0, 0, NULL, 0) >= 0;
}

TEST(filter_is_what_its_rules_say)
{
    static const int refused[] = {SYS_openat, SYS_open};
    const struct confine_rules plain = {.uid = (uid_t)-1, .gid = (gid_t)-1};
    const struct confine_rules with_files = {
        .uid = (uid_t)-1,
        .gid = (gid_t)-1,
        .refused = refused,
        .refused_count = COUNT_OF(refused),
        .may_map_files = true,
    };
    const struct {
        const char *what;
        const struct confine_rules *rules;
        bool (*attempt)(void);
        bool is_allowed;
    } cases[] = {
        {"a file mapped, plain", &plain, maps_privately, false},
        {"a file mapped", &with_files, maps_privately, true},
        {"a file mapped as shared", &with_files, maps_shared, false},
        {"a file mapped to be executed", &with_files, maps_to_execute, false},
        {"open where it is refused", &with_files, fails_to_open, true},
        {"open, plain", &plain, fails_to_open, false},
        {"a memfd", &with_files, makes_a_memfd, false},
        {"sendto", &with_files, sends, false},
    };
    file_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    assert_true(file_fd >= 0);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        pid_t pid = fork();
        if (pid == 0) {
            (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
            (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            bool is_done = confine_filter(cases[i].rules) == 0 && cases[i].attempt();
            /* Not _exit(): a leak checker would do forbidden things in it. */
            (void)syscall(SYS_exit_group, is_done ? 7 : 8);
        }
        int status = 0;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        bool is_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS;
        bool is_done = WIFEXITED(status) && WEXITSTATUS(status) == 7;
        if (cases[i].is_allowed ? !is_done : !is_killed) {
            fail_msg("%s: status %x", cases[i].what, (unsigned)status);
        }
    }
    (void)close(file_fd);
}
