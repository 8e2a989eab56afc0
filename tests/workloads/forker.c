/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Forks. Four children, one after another, run forked_spin() and keep the name `forker`; a fifth
 * executes the program `brief` beside this one and so gets another name and other code.
 *
 * A profiler must see: four processes `forker` with main -> forked_spin, and one process `brief`
 * with brief_spin and nothing of `forker` after its exec. Each child tells its own CPU time.
 */
#include "workload.h"

#include <limits.h>
#include <sys/wait.h>
#include <unistd.h>

#define FORKED_CHILDREN 4

static WORKLOAD_NOINLINE void forked_spin(uint64_t deadline_ns)
{
    while (!workload_time_is_up(deadline_ns)) {
        (void)workload_spin(100000);
    }
}

static void exec_brief(double seconds)
{
    char path[PATH_MAX];
    char text[32];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - sizeof "brief");
    if (length > 0) {
        path[length] = '\0';
        (void)memcpy(strrchr(path, '/') + 1, "brief", sizeof "brief");
        (void)snprintf(text, sizeof text, "%f", seconds);
        (void)execl(path, "brief", "--seconds", text, (char *)NULL);
    }
    perror("cannot execute brief");
    _exit(1);
}

/* Returns whether the child has done its part. */
static bool run_child(double seconds, bool execs)
{
    (void)fflush(stdout);
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        if (execs) {
            exec_brief(seconds);
        }
        forked_spin(workload_deadline_ns(seconds));
        workload_tell("forked_spin", workload_cpu_ns());
        exit(0);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

int main(int argc, char **argv)
{
    struct workload_options options = workload_options(argc, argv, 1);
    double each_s = options.seconds / (FORKED_CHILDREN + 1);
    for (int i = 0; i <= FORKED_CHILDREN; i++) {
        if (!run_child(each_s, i == FORKED_CHILDREN)) {
            (void)fprintf(stderr, "child %d failed\n", i);
            return 1;
        }
    }
    return 0;
}
