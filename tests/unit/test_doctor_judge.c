/* SPDX-License-Identifier: Apache-2.0 */

/* Machines that are made up, and what the doctor says of each. */
#include "causes.h"
#include "judge.h"

#include "runtimes.h"
#include "trial.h"
#include "unit_test.h"
#include <sys/stat.h>

#include <errno.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <unistd.h>

#define BIT(capability) (UINT64_C(1) << (capability))

/* What the service has. */
#define SERVICE_RIGHTS                                                                             \
    (BIT(CAP_PERFMON) | BIT(CAP_SYS_PTRACE) | BIT(CAP_CHECKPOINT_RESTORE) |                        \
     BIT(CAP_DAC_READ_SEARCH))

#define BOOKS(terms)                                                                               \
    "{\"period_ns\":1001001,\"total\":{\"expected\":2000,\"received\":1900,\"idle\":0," terms "}}"

/* A machine on which all is well, for a member of the group. */
static struct facts well(void)
{
    struct facts facts = {
        .machine = {.paranoid = {.value = 2},
                    .kptr_restrict = {.value = 0},
                    .max_sample_rate = {.value = 100000},
                    .available_kib = {.value = 8000000},
                    .clock_step_ns = {.value = 1},
                    .lockdown = "none",
                    .clock_source = "tsc"},
        .access = {.path = "/run/cpu-profilerd/control.sock",
                   .is_default = true,
                   .is_socket = true,
                   .mode = 0660,
                   .gid = 990,
                   .group = "cpu-profiler",
                   .has_group = true,
                   .is_listed = true,
                   .is_in_effect = true},
        .service = {.is_booted = true,
                    .socket = {.load = "loaded", .active = "active", .file = "enabled"},
                    .service = {.load = "loaded", .active = "active", .file = "indirect"}},
        .daemon = {.is_connected = true,
                   .has_answered = true,
                   .version = CPU_PROFILERD_VERSION,
                   .release = "6.18.0",
                   .has_deferred_chains = true,
                   .has_mmap_build_id = true,
                   .has_format_lost = true,
                   .has_cgroup = true,
                   .pid = 812,
                   .capabilities = SERVICE_RIGHTS,
                   .locked_bytes = {.value = -1},
                   .realtime = {.value = 1},
                   .descriptors = {.value = 1 << 20}},
        .sample = {.expected_count = 900,
                   .sample_count = 890,
                   .complete_count = 890,
                   .named_count = 890,
                   .kernel_count = 100,
                   .kernel_named_count = 100,
                   .build_id = "ab01",
                   .own_build_id = "ab01"},
        .programs = {.process_count = 5, .file_count = 3, .with_build_id = 3},
    };
    static char books[] = BOOKS("\"lost\":0,\"throttled\":0,\"missed\":1,\"unexplained\":1");
    facts.sample.books_json = books;
    return facts;
}

/* All findings of a machine. */
static struct doctor_report judge(const struct facts *facts)
{
    static void (*const judges[])(const struct facts *, struct doctor_report *) = {
        judge_kernel, judge_service, judge_access, judge_daemon, judge_rights,
        judge_memory, judge_session, judge_sample, judge_clock,  judge_programs,
    };
    struct doctor_report report = {0};
    for (size_t i = 0; i < COUNT_OF(judges); i++) {
        judges[i](facts, &report);
    }
    return report;
}

static bool has_part(const struct doctor_finding *finding, const char *part)
{
    return strstr(finding->text, part) != NULL || strstr(finding->commands, part) != NULL ||
           strstr(finding->advice, part) != NULL;
}

/* The finding of a cause with `part` in its text, its commands or its advice. */
static const struct doctor_finding *find(const struct doctor_report *report, const char *cause,
                                         const char *part)
{
    for (size_t i = 0; i < report->count; i++) {
        if (strcmp(report->findings[i].cause, cause) == 0 && has_part(&report->findings[i], part)) {
            return &report->findings[i];
        }
    }
    return NULL;
}

static void expect(const struct facts *facts, const char *cause, const char *part)
{
    struct doctor_report report = judge(facts);
    if (find(&report, cause, part) == NULL) {
        for (size_t i = 0; i < report.count; i++) {
            print_message("%s: %s: %s, %s\n", report.findings[i].cause, report.findings[i].text,
                          report.findings[i].commands, report.findings[i].advice);
        }
        fail_msg("there is no %s with '%s'", cause, part);
    }
    doctor_report_done(&report);
}

