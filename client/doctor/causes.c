/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The one table of what can be wrong and what helps. A row's commands are whole lines for a shell;
 * what they take from others (paths, pids) is quoted. A row is fixable only if its commands restore
 * what the administrator has configured already, lose nothing, and leave nothing behind on the
 * disk: so they take no argument.
 */
#include "causes.h"

#include "cleanup.h"
#include "text_out.h"

#include <pwd.h>
#include <string.h>
#include <unistd.h>

#define ARGUMENTS_MAX 4

#define RELOAD         "{sudo}systemctl daemon-reload"
#define START_SOCKET   "{sudo}systemctl start cpu-profilerd.socket"
#define RESTART_SOCKET "{sudo}systemctl restart cpu-profilerd.socket"
#define ENABLE_SOCKET  "{sudo}systemctl enable --now cpu-profilerd.socket"
/* Not by "&", which would stop a sudo that asks, and take a whole line into the background. */
#define IN_BACKGROUND "{sudo}setsid --fork cpu-profilerd"
#define BY_HAND       IN_BACKGROUND " --socket {0}"
#define AS_ROOT       "{sudo}kill {1} && tail --pid={1} -f /dev/null\n" BY_HAND

static const struct {
    const char *id;
    const char *check;
    enum doctor_verdict verdict;
    bool is_fixable;
    const char *text;
    const char *commands;
    const char *advice;
} causes[CAUSES] = {
    [CAUSE_UNKNOWN] = {"not-known", NULL, DOCTOR_NOTE, false, "not known: {0}", "", ""},
    [CAUSE_KERNEL_GOOD] = {"kernel-good", "kernel", DOCTOR_OK, false,
                           "Linux {0} has what is needed{1}", "", ""},
    [CAUSE_KERNEL_WITHOUT_PERF] = {"kernel-without-perf", "kernel", DOCTOR_WRONG, false,
                                   "this kernel has no perf events", "",
                                   "boot a kernel with CONFIG_PERF_EVENTS=y, as those of "
                                   "distributions are"},
    [CAUSE_KERNEL_HIDES_PERF] = {"kernel-hides-perf", "kernel", DOCTOR_WARNING, false,
                                 "perf_event_open() does not exist for you, though the kernel has "
                                 "perf events: a seccomp filter hides it",
                                 "", "run the daemon outside of this container"},
    [CAUSE_KERNEL_LACKS] = {"kernel-lacks", "kernel", DOCTOR_NOTE, false, "Linux {0} lacks {1}", "",
                            "boot a kernel with {2}"},
    [CAUSE_PARANOID_GOOD] = {"paranoid-good", "paranoid", DOCTOR_OK, false,
                             "kernel.perf_event_paranoid is {0}", "", ""},
    [CAUSE_PARANOID_HIGH] = {"paranoid-high", "paranoid", DOCTOR_WRONG, false,
                             "kernel.perf_event_paranoid is {0}, above 2: such kernels refuse "
                             "perf events to a daemon without CAP_SYS_ADMIN",
                             "{sysctl kernel.perf_event_paranoid=2}",
                             "for the next boots, put kernel.perf_event_paranoid=2 into a file of "
                             "/etc/sysctl.d"},
    [CAUSE_PARANOID_HIGH_PACKAGE] =
        {"paranoid-high-package", "paranoid", DOCTOR_WRONG, false,
         "kernel.perf_event_paranoid is {0}, above 2: such kernels refuse perf events to a daemon "
         "without CAP_SYS_ADMIN",
         "{sudo}dpkg-reconfigure cpu-profilerd",
         "answer yes, which holds until the package is removed; a file of /etc/sysctl.d that names "
         "it goes over that"},
    [CAUSE_PARANOID_BORNE] = {"paranoid-borne", "paranoid", DOCTOR_NOTE, false,
                              "kernel.perf_event_paranoid is {0}, above 2; this daemon records all "
                              "the same",
                              "", ""},
    [CAUSE_RATE_GOOD] = {"rate-good", "rate", DOCTOR_OK, false,
                         "kernel.perf_event_max_sample_rate is {0}", "", ""},
    [CAUSE_RATE_LOW] = {"rate-low", "rate", DOCTOR_WARNING, false,
                        "kernel.perf_event_max_sample_rate is {0}, so the kernel holds back the "
                        "timer of sessions with more samples a second than that",
                        "{sysctl kernel.perf_cpu_time_max_percent=25 "
                        "kernel.perf_event_max_sample_rate=100000 "
                        "kernel.perf_cpu_time_max_percent=0}",
                        "with kernel.perf_cpu_time_max_percent at 0 the kernel does not lower it "
                        "again; for the next boots, put the last two into a file of /etc/sysctl.d"},
    [CAUSE_LOCKDOWN_NONE] = {"lockdown-none", "lockdown", DOCTOR_OK, false,
                             "the kernel is not locked down", "", ""},
    [CAUSE_LOCKDOWN] = {"lockdown", "lockdown", DOCTOR_OK, false,
                        "the kernel is locked down ({0}), which allows what the daemon does", "",
                        ""},
    [CAUSE_KERNEL_NAMES_GOOD] = {"kernel-names-good", "kernel-names", DOCTOR_OK, false,
                                 "functions of the kernel have names", "", ""},
    [CAUSE_KERNEL_NAMES_HIDDEN] = {"kernel-names-hidden", "kernel-names", DOCTOR_WARNING, false,
                                   "kernel.kptr_restrict is {0}, so functions of the kernel have "
                                   "no names",
                                   "{sysctl kernel.kptr_restrict=1}",
                                   "the next session has them; for the next boots, put "
                                   "kernel.kptr_restrict=1 into a file of /etc/sysctl.d"},
    [CAUSE_KERNEL_NAMES_NO_RIGHT] = {"kernel-names-no-right", "kernel-names", DOCTOR_NOTE, false,
                                     "the daemon has no CAP_SYSLOG, so functions of the kernel "
                                     "have no names",
                                     "", "start it with that capability"},
    [CAUSE_KERNEL_NAMES_NO_RIGHT_SERVICE] =
        {"kernel-names-no-right-service", "kernel-names", DOCTOR_NOTE, false,
         "the service has no CAP_SYSLOG, so functions of the kernel have no names",
         "{sudo}install -D -m 644 {0} "
         "/etc/systemd/system/cpu-profilerd.service.d/kernel-names.conf\n" RELOAD,
         "first read in SECURITY.md what that gives away; then restart cpu-profilerd when profctl "
         "status shows no session"},
    [CAUSE_KERNEL_STACKS_FORBIDDEN] = {"kernel-stacks-forbidden", "kernel-names", DOCTOR_NOTE,
                                       false,
                                       "the administrator does not allow stacks of the kernel", "",
                                       ""},
    [CAUSE_UNIT_GOOD] = {"unit-good", "unit", DOCTOR_OK, false,
                         "cpu-profilerd.socket is {0}, and {1}", "", ""},
    [CAUSE_UNIT_NOT_BOOTED] = {"unit-not-booted", "unit", DOCTOR_OK, false,
                               "systemd is not the init of this machine: the daemon is started by "
                               "hand",
                               "", ""},
    [CAUSE_UNIT_OTHER_SOCKET] = {"unit-other-socket", "unit", DOCTOR_OK, false,
                                 "{0} is not the socket of the service", "", ""},
    [CAUSE_UNIT_NOT_INSTALLED] = {"unit-not-installed", "unit", DOCTOR_NOTE, false,
                                  "systemd has no unit cpu-profilerd.socket", "",
                                  "install cpu-profilerd, then: systemctl daemon-reload"},
    [CAUSE_UNIT_MASKED] =
        {"unit-masked", "unit", DOCTOR_WRONG, false, "{0} is masked",
         "{sudo}systemctl unmask cpu-profilerd.socket cpu-profilerd.service\n" ENABLE_SOCKET, ""},
    [CAUSE_UNIT_DISABLED] = {"unit-disabled", "unit", DOCTOR_WRONG, false,
                             "cpu-profilerd.socket is not running, and not enabled", ENABLE_SOCKET,
                             ""},
    [CAUSE_UNIT_UNTIL_BOOT] = {"unit-until-boot", "unit", DOCTOR_WARNING, false,
                               "cpu-profilerd.socket is active, and disabled: after the next boot "
                               "nothing listens",
                               "{sudo}systemctl enable cpu-profilerd.socket", ""},
    [CAUSE_UNIT_STOPPED] = {"unit-stopped", "unit", DOCTOR_WRONG, true,
                            "cpu-profilerd.socket is enabled, and not running", START_SOCKET, ""},
    [CAUSE_UNIT_FAILED] = {"unit-failed", "unit", DOCTOR_WRONG, true,
                           "cpu-profilerd.socket has failed ({0}); it said last: {1}",
                           "{sudo}systemctl reset-failed cpu-profilerd.socket "
                           "cpu-profilerd.service\n" START_SOCKET,
                           ""},
    [CAUSE_UNIT_SERVICE_FAILED] = {"unit-service-failed", "unit", DOCTOR_WRONG, true,
                                   "cpu-profilerd.service has failed ({0}); it said last: {1}",
                                   "{sudo}systemctl reset-failed cpu-profilerd.service\n"
                                   "{sudo}systemctl start cpu-profilerd.service",
                                   "all of what it said: journalctl -u cpu-profilerd"},
    [CAUSE_UNIT_STALE] = {"unit-stale", "unit", DOCTOR_WARNING, false,
                          "the unit files have changed since systemd read them", RELOAD,
                          "a daemon that runs is as before: restart cpu-profilerd when profctl "
                          "status shows no session"},
    [CAUSE_SOCKET_GOOD] = {"socket-good", "socket", DOCTOR_OK, false, "{0}, for {1}", "", ""},
    [CAUSE_SOCKET_MISSING] = {"socket-missing", "socket", DOCTOR_WRONG, false,
                              "there is no socket {0}", ENABLE_SOCKET, ""},
    [CAUSE_SOCKET_GONE] = {"socket-gone", "socket", DOCTOR_WRONG, false,
                           "there is no socket {0}, though cpu-profilerd.socket is active",
                           RESTART_SOCKET,
                           "that restarts the daemon too, and ends its session if it has one"},
    [CAUSE_SOCKET_MISSING_BY_HAND] = {"socket-missing-by-hand", "socket", DOCTOR_WRONG, false,
                                      "there is no socket {0}: no daemon was started",
                                      IN_BACKGROUND, ""},
    [CAUSE_SOCKET_MISSING_ELSEWHERE] = {"socket-missing-elsewhere", "socket", DOCTOR_WRONG, false,
                                        "there is no socket {0}: no daemon was started there",
                                        BY_HAND, ""},
    [CAUSE_SOCKET_UNREACHABLE] = {"socket-unreachable", "socket", DOCTOR_WRONG, false,
                                  "the folder of {0} cannot be entered: {1}", "",
                                  "give a socket with --socket whose folder you may enter"},
    [CAUSE_SOCKET_NONE] = {"socket-none", "socket", DOCTOR_WRONG, false, "{0} is no socket", "",
                           "name the socket of the daemon with --socket, or with "
                           "CPU_PROFILERD_SOCKET"},
    [CAUSE_SOCKET_DEAD] = {"socket-dead", "socket", DOCTOR_WRONG, false, "no daemon listens at {0}",
                           RESTART_SOCKET, ""},
    [CAUSE_SOCKET_DEAD_BY_HAND] = {"socket-dead-by-hand", "socket", DOCTOR_WRONG, false,
                                   "no daemon listens at {0} any more", BY_HAND, ""},
    [CAUSE_SOCKET_OF_ROOT] = {"socket-of-root", "socket", DOCTOR_WRONG, false,
                              "{0} is open to its owner alone", "",
                              "start the daemon anew: the group {1} was not there when it started"},
    [CAUSE_SOCKET_MODE] = {"socket-mode", "socket", DOCTOR_WRONG, false,
                           "{0} has the mode {1}, with which the group {2} may not connect",
                           RESTART_SOCKET,
                           "that makes it anew; it restarts the daemon too, and ends its session "
                           "if it has one"},
    [CAUSE_SOCKET_MODE_BY_HAND] = {"socket-mode-by-hand", "socket", DOCTOR_WRONG, false,
                                   "{0} has the mode {1}, with which the group {2} may not connect",
                                   "{sudo}chmod 660 {!0}", ""},
    [CAUSE_SOCKET_OPEN] = {"socket-open", "socket", DOCTOR_WARNING, false,
                           "{0} has the mode {1}: any user may connect", "{sudo}chmod 660 {!0}",
                           ""},
    [CAUSE_SOCKET_REFUSES] = {"socket-refuses", "socket", DOCTOR_WRONG, false,
                              "no connection to the daemon: {0}", "",
                              "that is none of the causes which are looked for; what it says of "
                              "itself is in journalctl -u cpu-profilerd"},
    [CAUSE_GROUP_ROOT] = {"group-root", "group", DOCTOR_OK, false, "you are root", "", ""},
    [CAUSE_GROUP_GOOD] = {"group-good", "group", DOCTOR_OK, false, "you are in the group {0}", "",
                          ""},
    [CAUSE_GROUP_FOREIGN] = {"group-foreign", "group", DOCTOR_WRONG, false,
                             "the socket belongs to the group {0} (gid {1}), which is not {2}", "",
                             "start the daemon where it finds the group {2}; members of another "
                             "group may have other rights"},
    [CAUSE_GROUP_MISSING] = {"group-missing", "group", DOCTOR_WRONG, false, "there is no group {0}",
                             "{sudo}groupadd --system {0}\n{sudo}usermod -aG {0} {user}",
                             "then start the daemon anew, and log in again"},
    [CAUSE_GROUP_NOT_MEMBER] = {"group-not-member", "group", DOCTOR_WRONG, false,
                                "you are not in the group {0}", "{sudo}usermod -aG {0} {user}",
                                "then log in again"},
    [CAUSE_GROUP_NEW_LOGIN] = {"group-new-login", "group", DOCTOR_WRONG, false,
                               "you are in the group {0}, but not since this login",
                               "exec newgrp {0}", "or by a new login"},
    [CAUSE_DAEMON_GOOD] = {"daemon-good", "daemon", DOCTOR_OK, false,
                           "cpu-profilerd {0} answers, pid {1}", "", ""},
    [CAUSE_DAEMON_SILENT] = {"daemon-silent", "daemon", DOCTOR_WRONG, false, "{0}", "",
                             "its log says more: journalctl -u cpu-profilerd, or the output of a "
                             "daemon that was started by hand"},
    [CAUSE_DAEMON_REFUSES] = {"daemon-refuses", "daemon", DOCTOR_WRONG, false, "{0}", "",
                              "the administrator changes that in /etc/cpu-profilerd/daemon.json"},
    [CAUSE_DAEMON_OTHER_VERSION] = {"daemon-other-version", "daemon", DOCTOR_WARNING, false,
                                    "the daemon is of version {0}, and profctl of {1}", "",
                                    "start the daemon anew"},
    [CAUSE_RIGHTS_GOOD] = {"rights-good", "rights", DOCTOR_OK, false,
                           "the daemon has the capabilities that it needs, and {0} filter of "
                           "system calls",
                           "", ""},
    [CAUSE_RIGHTS_LACKING] = {"rights-lacking", "rights", DOCTOR_WRONG, false,
                              "the daemon has neither CAP_PERFMON nor CAP_SYS_ADMIN", AS_ROOT, ""},
    [CAUSE_RIGHTS_LACKING_SERVICE] = {"rights-lacking-service", "rights", DOCTOR_WRONG, false,
                                      "the service lacks CAP_PERFMON{0}", "", "{1}"},
    [CAUSE_RIGHTS_LACKING_SOME] = {"rights-lacking-some", "rights", DOCTOR_WARNING, false,
                                   "the daemon lacks {0}: {1}", "",
                                   "give it what SECURITY.md lists{2}"},
    [CAUSE_RIGHTS_REFUSED] = {"rights-refused", "rights", DOCTOR_WRONG, false,
                              "the daemon has the capabilities, and gets no perf events: a filter "
                              "of system calls or a security module is in the way",
                              AS_ROOT,
                              "outside of containers, or where they allow perf_event_open"},
    [CAUSE_RIGHTS_REFUSED_SERVICE] = {"rights-refused-service", "rights", DOCTOR_WRONG, false,
                                      "the service has the capabilities, and gets no perf events: "
                                      "a filter of system calls{0} or a security module is in the "
                                      "way",
                                      "", "{1}"},
    [CAUSE_MEMORY_GOOD] = {"memory-good", "memory", DOCTOR_OK, false, "{0}", "", ""},
    [CAUSE_MEMORY_LOCKED] = {"memory-locked", "memory", DOCTOR_WRONG, false,
                             "the daemon may lock {2} KiB of memory beside {3} KiB for each CPU "
                             "(kernel.perf_event_mlock_kb), which is not enough for the rings, and "
                             "has no CAP_IPC_LOCK",
                             AS_ROOT, ""},
    [CAUSE_MEMORY_LOCKED_SERVICE] = {"memory-locked-service", "memory", DOCTOR_WRONG, false,
                                     "the service may lock {2} KiB of memory beside {3} KiB for "
                                     "each CPU (kernel.perf_event_mlock_kb), which is not enough "
                                     "for the rings{0}",
                                     "", "{1}"},
    [CAUSE_MEMORY_REMARK] = {"memory-remark", "memory", DOCTOR_WARNING, false, "{0}", "", ""},
    [CAUSE_MEMORY_LOW] = {"memory-low", "memory", DOCTOR_WARNING, false,
                          "only {0} MiB of memory are available", "",
                          "end what takes the memory, or record with a lower buffer_kib_per_cpu"},
    [CAUSE_DESCRIPTORS_FEW] = {"descriptors-few", "memory", DOCTOR_WARNING, false,
                               "the daemon may have {0} descriptors, and three for each of {1} "
                               "CPUs are needed beside those of files",
                               "", "raise LimitNOFILE=, or ulimit -n before it starts"},
    [CAUSE_REALTIME_LACKING] = {"realtime-lacking", "memory", DOCTOR_WARNING, false,
                                "the thread that empties the rings cannot be real-time, so a busy "
                                "machine loses samples",
                                "", "give the daemon LimitRTPRIO=1 or CAP_SYS_NICE"},
    [CAUSE_SESSION_FREE] = {"session-free", "session", DOCTOR_OK, false, "no session is in the way",
                            "", ""},
    [CAUSE_SESSION_HELD] = {"session-held", "session", DOCTOR_WRONG, false, "{0}", "", "{1}"},
    [CAUSE_SESSION_OF_ANOTHER] = {"session-of-another", "session", DOCTOR_NOTE, false, "{0}", "",
                                  "{1}"},
    [CAUSE_SAMPLE_GOOD] = {"sample-good", "sample", DOCTOR_OK, false,
                           "{0} samples of a test program came in a second", "", ""},
    [CAUSE_SAMPLE_REFUSED] = {"sample-refused", "sample", DOCTOR_WRONG, false, "{0}", "", ""},
    [CAUSE_SAMPLE_FAILED] = {"sample-failed", "sample", DOCTOR_WRONG, false,
                             "a recording of a second began and failed: {0}", "",
                             "the daemon's log says more: journalctl -u cpu-profilerd, or the "
                             "output of a daemon that was started by hand"},
    [CAUSE_SAMPLE_NONE] = {"sample-none", "sample", DOCTOR_WRONG, false,
                           "no sample came of a test program that ran for a second", "",
                           "the daemon may be in another pid namespace: start it outside of "
                           "containers"},
    [CAUSE_SAMPLE_FEW] = {"sample-few", "sample", DOCTOR_WARNING, false,
                          "{0} samples came of a test program that ran for {1} ticks", "",
                          "the line of the ticks below may say why"},
    [CAUSE_STACKS_GOOD] = {"stacks-good", "stacks", DOCTOR_OK, false,
                           "{0} % of them reach their root", "", ""},
    [CAUSE_STACKS_CUT] = {"stacks-cut", "stacks", DOCTOR_WARNING, false,
                          "only {0} % of the test program's stacks reach their root", "",
                          "docs/unwinding.md says where stacks end"},
    [CAUSE_NAMES_GOOD] = {"names-good", "names", DOCTOR_OK, false,
                          "{0} % of them have the right functions", "", ""},
    [CAUSE_NAMES_MISSING] = {"names-missing", "names", DOCTOR_WARNING, false,
                             "only {0} % of the test program's stacks have the right functions", "",
                             "the daemon must be able to read profctl's file"},
    [CAUSE_BUILD_IDS_GOOD] = {"build-ids-good", "build-ids", DOCTOR_OK, false,
                              "the recording has the test program's build-id", "", ""},
    [CAUSE_BUILD_IDS_MISSING] = {"build-ids-missing", "build-ids", DOCTOR_WARNING, false,
                                 "the recording lacks the test program's build-id {0}", "",
                                 "the daemon must be able to read profctl's file"},
    [CAUSE_BUILD_IDS_NONE] = {"build-ids-none", "build-ids", DOCTOR_NOTE, false,
                              "not known: this profctl was built without a build-id", "", ""},
    [CAUSE_TICKS_GOOD] = {"ticks-good", "ticks", DOCTOR_OK, false,
                          "of {0} ticks {1} are missing, and the hypervisor took {2} ms", "", ""},
    [CAUSE_TICKS_MISSING] = {"ticks-missing", "ticks", DOCTOR_WARNING, false,
                             "{0} % of the ticks are {1}: {2}", "", ""},
    [CAUSE_TICKS_THROTTLED] = {"ticks-throttled", "ticks", DOCTOR_WARNING, false,
                               "{0} % of the ticks are throttled: {2}", "", ""},
    [CAUSE_CLOCK_GOOD] = {"clock-good", "clock", DOCTOR_OK, false, "the clock is {0}", "", ""},
    [CAUSE_CLOCK_SLOW] = {"clock-slow", "clock", DOCTOR_WARNING, false,
                          "the clock is {0}, which takes microseconds to read for each sample", "",
                          "dmesg says why the kernel does not use tsc"},
    [CAUSE_CLOCK_COARSE] = {"clock-coarse", "clock", DOCTOR_WARNING, false,
                            "the clock has steps of {0} ns: the kernel has no high-resolution "
                            "timers, and samples come with its ticks only",
                            "", "boot without highres=off, with CONFIG_HIGH_RES_TIMERS=y"},
    [CAUSE_CLOCK_NAMESPACE] = {"clock-namespace", "clock", DOCTOR_NOTE, false,
                               "your time namespace is {0} s off the machine's clock, which "
                               "recordings have",
                               "", ""},
    [CAUSE_PROGRAMS_GOOD] = {"programs-good", "programs", DOCTOR_OK, false, "{0}{1}", "", ""},
    [CAUSE_PROGRAMS_NO_BUILD_ID] = {"programs-no-build-id", "programs", DOCTOR_NOTE, false,
                                    "{0} no build-id, such as {1}: "
                                    "debugging information cannot be found for them",
                                    "", "link them with -Wl,--build-id"},
    [CAUSE_DEBUG_GOOD] = {"debug-good", "debug", DOCTOR_OK, false,
                          "{0} debugging information here{1}", "", ""},
    [CAUSE_DEBUG_SERVERS] = {"debug-servers", "debug", DOCTOR_NOTE, false,
                             "{0} neither symbols nor debugging "
                             "information here",
                             "export DEBUGINFOD_URLS={1}",
                             "then profctl report --inline has names and lines"},
    [CAUSE_DEBUG_PACKAGES] = {"debug-packages", "debug", DOCTOR_NOTE, false,
                              "{0} neither symbols nor debugging "
                              "information here",
                              "{sudo}apt-get install {!1}",
                              "then profctl report --inline has names and lines"},
    [CAUSE_DEBUG_NO_SERVERS] = {"debug-no-servers", "debug", DOCTOR_NOTE, false,
                                "{0} neither symbols nor debugging "
                                "information here",
                                "", "install their packages with debugging information"},
    [CAUSE_MADE_CODE_GOOD] = {"made-code-good", "made-code", DOCTOR_OK, false, "{0}", "", ""},
    [CAUSE_MADE_CODE_RUNNING] = {"made-code-running", "made-code", DOCTOR_WARNING, false,
                                 "{0}, pid {1}, does not name the code that it makes", "{!2}",
                                 "again when it has made more{3}"},
    [CAUSE_MADE_CODE_RUNNING_OTHER] = {"made-code-running-other", "made-code", DOCTOR_WARNING,
                                       false, "{0}, pid {1}, does not name the code that it makes",
                                       "{sudo}profctl record --names -p {1}",
                                       "its own user's rights are used to ask it{3}"},
    [CAUSE_MADE_CODE_RESTART] = {"made-code-restart", "made-code", DOCTOR_WARNING, false,
                                 "{0}, pid {1}, does not name the code that it makes",
                                 "export {!2}", "then start the program anew"},
    [CAUSE_MADE_CODE_FRAMES] = {"made-code-frames", "made-code", DOCTOR_WARNING, false,
                                "{0}, pid {1}, makes code without frame pointers, in which stacks "
                                "end",
                                "export {!2}", "then start the program anew"},
    [CAUSE_MADE_CODE_MORE] = {"made-code-more", "made-code", DOCTOR_WARNING, false,
                              "{0} not name the code that {1}", "", ""},
};

