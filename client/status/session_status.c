/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Members that are missing or not of their type count as 0, "" or false: a daemon may be older or
 * newer than this profctl.
 */
#include "session_status.h"

#include "cleanup.h"
#include "json.h"
#include "text_file.h"

#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DEPTH_MAX      24
#define COMM_BYTES_MAX ((size_t)64)

static uint64_t read_count(const cJSON *object, const char *name)
{
    int64_t number = 0;
    (void)json_read_integer(cJSON_GetObjectItemCaseSensitive(object, name), 0, JSON_INTEGER_MAX,
                            &number);
    return (uint64_t)number;
}

static const char *read_string(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsString(item) ? item->valuestring : "";
}

static void take_session(const cJSON *session, struct session_status *status)
{
    const cJSON *config = cJSON_GetObjectItemCaseSensitive(session, "config");
    const cJSON *books = cJSON_GetObjectItemCaseSensitive(session, "books");
    status->id = read_string(session, "session");
    status->state = read_string(session, "state");
    status->uid = (uid_t)read_count(session, "owner_uid");
    status->pid = (pid_t)read_count(session, "owner_pid");
    status->detached = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(session, "detached"));
    status->age_s = read_count(session, "age_s");
    status->max_duration_s = read_count(config, "max_duration_s");
    status->period_ns = read_count(config, "sample_period_ns");
    status->buffer_bytes = read_count(session, "buffer_bytes");
    status->buffer_used_bytes = read_count(session, "buffer_used_bytes");
    status->is_read = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(session, "is_read"));
    status->books = cJSON_IsObject(books) ? books : NULL;
}

static int refuse(struct profctl_fault *fault, int code, const char *text)
{
    fault->code = code;
    (void)snprintf(fault->text, sizeof fault->text, "%s", text);
    return -code;
}

int session_status_ask(struct profctl *conn, struct session_status *ret,
                       struct profctl_fault *fault)
{
    char *text = NULL;
    *ret = (struct session_status){0};
    int r = profctl_status(conn, &text);
    if (r < 0) {
        *fault = connection_notes(conn)->fault;
        return r;
    }
    r = json_parse(text, strlen(text), DEPTH_MAX, &ret->tree, NULL);
    free(text);
    if (r < 0 || !cJSON_IsObject(ret->tree)) {
        return refuse(fault, EPROTO, "the daemon's status is not a JSON object");
    }
    const cJSON *session = cJSON_GetObjectItemCaseSensitive(ret->tree, "session");
    if (cJSON_IsObject(session)) {
        take_session(session, ret);
    }
    return 0;
}

void session_status_done(struct session_status *status)
{
    cJSON_Delete(status->tree);
    *status = (struct session_status){0};
}

const char *session_owner_name(uid_t uid, char *into)
{
    const struct passwd *user = getpwuid(uid);
    if (user == NULL) {
        (void)snprintf(into, SESSION_OWNER_BYTES, "uid %u", uid);
    } else {
        (void)snprintf(into, SESSION_OWNER_BYTES, "%.40s (uid %u)", user->pw_name, uid);
    }
    return into;
}

const char *session_client(const struct session_status *status, char *into)
{
    char path[32];
    cleanup_(freep) char *comm = NULL;
    size_t comm_bytes = 0;
    if (status->pid <= 0) {
        (void)snprintf(into, SESSION_CLIENT_BYTES, "a connected client");
        return into;
    }
    (void)snprintf(path, sizeof path, "/proc/%d/comm", status->pid);
    if (text_file_read(path, COMM_BYTES_MAX, &comm, &comm_bytes, NULL) < 0) {
        (void)snprintf(into, SESSION_CLIENT_BYTES, "pid %d", status->pid);
    } else {
        comm[strcspn(comm, "\n")] = '\0';
        (void)snprintf(into, SESSION_CLIENT_BYTES, "%.32s, pid %d", comm, status->pid);
    }
    return into;
}

const char *session_clock(int64_t seconds_from_now, char *into)
{
    time_t now = time(NULL);
    time_t at = now + seconds_from_now;
    struct tm today = {0};
    struct tm local = {0};
    (void)localtime_r(&now, &today);
    (void)localtime_r(&at, &local);
    bool is_today = local.tm_yday == today.tm_yday && local.tm_year == today.tm_year;
    (void)strftime(into, SESSION_CLOCK_BYTES, is_today ? "%H:%M:%S" : "%F %H:%M:%S", &local);
    return into;
}

const char *session_holder(const struct session_status *status, char *into)
{
    char owner[SESSION_OWNER_BYTES];
    char since[SESSION_CLOCK_BYTES];
    (void)snprintf(into, SESSION_HOLDER_BYTES, "%s since %s (%" PRIu64 " s ago)",
                   session_owner_name(status->uid, owner),
                   session_clock(-(int64_t)status->age_s, since), status->age_s);
    return into;
}

const char *session_recorder(const struct session_status *status, const char *already, char *into)
{
    char owner[SESSION_OWNER_BYTES];
    char client[SESSION_CLIENT_BYTES];
    (void)snprintf(into, SESSION_RECORDER_BYTES, "%s is %srecording (%s, for %" PRIu64 " s)",
                   session_owner_name(status->uid, owner), already, session_client(status, client),
                   status->age_s);
    return into;
}

const char *session_end(const struct session_status *status, char *into)
{
    char at[SESSION_CLOCK_BYTES];
    if (strcmp(status->state, "stopped") == 0) {
        (void)snprintf(into, SESSION_END_BYTES, "%s",
                       status->detached ? "closed 600 s after the last request to it"
                                        : "with the client that began it");
    } else if (strcmp(status->state, "created") == 0 && status->detached) {
        (void)snprintf(into, SESSION_END_BYTES, "%s",
                       "closed 60 s after the last request to it, unless it is started");
    } else if (status->max_duration_s == 0) {
        (void)snprintf(into, SESSION_END_BYTES, "%s",
                       status->detached ? "when it is stopped" : "with the client that began it");
    } else if (status->age_s < status->max_duration_s) {
        int64_t left_s = (int64_t)(status->max_duration_s - status->age_s);
        (void)snprintf(into, SESSION_END_BYTES, "by itself in %" PRId64 " s, at %s", left_s,
                       session_clock(left_s, at));
    } else {
        (void)snprintf(into, SESSION_END_BYTES, "by itself after %" PRIu64 " s of sampling",
                       status->max_duration_s);
    }
    return into;
}