static void expect_none(const struct facts *facts, const char *cause)
{
    struct doctor_report report = judge(facts);
    assert_null(find(&report, cause, ""));
    doctor_report_done(&report);
}

static void expect_no_command(const struct facts *facts, const char *cause)
{
    struct doctor_report report = judge(facts);
    const struct doctor_finding *finding = find(&report, cause, "");
    assert_non_null(finding);
    assert_string_equal(finding->commands, "");
    doctor_report_done(&report);
}

/* The machine without a recording. */
static void refuse(struct facts *facts, int code)
{
    facts->sample = (struct sample_facts){.is_refused = true, .code = code};
    (void)snprintf(facts->sample.text, sizeof facts->sample.text, "the kernel refuses it");
}

TEST(finds_a_machine_well)
{
    struct facts facts = well();
    struct doctor_report report = judge(&facts);
    for (size_t i = 0; i < report.count; i++) {
        if (report.findings[i].verdict != DOCTOR_OK) {
            fail_msg("%s: %s", report.findings[i].cause, report.findings[i].text);
        }
    }
    assert_false(doctor_is_ill(&report));
    doctor_report_done(&report);
}

TEST(blames_a_paranoid_kernel_only_where_nothing_was_recorded)
{
    static const int64_t values[] = {3, 4};
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        char text[8];
        struct facts facts = well();
        facts.machine.paranoid.value = values[i];
        expect(&facts, "paranoid-borne", "all the same");
        refuse(&facts, EACCES);
        (void)snprintf(text, sizeof text, "is %d,", (int)values[i]);
        expect(&facts, "paranoid-high", text);
        expect(&facts, "paranoid-high", "sysctl -w kernel.perf_event_paranoid=2");
        expect_none(&facts, "memory-locked");
        facts.machine.has_package_switch = true;
        expect(&facts, "paranoid-high-package", "dpkg-reconfigure cpu-profilerd");
        facts.daemon.is_sampling = true;
        expect(&facts, "paranoid-borne", "all the same");
        facts.daemon.is_sampling = false;
        facts.daemon.capabilities |= BIT(CAP_SYS_ADMIN);
        expect(&facts, "paranoid-borne", "all the same");
    }
}

TEST(says_what_an_older_kernel_lacks)
{
    struct facts facts = well();
    facts.daemon.has_cgroup = false;
    expect(&facts, "kernel-lacks", "containers");
    facts.daemon.has_format_lost = false;
    expect(&facts, "kernel-lacks", "Linux 6.18.0 lacks control groups");
    facts.daemon.has_mmap_build_id = false;
    expect(&facts, "kernel-lacks", "Linux 6.18.0 lacks control groups");
    refuse(&facts, EACCES);
    expect_none(&facts, "kernel-lacks");
    expect(&facts, "not-known", "no perf event to find out with");
    facts = well();
    facts.daemon.has_deferred_chains = false;
    facts.daemon.has_mmap_build_id = false;
    expect(&facts, "kernel-good", "6.19");
    expect(&facts, "kernel-good", "5.12");
}

TEST(tells_a_kernel_without_events_from_one_that_hides_them)
{
    struct facts facts = well();
    facts.daemon = (struct daemon_facts){0};
    facts.machine.probe_errno = ENOSYS;
    expect(&facts, "kernel-hides-perf", "seccomp");
    (void)snprintf(facts.machine.paranoid.why, sizeof facts.machine.paranoid.why, "no such file");
    expect(&facts, "kernel-without-perf", "CONFIG_PERF_EVENTS");
}

TEST(says_why_the_kernel_has_no_names)
{
    struct facts facts = well();
    facts.machine.kptr_restrict.value = 2;
    expect(&facts, "kernel-names-good", "");
    facts.sample.kernel_named_count = 0;
    expect(&facts, "kernel-names-hidden", "sysctl -w kernel.kptr_restrict=1");
    facts.machine.kptr_restrict.value = 1;
    expect(&facts, "kernel-names-no-right", "CAP_SYSLOG");
    (void)snprintf(facts.kernel_names, sizeof facts.kernel_names, "/usr/share/kernel-names.conf");
    expect(&facts, "kernel-names-no-right-service",
           "install -D -m 644 /usr/share/kernel-names.conf");
    facts.sample.is_kernel_off = true;
    expect(&facts, "kernel-stacks-forbidden", "administrator");
}

