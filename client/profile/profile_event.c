/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What an event is called, and whether two names mean the same one.
 */
#include "profile_event.h"

#include "event_names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool profile_event_is_meant(const char *wanted, const char *name)
{
    struct event_code a;
    struct event_code b;
    if (strcmp(wanted, name) == 0) {
        return true;
    }
    return event_names_find(wanted, "", &a, NULL) == 0 &&
           event_names_find(name, "", &b, NULL) == 0 && a.type != EVENT_OF_PMU &&
           a.type == b.type && a.config == b.config && a.exclude_user == b.exclude_user &&
           a.exclude_kernel == b.exclude_kernel;
}

const char *profile_event_listed_name(const char *name, char *into)
{
    const char *modifiers = strchrnul(name, ':');
    size_t base_bytes = (size_t)(modifiers - name);
    char base[EVENT_NAME_BYTES];
    char listed[EVENT_NAME_BYTES];
    struct event_code code;
    if (strlen(name) >= sizeof base) {
        return name;
    }
    memcpy(base, name, base_bytes);
    base[base_bytes] = '\0';
    for (size_t i = 0; event_names_at(i, listed, &code); i++) {
        if (profile_event_is_meant(listed, base)) {
            (void)snprintf(into, PROFILE_EVENT_NAME_BYTES, "%s%s", listed, modifiers);
            return into;
        }
    }
    return name;
}

bool profile_event_code(const struct profile_event *event, struct event_code *ret)
{
    struct event_code code;
    bool is_known = event_names_find(event->name, "", &code, NULL) == 0;
    if (is_known) {
        *ret = code;
    }
    return is_known;
}

const char *profile_event_state(const struct profile_event *event)
{
    return !event->is_wait                                     ? ""
           : strcmp(event->name, PROFILE_EVENT_PREEMPTED) == 0 ? "ready"
                                                               : "blocked";
}

const char *profile_event_where(const char *state)
{
    return strcmp(state, "blocked") == 0 ? "off-cpu has the time that threads are blocked"
           : strcmp(state, "ready") == 0
               ? "preempted has a part of the ready time, and off-cpu that after each waking; "
                 "report --threads has all of it"
               : NULL;
}

bool profile_event_is_of_waits(const char *wanted)
{
    return strcmp(wanted, PROFILE_EVENT_OFF_CPU) == 0 ||
           strcmp(wanted, PROFILE_EVENT_PREEMPTED) == 0 || profile_event_where(wanted) != NULL;
}

/* Wherever they are counted, in programs or in the kernel. */
static bool counts_switches(const char *name)
{
    struct event_code code;
    struct event_code switches;
    return event_names_find(name, "", &code, NULL) == 0 &&
           event_names_find("context-switches", "", &switches, NULL) == 0 &&
           code.type == switches.type && code.config == switches.config;
}

int profile_event_set(struct profile_event *event, const char *name, const char *unit)
{
    profile_event_done(event);
    *event = (struct profile_event){
        .name = strdup(name),
        .unit = strdup(unit),
        .is_clock = strcmp(name, PROFILE_EVENT_CLOCK) == 0,
        .is_time = strcmp(unit, "ns") == 0,
        .is_wait =
            strcmp(name, PROFILE_EVENT_OFF_CPU) == 0 || strcmp(name, PROFILE_EVENT_PREEMPTED) == 0,
    };
    event->is_of_switches = event->is_wait || counts_switches(name);
    return event->name == NULL || event->unit == NULL ? -ENOMEM : 0;
}

void profile_event_done(struct profile_event *event)
{
    free(event->name);
    free(event->unit);
    *event = (struct profile_event){0};
}
