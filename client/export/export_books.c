/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads the books of a recording for exports. Only members that the format names are taken, and
 * only numbers, so no text of a recording comes out of here but an event's name and unit, as
 * export_event_name() has them.
 */
#include "export_books.h"

#include "cleanup.h"
#include "counters.h"
#include "export_cost.h"
#include "extremes.h"
#include "json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define LINE_BYTES 128

static const char *const terms[] = {
    "expected", "received",    "lost", "throttled", "missed",
    "idle",     "unexplained", "kept", "filtered",  "dropped",
};

static const char *const lost_terms[] = {"lost", "throttled", "missed", "dropped"};

/* Of another event than the clock, as the next. */
static const char *const event_terms[] = {
    "counted", "sampled",      "received",     "lost",       "kept",       "filtered",
    "dropped", "throttled_ns", "held_back_ns", "enabled_ns", "running_ns",
};

#define COUNTER_NAME(name, unit, meaning) #name,
static const char *const counters[] = {COUNTERS(COUNTER_NAME)};
#undef COUNTER_NAME

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

static const cJSON *number_of(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsNumber(item) ? item : NULL;
}

/* The sums of an event, the first in the books that has its name; NULL: there are none. */
static const cJSON *event_total(const cJSON *books, const struct profile_event *event)
{
    const cJSON *line = NULL;
    cJSON_ArrayForEach(line, cJSON_GetObjectItemCaseSensitive(books, "events"))
    {
        const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(line, "event"));
        if (name != NULL && strcmp(name, event->name) == 0) {
            return cJSON_GetObjectItemCaseSensitive(line, "total");
        }
    }
    return NULL;
}

/* A count of the books; 0 where it is none. */
static uint64_t count_of(const cJSON *total, const char *name)
{
    const cJSON *term = number_of(total, name);
    bool is_count =
        term != NULL && term->valuedouble >= 1 && term->valuedouble <= (double)JSON_INTEGER_MAX;
    return is_count ? (uint64_t)term->valuedouble : 0;
}

/* How many samples would stand for what was counted and has none, each for as much as those that
 * came. Some of these the kernel has told as lost. */
static uint64_t unsampled_of(const cJSON *total)
{
    uint64_t counted = count_of(total, "counted");
    uint64_t sampled = count_of(total, "sampled");
    uint64_t received = count_of(total, "received");
    uint64_t each = received > 0 ? sampled / received : 1;
    return counted > sampled ? (counted - sampled) / max_u64(each, 1) : 0;
}

/* What has no sample, by these books. */
static uint64_t lost_by(const struct profile *profile, const char *books_json)
{
    cleanup_(json_freep) cJSON *books = cJSON_Parse(books_json);
    const struct profile_event *event = &profile->event;
    uint64_t lost = 0;
    if (event->is_clock) {
        const cJSON *total = cJSON_GetObjectItemCaseSensitive(books, "total");
        for (size_t i = 0; i < COUNT_OF(lost_terms); i++) {
            lost += count_of(total, lost_terms[i]);
        }
        return lost;
    }
    const cJSON *total = event_total(books, event);
    lost = count_of(total, "lost");
    /* Waits that have none are left out on purpose, or not certain. */
    lost = event->is_wait ? lost : max_u64(lost, unsampled_of(total));
    return lost + count_of(total, "dropped");
}

uint64_t export_books_lost(const struct profile *profile)
{
    return lost_by(profile, profile->books_json);
}

uint64_t export_books_lost_cost(const struct profile *profile, const struct export_cost *cost)
{
    uint64_t sum = 0;
    if (cost->scale > 0 || profile->books_json == NULL) {
        return export_books_lost(profile) * cost->scale;
    }
    for (size_t i = 0; i < profile->session_time_count; i++) {
        const struct profile_session_time *time = &profile->session_times[i];
        sum += lost_by(profile, time->books_json) * time->period_ns;
    }
    return sum;
}

bool export_books_has_estimates(const struct profile *profile)
{
    if (!profile->event.is_wait || profile->books_json == NULL) {
        return profile->event.is_wait;
    }
    cleanup_(json_freep) cJSON *books = cJSON_Parse(profile->books_json);
    return count_of(event_total(books, &profile->event), "not_sampled") > 0;
}

static void tell(export_line_fn *on_line, void *userdata, const char *label, uint64_t number)
{
    char line[LINE_BYTES];
    (void)snprintf(line, sizeof line, "%s: %" PRIu64, label, number);
    on_line(line, userdata);
}

static void tell_terms(const cJSON *total, export_line_fn *on_line, void *userdata)
{
    char line[LINE_BYTES];
    for (size_t i = 0; i < COUNT_OF(terms); i++) {
        const cJSON *term = number_of(total, terms[i]);
        if (term == NULL) {
            (void)snprintf(line, sizeof line, "ticks %s: not known", terms[i]);
        } else {
            (void)snprintf(line, sizeof line, "ticks %s: %.0f", terms[i], term->valuedouble);
        }
        on_line(line, userdata);
    }
}

static void tell_counters(const cJSON *books, export_line_fn *on_line, void *userdata)
{
    char line[LINE_BYTES];
    for (size_t i = 0; i < COUNT_OF(counters); i++) {
        const cJSON *counter = number_of(books, counters[i]);
        if (counter != NULL && counter->valuedouble != 0) {
            (void)snprintf(line, sizeof line, "%s: %.0f", counters[i], counter->valuedouble);
            on_line(line, userdata);
        }
    }
}

