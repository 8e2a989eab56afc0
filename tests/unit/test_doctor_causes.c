/* SPDX-License-Identifier: Apache-2.0 */

/* The table of causes, and what its rows become. */
#include "causes.h"
#include "page.h"
#include "unit_test.h"

#include <pwd.h>
#include <unistd.h>

/* Where there is no sudo, the advice says who runs the commands. */
#define HAS_SUDO (access("/usr/bin/sudo", X_OK) == 0)
#define SUDO     (geteuid() == 0 || !HAS_SUDO ? "" : "sudo ")
#define AS_ROOT  (geteuid() == 0 || HAS_SUDO ? "" : "as root; ")

/* What report_add() makes of each row, with arguments that can be told from the rest. */
TEST(has_words_for_each_cause)
{
    for (int cause = CAUSE_UNKNOWN + 1; cause < CAUSES; cause++) {
        struct doctor_report report = {0};
        REPORT(&report, (enum cause)cause, "<0>", "<1>", "<2>", "<3>");
        assert_int_equal(report.count, 1);
        const struct doctor_finding *finding = &report.findings[0];
        if (finding->cause == NULL || finding->check == NULL || finding->text == NULL ||
            finding->commands == NULL || finding->advice == NULL || finding->text[0] == '\0') {
            fail_msg("cause %d has no words", cause);
            return;
        }
        for (int other = CAUSE_UNKNOWN; other < cause; other++) {
            struct doctor_report others = {0};
            REPORT(&others, (enum cause)other);
            assert_string_not_equal(others.findings[0].cause, finding->cause);
            doctor_report_done(&others);
        }
        if (strpbrk(finding->text, "{}") != NULL || strpbrk(finding->commands, "{}") != NULL ||
            strpbrk(finding->advice, "{}") != NULL) {
            fail_msg("%s: a place is not filled", finding->cause);
        }
        if (finding->verdict == DOCTOR_WRONG && finding->commands[0] == '\0' &&
            finding->advice[0] == '\0' && strcmp(finding->cause, "sample-refused") != 0) {
            fail_msg("%s: is wrong, and has no remedy", finding->cause);
        }
        if (finding->is_fixable &&
            (finding->commands[0] == '\0' || strchr(finding->commands, '<') != NULL)) {
            fail_msg("%s: is fixed by something that others chose", finding->cause);
        }
        doctor_report_done(&report);
    }
}

TEST(quotes_what_others_chose_in_commands_alone)
{
    struct doctor_report report = {0};
    char expected[96];
    REPORT(&report, CAUSE_SOCKET_MISSING_ELSEWHERE, "/tmp/a;reboot\n");
    (void)snprintf(expected, sizeof expected,
                   "%ssetsid --fork cpu-profilerd --socket '/tmp/a;reboot?'", SUDO);
    assert_string_equal(report.findings[0].commands, expected);
    assert_string_equal(report.findings[0].text,
                        "there is no socket /tmp/a;reboot?: no daemon was started there");
    doctor_report_done(&report);
}

TEST(says_a_cause_in_a_line)
{
    struct doctor_report report = {0};
    char expected[160];
    REPORT(&report, CAUSE_GROUP_NOT_MEMBER, "cpu-profiler");
    char *line = finding_line(&report.findings[0]);
    (void)snprintf(expected, sizeof expected,
                   "you are not in the group cpu-profiler: %susermod -aG cpu-profiler %s # %sthen "
                   "log in again",
                   SUDO, geteuid() == 0 ? "$USER" : getpwuid(geteuid())->pw_name, AS_ROOT);
    assert_string_equal(line, expected);
    free(line);
    REPORT(&report, CAUSE_GROUP_MISSING, "cpu-profiler");
    line = finding_line(&report.findings[1]);
    assert_contains(line, "groupadd --system cpu-profiler && ");
    free(line);
    REPORT(&report, CAUSE_CLOCK_GOOD, "tsc");
    line = finding_line(&report.findings[2]);
    assert_string_equal(line, "the clock is tsc");
    free(line);
    doctor_report_done(&report);
}