/* Whether a program of that name is where root finds its programs. */
static bool has_program(const char *name)
{
    static const char *const folders[] = {"/usr/sbin", "/usr/bin", "/sbin", "/bin"};
    char path[64];
    bool is_there = false;
    for (size_t i = 0; i < sizeof folders / sizeof folders[0] && !is_there; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folders[i], name);
        is_there = access(path, X_OK) == 0;
    }
    return is_there;
}

static const char *sudo_prefix(void)
{
    return geteuid() != 0 && has_program("sudo") ? "sudo " : "";
}

/* Whether the caller must become root for these commands, and sudo is not there to do so. */
static bool lacks_root(const char *commands)
{
    return geteuid() != 0 && !has_program("sudo") &&
           (strstr(commands, "{sudo}") != NULL || strstr(commands, "{sysctl ") != NULL);
}

/* Sets "NAME=VALUE NAME=VALUE}", where the package of sysctl is missing by the kernel's files.
 * Returns what follows. */
static const char *write_sysctl(FILE *file, const char *settings)
{
    size_t bytes = strcspn(settings, "}");
    if (has_program("sysctl")) {
        (void)fprintf(file, "%ssysctl -w %.*s", sudo_prefix(), (int)bytes, settings);
        return settings + bytes + 1;
    }
    const char *end = settings + bytes;
    for (const char *at = settings; at < end;) {
        size_t name_bytes = strcspn(at, "=");
        size_t value_bytes = strcspn(at + name_bytes + 1, " }");
        (void)fprintf(file, "%secho %.*s | %stee /proc/sys/", at == settings ? "" : "\n",
                      (int)value_bytes, at + name_bytes + 1, sudo_prefix());
        for (size_t i = 0; i < name_bytes; i++) {
            (void)fputc(at[i] == '.' ? '/' : at[i], file);
        }
        at += name_bytes + 1 + value_bytes;
        at += *at == ' ' ? 1 : 0;
    }
    return end + 1;
}

