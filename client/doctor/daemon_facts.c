/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Gathers what the daemon says of itself (Status) and what /proc shows of its process to all users:
 * capabilities and limits. A process of another pid namespace has another number here, so a pid
 * counts only if its command is the daemon's.
 */
#include "connection.h"
#include "files.h"
#include "gather.h"
#include "json.h"
#include "parse.h"
#include "session_status.h"

#include "cleanup.h"

#include <string.h>

#define STATUS_BYTES ((size_t)8192)
#define LIMITS_BYTES ((size_t)4096)
#define COMM         "cpu-profilerd"

static void take_text(const cJSON *object, const char *name, char *into, size_t capacity_bytes)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    (void)snprintf(into, capacity_bytes, "%s", cJSON_IsString(item) ? item->valuestring : "");
}

static bool is_true(const cJSON *object, const char *name)
{
    return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(object, name));
}

/* What ends the session that is in the way. */
static const char *holder_remedy(const struct session_status *status)
{
    bool may_end = geteuid() == 0 || geteuid() == status->uid;
    if (!status->detached) {
        return geteuid() == 0 ? "wait for its end, or take it over as root: 'profctl stop' then "
                                "'profctl read' saves it, 'profctl close' discards it"
               : may_end      ? "wait for its end, or end that client"
                              : "wait for its end, or ask its owner to end it";
    }
    if (!may_end) {
        return "wait for its end, or ask its owner to close it";
    }
    return strcmp(status->state, "created") == 0
               ? "'profctl close' discards it"
               : "'profctl stop' then 'profctl read' saves it, 'profctl close' discards it";
}

bool gather_holder(const struct session_status *status, struct daemon_facts *ret)
{
    char text[SESSION_HOLDER_BYTES + SESSION_RECORDER_BYTES];
    bool may_end = geteuid() == 0 || geteuid() == status->uid;
    ret->has_session = status->id != NULL;
    if (!ret->has_session) {
        return false;
    }
    ret->is_sampling = strcmp(status->state, "running") == 0;
    ret->is_of_another = geteuid() != status->uid;
    (void)snprintf(ret->holder_remedy, sizeof ret->holder_remedy, "%s", holder_remedy(status));
    if (!status->detached) {
        (void)snprintf(ret->holder, sizeof ret->holder, "%s",
                       session_recorder(status, "already ", text));
    } else if (!may_end) {
        (void)snprintf(ret->holder, sizeof ret->holder, "there is a session already, of %s",
                       session_holder(status, text));
    } else if (strcmp(status->state, "created") == 0) {
        (void)snprintf(ret->holder, sizeof ret->holder,
                       "there is a session already that was never started, of %s",
                       session_holder(status, text));
    } else {
        (void)snprintf(ret->holder, sizeof ret->holder, "a session is already %s, of %s",
                       status->state, session_holder(status, text));
    }
    return true;
}

static struct fact limit_of(const char *text, const char *row)
{
    int64_t limit = 0;
    return parse_limit(text, row, &limit) ? fact_known(limit) : fact_unknown(row, EBADMSG);
}

void gather_process(const char *root, struct daemon_facts *ret)
{
    char path[64];
    char comm[32];
    char text[STATUS_BYTES];
    char limits[LIMITS_BYTES];
    (void)snprintf(path, sizeof path, "/proc/%d/comm", (int)ret->pid);
    files_line(root, path, comm, sizeof comm);
    if (strcmp(comm, COMM) != 0) {
        (void)snprintf(ret->process_why, sizeof ret->process_why,
                       "you do not see its process, pid %d", (int)ret->pid);
        return;
    }
    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)ret->pid);
    ssize_t status_bytes = files_read(root, path, text, sizeof text);
    (void)snprintf(path, sizeof path, "/proc/%d/limits", (int)ret->pid);
    ssize_t limits_bytes = files_read(root, path, limits, sizeof limits);
    if (status_bytes < 0 || limits_bytes < 0 || !parse_capabilities(text, &ret->capabilities)) {
        (void)snprintf(ret->process_why, sizeof ret->process_why, "/proc/%d cannot be read",
                       (int)ret->pid);
        return;
    }
    ret->has_filter = parse_filter(text);
    ret->locked_bytes = limit_of(limits, "Max locked memory");
    ret->realtime = limit_of(limits, "Max realtime priority");
    ret->descriptors = limit_of(limits, "Max open files");
}

void gather_daemon(struct profctl *conn, struct daemon_facts *ret)
{
    cleanup_(session_status_done) struct session_status status = {0};
    struct profctl_fault fault = {0};
    int64_t pid = 0;
    ret->is_connected = true;
    if (session_status_ask(conn, &status, &fault) < 0) {
        ret->code = fault.code;
        (void)snprintf(ret->text, sizeof ret->text, "%s", fault.text);
        return;
    }
    const cJSON *daemon = cJSON_GetObjectItemCaseSensitive(status.tree, "daemon");
    const cJSON *kernel = cJSON_GetObjectItemCaseSensitive(status.tree, "kernel");
    ret->has_answered = true;
    take_text(daemon, "version", ret->version, sizeof ret->version);
    take_text(kernel, "release", ret->release, sizeof ret->release);
    ret->has_deferred_chains = is_true(kernel, "deferred_callchains");
    ret->has_mmap_build_id = is_true(kernel, "mmap_build_id");
    ret->has_format_lost = is_true(kernel, "format_lost");
    ret->has_cgroup = is_true(kernel, "cgroup");
    (void)json_read_integer(cJSON_GetObjectItemCaseSensitive(daemon, "pid"), 1, INT32_MAX, &pid);
    ret->pid = (pid_t)pid;
    (void)gather_holder(&status, ret);
    gather_process("", ret);
}
