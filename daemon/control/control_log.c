/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Logs what clients do: the beginning and end of each session, and each refusal with its reason. An
 * entry has the client's pid and uid in fields of its own. Entries count against the quota of the
 * client's account, so no user fills the log or suppresses another user's lines.
 */
#include "account.h"
#include "clock.h"
#include "control_peer.h"
#include "log.h"
#include "sampler.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LINE_BYTES 512

/* In LOG_QUOTA_WINDOW_NS, of a user and of all. A session has four and one for each note, and is
 * one at a time. */
#define SESSION_LINES_USER 100
#define SESSION_LINES_ALL  200
#define REFUSAL_LINES_USER 20
#define REFUSAL_LINES_ALL  100

/* The ids are listed in docs/daemon.md; they never change. */
static const struct {
    const char *message_id;
    enum log_level level;
} events[] = {
    [CONTROL_CREATED] = {"6f9e844f9a6f41a3a3e0123356a94be1", LOG_LEVEL_INFO},
    [CONTROL_NOTED] = {"40544c7bbfee4ef2b810ea2dcc21ce9a", LOG_LEVEL_INFO},
    [CONTROL_ATTACHED] = {"a18fd7fb732044a085a4661045b6de7b", LOG_LEVEL_INFO},
    [CONTROL_STOPPED] = {"293355dd0b7d4df5be40dde5c2419778", LOG_LEVEL_INFO},
    [CONTROL_CLOSED] = {"1c2cd73f696b41168a75083f983719ce", LOG_LEVEL_INFO},
    [CONTROL_REFUSED] = {"1b4a13d982b646b7be548fccd348b641", LOG_LEVEL_INFO},
    [CONTROL_DENIED] = {"a998d8712eab4310b5488e28122a499e", LOG_LEVEL_WARNING},
    [CONTROL_LEFT_OUT] = {"a4c9ede461ce46cba218ac864e638a34", LOG_LEVEL_WARNING},
};

static void write_event(enum control_event event, const struct control_subject *subject,
                        const char *line)
{
    const struct log_fields fields = {
        .message_id = events[event].message_id,
        .uid = subject->uid,
        .pid = subject->pid,
        .session = subject->session,
    };
    log_event(events[event].level, &fields, "%s", line);
}

void control_init_quotas(struct control *control)
{
    control->session_quota.user_lines_max = SESSION_LINES_USER;
    control->session_quota.all_lines_max = SESSION_LINES_ALL;
    control->refusal_quota.user_lines_max = REFUSAL_LINES_USER;
    control->refusal_quota.all_lines_max = REFUSAL_LINES_ALL;
}

/* Counted apart, so that refusals cannot hide a session. */
static struct log_quota *find_quota(struct control *control, enum control_event event)
{
    return event == CONTROL_REFUSED || event == CONTROL_DENIED ? &control->refusal_quota
                                                               : &control->session_quota;
}

static void write_within_quota(struct control *control, enum control_event event,
                               const struct control_subject *subject, const char *line)
{
    if (log_quota_take(find_quota(control, event), account_of(subject->uid),
                       clock_ns(CLOCK_MONOTONIC))) {
        write_event(event, subject, line);
    }
}

void control_log(struct control *control, enum control_event event,
                 const struct control_subject *subject, const char *format, ...)
{
    char line[LINE_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    write_within_quota(control, event, subject, line);
}

void control_log_error(struct peer *peer, const char *error, const cJSON *parameters)
{
    const struct control_subject subject = {.uid = peer->cred.uid, .pid = peer->cred.pid};
    const char *name = strrchr(error, '.') + 1;
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(parameters, "text"));
    const char *member =
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(parameters, "member"));
    if (strncmp(error, SAMPLER_INTERFACE ".", sizeof SAMPLER_INTERFACE) != 0 ||
        strcmp(name, "BadState") == 0) {
        return;
    }
    char line[LINE_BYTES];
    (void)snprintf(line, sizeof line, "peer pid %d uid %u: refused, %s%s%s%s%s", (int)subject.pid,
                   subject.uid, name, member == NULL ? "" : ": ", member == NULL ? "" : member,
                   text == NULL ? "" : ": ", text == NULL ? "" : text);
    write_within_quota(peer->control,
                       strcmp(name, "PermissionDenied") == 0 ? CONTROL_DENIED : CONTROL_REFUSED,
                       &subject, line);
}

static void tell_left_out(struct log_quota *quota, const char *what)
{
    struct control_subject subject = {0};
    uint64_t count = 0;
    while (log_quota_tell(quota, clock_ns(CLOCK_MONOTONIC), &subject.uid, &count)) {
        char line[LINE_BYTES];
        if (subject.uid == (uid_t)-1) {
            (void)snprintf(line, sizeof line,
                           "other users: %" PRIu64 " lines about their %s were left out", count,
                           what);
        } else {
            (void)snprintf(line, sizeof line,
                           "uid %u: %" PRIu64 " further lines about its %s were left out",
                           subject.uid, count, what);
        }
        write_event(CONTROL_LEFT_OUT, &subject, line);
    }
}

void control_tell_left_out(struct control *control)
{
    tell_left_out(&control->session_quota, "sessions");
    tell_left_out(&control->refusal_quota, "refusals");
}