static void write_user(FILE *file)
{
    const struct passwd *user = getpwuid(geteuid());
    if (user == NULL || geteuid() == 0) {
        (void)fputs("$USER", file);
    } else {
        text_print_argument(file, user->pw_name);
    }
}

/* Writes `text` with its arguments in their places, in a command as a shell takes them. */
static void write_filled(FILE *file, const char *text, const char *const *arguments,
                         bool is_command)
{
    static const char sudo[] = "{sudo}";
    static const char set[] = "{sysctl ";
    static const char user[] = "{user}";
    while (*text != '\0') {
        if (strncmp(text, sudo, sizeof sudo - 1) == 0) {
            (void)fputs(sudo_prefix(), file);
            text += sizeof sudo - 1;
        } else if (strncmp(text, set, sizeof set - 1) == 0) {
            text = write_sysctl(file, text + sizeof set - 1);
        } else if (strncmp(text, user, sizeof user - 1) == 0) {
            write_user(file);
            text += sizeof user - 1;
        } else if (text[0] == '{') {
            bool is_raw = text[1] == '!';
            const char *argument = arguments[text[is_raw ? 2 : 1] - '0'];
            if (is_command && !is_raw) {
                text_print_argument(file, argument);
            } else {
                text_print(file, argument);
            }
            text += is_raw ? 4 : 3;
        } else {
            (void)fputc(*text++, file);
        }
    }
}

