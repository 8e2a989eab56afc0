/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One pid, many processes: `reuser COUNT` forks children one after another, all with the same pid,
 * each with a name of its own.
 *
 * A profiler must see: each child under its own name (until it takes it: `reuser`), no name after
 * its owner's end. Prints for each child `name begin end gone pid named`, times of CLOCK_BOOTTIME:
 * before it took its name, at the end of its work, when it was reaped, and after it took its name.
 * Ends with status 77 where pids cannot be chosen.
 */
#include "workload.h"

#include <inttypes.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIFE_NS 4000000

struct times {
    uint64_t begin_ns;
    uint64_t named_ns;
    uint64_t end_ns;
};

static WORKLOAD_NOINLINE void reused_spin(uint64_t end_ns)
{
    while (workload_clock_ns(CLOCK_BOOTTIME) < end_ns) {
        (void)workload_spin(500);
    }
}

static void live(const char *name, struct times *times)
{
    times->begin_ns = workload_clock_ns(CLOCK_BOOTTIME);
    (void)prctl(PR_SET_NAME, name);
    times->named_ns = workload_clock_ns(CLOCK_BOOTTIME);
    reused_spin(times->begin_ns + LIFE_NS);
    times->end_ns = workload_clock_ns(CLOCK_BOOTTIME);
    _exit(0);
}

/* fork(), with this pid; 0: any. */
static pid_t fork_as(pid_t pid)
{
    struct clone_args args = {.exit_signal = SIGCHLD};
    if (pid != 0) {
        args.set_tid = (uint64_t)(uintptr_t)&pid;
        args.set_tid_size = 1;
    }
    return (pid_t)syscall(SYS_clone3, &args, sizeof args);
}

int main(int argc, char **argv)
{
    long count = argc == 2 ? strtol(argv[1], NULL, 10) : 0;
    struct times *times =
        mmap(NULL, sizeof *times, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (count <= 0 || times == MAP_FAILED) {
        (void)fprintf(stderr, "usage: %s COUNT\n", argv[0]);
        return 2;
    }
    pid_t pid = 0;
    for (long i = 0; i < count; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "life_%hu", (unsigned short)i);
        pid_t child = fork_as(pid);
        if (child == 0) {
            live(name, times);
        }
        if (child < 0 || waitpid(child, NULL, 0) != child) {
            perror("cannot choose a pid");
            return 77;
        }
        pid = child;
        printf("%s %" PRIu64 " %" PRIu64 " %" PRIu64 " %d %" PRIu64 "\n", name, times->begin_ns,
               times->end_ns, workload_clock_ns(CLOCK_BOOTTIME), (int)pid, times->named_ns);
    }
    return 0;
}
