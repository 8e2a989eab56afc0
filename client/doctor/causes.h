/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The table of causes and remedies. Texts have places {0} to {3} for arguments; in a command they
 * are quoted for a shell, but for {!0} to {!3}, which are such text already. {sudo} is "sudo "
 * unless the caller is root or has no sudo; then the advice begins with "as root". {sysctl A=1 B=2}
 * sets these, {user} is the caller's name.
 */

#include "doctor.h"

enum cause {
    CAUSE_UNKNOWN, /* a check could not be made */

    CAUSE_KERNEL_GOOD,
    CAUSE_KERNEL_WITHOUT_PERF,
    CAUSE_KERNEL_HIDES_PERF,
    CAUSE_KERNEL_LACKS,
    CAUSE_PARANOID_GOOD,
    CAUSE_PARANOID_HIGH,
    CAUSE_PARANOID_HIGH_PACKAGE,
    CAUSE_PARANOID_BORNE,
    CAUSE_RATE_GOOD,
    CAUSE_RATE_LOW,
    CAUSE_LOCKDOWN_NONE,
    CAUSE_LOCKDOWN,
    CAUSE_KERNEL_NAMES_GOOD,
    CAUSE_KERNEL_NAMES_HIDDEN,
    CAUSE_KERNEL_NAMES_NO_RIGHT,
    CAUSE_KERNEL_NAMES_NO_RIGHT_SERVICE,
    CAUSE_KERNEL_STACKS_FORBIDDEN,

    CAUSE_UNIT_GOOD,
    CAUSE_UNIT_NOT_BOOTED,
    CAUSE_UNIT_OTHER_SOCKET,
    CAUSE_UNIT_NOT_INSTALLED,
    CAUSE_UNIT_MASKED,
    CAUSE_UNIT_DISABLED,
    CAUSE_UNIT_UNTIL_BOOT,
    CAUSE_UNIT_STOPPED,
    CAUSE_UNIT_FAILED,
    CAUSE_UNIT_SERVICE_FAILED,
    CAUSE_UNIT_STALE,
    CAUSE_SOCKET_GOOD,
    CAUSE_SOCKET_MISSING,
    CAUSE_SOCKET_GONE,
    CAUSE_SOCKET_MISSING_BY_HAND,
    CAUSE_SOCKET_MISSING_ELSEWHERE,
    CAUSE_SOCKET_UNREACHABLE,
    CAUSE_SOCKET_NONE,
    CAUSE_SOCKET_DEAD,
    CAUSE_SOCKET_DEAD_BY_HAND,
    CAUSE_SOCKET_OF_ROOT,
    CAUSE_SOCKET_MODE,
    CAUSE_SOCKET_MODE_BY_HAND,
    CAUSE_SOCKET_OPEN,
    CAUSE_SOCKET_REFUSES,
    CAUSE_GROUP_ROOT,
    CAUSE_GROUP_GOOD,
    CAUSE_GROUP_FOREIGN,
    CAUSE_GROUP_MISSING,
    CAUSE_GROUP_NOT_MEMBER,
    CAUSE_GROUP_NEW_LOGIN,

    CAUSE_DAEMON_GOOD,
    CAUSE_DAEMON_SILENT,
    CAUSE_DAEMON_REFUSES,
    CAUSE_DAEMON_OTHER_VERSION,
    CAUSE_RIGHTS_GOOD,
    CAUSE_RIGHTS_LACKING,
    CAUSE_RIGHTS_LACKING_SERVICE,
    CAUSE_RIGHTS_LACKING_SOME,
    CAUSE_RIGHTS_REFUSED,
    CAUSE_RIGHTS_REFUSED_SERVICE,
    CAUSE_MEMORY_GOOD,
    CAUSE_MEMORY_LOCKED,
    CAUSE_MEMORY_LOCKED_SERVICE,
    CAUSE_MEMORY_REMARK,
    CAUSE_MEMORY_LOW,
    CAUSE_DESCRIPTORS_FEW,
    CAUSE_REALTIME_LACKING,
    CAUSE_SESSION_FREE,
    CAUSE_SESSION_HELD,
    CAUSE_SESSION_OF_ANOTHER,

    CAUSE_SAMPLE_GOOD,
    CAUSE_SAMPLE_REFUSED,
    CAUSE_SAMPLE_FAILED,
    CAUSE_SAMPLE_NONE,
    CAUSE_SAMPLE_FEW,
    CAUSE_STACKS_GOOD,
    CAUSE_STACKS_CUT,
    CAUSE_NAMES_GOOD,
    CAUSE_NAMES_MISSING,
    CAUSE_BUILD_IDS_GOOD,
    CAUSE_BUILD_IDS_MISSING,
    CAUSE_BUILD_IDS_NONE,
    CAUSE_TICKS_GOOD,
    CAUSE_TICKS_MISSING,
    CAUSE_TICKS_THROTTLED,
    CAUSE_CLOCK_GOOD,
    CAUSE_CLOCK_SLOW,
    CAUSE_CLOCK_COARSE,
    CAUSE_CLOCK_NAMESPACE,

    CAUSE_PROGRAMS_GOOD,
    CAUSE_PROGRAMS_NO_BUILD_ID,
    CAUSE_DEBUG_GOOD,
    CAUSE_DEBUG_SERVERS,
    CAUSE_DEBUG_PACKAGES,
    CAUSE_DEBUG_NO_SERVERS,
    CAUSE_MADE_CODE_GOOD,
    CAUSE_MADE_CODE_RUNNING,
    CAUSE_MADE_CODE_RUNNING_OTHER,
    CAUSE_MADE_CODE_RESTART,
    CAUSE_MADE_CODE_FRAMES,
    CAUSE_MADE_CODE_MORE,
    CAUSES,
};

/* Adds what the table has of `cause`; `arguments` end with NULL. */
void report_add(struct doctor_report *report, enum cause cause, const char *const *arguments);
#define REPORT(report, cause, ...)                                                                 \
    report_add(report, cause, (const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

/* Adds that `check` (static) could not be made. */
void report_unknown(struct doctor_report *report, const char *check, const char *why);

/* "text: command && command # advice", in one line. Returned: free(). NULL: no memory. */
char *finding_line(const struct doctor_finding *finding);
