/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Judges the daemon: whether it answers, its rights, its memory, and whether its one session is
 * free. A right that is missing is wrong only if the recording has failed; where it has come about,
 * the right was not needed.
 */
#include "causes.h"
#include "judge.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define AVAILABLE_KIB_LOW INT64_C(262144)
#define BY_BYTES          (sizeof(struct drop_in) + 16)
#define FILES_DESCRIPTORS 1200 /* files that are read, and clients */

void judge_daemon(const struct facts *facts, struct doctor_report *report)
{
    const struct daemon_facts *daemon = &facts->daemon;
    char pid[JUDGE_NUMBER_BYTES];
    if (!daemon->is_connected) {
        report_unknown(report, "daemon", "you are not connected to it");
    } else if (!daemon->has_answered) {
        REPORT(report, daemon->code == EACCES ? CAUSE_DAEMON_REFUSES : CAUSE_DAEMON_SILENT,
               daemon->text);
    } else if (strcmp(daemon->version, CPU_PROFILERD_VERSION) != 0) {
        REPORT(report, CAUSE_DAEMON_OTHER_VERSION, daemon->version, CPU_PROFILERD_VERSION);
    } else {
        REPORT(report, CAUSE_DAEMON_GOOD, daemon->version, judge_number(daemon->pid, pid));
    }
}

