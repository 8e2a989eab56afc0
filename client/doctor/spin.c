/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A child that ends with its parent, and after SPIN_CPU_S of CPU time whatever happens. It waits
 * for a byte, so that the session can name it as its target before it runs.
 */
#include "spin.h"

#include "cleanup.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define SPIN_CPU_S 20
#define TURNS      200000U          /* 100 us or so */
#define READ_BYTES ((size_t)524288) /* half of that */

/* Exported by the program (client/verbs/CMakeLists.txt); no other file calls them. */
void profctl_doctor_inner(unsigned turns);
void profctl_doctor_outer(int zero_fd);

__attribute__((noinline)) void profctl_doctor_inner(unsigned turns)
{
    for (unsigned i = 0; i < turns; i++) {
        __asm__ volatile("" ::: "memory");
    }
}

__attribute__((noinline, noreturn)) void profctl_doctor_outer(int zero_fd)
{
    static char bytes[READ_BYTES];
    for (;;) {
        profctl_doctor_inner(TURNS);
        (void)!read(zero_fd, bytes, sizeof bytes);
    }
}

static void run_child(int go_fd)
{
    const struct rlimit limit = {.rlim_cur = SPIN_CPU_S, .rlim_max = SPIN_CPU_S};
    char go = 0;
    ssize_t got = 0;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)setrlimit(RLIMIT_CPU, &limit);
    int zero_fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    do {
        got = read(go_fd, &go, 1);
    } while (got < 0 && errno == EINTR);
    if (got == 1) {
        profctl_doctor_outer(zero_fd);
    }
    _exit(EXIT_SUCCESS);
}

int spin_start(struct spin *ret)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0) {
        return -errno;
    }
    cleanup_(closep) int read_fd = ends[0];
    cleanup_(closep) int write_fd = ends[1];
    pid_t pid = fork();
    if (pid < 0) {
        return -errno;
    }
    if (pid == 0) {
        (void)close(write_fd);
        run_child(read_fd);
    }
    *ret = (struct spin){.pid = pid, .go_fd = take_fd(write_fd)};
    return 0;
}

void spin_go(struct spin *spin)
{
    (void)!write(spin->go_fd, "g", 1);
}

static uint64_t ns_of(const struct timeval *time)
{
    return (uint64_t)time->tv_sec * 1000000000 + (uint64_t)time->tv_usec * 1000;
}

uint64_t spin_end(struct spin *spin)
{
    struct rusage usage = {0};
    if (spin->pid <= 0) {
        return 0;
    }
    (void)kill(spin->pid, SIGKILL);
    spin->go_fd = close_fd(spin->go_fd);
    while (wait4(spin->pid, NULL, 0, &usage) < 0 && errno == EINTR) {
    }
    spin->pid = 0;
    return ns_of(&usage.ru_utime) + ns_of(&usage.ru_stime);
}
