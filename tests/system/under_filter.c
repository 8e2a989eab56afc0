/* SPDX-License-Identifier: Apache-2.0 */

/*
 * under_filter no_events|no_filters|no_limits COMMAND...: executes it as a machine would on which
 *   no_filters   no system call filter can be loaded: seccomp(2) and prctl(2) know none
 *   no_events    no perf event is given, as in a container
 *   no_limits    the worker, and it alone, makes a system call that kills it: it limits the size of
 *                files
 */
#include <errno.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

static int add_rules(scmp_filter_ctx filter, const char *what)
{
    const struct scmp_arg_cmp set_filter = SCMP_A0(SCMP_CMP_EQ, PR_SET_SECCOMP);
    const struct scmp_arg_cmp file_size = SCMP_A1(SCMP_CMP_EQ, RLIMIT_FSIZE);
    const struct scmp_arg_cmp limited = SCMP_A2(SCMP_CMP_NE, 0);
    if (strcmp(what, "no_events") == 0) {
        return seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(perf_event_open), 0);
    }
    if (strcmp(what, "no_limits") == 0) {
        return seccomp_rule_add(filter, SCMP_ACT_KILL_PROCESS, SCMP_SYS(prlimit64), 2, file_size,
                                limited);
    }
    int r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EINVAL), SCMP_SYS(seccomp), 0);
    return r < 0 ? r
                 : seccomp_rule_add(filter, SCMP_ACT_ERRNO(EINVAL), SCMP_SYS(prctl), 1, set_filter);
}

int main(int argc, char **argv)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    if (argc < 3 || filter == NULL || add_rules(filter, argv[1]) < 0 || seccomp_load(filter) < 0) {
        (void)fprintf(stderr, "usage: under_filter no_events|no_filters|no_limits COMMAND...\n");
        return EXIT_FAILURE;
    }
    (void)execv(argv[2], argv + 2);
    perror(argv[2]);
    return EXIT_FAILURE;
}
