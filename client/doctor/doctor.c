/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The order of an examination: the child is forked before a connection is made, which it would
 * share, and the connection is closed before the next fork; then facts are gathered, those of the
 * units last, since a connection may start the service; then they are judged, in the order in which
 * a sample goes its way.
 */
#include "doctor.h"

#include "causes.h"
#include "cleanup.h"
#include "connection.h"
#include "gather.h"
#include "judge.h"
#include "text_out.h"
#include "trial.h"

#include <string.h>
#include <sys/wait.h>

#define KERNEL_NAMES "share/doc/cpu-profilerd/kernel-names.conf"

/* The drop-in beside which this program was installed, or that of /usr. */
static void find_kernel_names(char *into, size_t capacity_bytes)
{
    char program[200];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length < 0 ? 0 : length] = '\0';
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr(program, '/');
        if (slash == NULL) {
            break;
        }
        *slash = '\0';
    }
    (void)snprintf(into, capacity_bytes, "%s/" KERNEL_NAMES, program);
    if (access(into, R_OK) < 0) {
        into[0] = '\0';
    }
}

static void gather_connected(struct profctl *conn, struct spin *spin, struct facts *facts)
{
    gather_daemon(conn, &facts->daemon);
    if (!facts->daemon.has_answered) {
        (void)snprintf(facts->sample.why, sizeof facts->sample.why, "the daemon does not answer");
    } else if (facts->daemon.has_session) {
        (void)snprintf(facts->sample.why, sizeof facts->sample.why,
                       "another session is in the way");
    } else if (spin->pid <= 0) {
        (void)snprintf(facts->sample.why, sizeof facts->sample.why, "no child can be made");
    } else {
        trial_gather(conn, spin, &facts->sample);
    }
}

/* Whatever the daemon is asked. The connection is closed then: a child that is forked later and
 * never ends would hold it open, and the session with it. */
static void gather_from_daemon(const char *socket_path, struct spin *spin, struct facts *facts)
{
    cleanup_(connection_closep) struct profctl *conn = NULL;
    struct profctl_fault fault = {0};
    if (profctl_connect(socket_path, &conn, &fault) < 0) {
        facts->daemon.code = fault.code;
        (void)snprintf(facts->daemon.text, sizeof facts->daemon.text, "%s", fault.text);
        (void)snprintf(facts->sample.why, sizeof facts->sample.why,
                       "you are not connected to the daemon");
    } else {
        gather_connected(conn, spin, facts);
    }
}

static void gather(const char *socket_path, struct facts *facts)
{
    struct spin spin = {.go_fd = -1};
    *facts = (struct facts){0};
    (void)spin_start(&spin);
    gather_from_daemon(socket_path, &spin, facts);
    (void)spin_end(&spin);
    gather_machine("", &facts->machine);
    gather_access(socket_path, &facts->access);
    gather_service(&facts->service);
    gather_programs("", &facts->programs);
    gather_packages("", facts);
    find_kernel_names(facts->kernel_names, sizeof facts->kernel_names);
}

void doctor_examine(const char *socket_path, struct doctor_report *ret)
{
    static void (*const judges[])(const struct facts *, struct doctor_report *) = {
        judge_kernel, judge_service, judge_access, judge_daemon, judge_rights,
        judge_memory, judge_session, judge_sample, judge_clock,  judge_programs,
    };
    cleanup_(freep) struct facts *facts = malloc(sizeof *facts);
    *ret = (struct doctor_report){0};
    if (facts == NULL) {
        ret->is_cut = true;
        return;
    }
    gather(socket_path, facts);
    for (size_t i = 0; i < sizeof judges / sizeof judges[0]; i++) {
        judges[i](facts, ret);
    }
    trial_done(&facts->sample);
}

bool doctor_is_ill(const struct doctor_report *report)
{
    bool is_ill = report->is_cut;
    for (size_t i = 0; i < report->count; i++) {
        is_ill = is_ill || report->findings[i].verdict == DOCTOR_WRONG;
    }
    return is_ill;
}

/* Runs one command by the shell; what it says is where its line is. */
static void run_command(const char *command, FILE *file)
{
    cleanup_(freep) char *redirected = NULL;
    (void)fprintf(file, "$ ");
    text_print(file, command);
    (void)fputc('\n', file);
    (void)fflush(file);
    if (asprintf(&redirected, "%s >&%d", command, fileno(file)) < 0) {
        redirected = NULL;
        return;
    }
    int status = system(redirected);
    if (status < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        (void)fprintf(file, "  failed with status %d%s\n",
                      status >= 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1,
                      geteuid() == 0 ? "" : "; it needs the rights of root");
    }
}

/* The caller's rights are all that there are, so "sudo " is left out. */
static const char *without_sudo(const char *command)
{
    static const char sudo[] = "sudo ";
    return strncmp(command, sudo, sizeof sudo - 1) == 0 ? command + sizeof sudo - 1 : command;
}

size_t doctor_fix(const struct doctor_report *report, FILE *file)
{
    size_t count = 0;
    for (size_t i = 0; i < report->count; i++) {
        cleanup_(freep) char *commands =
            report->findings[i].is_fixable ? strdup(report->findings[i].commands) : NULL;
        char *rest = NULL;
        char *command = commands == NULL ? NULL : strtok_r(commands, "\n", &rest);
        for (; command != NULL; command = strtok_r(NULL, "\n", &rest)) {
            run_command(without_sudo(command), file);
            count++;
        }
    }
    return count;
}