TEST(finds_the_memory_that_may_not_be_locked)
{
    struct facts facts = well();
    refuse(&facts, EACCES);
    facts.daemon.locked_bytes.value = 65536;
    facts.access.is_default = false;
    expect(&facts, "memory-locked", "may lock 64 KiB");
    expect(&facts, "memory-locked", "kill 812");
    facts.machine.mlock_kib.value = 516;
    expect(&facts, "memory-locked", "beside 516 KiB for each CPU");
    expect_none(&facts, "rights-refused");
    facts.access.is_default = true;
    facts.service.drop_ins[RIGHTS_MEMLOCK] = (struct drop_in){"/etc/x.conf", "LimitMEMLOCK"};
    expect(&facts, "memory-locked-service", "by LimitMEMLOCK= in /etc/x.conf");
    expect_no_command(&facts, "memory-locked-service");
    facts.daemon.capabilities |= BIT(CAP_IPC_LOCK);
    expect_none(&facts, "memory-locked-service");
}

TEST(finds_missing_rights)
{
    struct facts facts = well();
    facts.daemon.capabilities &= ~BIT(CAP_SYS_PTRACE);
    expect(&facts, "rights-lacking-some", "CAP_SYS_PTRACE");
    refuse(&facts, EACCES);
    facts.daemon.capabilities = 0;
    facts.service.is_booted = false;
    expect(&facts, "rights-lacking", "cpu-profilerd --socket");
    facts.service.is_booted = true;
    facts.service.drop_ins[RIGHTS_CAPABILITIES] =
        (struct drop_in){"/etc/x.conf", "AmbientCapabilities"};
    expect(&facts, "rights-lacking-service", "by AmbientCapabilities= in /etc/x.conf");
    expect_no_command(&facts, "rights-lacking-service");
    facts.daemon.realtime.value = 0;
    expect(&facts, "realtime-lacking", "LimitRTPRIO=1");
}

TEST(finds_events_that_are_refused_in_spite_of_all_rights)
{
    struct facts facts = well();
    refuse(&facts, EACCES);
    facts.access.is_default = false;
    facts.daemon.capabilities |= BIT(CAP_IPC_LOCK);
    expect(&facts, "rights-refused", "perf_event_open");
    refuse(&facts, EINVAL);
    expect_none(&facts, "rights-refused");
    expect(&facts, "rights-good", "no filter");
    facts.daemon.has_filter = true;
    expect(&facts, "rights-good", "a filter");
}

/* The one session may be another user's, and only systemd gives the daemon what it needs. */
TEST(ends_no_daemon_of_systemd)
{
    static const struct {
        const char *cause;
        uint64_t capabilities;
        int64_t locked_bytes;
    } cases[] = {
        {"rights-refused-service", SERVICE_RIGHTS, -1},
        {"rights-lacking-service", 0, -1},
        {"memory-locked-service", SERVICE_RIGHTS, 65536},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct facts facts = well();
        refuse(&facts, EACCES);
        facts.daemon.capabilities = cases[i].capabilities;
        facts.daemon.locked_bytes.value = cases[i].locked_bytes;
        expect(&facts, cases[i].cause, "journalctl -u cpu-profilerd");
        expect_no_command(&facts, cases[i].cause);
        /* systemctl does not answer: the daemon may still be systemd's. */
        facts.service = (struct service_facts){.is_booted = true, .why = "systemctl: timeout"};
        expect_no_command(&facts, cases[i].cause);
        (void)snprintf(facts.service.service.load, sizeof facts.service.service.load, "not-found");
        expect_none(&facts, cases[i].cause);
    }
}

