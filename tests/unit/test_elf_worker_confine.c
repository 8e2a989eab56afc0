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

static void try_open(void)
{
    (void)open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void try_socket(void)
{
    (void)socket(AF_UNIX, SOCK_STREAM, 0);
}

static void try_connect(void)
{
    (void)connect(0, NULL, 0);
}

static void try_fork(void)
{
    (void)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static void try_execute(void)
{
    (void)syscall(SYS_execve, "/bin/true", NULL, NULL);
}

static void try_kill(void)
{
    (void)kill(getppid(), 0);
}

static void try_ptrace(void)
{
    (void)syscall(SYS_ptrace, PTRACE_TRACEME, 0, 0, 0);
}

static void try_executable_memory(void)
{
    (void)mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void try_making_memory_executable(void)
{
    static char memory[8192];
    (void)mprotect((void *)((uintptr_t)(memory + 4095) & ~(uintptr_t)4095), 4096,
                   PROT_READ | PROT_EXEC);
}

static void try_mapping_a_file(void)
{
    (void)mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, 0, 0);
}

static void try_another_memfd(void)
{
    (void)memfd_create("x", MFD_ALLOW_SEALING);
}

static void try_sending(void)
{
    struct msghdr message = {.msg_iovlen = 0};
    (void)sendmsg(0, &message, MSG_DONTWAIT);
}

static void try_stat_by_path(void)
{
    struct stat status;
    (void)syscall(SYS_newfstatat, AT_FDCWD, "/", &status, 0);
}

static void try_dup(void)
{
    (void)fcntl(0, F_DUPFD, 5);
}

static void try_x32_call(void)
{
    (void)syscall(0x40000000 | SYS_read, 0, NULL, 0);
}

static void try_what_is_allowed(void)
{
    struct stat status;
    (void)fstat(0, &status);
    void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)munmap(memory, 4096);
    (void)memfd_create("x", ELF_WORKER_MEMFD_FLAGS);
    free(malloc(1 << 20));
}

TEST(filter_kills_whatever_it_does_not_list)
{
    static const struct {
        const char *what;
        void (*attempt)(void);
        bool allowed;
    } cases[] = {
        {"open", try_open, false},
        {"socket", try_socket, false},
        {"connect", try_connect, false},
        {"fork", try_fork, false},
        {"execve", try_execute, false},
        {"kill", try_kill, false},
        {"ptrace", try_ptrace, false},
        {"mmap executable", try_executable_memory, false},
        {"mprotect executable", try_making_memory_executable, false},
        {"mmap of a file", try_mapping_a_file, false},
        {"memfd_create otherwise", try_another_memfd, false},
        {"sendmsg", try_sending, false},
        {"stat by path", try_stat_by_path, false},
        {"dup", try_dup, false},
        {"a call of another architecture", try_x32_call, false},
        {"what is allowed", try_what_is_allowed, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
            (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            if (elf_worker_filter() == 0) {
                cases[i].attempt();
            }
            /* Not _exit(): a leak checker would do forbidden things in it. */
            (void)syscall(SYS_exit_group, 7);
        }
        int status = 0;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS;
        bool passed = WIFEXITED(status) && WEXITSTATUS(status) == 7;
        if (cases[i].allowed ? !passed : !killed) {
            fail_msg("%s: status %x", cases[i].what, (unsigned)status);
        }
    }
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