TEST(breaks_sentences_and_no_commands)
{
    char expected[512];
    struct doctor_report report = {0};
    REPORT(&report, CAUSE_RATE_LOW, "500");
    (void)snprintf(expected, sizeof expected,
                   "warning  rate          kernel.perf_event_max_sample_rate is\n"
                   "                       500, so the kernel holds back the\n"
                   "                       timer of sessions with more samples a\n"
                   "                       second than that\n"
                   "           %ssysctl -w kernel.perf_cpu_time_max_percent=25 "
                   "kernel.perf_event_max_sample_rate=100000 kernel.perf_cpu_time_max_percent=0\n",
                   SUDO);
    char *printed = NULL;
    size_t printed_bytes = 0;
    FILE *file = open_memstream(&printed, &printed_bytes);
    doctor_print(&(struct page){.file = file, .columns = 60, .terminal_fd = -1}, &report);
    assert_int_equal(fclose(file), 0);
    assert_memory_equal(printed, expected, strlen(expected));
    free(printed);
    doctor_report_done(&report);
}

TEST(is_ill_when_something_is_wrong_or_left_out)
{
    struct doctor_report report = {0};
    REPORT(&report, CAUSE_RATE_LOW, "1");
    report_unknown(&report, "clock", "why");
    assert_false(doctor_is_ill(&report));
    assert_false(report.findings[1].is_known);
    assert_string_equal(report.findings[1].check, "clock");
    assert_string_equal(report.findings[1].text, "not known: why");
    for (size_t i = report.count; i < DOCTOR_FINDINGS_MAX; i++) {
        REPORT(&report, CAUSE_RATE_LOW, "1");
    }
    assert_false(doctor_is_ill(&report));
    REPORT(&report, CAUSE_RATE_LOW, "1");
    assert_true(doctor_is_ill(&report));
    doctor_report_done(&report);
    REPORT(&report, CAUSE_UNIT_STOPPED);
    assert_true(doctor_is_ill(&report));
    doctor_report_done(&report);
}

static bool has_background(const char *commands)
{
    const char *at = strchr(commands, '&');
    while (at != NULL && at[1] == '&') {
        at = strchr(at + 2, '&');
    }
    return at != NULL;
}

/* finding_line() joins commands by "&&". */
TEST(leaves_no_part_of_a_line_in_the_background)
{
    assert_true(has_background("a && b &"));
    for (int cause = CAUSE_UNKNOWN + 1; cause < CAUSES; cause++) {
        struct doctor_report report = {0};
        REPORT(&report, (enum cause)cause);
        if (has_background(report.findings[0].commands)) {
            fail_msg("%s", report.findings[0].cause);
        }
        doctor_report_done(&report);
    }
}

/* A restart ends the session that is there. Where the socket is dead or gone, none is read. */
TEST(restarts_no_service)
{
    for (int cause = CAUSE_UNKNOWN + 1; cause < CAUSES; cause++) {
        struct doctor_report report = {0};
        REPORT(&report, (enum cause)cause);
        const char *restart = strstr(report.findings[0].commands, "systemctl restart ");
        if (restart != NULL && strstr(restart, "cpu-profilerd.socket") == NULL) {
            fail_msg("%s", report.findings[0].cause);
        }
        doctor_report_done(&report);
    }
}

/* Nothing else is run without being asked for. */
TEST(fixes_units_that_are_enabled_alone)
{
    for (int cause = CAUSE_UNKNOWN + 1; cause < CAUSES; cause++) {
        struct doctor_report report = {0};
        REPORT(&report, (enum cause)cause);
        const char *id = report.findings[0].cause;
        bool is_allowed = strcmp(id, "unit-stopped") == 0 || strcmp(id, "unit-failed") == 0 ||
                          strcmp(id, "unit-service-failed") == 0;
        if (report.findings[0].is_fixable != is_allowed) {
            fail_msg("%s", id);
        }
        doctor_report_done(&report);
    }
}