TEST(goes_from_the_units_to_the_group)
{
    struct facts facts = well();
    facts.daemon = (struct daemon_facts){.code = ENOENT};
    facts.access.stat_errno = ENOENT;
    expect(&facts, "socket-gone", "systemctl restart cpu-profilerd.socket");
    expect_none(&facts, "socket-missing");
    (void)snprintf(facts.service.socket.active, sizeof facts.service.socket.active, "inactive");
    expect(&facts, "unit-stopped", "systemctl start cpu-profilerd.socket");
    expect(&facts, "socket-missing", "there is no socket");
    (void)snprintf(facts.service.socket.active, sizeof facts.service.socket.active, "failed");
    (void)snprintf(facts.service.journal, sizeof facts.service.journal, "bind: in use");
    expect(&facts, "unit-failed", "it said last: bind: in use");
    (void)snprintf(facts.service.socket.file, sizeof facts.service.socket.file, "disabled");
    expect(&facts, "unit-disabled", "systemctl enable --now cpu-profilerd.socket");
    (void)snprintf(facts.service.socket.load, sizeof facts.service.socket.load, "masked");
    expect(&facts, "unit-masked", "systemctl unmask cpu-profilerd.socket");
    (void)snprintf(facts.service.socket.load, sizeof facts.service.socket.load, "not-found");
    expect(&facts, "unit-not-installed", "install");
    facts.service = (struct service_facts){0};
    expect(&facts, "socket-missing-by-hand", "setsid --fork cpu-profilerd");
}

TEST(warns_of_a_socket_that_the_next_boot_does_not_bring)
{
    struct facts facts = well();
    (void)snprintf(facts.service.socket.file, sizeof facts.service.socket.file, "disabled");
    expect(&facts, "unit-until-boot", "systemctl enable cpu-profilerd.socket");
    expect_none(&facts, "unit-good");
    (void)snprintf(facts.service.socket.file, sizeof facts.service.socket.file, "linked");
    expect(&facts, "unit-good", "linked");
}

/* What --fix would run starts the socket too, whatever has become of the service. */
TEST(fixes_nothing_where_the_socket_is_disabled)
{
    static const char *const states[] = {"inactive", "failed"};
    for (size_t i = 0; i < COUNT_OF(states) * COUNT_OF(states); i++) {
        struct facts facts = well();
        struct service_facts *service = &facts.service;
        facts.daemon = (struct daemon_facts){.code = ENOENT};
        facts.access.stat_errno = ENOENT;
        (void)snprintf(service->socket.file, sizeof service->socket.file, "disabled");
        (void)snprintf(service->socket.active, sizeof service->socket.active, "%s", states[i % 2]);
        (void)snprintf(service->service.active, sizeof service->service.active, "%s",
                       states[i / 2]);
        expect(&facts, "unit-disabled", "systemctl enable --now cpu-profilerd.socket");
        expect_none(&facts, "unit-service-failed");
        expect_none(&facts, "unit-failed");
    }
}

TEST(reloads_units_that_have_changed)
{
    struct facts facts = well();
    facts.service.service.needs_reload = true;
    struct doctor_report report = judge(&facts);
    const struct doctor_finding *finding = find(&report, "unit-stale", "no session");
    assert_non_null(finding);
    assert_contains(finding->commands, "systemctl daemon-reload");
    assert_null(strstr(finding->commands, "restart"));
    doctor_report_done(&report);
}

TEST(tells_a_new_member_from_none)
{
    struct facts facts = well();
    facts.daemon = (struct daemon_facts){.code = EACCES};
    facts.access.is_in_effect = false;
    expect(&facts, "group-new-login", "exec newgrp cpu-profiler");
    facts.access.is_listed = false;
    expect(&facts, "group-not-member", "usermod -aG cpu-profiler ");
    facts.access.mode = 0600;
    facts.service.is_booted = false;
    expect(&facts, "socket-of-root", "start the daemon anew");
    facts.access.has_group = false;
    expect(&facts, "group-missing", "groupadd --system cpu-profiler");
    expect_none(&facts, "socket-of-root");
    facts.access.is_root = true;
    expect(&facts, "group-root", "you are root");
}

