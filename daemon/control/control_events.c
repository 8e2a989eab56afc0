/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Makes the reply to Events: which events this machine can sample by, and why it cannot by others.
 * Each is opened for a moment, which is the only way to know. Changes nothing.
 */
#include "cleanup.h"

#include "control_peer.h"
#include "event_names.h"
#include "json.h"
#include "perf_pmu.h"
#include "perf_source.h"

#include <string.h>

#define DEVICE_EVENTS_MAX 128

struct listing {
    cJSON *events; /* borrowed */
    unsigned allowed;
    bool has_failed; /* there is no memory */
};

/* Adds an event; `error` 0: the machine has it, else as of perf_source_try(). Limits are on what is
 * sampled beside the clock. */
static void add_event(struct listing *listing, const char *name, const struct event_code *code,
                      const char *kind, int error)
{
    cJSON *object = cJSON_CreateObject();
    const char *why = error == 0 ? NULL : perf_source_why(error);
    why = why == NULL && error != 0 ? strerror(error) : why;
    bool is_allowed =
        strcmp(name, EVENT_CLOCK) == 0 || (listing->allowed >> event_names_kind(code) & 1) != 0;
    bool good = cJSON_AddStringToObject(object, "event", name) != NULL &&
                cJSON_AddStringToObject(object, "kind", kind) != NULL &&
                cJSON_AddStringToObject(object, "unit", event_names_unit(code)) != NULL &&
                cJSON_AddBoolToObject(object, "available", error == 0) != NULL &&
                cJSON_AddBoolToObject(object, "allowed", is_allowed) != NULL &&
                (why == NULL || cJSON_AddStringToObject(object, "why", why) != NULL);
    if (!good || !cJSON_AddItemToArray(listing->events, object)) {
        cJSON_Delete(object);
        listing->has_failed = true;
    }
}

static void add_named(struct listing *listing)
{
    char name[EVENT_NAME_BYTES];
    struct event_code code;
    for (size_t i = 0; event_names_at(i, name, &code); i++) {
        const char *kind =
            code.type == EVENT_CACHE ? "cache" : event_kind_names[event_names_kind(&code)];
        add_event(listing, name, &code, kind, -perf_source_try(&code));
    }
}

static void add_devices(struct listing *listing)
{
    char names[DEVICE_EVENTS_MAX][PERF_PMU_NAME_BYTES];
    size_t count = perf_pmu_list(PERF_PMU_ROOT, names, DEVICE_EVENTS_MAX);
    for (size_t i = 0; i < count; i++) {
        struct event_code code = {.type = EVENT_OF_PMU};
        struct fault fault = {0};
        if (perf_pmu_find(PERF_PMU_ROOT, names[i], &code, &fault) == 0) {
            add_event(listing, names[i], &code, "device", -perf_source_try(&code));
        }
    }
}

cJSON *control_events(const struct control *control, uid_t uid)
{
    cleanup_(json_freep) cJSON *reply = cJSON_CreateObject();
    struct listing listing = {
        .events = cJSON_AddArrayToObject(reply, "events"),
        .allowed = daemon_config_limits(control->params.config, uid).allowed_events,
    };
    if (listing.events == NULL) {
        return NULL;
    }
    add_named(&listing);
    add_devices(&listing);
    return listing.has_failed ? NULL : take_ptr(reply);
}
