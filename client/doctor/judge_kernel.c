/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Judges the kernel: its features, its sysctls, and what of its own functions can be named. What
 * the daemon's recording has proved is not held against a setting.
 */
#include "causes.h"
#include "judge.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>

#define KPTR_HIDES      2   /* from everybody */
#define RATE_HZ_DEFAULT 999 /* of a session */

const char *judge_number(int64_t number, char *into)
{
    (void)snprintf(into, JUDGE_NUMBER_BYTES, "%" PRId64, number);
    return into;
}

bool facts_are_sampled(const struct facts *facts)
{
    return facts->sample.why[0] == '\0' && !facts->sample.is_refused && !facts->sample.has_failed &&
           facts->sample.sample_count > 0;
}

bool facts_have_begun(const struct facts *facts)
{
    return facts_are_sampled(facts) || facts->sample.has_failed;
}

bool facts_have_capability(const struct facts *facts, unsigned capability)
{
    return (facts->daemon.capabilities >> capability & 1) != 0;
}

/* Features without which a recording has less. */
static void judge_features(const struct facts *facts, struct doctor_report *report)
{
    const struct daemon_facts *daemon = &facts->daemon;
    const struct {
        bool is_there;
        const char *what;
        const char *remedy;
    } features[] = {
        {daemon->has_cgroup,
         "control groups in samples: units and containers of short programs are not known",
         "CONFIG_CGROUP_PERF=y, Linux 5.7 or newer"},
        {daemon->has_format_lost, "counts of lost samples: books call them unexplained",
         "Linux 6.0 or newer"},
    };
    bool is_whole = true;
    for (size_t i = 0; i < sizeof features / sizeof features[0]; i++) {
        if (!features[i].is_there) {
            REPORT(report, CAUSE_KERNEL_LACKS, daemon->release, features[i].what,
                   features[i].remedy);
            is_whole = false;
        }
    }
    if (is_whole) {
        char more[224];
        (void)snprintf(more, sizeof more, "%s%s",
                       daemon->has_deferred_chains ? ""
                                                   : "; it has no deferred call chains (6.19), "
                                                     "which only \"unwind\": \"fp\" would use",
                       daemon->has_mmap_build_id
                           ? ""
                           : "; it has no build-ids in records of mappings (5.12), which files "
                             "have as well");
        REPORT(report, CAUSE_KERNEL_GOOD, daemon->release, more);
    }
}

static void judge_perf(const struct facts *facts, struct doctor_report *report)
{
    const struct machine_facts *machine = &facts->machine;
    const struct daemon_facts *daemon = &facts->daemon;
    bool has_none = !daemon->has_cgroup && !daemon->has_format_lost && !daemon->has_mmap_build_id;
    if (daemon->has_answered && has_none && !facts_are_sampled(facts)) {
        report_unknown(report, "kernel", "the daemon gets no perf event to find out with");
    } else if (daemon->has_answered) {
        judge_features(facts, report);
    } else if (machine->paranoid.why[0] != '\0' && machine->probe_errno == ENOSYS) {
        REPORT(report, CAUSE_KERNEL_WITHOUT_PERF);
    } else if (machine->probe_errno == ENOSYS) {
        REPORT(report, CAUSE_KERNEL_HIDES_PERF);
    } else {
        report_unknown(report, "kernel", "the daemon, which knows its features, does not answer");
    }
}

static void judge_paranoid(const struct facts *facts, struct doctor_report *report)
{
    const struct fact *paranoid = &facts->machine.paranoid;
    char number[JUDGE_NUMBER_BYTES];
    if (paranoid->why[0] != '\0') {
        report_unknown(report, "paranoid", paranoid->why);
    } else if (paranoid->value <= JUDGE_PARANOID_MAX) {
        REPORT(report, CAUSE_PARANOID_GOOD, judge_number(paranoid->value, number));
    } else if (facts_have_begun(facts) || facts->daemon.is_sampling ||
               facts_have_capability(facts, CAP_SYS_ADMIN)) {
        REPORT(report, CAUSE_PARANOID_BORNE, judge_number(paranoid->value, number));
    } else {
        REPORT(report,
               facts->machine.has_package_switch ? CAUSE_PARANOID_HIGH_PACKAGE
                                                 : CAUSE_PARANOID_HIGH,
               judge_number(paranoid->value, number));
    }
}

