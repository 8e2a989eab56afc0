/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Takes samples of the clock as they come. Their values are kept only once one is another than 1,
 * which no recording of cpu-profilerd has. Of another event, what the record says is kept until the
 * sessions are known; each segment is of one, and each session has numbers of its own. All values
 * together fit a signed number, as formats have them: what is beyond counts for nothing.
 */
#include "event_choice.h"

#include "cleanup.h"
#include "grow.h"
#include "json.h"
#include "profile.h"
#include "recorded_books.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SESSION_EVENTS_MAX 64 /* of a session's, those that are looked at */
#define NAMES_MAX          ((size_t)64)
#define CUT_BYTES          ((size_t)128)
#define NUMBER_NONE        0 /* the clock's, which is never looked for */

/* The event that is meant, as a session has it. */
struct session_event {
    uint64_t period;
    uint32_t number; /* NUMBER_NONE: the session does not have it */
};

void event_choice_done(struct event_choice *choice)
{
    free(choice->told);
    *choice = (struct event_choice){0};
}

static uint64_t weight_of(const struct fxt_sample *record)
{
    return (record->fields & FXT_SAMPLE_WEIGHT) != 0 ? record->weight : 1;
}

bool event_choice_takes(const struct event_choice *choice, const struct profile *profile,
                        const struct fxt_sample *record)
{
    if (choice->takes_all || choice->name != NULL) {
        return choice->takes_all || record->event != 0;
    }
    bool is_nothing = weight_of(record) == 0 ||
                      (profile->values != NULL && profile->value_total == PROFILE_TOTAL_MAX);
    return record->event == 0 && (choice->ignores_weights || !is_nothing);
}

/* As much of the value as there is room for beside such a total. */
static uint64_t bound_value(uint64_t total, uint64_t value)
{
    uint64_t room = PROFILE_TOTAL_MAX - total;
    return value < room ? value : room;
}

/* Gives the profile's next sample its value, and all before it 1 where none had another. */
static int add_value(struct profile *profile, size_t number, uint64_t value)
{
    bool is_first = profile->values == NULL;
    if (grow(profile->values, profile->value_capacity, number + 1) < 0) {
        return -ENOMEM;
    }
    for (size_t i = 0; is_first && i < number; i++) {
        profile->values[i] = 1;
    }
    profile->value_total = is_first ? number : profile->value_total;
    profile->values[number] = bound_value(profile->value_total, value);
    profile->value_total += profile->values[number];
    return 0;
}

int event_choice_note(struct event_choice *choice, struct profile *profile, size_t number,
                      const struct fxt_sample *record)
{
    if (choice->takes_all || choice->name != NULL) {
        if (grow(choice->told, choice->told_capacity, number + 1) < 0) {
            return -ENOMEM;
        }
        choice->told[number] = (struct told_event){
            .weight = weight_of(record),
            .number = record->event < UINT32_MAX ? (uint32_t)record->event : UINT32_MAX,
        };
        return 0;
    }
    uint64_t weight = choice->ignores_weights ? 1 : weight_of(record);
    return profile->values == NULL && weight == 1 ? 0 : add_value(profile, number, weight);
}

/* Adds a name to those of the recording's events. Sessions may have several names for one event. */
static int add_name(struct profile *profile, const char *name)
{
    for (size_t i = 0; i < profile->event_count; i++) {
        if (profile_event_is_meant(profile->event_names[i], name)) {
            return 0;
        }
    }
    if (profile->event_count == NAMES_MAX) {
        return 0;
    }
    if (grow(profile->event_names, profile->event_capacity, profile->event_count + 1) < 0) {
        return -ENOMEM;
    }
    profile->event_names[profile->event_count] = strdup(name);
    return profile->event_names[profile->event_count] == NULL ? -ENOMEM
                                                              : (profile->event_count++, 0);
}

/* Takes an event of a session that is the one that is meant. Of several sessions the unit is that
 * of the first: in another unit it is another event. */
static int take_meant(struct profile *profile, const char *name, const cJSON *event,
                      uint32_t number, struct session_event *ret)
{
    const char *unit = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(event, "unit"));
    int64_t period = 1;
    int r = 0;
    unit = unit == NULL ? "events" : unit;
    if (profile->event.is_clock) {
        r = profile_event_set(&profile->event, name, unit);
    }
    if (r == 0 && strcmp(profile->event.unit, unit) == 0) {
        (void)json_read_integer(cJSON_GetObjectItemCaseSensitive(event, "period"), 1,
                                JSON_INTEGER_MAX, &period);
        *ret = (struct session_event){.period = (uint64_t)period, .number = number};
    }
    return r;
}

