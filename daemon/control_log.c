/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What clients do, in the log: every session's beginning and end, and every refusal with its
 * reason, each as an entry that says who in fields of its own. All of it is within the quota of its
 * user, so no client fills the log or keeps another one's lines out of it.
 */
#include "control_peer.h"
#include "log.h"
#include "sampler.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* The ids are listed in docs/daemon.md; they never change. */
static const struct {
    const char *message_id;
    enum log_level level;
} events[] = {
    [CONTROL_CREATED] = {"6f9e844f9a6f41a3a3e0123356a94be1", LOG_LEVEL_INFO},
    [CONTROL_ATTACHED] = {"a18fd7fb732044a085a4661045b6de7b", LOG_LEVEL_INFO},
    [CONTROL_STOPPED] = {"293355dd0b7d4df5be40dde5c2419778", LOG_LEVEL_INFO},
    [CONTROL_CLOSED] = {"1c2cd73f696b41168a75083f983719ce", LOG_LEVEL_INFO},
    [CONTROL_REFUSED] = {"1b4a13d982b646b7be548fccd348b641", LOG_LEVEL_INFO},
    [CONTROL_DENIED] = {"a998d8712eab4310b5488e28122a499e", LOG_LEVEL_WARNING},
    [CONTROL_LEFT_OUT] = {"a4c9ede461ce46cba218ac864e638a34", LOG_LEVEL_WARNING},
};

static uint64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

__attribute__((format(printf, 3, 4))) static void write_event(enum control_event event,
                                                              const struct control_subject *subject,
                                                              const char *format, ...)
{
    const struct log_fields fields = {
        .message_id = events[event].message_id,
        .uid = subject->uid,
        .pid = subject->pid,
        .session = subject->session,
    };
    va_list args;
    va_start(args, format);
    log_event(events[event].level, &fields, format, args);
    va_end(args);
}

void control_log(struct control *control, enum control_event event,
                 const struct control_subject *subject, const char *format, ...)
{
    char text[512];
    va_list args;
    if (!log_quota_take(&control->log_quota, subject->uid, now_ns())) {
        return;
    }
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    write_event(event, subject, "%s", text);
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
        log_debug("peer pid %d uid %u: %s", (int)subject.pid, subject.uid, name);
        return;
    }
    control_log(peer->control,
                strcmp(name, "PermissionDenied") == 0 ? CONTROL_DENIED : CONTROL_REFUSED, &subject,
                "peer pid %d uid %u: refused, %s%s%s%s%s", (int)subject.pid, subject.uid, name,
                member == NULL ? "" : ": ", member == NULL ? "" : member, text == NULL ? "" : ": ",
                text == NULL ? "" : text);
}

void control_tell_left_out(struct control *control)
{
    struct control_subject subject = {0};
    uint64_t left_out_count = 0;
    while (log_quota_tell(&control->log_quota, now_ns(), &subject.uid, &left_out_count)) {
        if (subject.uid == (uid_t)-1) {
            write_event(CONTROL_LEFT_OUT, &subject,
                        "other users: %" PRIu64 " lines that they caused were left out",
                        left_out_count);
        } else {
            write_event(CONTROL_LEFT_OUT, &subject,
                        "uid %u: %" PRIu64 " further lines that it caused were left out",
                        subject.uid, left_out_count);
        }
    }
}
