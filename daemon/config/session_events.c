/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Parses the events of a session config. An element has a name, a rate or a period, and followers;
 * one name occurs once, since two streams of one event would count everything twice. An element of
 * the clock sets the rate of the config. Followers become events of their own, behind their leader.
 */
#include "session_events.h"

#include "config_members.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MEMBER_BYTES sizeof((struct fault){0}.member)

enum member {
    EVENT,
    FREQUENCY_HZ,
    PERIOD,
    FOLLOWERS,
    MEMBER_COUNT,
};

static const char *const member_names[MEMBER_COUNT] = {
    [EVENT] = "event",
    [FREQUENCY_HZ] = "frequency_hz",
    [PERIOD] = "period",
    [FOLLOWERS] = "followers",
};

struct element {
    const cJSON *items[MEMBER_COUNT];
    char names[MEMBER_COUNT][MEMBER_BYTES]; /* "events[2].period" */
};

/* Leaves the rate as it is where the element says none. */
static int read_rate(const struct element *element, struct session_event *event,
                     struct fault *reterr)
{
    int64_t frequency_hz = 0;
    int64_t period = 0;
    if (element->items[FREQUENCY_HZ] != NULL && element->items[PERIOD] != NULL) {
        return fault_set_member(reterr, element->names[PERIOD],
                                "is given beside frequency_hz; one of the two is allowed");
    }
    int r = config_read_integer(element->items[FREQUENCY_HZ], element->names[FREQUENCY_HZ], 1,
                                SESSION_EVENT_FREQUENCY_HZ_MAX, &frequency_hz, reterr);
    if (r >= 0) {
        r = config_read_integer(element->items[PERIOD], element->names[PERIOD], 1,
                                SESSION_EVENT_PERIOD_MAX, &period, reterr);
    }
    event->frequency_hz = (uint32_t)frequency_hz;
    event->period = (uint64_t)period;
    return r;
}

static int read_element(const cJSON *item, size_t index, struct element *element,
                        struct session_event *ret, struct fault *reterr)
{
    char place[MEMBER_BYTES / 2];
    (void)snprintf(place, sizeof place, "events[%zu]", index);
    for (size_t i = 0; i < MEMBER_COUNT; i++) {
        (void)snprintf(element->names[i], MEMBER_BYTES, "%s.%s", place, member_names[i]);
    }
    if (!cJSON_IsObject(item)) {
        return fault_set_member(reterr, place,
                                "is not an object; {\"event\": \"page-faults\", \"period\": 100} "
                                "is one that is allowed");
    }
    int r = config_take_members(item, place, member_names, MEMBER_COUNT, element->items, reterr);
    const char *name = cJSON_GetStringValue(element->items[EVENT]);
    if (r >= 0 && name == NULL) {
        r = fault_set_member(reterr, element->names[EVENT], "is %s; the name of an event is needed",
                             element->items[EVENT] == NULL ? "missing" : "not a string");
    }
    if (r >= 0) {
        r = event_names_find(name, element->names[EVENT], &ret->code, reterr);
    }
    if (r >= 0) {
        (void)snprintf(ret->name, sizeof ret->name, "%s", name);
        r = read_rate(element, ret, reterr);
    }
    return r;
}

static bool is_same(const struct session_event *a, const struct session_event *b)
{
    return a->code.type == EVENT_OF_PMU
               ? strcmp(a->name, b->name) == 0
               : a->code.type == b->code.type && a->code.config == b->code.config &&
                     a->code.exclude_user == b->code.exclude_user &&
                     a->code.exclude_kernel == b->code.exclude_kernel;
}

static bool is_clock(const struct session_event *event)
{
    return event->code.type == EVENT_SOFTWARE && event->code.config == 0;
}

static int add_clock(const struct element *element, const struct session_event *event,
                     struct session_events *events, struct fault *reterr)
{
    if (events->clock_is_asked) {
        return fault_set_member(reterr, element->names[EVENT],
                                "is a second cpu-clock; one is allowed");
    }
    if (event->code.exclude_user || event->code.exclude_kernel || event->code.precise > 0) {
        return fault_set_member(reterr, element->names[EVENT],
                                "is a cpu-clock with modifiers; it ticks wherever a CPU is, so "
                                "none are allowed");
    }
    events->clock_is_asked = true;
    events->all[0] = *event;
    return 0;
}

/* Adds an event beside the clock, which `member` names. */
static int add_event(const char *member, const struct session_event *event,
                     struct session_events *events, struct fault *reterr)
{
    for (size_t i = 1; i < events->count; i++) {
        if (is_same(&events->all[i], event)) {
            return fault_set_member(reterr, member, "is one that stands there already");
        }
    }
    if (events->count == SESSION_EVENTS_MAX) {
        return fault_set_member(
            reterr, "events", "are more than %d with the clock, which is always one of them%s",
            SESSION_EVENTS_MAX, event->is_follower ? ", and with followers" : "");
    }
    struct session_event *added = &events->all[events->count++];
    *added = *event;
    if (!added->is_follower && added->period == 0 && added->frequency_hz == 0) {
        added->frequency_hz = SESSION_EVENT_FREQUENCY_HZ;
    }
    return 0;
}