/* Returned: free(). NULL: no memory. */
static char *fill(const char *text, const char *const *arguments, bool is_command)
{
    char *filled = NULL;
    size_t filled_bytes = 0;
    FILE *file = open_memstream(&filled, &filled_bytes);
    if (file == NULL) {
        return NULL;
    }
    write_filled(file, text, arguments, is_command);
    if (fclose(file) != 0) {
        free(filled);
        return NULL;
    }
    return filled;
}

/* Returned: free(). NULL: no memory. */
static char *fill_advice(enum cause cause, const char *const *arguments)
{
    const char *advice = causes[cause].advice;
    char *whole = NULL;
    if (!lacks_root(causes[cause].commands)) {
        return fill(advice, arguments, false);
    }
    if (asprintf(&whole, "as root%s%s", advice[0] == '\0' ? "" : "; ", advice) < 0) {
        return NULL;
    }
    char *filled = fill(whole, arguments, false);
    free(whole);
    return filled;
}

void report_add(struct doctor_report *report, enum cause cause, const char *const *arguments)
{
    const char *all[ARGUMENTS_MAX] = {"", "", "", ""};
    for (size_t i = 0; i < ARGUMENTS_MAX && arguments[i] != NULL; i++) {
        all[i] = arguments[i];
    }
    struct doctor_finding finding = {
        .check = causes[cause].check,
        .cause = causes[cause].id,
        .verdict = causes[cause].verdict,
        .is_known = cause != CAUSE_UNKNOWN && cause != CAUSE_BUILD_IDS_NONE,
        .is_fixable = causes[cause].is_fixable,
        .text = fill(causes[cause].text, all, false),
        .commands = fill(causes[cause].commands, all, true),
        .advice = fill_advice(cause, all),
    };
    if (report->count == DOCTOR_FINDINGS_MAX || finding.text == NULL || finding.commands == NULL ||
        finding.advice == NULL) {
        free(finding.text);
        free(finding.commands);
        free(finding.advice);
        report->is_cut = true;
        return;
    }
    report->findings[report->count++] = finding;
}

