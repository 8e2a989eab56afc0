/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Ends a complaint with the line that the doctor has for its cause. Only what such a failure can be
 * due to is looked at, by the same gatherers and judges.
 */
#include "causes.h"
#include "connection.h"
#include "doctor.h"
#include "gather.h"
#include "judge.h"
#include "options.h"
#include "session_status.h"

#include "cleanup.h"

#include <errno.h>
#include <string.h>

typedef void judge_fn(const struct facts *facts, struct doctor_report *report);

/* The line of the first finding that is wrong; NULL: none is. Returned: free(). */
static char *find_line(const struct facts *facts, judge_fn *const *judges, size_t count)
{
    struct doctor_report report = {0};
    char *line = NULL;
    for (size_t i = 0; i < count; i++) {
        judges[i](facts, &report);
    }
    for (size_t i = 0; i < report.count && line == NULL; i++) {
        if (report.findings[i].verdict == DOCTOR_WRONG) {
            line = finding_line(&report.findings[i]);
        }
    }
    doctor_report_done(&report);
    return line;
}

/* Whether the line says of the socket what the fault says. */
static bool is_repeated(int code)
{
    return code == ENOENT || code == ECONNREFUSED || code == ENOTSOCK;
}

int doctor_complain_connect(const char *socket_path, const struct profctl_fault *fault)
{
    static judge_fn *const judges[] = {judge_service, judge_access};
    cleanup_(freep) struct facts *facts = calloc(1, sizeof *facts);
    cleanup_(freep) char *line = NULL;
    if (facts != NULL && fault->code != ENAMETOOLONG) {
        facts->daemon.code = fault->code;
        gather_access(socket_path, &facts->access);
        gather_service(&facts->service);
        line = find_line(facts, judges, sizeof judges / sizeof judges[0]);
    }
    return line == NULL               ? complain("daemon: %s", fault->text)
           : is_repeated(fault->code) ? complain("daemon: %s", line)
                                      : complain("daemon: %s; %s", fault->text, line);
}

/* Says which session is in the way; false: there is none. */
static bool describe_held(struct profctl *conn, char *into)
{
    cleanup_(session_status_done) struct session_status status = {0};
    struct profctl_fault fault = {0};
    struct daemon_facts daemon = {0};
    if (session_status_ask(conn, &status, &fault) < 0 || !gather_holder(&status, &daemon)) {
        return false;
    }
    (void)snprintf(into, DOCTOR_SENTENCE_BYTES, "%s; %s", daemon.holder, daemon.holder_remedy);
    return true;
}

/* Whether no event at all is given; other refusals say themselves what is not there. */
static bool has_no_events(const struct profctl_fault *fault)
{
    return fault->code == EACCES ||
           (fault->code == EOPNOTSUPP && strstr(fault->text, "has no perf events") != NULL);
}

const char *doctor_describe_create(struct profctl *conn, const struct profctl_fault *fault,
                                   char *into)
{
    static judge_fn *const judges[] = {judge_kernel, judge_rights, judge_memory};
    cleanup_(freep) struct facts *facts = calloc(1, sizeof *facts);
    cleanup_(freep) char *line = NULL;
    if (fault->code == EEXIST && describe_held(conn, into)) {
        return into;
    }
    if (facts != NULL && has_no_events(fault)) {
        facts->sample.is_refused = true;
        facts->sample.code = fault->code;
        gather_machine("", &facts->machine);
        gather_access(connection_path(conn), &facts->access);
        gather_service(&facts->service);
        gather_daemon(conn, &facts->daemon);
        line = find_line(facts, judges, sizeof judges / sizeof judges[0]);
    }
    (void)snprintf(into, DOCTOR_SENTENCE_BYTES, "session: %s%s%s", fault->text,
                   line == NULL ? "" : "; ", line == NULL ? "" : line);
    return into;
}

int doctor_complain_create(struct profctl *conn, const struct profctl_fault *fault)
{
    char sentence[DOCTOR_SENTENCE_BYTES];
    return complain("%s", doctor_describe_create(conn, fault, sentence));
}