static int check_follower(const char *member, const struct session_event *event,
                          const struct session_event *leader, struct fault *reterr)
{
    if (is_clock(event)) {
        return fault_set_member(reterr, member,
                                "is cpu-clock, which is always sampled; it can have followers, "
                                "and be none");
    }
    if (event->code.precise > 0) {
        return fault_set_member(reterr, member,
                                "has the modifier p; a follower is not sampled, so only u and k "
                                "are allowed");
    }
    /* With counters that others may take, the clock would stand still while they have them. */
    if (is_clock(leader) && event_names_kind(&event->code) != EVENT_KIND_SOFTWARE) {
        return fault_set_member(reterr, member,
                                "is none of the kernel's own events, which alone may follow "
                                "cpu-clock; let it follow 'cycles'");
    }
    return 0;
}

static int add_followers(const struct element *element, uint32_t leader,
                         struct session_events *events, struct fault *reterr)
{
    const cJSON *array = element->items[FOLLOWERS];
    const cJSON *item = NULL;
    size_t index = 0;
    if (array == NULL) {
        return 0;
    }
    if (!cJSON_IsArray(array) || array->child == NULL) {
        return fault_set_member(reterr, element->names[FOLLOWERS],
                                "is %s; an array of names of events is allowed",
                                cJSON_IsArray(array) ? "empty" : "not an array");
    }
    cJSON_ArrayForEach(item, array)
    {
        char member[2 * MEMBER_BYTES];
        const char *name = cJSON_GetStringValue(item);
        struct session_event event = {.is_follower = true, .leader = leader};
        (void)snprintf(member, sizeof member, "%s[%zu]", element->names[FOLLOWERS], index++);
        int r = name == NULL ? fault_set_member(reterr, member,
                                                "is not a string; the name of an event is needed")
                             : event_names_find(name, member, &event.code, reterr);
        if (r >= 0) {
            (void)snprintf(event.name, sizeof event.name, "%s", name);
            r = check_follower(member, &event, &events->all[leader], reterr);
        }
        r = r < 0 ? r : add_event(member, &event, events, reterr);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static int add_element(const struct element *element, const struct session_event *event,
                       struct session_events *events, struct fault *reterr)
{
    const bool is_of_clock = is_clock(event);
    int r = is_of_clock ? add_clock(element, event, events, reterr)
                        : add_event(element->names[EVENT], event, events, reterr);
    const uint32_t leader = is_of_clock ? 0 : (uint32_t)events->count - 1;
    return r < 0 ? r : add_followers(element, leader, events, reterr);
}

int session_events_read(const cJSON *array, struct session_events *ret, struct fault *reterr)
{
    const cJSON *item = NULL;
    size_t index = 0;
    int r = 0;
    if (array == NULL) {
        return 0;
    }
    int count = cJSON_IsArray(array) ? cJSON_GetArraySize(array) : 0;
    if (count < 1 || count > SESSION_EVENTS_MAX) {
        return fault_set_member(reterr, "events", "%s; an array of 1 to %d objects is allowed",
                                !cJSON_IsArray(array) ? "is not an array"
                                : count == 0          ? "is empty"
                                                      : "is too long",
                                SESSION_EVENTS_MAX);
    }
    *ret = (struct session_events){.count = 1, .all = {{.name = EVENT_CLOCK}}};
    ret->all[0].code.type = EVENT_SOFTWARE;
    cJSON_ArrayForEach(item, array)
    {
        struct element element = {0};
        struct session_event event = {0};
        r = r < 0 ? r : read_element(item, index, &element, &event, reterr);
        r = r < 0 ? r : add_element(&element, &event, ret, reterr);
        index++;
    }
    return r;
}

/* Adds the followers of an event to its element. */
static bool print_followers(cJSON *object, const struct session_events *events, size_t leader)
{
    cJSON *array = NULL;
    bool good = true;
    for (size_t i = 1; i < events->count && good; i++) {
        const struct session_event *event = &events->all[i];
        if (event->is_follower && event->leader == leader) {
            array = array == NULL ? cJSON_AddArrayToObject(object, "followers") : array;
            good = cJSON_AddItemToArray(array, cJSON_CreateString(event->name));
        }
    }
    return good;
}

bool session_events_print(cJSON *config, const struct session_events *events)
{
    if (events->count == 0) {
        return true;
    }
    cJSON *array = cJSON_AddArrayToObject(config, "events");
    for (size_t i = events->clock_is_asked ? 0 : 1; array != NULL && i < events->count; i++) {
        const struct session_event *event = &events->all[i];
        if (event->is_follower) {
            continue;
        }
        cJSON *object = cJSON_CreateObject();
        if (!cJSON_AddItemToArray(array, object) ||
            cJSON_AddStringToObject(object, "event", event->name) == NULL ||
            (event->period > 0 &&
             cJSON_AddNumberToObject(object, "period", (double)event->period) == NULL) ||
            (event->frequency_hz > 0 &&
             cJSON_AddNumberToObject(object, "frequency_hz", event->frequency_hz) == NULL) ||
            !print_followers(object, events, i)) {
            return false;
        }
    }
    return array != NULL;
}
