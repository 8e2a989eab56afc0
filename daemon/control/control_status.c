/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Makes the reply to Status: the daemon, the kernel, and the session as it is now. Changes nothing.
 */
#include "cleanup.h"

#include "clock.h"
#include "control_peer.h"
#include "json.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/utsname.h>
#include <unistd.h>

static bool add_daemon(cJSON *status, const struct control *control)
{
    cJSON *object = cJSON_AddObjectToObject(status, "daemon");
    return cJSON_AddStringToObject(object, "version", CPU_PROFILERD_VERSION) != NULL &&
           cJSON_AddNumberToObject(object, "pid", getpid()) != NULL &&
           cJSON_AddNumberToObject(object, "uptime_s", (double)control_uptime_s(control)) != NULL;
}

static bool add_kernel(cJSON *status, const struct perf_features *features)
{
    struct utsname kernel = {0};
    cJSON *object = cJSON_AddObjectToObject(status, "kernel");
    (void)uname(&kernel);
    return cJSON_AddStringToObject(object, "release", kernel.release) != NULL &&
           cJSON_AddBoolToObject(object, "deferred_callchains", features->deferred_callchains) !=
               NULL &&
           cJSON_AddBoolToObject(object, "mmap_build_id", features->build_id) != NULL &&
           cJSON_AddBoolToObject(object, "format_lost", features->format_lost) != NULL &&
           cJSON_AddBoolToObject(object, "cgroup", features->cgroup) != NULL;
}

/* Adds a JSON text (taken, may be NULL) as the object that it is. */
static cJSON *add_text(cJSON *object, const char *name, char *text)
{
    cJSON *value = text == NULL ? NULL : cJSON_Parse(text);
    free(text);
    if (!cJSON_AddItemToObject(object, name, value)) {
        cJSON_Delete(value);
        return NULL;
    }
    return value;
}

static bool add_session(cJSON *status, struct control *control, bool with_cpus)
{
    struct session *session = control->session;
    if (session == NULL) {
        return cJSON_AddNullToObject(status, "session") != NULL;
    }
    const struct session_owner *owner = session_owner(session);
    uint64_t age_s = session_age_ms(session) / 1000;
    struct session_memory memory = session_memory(session);
    struct session_hotplug hotplug = session_hotplug(session);
    uint64_t restarts = module_cache_counts(control->params.cache).worker_restart_count -
                        control->worker_restarts_before;
    cJSON *object = cJSON_AddObjectToObject(status, "session");
    cJSON *config = add_text(object, "config", session_config_print(session_config(session)));
    cJSON *books = add_text(object, "books", session_books(session, !with_cpus));
    cJSON *notes = add_text(object, "notes", session_notes_print(&session_config(session)->notes));
    return config != NULL && books != NULL && notes != NULL &&
           cJSON_AddStringToObject(object, "session", session_id(session)) != NULL &&
           cJSON_AddStringToObject(object, "state", session_state_name(session_state(session))) !=
               NULL &&
           cJSON_AddNumberToObject(object, "owner_uid", owner->uid) != NULL &&
           cJSON_AddNumberToObject(object, "owner_pid", owner->pid) != NULL &&
           cJSON_AddBoolToObject(object, "detached", owner->detached) != NULL &&
           cJSON_AddNumberToObject(object, "age_s", (double)age_s) != NULL &&
           cJSON_AddNumberToObject(object, "buffer_bytes", (double)memory.buffer_bytes) != NULL &&
           cJSON_AddNumberToObject(object, "buffer_used_bytes", (double)memory.buffer_used_bytes) !=
               NULL &&
           cJSON_AddBoolToObject(object, "is_read", session_is_read(session)) != NULL &&
           cJSON_AddNumberToObject(object, "worker_restarts", (double)restarts) != NULL &&
           cJSON_AddNumberToObject(object, "cpus_returned", (double)hotplug.returned_count) !=
               NULL &&
           cJSON_AddNumberToObject(object, "cpus_refused", (double)hotplug.refused_count) != NULL;
}

cJSON *control_status(struct control *control, bool with_cpus)
{
    cleanup_(json_freep) cJSON *reply = cJSON_CreateObject();
    cJSON *status = cJSON_AddObjectToObject(reply, "status");
    bool good = add_daemon(status, control) && add_kernel(status, &control->params.features) &&
                add_session(status, control, with_cpus);
    return good ? take_ptr(reply) : NULL;
}

/* Without names of users: a look-up may have to go over a network. */
struct control_line control_describe(const struct control *control)
{
    const struct session *session = control->session;
    struct control_line line;
    char since[32] = "";
    struct tm started;
    if (session == NULL) {
        (void)snprintf(line.text, sizeof line.text, "%s",
                       control->is_ending ? "ending" : "idle, no session");
        return line;
    }
    const char *ending = control->is_ending ? "ending; " : "";
    uid_t uid = session_owner(session)->uid;
    switch (session_state(session)) {
    case SESSION_CREATED:
        (void)snprintf(line.text, sizeof line.text,
                       "%sa session of uid %u that has not been started", ending, uid);
        break;
    case SESSION_RUNNING:
    case SESSION_STOPPING: {
        uint64_t period_ns = session_config(session)->period_ns;
        uint64_t asked_hz = session_config(session)->frequency_hz;
        (void)gmtime_r(&control->started_s, &started);
        (void)strftime(since, sizeof since, "%F %T UTC", &started);
        (void)snprintf(
            line.text, sizeof line.text, "%srecording at %" PRIu64 " Hz for uid %u since %s",
            ending, asked_hz > 0 ? asked_hz : (NS_PER_S + period_ns / 2) / period_ns, uid, since);
        break;
    }
    case SESSION_STOPPED:
        (void)snprintf(line.text, sizeof line.text,
                       "%sa session of uid %u that has stopped and can be read", ending, uid);
        break;
    }
    return line;
}