static void tell_bookless(const struct profile *profile, const char *of_what,
                          export_line_fn *on_line, void *userdata)
{
    char line[LINE_BYTES];
    size_t bookless = profile->bookless_session_count;
    if (bookless > 0 && bookless < profile->sampled_session_count) {
        (void)snprintf(line, sizeof line, "%zu of %zu sessions have no books%s", bookless,
                       profile->sampled_session_count, of_what);
    } else {
        (void)snprintf(line, sizeof line, "the recording has no books%s", of_what);
    }
    on_line(line, userdata);
}

/* The event, what its samples stand for, and its books. */
static void tell_event(const struct profile *profile, const cJSON *books, export_line_fn *on_line,
                       void *userdata)
{
    char line[LINE_BYTES];
    char name[EXPORT_EVENT_BYTES];
    const struct profile_event unit = {.name = profile->event.unit};
    const cJSON *total = event_total(books, &profile->event);
    (void)snprintf(line, sizeof line, "event: %s", export_event_name(&profile->event, name));
    on_line(line, userdata);
    (void)snprintf(line, sizeof line, "unit: %s", export_event_name(&unit, name));
    on_line(line, userdata);
    tell(on_line, userdata, "value", profile_total(profile));
    for (size_t i = 0; i < COUNT_OF(event_terms); i++) {
        const cJSON *term = number_of(total, event_terms[i]);
        if (term != NULL) {
            (void)snprintf(line, sizeof line, "event %s: %.0f", event_terms[i], term->valuedouble);
            on_line(line, userdata);
        }
    }
    if (!cJSON_IsObject(total)) {
        tell_bookless(profile, " of the event", on_line, userdata);
    }
}

static void tell_clock(const struct profile *profile, const cJSON *books, export_line_fn *on_line,
                       void *userdata)
{
    const cJSON *total = cJSON_GetObjectItemCaseSensitive(books, "total");
    uint64_t period_ns = profile_period_ns(profile);
    if (period_ns > 0) {
        tell(on_line, userdata, "period_ns", period_ns);
    }
    if (cJSON_IsObject(total)) {
        tell_terms(total, on_line, userdata);
        tell_counters(books, on_line, userdata);
    } else {
        tell_bookless(profile, "", on_line, userdata);
    }
}

void export_books_lines(const struct profile *profile, export_line_fn *on_line, void *userdata)
{
    cleanup_(json_freep) cJSON *books = cJSON_Parse(profile->books_json);
    tell(on_line, userdata, "samples", profile->sample_count);
    if (profile->unselected_count > 0) {
        tell(on_line, userdata, "samples not selected", profile->unselected_count);
    }
    if (profile->event.is_clock) {
        tell_clock(profile, books, on_line, userdata);
    } else {
        tell_event(profile, books, on_line, userdata);
    }
    if (profile->left_out_count > 0) {
        tell(on_line, userdata, "samples left out", profile->left_out_count);
    }
    if (profile->input.truncated) {
        on_line("the recording is cut off", userdata);
    }
    if (profile->input.damaged) {
        on_line("the recording is damaged", userdata);
    }
}

/* The books of another event than the clock. Their numbers stand behind those of ticks. */
static void count_event(const struct profile *profile, const cJSON *books,
                        export_count_fn *on_count, void *userdata)
{
    const cJSON *total = event_total(books, &profile->event);
    for (size_t i = 0; i < COUNT_OF(event_terms); i++) {
        char name[LINE_BYTES];
        char event[EXPORT_EVENT_BYTES];
        const cJSON *item = number_of(total, event_terms[i]);
        if (item != NULL && fabs(item->valuedouble) <= (double)JSON_INTEGER_MAX) {
            (void)snprintf(name, sizeof name, "%s %s", export_event_name(&profile->event, event),
                           event_terms[i]);
            const struct export_count count = {name, (int64_t)item->valuedouble,
                                               COUNT_OF(terms) + COUNT_OF(counters) + i + 1};
            on_count(&count, userdata);
        }
    }
}

void export_books_counts(const struct profile *profile, export_count_fn *on_count, void *userdata)
{
    cleanup_(json_freep) cJSON *books = cJSON_Parse(profile->books_json);
    const cJSON *total = cJSON_GetObjectItemCaseSensitive(books, "total");
    size_t count = profile->event.is_clock ? COUNT_OF(terms) + COUNT_OF(counters) : 0;
    if (!profile->event.is_clock) {
        count_event(profile, books, on_count, userdata);
    }
    for (size_t i = 0; i < count; i++) {
        char name[LINE_BYTES];
        bool is_term = i < COUNT_OF(terms);
        const char *member = is_term ? terms[i] : counters[i - COUNT_OF(terms)];
        const cJSON *item = number_of(is_term ? total : books, member);
        if (item != NULL && (is_term || item->valuedouble != 0) &&
            fabs(item->valuedouble) <= (double)JSON_INTEGER_MAX) {
            (void)snprintf(name, sizeof name, "%s%s", is_term ? "ticks " : "", member);
            const struct export_count found = {name, (int64_t)item->valuedouble, i + 1};
            on_count(&found, userdata);
        }
    }
}