TEST(finds_a_mode_that_shuts_members_out_or_lets_others_in)
{
    static const mode_t shut[] = {0600, 0640, 0606, 0646};
    for (size_t i = 0; i < COUNT_OF(shut); i++) {
        struct facts facts = well();
        facts.daemon = (struct daemon_facts){.code = EACCES};
        facts.access.mode = S_IFSOCK | shut[i];
        expect(&facts, "socket-mode", "systemctl restart cpu-profilerd.socket");
        facts.access.is_default = false;
        if (shut[i] == 0600) {
            expect(&facts, "socket-of-root", "start the daemon anew");
        } else {
            expect(&facts, "socket-mode-by-hand", "chmod 660 ");
        }
    }
    struct facts facts = well();
    facts.access.mode = S_IFSOCK | 0666;
    expect(&facts, "socket-open", "any user may connect");
    expect_none(&facts, "socket-good");
}

TEST(says_of_a_connection_that_fails_without_a_cause_that_it_does)
{
    struct facts facts = well();
    facts.daemon = (struct daemon_facts){.code = EPROTO, .text = "the answer is none"};
    expect(&facts, "socket-refuses", "the answer is none");
    facts.access.mode = S_IFSOCK | 0640;
    expect_none(&facts, "socket-refuses");
}

/* Membership in it may be worth more than a recording, such as that in docker. */
TEST(makes_nobody_a_member_of_another_group)
{
    struct facts facts = well();
    facts.daemon = (struct daemon_facts){.code = EACCES};
    facts.access.is_in_effect = false;
    facts.access.is_foreign = true;
    (void)snprintf(facts.access.group, sizeof facts.access.group, "docker");
    for (int is_listed = 0; is_listed < 2; is_listed++) {
        facts.access.is_listed = is_listed != 0;
        struct doctor_report report = judge(&facts);
        const struct doctor_finding *finding =
            find(&report, "group-foreign", "group docker (gid 990), which is not cpu-profiler");
        assert_non_null(finding);
        assert_string_equal(finding->commands, "");
        assert_true(doctor_is_ill(&report));
        assert_null(find(&report, "group-not-member", ""));
        assert_null(find(&report, "group-new-login", ""));
        doctor_report_done(&report);
    }
}

TEST(judges_what_was_recorded)
{
    static char throttled[] = BOOKS("\"lost\":0,\"throttled\":100,\"missed\":0,\"unexplained\":0");
    struct facts facts = well();
    facts.sample.complete_count = 100;
    facts.sample.named_count = 100;
    facts.sample.build_id[0] = '\0';
    facts.sample.books_json = throttled;
    expect(&facts, "stacks-cut", "11 %");
    expect(&facts, "names-missing", "11 %");
    expect(&facts, "build-ids-missing", "ab01");
    expect(&facts, "ticks-throttled", "5.0 % of the ticks are throttled");
    facts.sample.sample_count = 300;
    expect(&facts, "sample-few", "300 samples");
    facts.sample.sample_count = 0;
    expect(&facts, "sample-none", "pid namespace");
    expect(&facts, "not-known", "there is no sample");
}

TEST(finds_a_recording_that_failed_wrong)
{
    struct facts facts = well();
    facts.sample = (struct sample_facts){.has_failed = true};
    (void)snprintf(facts.sample.text, sizeof facts.sample.text, "the connection ended");
    facts.machine.paranoid.value = 4;
    struct doctor_report report = judge(&facts);
    assert_non_null(find(&report, "sample-failed", "the connection ended"));
    assert_true(doctor_is_ill(&report));
    doctor_report_done(&report);
    expect(&facts, "not-known", "the recording failed");
    expect(&facts, "paranoid-borne", "");
    expect(&facts, "rights-good", "");
    facts.sample = (struct sample_facts){.why = "another session is in the way"};
    expect_none(&facts, "sample-failed");
}

TEST(takes_bytes_that_are_no_recording_for_a_failure)
{
    static const uint8_t bytes[] = "no recording";
    struct sample_facts sample = {0};
    assert_true(trial_count(bytes, sizeof bytes, 1, &sample) < 0);
    assert_true(sample.has_failed);
    assert_string_not_equal(sample.text, "");
    assert_string_equal(sample.why, "");
    trial_done(&sample);
}