void report_unknown(struct doctor_report *report, const char *check, const char *why)
{
    size_t before = report->count;
    REPORT(report, CAUSE_UNKNOWN, why);
    if (report->count > before) {
        report->findings[before].check = check;
    }
}

void doctor_report_done(struct doctor_report *report)
{
    for (size_t i = 0; i < report->count; i++) {
        free(report->findings[i].text);
        free(report->findings[i].commands);
        free(report->findings[i].advice);
    }
    *report = (struct doctor_report){0};
}

char *finding_line(const struct doctor_finding *finding)
{
    char *line = NULL;
    size_t line_bytes = 0;
    FILE *file = open_memstream(&line, &line_bytes);
    if (file == NULL) {
        return NULL;
    }
    (void)fprintf(file, "%s%s", finding->text,
                  finding->commands[0] == '\0' && finding->advice[0] == '\0' ? "" : ": ");
    for (const char *at = finding->commands; *at != '\0'; at++) {
        (void)fputs(*at == '\n' ? " && " : (char[]){*at, '\0'}, file);
    }
    /* A comment of the shell: the line can be pasted from its first command to its end. */
    (void)fprintf(file, "%s%s",
                  finding->commands[0] != '\0' && finding->advice[0] != '\0' ? " # " : "",
                  finding->advice);
    if (fclose(file) != 0) {
        free(line);
        return NULL;
    }
    return line;
}
