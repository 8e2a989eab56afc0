/* SPDX-License-Identifier: Apache-2.0 */

/* The worker's filter, tried out in forks: one for each call that it must not let through. */
#include "elf_worker_confine.h"
#include "unit_test.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void do_what_is_allowed(void)
{
    struct stat status;
    (void)fstat(0, &status);
    void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)munmap(memory, 4096);
    (void)memfd_create("x", ELF_WORKER_MEMFD_FLAGS);
    free(malloc(1 << 20));
}

/* A process with the filter makes one call, or does what is allowed. Returns how it ended. */
static int end_after_call(long number, const uintptr_t arguments[6])
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
        (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        if (elf_worker_filter() < 0) {
            (void)syscall(SYS_exit_group, 8);
        }
        if (number < 0) {
            do_what_is_allowed();
        } else {
            (void)syscall(number, arguments[0], arguments[1], arguments[2], arguments[3],
                          arguments[4], arguments[5]);
        }
        /* Not _exit(): a leak checker would do forbidden things in it. */
        (void)syscall(SYS_exit_group, 7);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

TEST(filter_kills_whatever_it_does_not_list)
{
    static _Alignas(4096) char page[4096];
    struct msghdr message = {.msg_iovlen = 0};
    struct stat found;
    const unsigned anonymous = MAP_PRIVATE | MAP_ANONYMOUS;
    const struct {
        const char *what;
        long number;
        uintptr_t arguments[6];
    } cases[] = {
        {"open", SYS_openat, {(uintptr_t)AT_FDCWD, (uintptr_t) "/dev/null", O_RDONLY | O_CLOEXEC}},
        {"socket", SYS_socket, {AF_UNIX, SOCK_STREAM}},
        {"connect", SYS_connect, {0}},
        {"fork", SYS_clone, {SIGCHLD}},
        {"execve", SYS_execve, {(uintptr_t) "/bin/true"}},
        {"kill", SYS_kill, {(uintptr_t)getpid()}},
        {"ptrace", SYS_ptrace, {PTRACE_TRACEME}},
        {"mmap executable", SYS_mmap, {0, 4096, PROT_READ | PROT_EXEC, anonymous, UINTPTR_MAX}},
        {"mprotect executable", SYS_mprotect, {(uintptr_t)page, 4096, PROT_READ | PROT_EXEC}},
        {"mmap of a file", SYS_mmap, {0, 4096, PROT_READ, MAP_PRIVATE}},
        {"memfd_create otherwise", SYS_memfd_create, {(uintptr_t) "x", MFD_ALLOW_SEALING}},
        {"sendmsg", SYS_sendmsg, {0, (uintptr_t)&message, MSG_DONTWAIT}},
        {"stat by path", SYS_newfstatat, {(uintptr_t)AT_FDCWD, (uintptr_t) "/", (uintptr_t)&found}},
        {"dup", SYS_fcntl, {0, F_DUPFD, 5}},
        {"a call of another architecture", 0x40000000 | SYS_read, {0}},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        int status = end_after_call(cases[i].number, cases[i].arguments);
        if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSYS) {
            fail_msg("%s: status %x", cases[i].what, (unsigned)status);
        }
    }
    int status = end_after_call(-1, NULL);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
}

/* One that may change users but no groups: what it may do, it does. */
TEST(changes_its_user_where_it_may_not_change_groups)
{
    if (geteuid() != 0) {
        skip();
    }
    pid_t pid = fork();
    if (pid == 0) {
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct held[_LINUX_CAPABILITY_U32S_3] = {{0}};
        held[0].effective = held[0].permitted = 1U << CAP_SETUID;
        (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
        bool ready = syscall(SYS_capset, &header, held) == 0;
        ready = ready && elf_worker_confine(65534, 65534, 0) == 0;
        struct stat status;
        int fd = ready ? memfd_create("x", ELF_WORKER_MEMFD_FLAGS) : -1;
        bool changed = fstat(fd, &status) == 0 && status.st_uid == 65534;
        (void)syscall(SYS_exit_group, changed ? 7 : 8);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
}
