/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Samples have the number of their event among those of their session, which the session's blob
 * names. A new session may have other numbers, so those of the model are by name and unit. Events
 * beyond TOP_EVENTS_MAX, and those without a name, are as if they were not there.
 */
#include "top_events.h"

#include "cleanup.h"
#include "clock.h"
#include "json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NO_EVENT UINT32_MAX

int top_events_init(struct top_events *events)
{
    *events = (struct top_events){.count = 1};
    return profile_event_set(&events->all[TOP_CLOCK], PROFILE_EVENT_CLOCK, "ns");
}

void top_events_done(struct top_events *events)
{
    for (size_t i = 0; i < events->count; i++) {
        profile_event_done(&events->all[i]);
    }
    free(events->session_json);
    *events = (struct top_events){0};
}

/* The number of an event, which is added if it is new. NO_EVENT: there are too many. */
static int add_event(struct top_events *events, const char *name, const char *unit, uint32_t *ret)
{
    *ret = NO_EVENT;
    for (size_t i = TOP_CLOCK + 1; i < events->count; i++) {
        const struct profile_event *event = &events->all[i];
        if (strcmp(event->name, name) == 0 && strcmp(event->unit, unit) == 0) {
            *ret = (uint32_t)i;
            return 0;
        }
    }
    if (events->count == TOP_EVENTS_MAX) {
        return 0;
    }
    *ret = (uint32_t)events->count++;
    return profile_event_set(&events->all[*ret], name, unit);
}

static int read_event(struct top_events *events, const cJSON *object, struct top_session_event *ret)
{
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "event"));
    const char *unit = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "unit"));
    int64_t period = 1;
    *ret = (struct top_session_event){.event = NO_EVENT};
    if (name == NULL) {
        return 0;
    }
    (void)json_read_integer(cJSON_GetObjectItemCaseSensitive(object, "period"), 1, JSON_INTEGER_MAX,
                            &period);
    ret->period = (uint64_t)period;
    return add_event(events, name, unit == NULL ? "events" : unit, &ret->event);
}

/* The first of a session's events is its clock. */
static int read_all(struct top_events *events, const cJSON *session)
{
    const cJSON *object = NULL;
    int r = 0;
    events->session_count = 0;
    cJSON_ArrayForEach(object, cJSON_GetObjectItemCaseSensitive(session, "events"))
    {
        if (events->session_count == TOP_EVENTS_MAX || r < 0) {
            break;
        }
        struct top_session_event *event = &events->of_session[events->session_count];
        *event = (struct top_session_event){.period = 1, .event = TOP_CLOCK};
        r = events->session_count == TOP_CLOCK ? 0 : read_event(events, object, event);
        events->session_count++;
    }
    return r;
}

int top_events_read(struct top_events *events, const char *session_json)
{
    if (session_json == NULL ||
        (events->session_json != NULL && strcmp(events->session_json, session_json) == 0)) {
        return 0;
    }
    cleanup_(json_freep) cJSON *session = cJSON_Parse(session_json);
    char *copy = strdup(session_json);
    if (session == NULL || copy == NULL) {
        free(copy);
        return -ENOMEM; /* it was read as JSON before */
    }
    const cJSON *config = cJSON_GetObjectItemCaseSensitive(session, "config");
    events->clock_period_ns = 0;
    (void)json_read_integer(cJSON_GetObjectItemCaseSensitive(config, "sample_period_ns"), 1,
                            JSON_INTEGER_MAX, &events->clock_period_ns);
    free(events->session_json);
    events->session_json = copy;
    return read_all(events, session);
}

bool top_events_value(const struct top_events *events, const struct told_event *told,
                      uint32_t *ret_event, uint64_t *ret_value)
{
    if (told->number == TOP_CLOCK) {
        *ret_event = TOP_CLOCK;
        *ret_value = 1;
        return true;
    }
    if (told->number >= events->session_count || told->weight == 0 ||
        events->of_session[told->number].event == NO_EVENT) {
        return false;
    }
    *ret_event = events->of_session[told->number].event;
    if (__builtin_mul_overflow(told->weight, events->of_session[told->number].period, ret_value)) {
        *ret_value = UINT64_MAX;
    }
    return true;
}

static bool has_waits(const struct top_events *events)
{
    for (size_t i = 0; i < events->count; i++) {
        if (profile_event_is_of_waits(events->all[i].name)) {
            return true;
        }
    }
    return false;
}

static int refuse(const struct top_events *events, const char *wanted, struct fault *reterr)
{
    char names[sizeof reterr->text] = "";
    size_t used = 0;
    for (size_t i = 0; i < events->count && used < sizeof names; i++) {
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i == 0 ? "" : ", ",
                                 events->all[i].name);
    }
    const char *where = has_waits(events) ? profile_event_where(wanted) : NULL;
    if (where != NULL) {
        return fault_set(reterr, ESRCH, "the session has no event '%s': %s", wanted, where);
    }
    return fault_set(reterr, ESRCH, "the session has no event '%.64s'; it has %s%s", wanted, names,
                     events->count > 1 ? ""
                                       : " alone: --wall adds off-cpu and preempted, -e others");
}

int top_events_choose(const struct top_events *events, const char *wanted, uint32_t *ret,
                      struct fault *reterr)
{
    uint32_t found = 0;
    if (wanted == NULL || profile_event_is_meant(wanted, PROFILE_EVENT_CLOCK)) {
        *ret = TOP_CLOCK;
        return 0;
    }
    if (events->session_json == NULL) {
        return -EAGAIN;
    }
    while (found < events->count && !profile_event_is_meant(wanted, events->all[found].name)) {
        found++;
    }
    if (found == events->count) {
        return refuse(events, wanted, reterr);
    }
    *ret = found;
    return 0;
}

const char *top_events_unit(const struct profile_event *event)
{
    return event->is_clock ? "samples" : event->is_time ? "ms" : event->unit;
}

const char *top_events_amount(const struct profile_event *event, uint64_t value, char *into)
{
    if (event->is_time && !event->is_clock) {
        (void)snprintf(into, TOP_AMOUNT_BYTES, "%.2f", (double)value / (double)NS_PER_MS);
    } else {
        (void)snprintf(into, TOP_AMOUNT_BYTES, "%" PRIu64, value);
    }
    return into;
}