/* Capabilities beside the one for events, and what a recording lacks without each (SECURITY.md). */
static const struct {
    unsigned capability;
    const char *name;
    const char *loss;
} capabilities[] = {
    {CAP_SYS_PTRACE, "CAP_SYS_PTRACE", "programs of other users have no names"},
    {CAP_CHECKPOINT_RESTORE, "CAP_CHECKPOINT_RESTORE",
     "files that were replaced or are in containers have no names"},
    {CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH", "files that not all may read have no names"},
};

/* The drop-in that sets these rights of the service; NULL: none is seen. */
static const struct drop_in *drop_in_of(const struct facts *facts, enum rights_kind kind)
{
    const struct drop_in *drop_in = &facts->service.drop_ins[kind];
    return facts->access.is_default && drop_in->path[0] != '\0' ? drop_in : NULL;
}

static void judge_some(const struct facts *facts, struct doctor_report *report)
{
    char where[240] = "";
    bool is_whole = true;
    const struct drop_in *drop_in = drop_in_of(facts, RIGHTS_CAPABILITIES);
    if (drop_in != NULL) {
        (void)snprintf(where, sizeof where, ", which %s= in %s changes", drop_in->setting,
                       drop_in->path);
    }
    for (size_t i = 0; i < sizeof capabilities / sizeof capabilities[0]; i++) {
        /* CAP_SYS_ADMIN does what CAP_CHECKPOINT_RESTORE does. */
        bool is_admin = capabilities[i].capability == CAP_CHECKPOINT_RESTORE &&
                        facts_have_capability(facts, CAP_SYS_ADMIN);
        if (!facts_have_capability(facts, capabilities[i].capability) && !is_admin) {
            REPORT(report, CAUSE_RIGHTS_LACKING_SOME, capabilities[i].name, capabilities[i].loss,
                   where);
            is_whole = false;
        }
    }
    if (is_whole) {
        REPORT(report, CAUSE_RIGHTS_GOOD, facts->daemon.has_filter ? "a" : "no");
    }
}

/* Whether what is known of the process means anything. */
static bool is_process_known(const struct facts *facts, const char *check,
                             struct doctor_report *report)
{
    const struct daemon_facts *daemon = &facts->daemon;
    if (!daemon->has_answered) {
        report_unknown(report, check, "the daemon does not answer");
        return false;
    }
    if (daemon->process_why[0] != '\0') {
        report_unknown(report, check, daemon->process_why);
        return false;
    }
    return true;
}

/* Whether the daemon has what the kernel asks for before it gives an event. */
static bool may_open(const struct facts *facts)
{
    return facts_have_capability(facts, CAP_SYS_ADMIN) ||
           (facts_have_capability(facts, CAP_PERFMON) &&
            facts->machine.paranoid.value <= JUDGE_PARANOID_MAX);
}

/* Whether the events could be opened and their rings not. */
static bool is_locked_out(const struct facts *facts)
{
    const struct fact *locked = &facts->daemon.locked_bytes;
    return facts->sample.is_refused && facts->sample.code == EACCES && may_open(facts) &&
           locked->why[0] == '\0' && locked->value >= 0 &&
           !facts_have_capability(facts, CAP_IPC_LOCK);
}

/* Whether no event is given, and no capability, setting or limit explains that. */
static bool is_refused(const struct facts *facts)
{
    return facts->sample.is_refused &&
           (facts->sample.code == EACCES || facts->sample.code == EOPNOTSUPP) && may_open(facts) &&
           !is_locked_out(facts);
}

/* Whether the service's socket is asked, and systemd may have started the daemon: then nothing of
 * it is ended or started by hand. */
static bool is_service(const struct facts *facts)
{
    return facts->access.is_default && facts->service.is_booted &&
           strcmp(facts->service.service.load, "not-found") != 0;
}

/* The drop-in that takes the service's right, a clause; "" where none is seen. `into` has room for
 * BY_BYTES; returns it. */
static const char *write_by(const struct drop_in *drop_in, char *into)
{
    into[0] = '\0';
    if (drop_in != NULL) {
        (void)snprintf(into, BY_BYTES, ", by %s= in %s", drop_in->setting, drop_in->path);
    }
    return into;
}

static const char *advise_service(const struct drop_in *drop_in)
{
    return drop_in == NULL
               ? "see journalctl -u cpu-profilerd; compare systemctl cat cpu-profilerd with the "
                 "unit that was installed"
               : "change that line, or go over it with systemctl edit cpu-profilerd; then restart "
                 "cpu-profilerd when profctl status shows no session";
}

/* What is wrong; {0} and {1} of its row are those of the daemon, or of the service. */
static void report_rights(const struct facts *facts, enum rights_kind kind, enum cause by_hand,
                          enum cause of_service, struct doctor_report *report)
{
    char pid[JUDGE_NUMBER_BYTES];
    char by[BY_BYTES];
    const struct drop_in *drop_in = drop_in_of(facts, kind);
    if (is_service(facts)) {
        REPORT(report, of_service, write_by(drop_in, by), advise_service(drop_in));
    } else {
        REPORT(report, by_hand, facts->access.path, judge_number(facts->daemon.pid, pid));
    }
}

void judge_rights(const struct facts *facts, struct doctor_report *report)
{
    bool has_capability =
        facts_have_capability(facts, CAP_PERFMON) || facts_have_capability(facts, CAP_SYS_ADMIN);
    if (!is_process_known(facts, "rights", report)) {
        return;
    }
    if (is_refused(facts)) {
        report_rights(facts, RIGHTS_FILTER, CAUSE_RIGHTS_REFUSED, CAUSE_RIGHTS_REFUSED_SERVICE,
                      report);
    } else if (has_capability || facts_have_begun(facts)) {
        judge_some(facts, report);
    } else {
        report_rights(facts, RIGHTS_CAPABILITIES, CAUSE_RIGHTS_LACKING,
                      CAUSE_RIGHTS_LACKING_SERVICE, report);
    }
}

static void report_locked_out(const struct facts *facts, struct doctor_report *report)
{
    char pid[JUDGE_NUMBER_BYTES];
    char kib[JUDGE_NUMBER_BYTES];
    char cpu_kib[JUDGE_NUMBER_BYTES];
    char by[BY_BYTES];
    const struct drop_in *drop_in = drop_in_of(facts, RIGHTS_MEMLOCK);
    (void)judge_number(facts->daemon.locked_bytes.value / 1024, kib);
    (void)judge_number(facts->machine.mlock_kib.value, cpu_kib);
    if (is_service(facts)) {
        REPORT(report, CAUSE_MEMORY_LOCKED_SERVICE, write_by(drop_in, by), advise_service(drop_in),
               kib, cpu_kib);
    } else {
        REPORT(report, CAUSE_MEMORY_LOCKED, facts->access.path,
               judge_number(facts->daemon.pid, pid), kib, cpu_kib);
    }
}

/* Limits of the daemon that make recordings worse. Returns whether there is one. */
static bool judge_limits(const struct facts *facts, struct doctor_report *report)
{
    const struct daemon_facts *daemon = &facts->daemon;
    char limit[JUDGE_NUMBER_BYTES];
    char cpus[JUDGE_NUMBER_BYTES];
    long cpu_count = sysconf(_SC_NPROCESSORS_ONLN);
    size_t before = report->count;
    if (daemon->descriptors.why[0] == '\0' && daemon->descriptors.value >= 0 &&
        daemon->descriptors.value < 3 * cpu_count + FILES_DESCRIPTORS) {
        REPORT(report, CAUSE_DESCRIPTORS_FEW, judge_number(daemon->descriptors.value, limit),
               judge_number(cpu_count, cpus));
    }
    if (daemon->realtime.why[0] == '\0' && daemon->realtime.value == 0 &&
        !facts_have_capability(facts, CAP_SYS_NICE)) {
        REPORT(report, CAUSE_REALTIME_LACKING);
    }
    return report->count > before;
}

/* Each remark of Create on its own line. */
static void judge_remarks(const struct facts *facts, struct doctor_report *report)
{
    char remarks[sizeof facts->sample.remarks];
    char *rest = NULL;
    (void)snprintf(remarks, sizeof remarks, "%s", facts->sample.remarks);
    for (char *line = strtok_r(remarks, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        REPORT(report, CAUSE_MEMORY_REMARK, line);
    }
}

void judge_memory(const struct facts *facts, struct doctor_report *report)
{
    const struct fact *available = &facts->machine.available_kib;
    char number[JUDGE_NUMBER_BYTES];
    char text[96];
    size_t before = report->count;
    judge_remarks(facts, report);
    if (available->why[0] == '\0' && available->value < AVAILABLE_KIB_LOW) {
        REPORT(report, CAUSE_MEMORY_LOW, judge_number(available->value / 1024, number));
    }
    if (!is_process_known(facts, "memory", report)) {
        return;
    }
    if (is_locked_out(facts)) {
        report_locked_out(facts, report);
    } else if (!judge_limits(facts, report) && report->count == before) {
        (void)snprintf(text, sizeof text,
                       facts_are_sampled(facts) ? "there is enough for the rings; %s MiB are "
                                                  "available"
                                                : "%s MiB are available",
                       available->why[0] != '\0' ? "an unknown number of"
                                                 : judge_number(available->value / 1024, number));
        REPORT(report, CAUSE_MEMORY_GOOD, text);
    }
}

void judge_session(const struct facts *facts, struct doctor_report *report)
{
    const struct daemon_facts *daemon = &facts->daemon;
    if (!daemon->has_answered) {
        report_unknown(report, "session", "the daemon does not answer");
    } else if (daemon->has_session) {
        REPORT(report, daemon->is_of_another ? CAUSE_SESSION_OF_ANOTHER : CAUSE_SESSION_HELD,
               daemon->holder, daemon->holder_remedy);
    } else {
        REPORT(report, CAUSE_SESSION_FREE);
    }
}
