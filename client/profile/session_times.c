/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Keeps the period and the length of each session apart: sessions of one file may have different
 * ones, and one that was read while it ran has no books. So what they have together is summed up
 * from session to session, and nothing of one session is said of the samples of another.
 */
#include "session_times.h"

#include "cleanup.h"
#include "extremes.h"
#include "json.h"
#include "recording_length.h"
#include "tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ALIKE 0.01 /* by as much periods may differ before it matters */

/* A number of at least 1 in an object, else 0. */
static uint64_t positive_member(const cJSON *object, const char *name)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, name);
    double number = cJSON_IsNumber(value) ? value->valuedouble : 0;
    return number >= 1 && number <= 1e15 ? (uint64_t)number : 0;
}

/* The period of a session by its books, or by its configuration; 0 where neither tells. */
static uint64_t find_period_ns(const char *session_json, const char *books_json)
{
    cleanup_(json_freep) cJSON *books = cJSON_Parse(books_json);
    cleanup_(json_freep) cJSON *session = cJSON_Parse(session_json);
    const cJSON *config = cJSON_GetObjectItemCaseSensitive(session, "config");
    if (cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(books, "period_ns"))) {
        return 0;
    }
    uint64_t period_ns = positive_member(books, "period_ns");
    uint64_t frequency_hz = positive_member(config, "frequency_hz");
    if (period_ns == 0) {
        period_ns = positive_member(config, "sample_period_ns");
    }
    if (period_ns == 0 && frequency_hz > 0) {
        period_ns = (UINT64_C(1000000000) + frequency_hz / 2) / frequency_hz;
    }
    return period_ns;
}

static bool knows_idleness_by_switches(const char *books_json)
{
    static const char switches[] = "switches";
    cleanup_(json_freep) cJSON *books = cJSON_Parse(books_json);
    const char *source =
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(books, "idle_source"));
    return source != NULL && strncmp(source, switches, strlen(switches)) == 0;
}

void session_times_done(struct profile *profile)
{
    for (size_t i = 0; i < profile->session_time_count; i++) {
        free(profile->session_times[i].books_json);
    }
    free(profile->session_times);
    free(profile->session_of);
}

/* Whether a segment has samples, of any event. */
static bool is_sampled(const struct profile_tables *tables, size_t segment)
{
    return segment < tables->sampled_count && tables->sampled[segment].first_ns != UINT64_MAX;
}

/* The last entry is that of segments of which no session is known. */
static int make_times(struct profile *profile, const struct recorded_books *recorded)
{
    size_t count = recorded->sessions.item_count;
    profile->session_times = calloc(count + 1, sizeof *profile->session_times);
    profile->session_of = calloc(recorded->segment_count + 1, sizeof *profile->session_of);
    if (profile->session_times == NULL || profile->session_of == NULL) {
        return -ENOMEM;
    }
    profile->session_time_count = count + 1;
    for (size_t i = 0; i < count; i++) {
        const struct recorded_session *told = &recorded->told[i];
        struct profile_session_time *time = &profile->session_times[i];
        time->session_json = told->session_json; /* which session_clock_unify() hands over */
        time->period_ns = find_period_ns(told->session_json, told->books_json);
        time->has_idle_task = knows_idleness_by_switches(told->books_json);
        if (told->books_json != NULL) {
            time->books_json = strdup(told->books_json);
            if (time->books_json == NULL) {
                return -ENOMEM;
            }
        }
    }
    for (size_t i = 0; i < recorded->segment_count; i++) {
        uint32_t session = recorded->counted_by[i];
        profile->session_of[i] = session == INTERN_NONE ? (uint32_t)count : session;
        profile->session_times[profile->session_of[i]].has_samples |=
            is_sampled(profile->tables, i);
    }
    return 0;
}

/* The books of some sessions say nothing of the samples of the others. */
static void drop_partial_books(struct profile *profile)
{
    for (size_t i = 0; i < profile->session_time_count; i++) {
        const struct profile_session_time *time = &profile->session_times[i];
        profile->sampled_session_count += time->has_samples;
        profile->bookless_session_count += time->has_samples && time->books_json == NULL;
    }
    if (profile->bookless_session_count > 0) {
        free(take_ptr(profile->books_json));
    }
}

int session_times_take(struct profile *profile, const struct recorded_books *recorded)
{
    int r = make_times(profile, recorded);
    if (r == 0) {
        drop_partial_books(profile);
    }
    return r;
}

void session_times_measure(struct profile *profile)
{
    const struct profile_tables *tables = profile->tables;
    for (size_t i = 0; i < profile->session_time_count; i++) {
        profile->session_times[i].first_ns = UINT64_MAX;
    }
    for (size_t i = 0; i < tables->sampled_count; i++) {
        if (is_sampled(tables, i)) {
            struct profile_session_time *time = &profile->session_times[profile->session_of[i]];
            time->first_ns = min_u64(time->first_ns, tables->sampled[i].first_ns);
            time->last_ns = max_u64(time->last_ns, tables->sampled[i].last_ns);
        }
    }
    for (size_t i = 0; i < profile->session_time_count; i++) {
        struct profile_session_time *time = &profile->session_times[i];
        uint64_t between_ns = time->has_samples ? time->last_ns - time->first_ns : 0;
        time->length_ns = recording_length_ns(time->books_json, between_ns);
    }
}