TEST(says_what_is_in_the_way)
{
    struct facts facts = well();
    facts.daemon.has_session = true;
    (void)snprintf(facts.daemon.holder, sizeof facts.daemon.holder, "root is already recording");
    (void)snprintf(facts.daemon.holder_remedy, sizeof facts.daemon.holder_remedy, "wait");
    expect(&facts, "session-held", "root is already recording");
    expect(&facts, "session-held", "wait");
    facts.daemon.is_of_another = true;
    facts.sample = (struct sample_facts){.why = "another session is in the way"};
    struct doctor_report report = judge(&facts);
    assert_non_null(find(&report, "session-of-another", "root is already recording"));
    assert_false(doctor_is_ill(&report));
    doctor_report_done(&report);
    facts = well();
    facts.machine.max_sample_rate.value = 500;
    expect(&facts, "rate-low", "kernel.perf_event_max_sample_rate=100000");
    (void)snprintf(facts.machine.clock_source, sizeof facts.machine.clock_source, "hpet");
    expect(&facts, "clock-slow", "hpet");
    facts.machine.clock_step_ns.value = 4000000;
    expect(&facts, "clock-coarse", "4000000 ns");
    (void)snprintf(facts.daemon.version, sizeof facts.daemon.version, "0.0.1");
    expect(&facts, "daemon-other-version", "0.0.1");
}

TEST(says_when_not_all_programs_were_looked_at)
{
    struct facts facts = well();
    expect(&facts, "programs-good", "all 3 programs");
    facts.programs.is_cut = true;
    expect(&facts, "programs-good", "the first 3 programs");
    struct facts alone = well();
    alone.programs.file_count = 1;
    expect(&alone, "programs-good", "the one program that runs has a build-id, but no symbols");
}

TEST(names_what_turns_names_on)
{
    struct facts facts = well();
    facts.programs.runtime_count = 2;
    facts.programs.unmapped_count = 1;
    facts.programs.made[0] = (struct made_facts){
        .pid = 33, .is_own = true, .runtime = runtime_of_command("node"), .command = "node"};
    expect(&facts, "made-code-restart",
           "export NODE_OPTIONS=\"${NODE_OPTIONS:+$NODE_OPTIONS }--perf-basic-prof\"");
    facts.programs.made[0].runtime = runtime_of_command("dotnet");
    expect(&facts, "made-code-restart", "export DOTNET_PerfMapEnabled=1");
    facts.programs.made[0].is_named = true;
    expect(&facts, "made-code-frames",
           "export JDK_JAVA_OPTIONS=\"${JDK_JAVA_OPTIONS:+$JDK_JAVA_OPTIONS }"
           "-XX:+PreserveFramePointer\"");
    facts.programs.made[0].is_named = false;
    facts.programs.made[0].runtime = runtime_of_command("java");
    facts.programs.made[0].lacks_frames = true;
    expect(&facts, "made-code-running", "jcmd 33 Compiler.perfmap");
    expect(&facts, "made-code-running", "-XX:+PreserveFramePointer");
    expect_none(&facts, "made-code-running-other");
    facts.programs.bare_count = 2;
    expect(&facts, "debug-no-servers", "2 of 3");
    (void)snprintf(facts.debuginfod_url, sizeof facts.debuginfod_url, "https://d.example");
    expect(&facts, "debug-servers", "export DEBUGINFOD_URLS=https://d.example");
    (void)snprintf(facts.packages, sizeof facts.packages, "a-dbgsym b-dbgsym");
    expect(&facts, "debug-packages", "apt-get install a-dbgsym b-dbgsym");
}

/* A folder of another user may hold anything under the name of a tool. */
TEST(runs_no_tool_of_another_user)
{
    struct facts facts = well();
    facts.programs.runtime_count = 1;
    facts.programs.unmapped_count = 1;
    facts.programs.made[0] = (struct made_facts){.pid = 33,
                                                 .runtime = runtime_of_command("java"),
                                                 .lacks_frames = true,
                                                 .command = "x",
                                                 .folder = "/bin"};
    expect_none(&facts, "made-code-running");
    struct doctor_report report = judge(&facts);
    const struct doctor_finding *finding = find(&report, "made-code-running-other", "");
    assert_non_null(finding);
    assert_contains(finding->commands, "profctl record --names -p 33");
    assert_contains(finding->advice, "-XX:+PreserveFramePointer");
    assert_null(strchr(finding->commands, '/'));
    assert_null(strstr(finding->commands, "runuser"));
    doctor_report_done(&report);
}