/* Goes through the events that a session names. */
static int take_session(struct profile *profile, const char *session_json, const char *wanted,
                        struct session_event *ret)
{
    cleanup_(json_freep) cJSON *session = cJSON_Parse(session_json);
    const cJSON *event = NULL;
    uint32_t number = 0;
    int r = 0;
    cJSON_ArrayForEach(event, cJSON_GetObjectItemCaseSensitive(session, "events"))
    {
        const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(event, "event"));
        if (number == SESSION_EVENTS_MAX || r < 0) {
            break;
        }
        bool is_meant = number != NUMBER_NONE && name != NULL && wanted != NULL &&
                        ret->number == NUMBER_NONE && profile_event_is_meant(wanted, name);
        r = name == NULL || number == NUMBER_NONE ? 0 : add_name(profile, name);
        r = r == 0 && is_meant ? take_meant(profile, name, event, number, ret) : r;
        number++;
    }
    return r;
}

/* Finds the event in each session; of the other sessions NUMBER_NONE. Returned: free(). NULL when
 * there is no memory. */
static struct session_event *find_event(struct profile *profile,
                                        const struct recorded_books *recorded, const char *wanted)
{
    size_t count = recorded->sessions.item_count;
    cleanup_(freep) struct session_event *events = calloc(count + 1, sizeof *events);
    int r = events == NULL ? -ENOMEM : add_name(profile, PROFILE_EVENT_CLOCK);
    for (size_t i = 0; i < count && r == 0; i++) {
        if (recorded->told[i].session_json != NULL) {
            r = take_session(profile, recorded->told[i].session_json, wanted, &events[i]);
        }
    }
    return r < 0 ? NULL : take_ptr(events);
}

bool profile_has_waits(const struct profile *profile)
{
    for (size_t i = 0; i < profile->event_count; i++) {
        if (profile_event_is_of_waits(profile->event_names[i])) {
            return true;
        }
    }
    return false;
}

static int refuse(const struct profile *profile, const char *wanted, struct fault *reterr)
{
    char text[sizeof reterr->text] = "";
    size_t used = 0;
    for (size_t i = 0; i < profile->event_count && used < sizeof text; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i == 0 ? "" : ", ",
                                 profile->event_names[i]);
    }
    const struct input_summary *input = &profile->input;
    char cut[CUT_BYTES] = "";
    if (input->truncated || input->damaged) {
        (void)snprintf(cut, sizeof cut,
                       "; but it %s byte %" PRIu64 ", and what stood behind that is not known",
                       input->damaged ? "is damaged at" : "ends within the record at",
                       input->size_bytes);
    }
    const char *where = profile_has_waits(profile) ? profile_event_where(wanted) : NULL;
    if (where != NULL) {
        return fault_set(reterr, ESRCH, "the recording has no event '%s': %s", wanted, where);
    }
    return fault_set(
        reterr, ESRCH, "the recording has no event '%s'; it has %s%s%s", wanted, text,
        profile_event_is_of_waits(wanted) ? ": record --wall records what threads wait for" : "",
        cut);
}

/* The value of a sample, of one of these sessions; 0: it is of another event. */
static uint64_t find_value(const struct profile *profile, const struct recorded_books *recorded,
                           const struct session_event *events, const struct told_event *told,
                           uint32_t segment)
{
    uint32_t session =
        segment < recorded->segment_count ? recorded->of_segments[segment] : INTERN_NONE;
    uint64_t value = 0;
    if (session == INTERN_NONE || events[session].number != told->number ||
        told->number == NUMBER_NONE) {
        return 0;
    }
    if (__builtin_mul_overflow(told->weight, events[session].period, &value)) {
        value = PROFILE_TOTAL_MAX;
    }
    return bound_value(profile->value_total, value);
}

/* Leaves the samples that have a value, with it. */
static int leave_samples(const struct event_choice *choice, struct profile *profile,
                         const struct recorded_books *recorded, const struct session_event *events)
{
    size_t kept = 0;
    bool is_one = true;
    if (grow(profile->values, profile->value_capacity, profile->sample_count + 1) < 0) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < profile->sample_count; i++) {
        const struct profile_sample sample = profile->samples[i];
        uint64_t value = find_value(profile, recorded, events, &choice->told[i],
                                    profile_task(profile, sample.task)->segment);
        if (value > 0) {
            is_one = is_one && value == 1;
            profile->value_total += value;
            profile->values[kept] = value;
            profile->samples[kept++] = sample;
        }
    }
    profile->sample_count = kept;
    if (is_one) {
        free(take_ptr(profile->values));
        profile->value_capacity = 0;
    }
    return 0;
}

int event_choice_apply(struct event_choice *choice, struct profile *profile,
                       const struct recorded_books *recorded, struct fault *reterr)
{
    cleanup_(freep) struct session_event *events = find_event(profile, recorded, choice->name);
    int r = events == NULL ? -ENOMEM : 0;
    if (r == 0 && choice->name != NULL && profile->event.is_clock) {
        return refuse(profile, choice->name, reterr);
    }
    if (r == 0 && choice->name != NULL) {
        r = leave_samples(choice, profile, recorded, events);
    }
    return r == 0 ? 0 : fault_set(reterr, ENOMEM, "there is not enough memory");
}