/* The sum, up to what formats have room for. */
static uint64_t add_bounded(uint64_t a, uint64_t b)
{
    uint64_t sum = 0;
    return __builtin_add_overflow(a, b, &sum) || sum > INT64_MAX ? INT64_MAX : sum;
}

/* For how long a session was sampled within the part of the time that was selected. */
static uint64_t selected_ns(const struct profile *profile, const struct profile_session_time *time)
{
    if (profile->from_ns == 0 && profile->to_ns == 0) {
        return time->length_ns;
    }
    if (!time->has_samples) {
        return 0;
    }
    uint64_t end_ns = max_u64(add_bounded(time->first_ns, time->length_ns), time->last_ns);
    uint64_t begin_ns = max_u64(time->first_ns, profile->from_ns);
    end_ns = profile->to_ns == 0 ? end_ns : min_u64(end_ns, profile->to_ns);
    return end_ns > begin_ns ? end_ns - begin_ns : 0;
}

struct profile_span profile_span(const struct profile *profile)
{
    struct profile_span span = {
        .begin_ns = max_u64(profile->first_ns - profile->unselected_ns, profile->from_ns)};
    for (size_t i = 0; i < profile->session_time_count; i++) {
        span.length_ns =
            add_bounded(span.length_ns, selected_ns(profile, &profile->session_times[i]));
    }
    return span;
}

struct profile_span profile_session_span(const struct profile *profile, uint32_t segment)
{
    if (profile->sampled_session_count <= 1) {
        return profile_span(profile);
    }
    const struct profile_session_time *time = &profile->session_times[profile->session_of[segment]];
    return (struct profile_span){
        .begin_ns = max_u64(time->first_ns, profile->from_ns),
        .length_ns = selected_ns(profile, time),
    };
}

/* The one period of all sessions that have samples or books; 0: there is none. `takes_any`: of all
 * sessions. */
static uint64_t find_one_period_ns(const struct profile *profile, bool takes_any)
{
    uint64_t period_ns = 0;
    bool is_first = true;
    for (size_t i = 0; i < profile->session_time_count; i++) {
        const struct profile_session_time *time = &profile->session_times[i];
        bool is_taken = time->has_samples || time->books_json != NULL ||
                        (takes_any && i + 1 < profile->session_time_count);
        if (is_taken && !is_first && time->period_ns != period_ns) {
            return 0;
        }
        if (is_taken) {
            period_ns = time->period_ns;
            is_first = false;
        }
    }
    return period_ns;
}

uint64_t profile_period_ns(const struct profile *profile)
{
    if (profile->session_time_count == 0) { /* it is still being read, and of one session */
        return find_period_ns(profile->session_json, profile->books_json);
    }
    bool is_empty = profile->sampled_session_count == 0 && profile->books_json == NULL;
    return find_one_period_ns(profile, is_empty);
}

uint64_t profile_sample_period_ns(const struct profile *profile,
                                  const struct profile_sample *sample)
{
    uint32_t segment = profile_task(profile, sample->task)->segment;
    return profile->session_times[profile->session_of[segment]].period_ns;
}

bool profile_has_periods(const struct profile *profile)
{
    for (size_t i = 0; i < profile->session_time_count; i++) {
        const struct profile_session_time *time = &profile->session_times[i];
        if (time->has_samples && time->period_ns == 0) {
            return false;
        }
    }
    return profile->sampled_session_count > 0;
}

bool profile_periods_differ(const struct profile *profile)
{
    uint64_t shortest_ns = UINT64_MAX;
    uint64_t longest_ns = 0;
    for (size_t i = 0; i < profile->session_time_count; i++) {
        const struct profile_session_time *time = &profile->session_times[i];
        if (time->has_samples && time->period_ns > 0) {
            shortest_ns = min_u64(shortest_ns, time->period_ns);
            longest_ns = max_u64(longest_ns, time->period_ns);
        }
    }
    return (double)longest_ns > (1 + ALIKE) * (double)shortest_ns;
}

double profile_cpu_seconds(const struct profile *profile)
{
    uint64_t period_ns = profile_period_ns(profile);
    double sum_ns = (double)profile_total(profile) * (double)period_ns;
    if (period_ns == 0 && profile_has_periods(profile)) {
        for (size_t i = 0; i < profile->sample_count; i++) {
            sum_ns += (double)profile_value(profile, i) *
                      (double)profile_sample_period_ns(profile, &profile->samples[i]);
        }
    }
    return sum_ns / 1e9;
}