static void judge_rate(const struct facts *facts, struct doctor_report *report)
{
    const struct fact *rate = &facts->machine.max_sample_rate;
    char number[JUDGE_NUMBER_BYTES];
    if (rate->why[0] != '\0') {
        report_unknown(report, "rate", rate->why);
    } else {
        REPORT(report, rate->value < RATE_HZ_DEFAULT ? CAUSE_RATE_LOW : CAUSE_RATE_GOOD,
               judge_number(rate->value, number));
    }
}

static void judge_lockdown(const struct facts *facts, struct doctor_report *report)
{
    const struct machine_facts *machine = &facts->machine;
    if (machine->lockdown_why[0] != '\0') {
        report_unknown(report, "lockdown", machine->lockdown_why);
    } else if (machine->lockdown[0] == '\0' || strcmp(machine->lockdown, "none") == 0) {
        REPORT(report, CAUSE_LOCKDOWN_NONE);
    } else {
        REPORT(report, CAUSE_LOCKDOWN, machine->lockdown);
    }
}

/* Names that the recording has are proof; else the settings say what is in the way. */
static void judge_names(const struct facts *facts, struct doctor_report *report)
{
    const struct fact *kptr = &facts->machine.kptr_restrict;
    const struct sample_facts *sample = &facts->sample;
    char number[JUDGE_NUMBER_BYTES];
    if (sample->kernel_named_count > 0) {
        REPORT(report, CAUSE_KERNEL_NAMES_GOOD);
    } else if (sample->is_kernel_off) {
        REPORT(report, CAUSE_KERNEL_STACKS_FORBIDDEN);
    } else if (kptr->why[0] != '\0') {
        report_unknown(report, "kernel-names", kptr->why);
    } else if (kptr->value >= KPTR_HIDES) {
        REPORT(report, CAUSE_KERNEL_NAMES_HIDDEN, judge_number(kptr->value, number));
    } else if (facts->daemon.pid == 0 || facts->daemon.process_why[0] != '\0') {
        report_unknown(report, "kernel-names",
                       facts->daemon.pid == 0 ? "the daemon does not answer"
                                              : facts->daemon.process_why);
    } else if (sample->why[0] != '\0') {
        report_unknown(report, "kernel-names", sample->why);
    } else if (facts_have_capability(facts, CAP_SYSLOG)) {
        report_unknown(report, "kernel-names", "no sample of the test program was in the kernel");
    } else if (facts->service.is_booted && facts->kernel_names[0] != '\0') {
        REPORT(report, CAUSE_KERNEL_NAMES_NO_RIGHT_SERVICE, facts->kernel_names);
    } else {
        REPORT(report, CAUSE_KERNEL_NAMES_NO_RIGHT);
    }
}

void judge_kernel(const struct facts *facts, struct doctor_report *report)
{
    judge_perf(facts, report);
    judge_paranoid(facts, report);
    judge_rate(facts, report);
    judge_lockdown(facts, report);
    judge_names(facts, report);
}

void judge_clock(const struct facts *facts, struct doctor_report *report)
{
    static const char *const slow[] = {"hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit"};
    const struct machine_facts *machine = &facts->machine;
    char number[JUDGE_NUMBER_BYTES];
    bool is_slow = false;
    for (size_t i = 0; i < sizeof slow / sizeof slow[0]; i++) {
        is_slow = is_slow || strcmp(machine->clock_source, slow[i]) == 0;
    }
    if (machine->clock_step_ns.why[0] == '\0' && machine->clock_step_ns.value > 1) {
        REPORT(report, CAUSE_CLOCK_COARSE, judge_number(machine->clock_step_ns.value, number));
    } else if (machine->clock_source[0] == '\0') {
        report_unknown(report, "clock", "/sys does not name it");
    } else {
        REPORT(report, is_slow ? CAUSE_CLOCK_SLOW : CAUSE_CLOCK_GOOD, machine->clock_source);
    }
    if (machine->time_offset[0] != '\0') {
        REPORT(report, CAUSE_CLOCK_NAMESPACE, machine->time_offset);
    }
}
