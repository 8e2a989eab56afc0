/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A segment's times all move by the same, which is never less than 0: so none is lost below 0, and
 * what is known from time 0 on is known before the segment's first sample. What would be later than
 * the last time there is stands at that.
 */
#include "session_clock.h"

#include "cleanup.h"
#include "grow.h"
#include "json.h"
#include "tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TIME_END_NS 0x1p63

/* A time in nanoseconds, as a text or a number. Above 2^53, which is 104 days, a number is exact to
 * less than a microsecond. */
static bool read_time(const cJSON *item, int64_t *ret)
{
    if (cJSON_IsString(item)) {
        char *end = NULL;
        errno = 0;
        *ret = strtoll(item->valuestring, &end, 10);
        return errno == 0 && end != item->valuestring && *end == '\0' && *ret >= 0;
    }
    bool is_time =
        json_is_integer(item) && item->valuedouble >= 0 && item->valuedouble < TIME_END_NS;
    *ret = is_time ? (int64_t)item->valuedouble : 0;
    return is_time;
}

bool session_clock_offset_ns(const char *session_json, int64_t *ret)
{
    cleanup_(json_freep) cJSON *session = cJSON_Parse(session_json);
    int64_t boot_ns = 0;
    int64_t wall_ns = 0;
    if (!read_time(cJSON_GetObjectItemCaseSensitive(session, "created_boot_ns"), &boot_ns) ||
        !read_time(cJSON_GetObjectItemCaseSensitive(session, "created_realtime_ns"), &wall_ns)) {
        return false;
    }
    *ret = wall_ns - boot_ns;
    return true;
}

/* How much later the times of each session are by the clock that all are to have. */
struct clocks {
    int64_t *offsets_ns; /* owned; by session: between it and the wall clock */
    uint64_t *later_ns;  /* owned; by segment */
    uint32_t base;       /* the session that has the clock; INTERN_NONE: no session is told */
    bool is_known;       /* by all sessions */
};

static void clocks_done(struct clocks *clocks)
{
    free(clocks->offsets_ns);
    free(clocks->later_ns);
}

/* Finds the session whose machine was booted first, of several the last; or one that does not say
 * when that was. */
static int find_base(struct clocks *clocks, struct recorded_books *recorded)
{
    size_t count = recorded->sessions.item_count;
    clocks->offsets_ns = calloc(count + 1, sizeof *clocks->offsets_ns);
    if (clocks->offsets_ns == NULL) {
        return -ENOMEM;
    }
    clocks->base = recorded_books_last_session(recorded);
    clocks->is_known = clocks->base != INTERN_NONE;
    for (size_t i = 0; i < count && clocks->is_known; i++) {
        const char *session_json = recorded->told[i].session_json;
        if (session_json != NULL &&
            !session_clock_offset_ns(session_json, &clocks->offsets_ns[i])) {
            clocks->is_known = false;
            clocks->base = (uint32_t)i;
        }
    }
    for (size_t i = 0; i < count && clocks->is_known; i++) {
        if (recorded->told[i].session_json != NULL &&
            clocks->offsets_ns[i] < clocks->offsets_ns[clocks->base]) {
            clocks->base = (uint32_t)i;
        }
    }
    return 0;
}

/* Finds how much later each segment is. `*ret_any`: one is. */
static int find_later(struct clocks *clocks, const struct recorded_books *recorded, bool *ret_any)
{
    *ret_any = false;
    clocks->later_ns = calloc(recorded->segment_count + 1, sizeof *clocks->later_ns);
    if (clocks->later_ns == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < recorded->segment_count && clocks->is_known; i++) {
        clocks->later_ns[i] = (uint64_t)clocks->offsets_ns[recorded->of_segments[i]] -
                              (uint64_t)clocks->offsets_ns[clocks->base];
        *ret_any = *ret_any || clocks->later_ns[i] > 0;
    }
    return 0;
}

static void move(uint64_t *time_ns, const struct clocks *clocks, uint32_t segment)
{
    if (__builtin_add_overflow(*time_ns, clocks->later_ns[segment], time_ns)) {
        *time_ns = UINT64_MAX;
    }
}

static void move_names(struct names *table, const struct clocks *clocks)
{
    for (size_t i = 0; i < table->count; i++) {
        move(&table->names[i].since_ns, clocks, table->names[i].segment);
    }
}

static void move_times(struct profile *profile, const struct clocks *clocks)
{
    struct mappings *mappings = &profile->tables->mappings;
    move_names(&profile->tables->names, clocks);
    move_names(&profile->tables->owners.of_processes, clocks);
    for (size_t i = 0; i < profile->thread_count; i++) {
        move(&profile->threads[i].begin_ns, clocks, profile->threads[i].task.segment);
    }
    for (size_t i = 0; i < mappings->mapping_count; i++) {
        move(&mappings->mappings[i].time_ns, clocks, mappings->mappings[i].segment);
    }
    struct process_lines *lines = &profile->tables->owners.lines;
    for (size_t i = 0; i < lines->count; i++) {
        if (lines->lines[i].since_ns > 0) { /* 0: before the session */
            move(&lines->lines[i].since_ns, clocks, lines->lines[i].segment);
        }
    }
    for (size_t i = 0; i < profile->drop_count; i++) {
        move(&profile->drops[i].first_ns, clocks, profile->drops[i].segment);
        move(&profile->drops[i].last_ns, clocks, profile->drops[i].segment);
    }
    for (size_t i = 0; i < profile->tables->sampled_count; i++) {
        move(&profile->tables->sampled[i].first_ns, clocks, (uint32_t)i);
        move(&profile->tables->sampled[i].last_ns, clocks, (uint32_t)i);
    }
    for (size_t i = 0; i < profile->sample_count; i++) {
        struct profile_sample *sample = &profile->samples[i];
        move(&sample->time_ns, clocks, profile_task(profile, sample->task)->segment);
    }
}

/* Hands the sessions to the profile. */
static int take_sessions(struct profile *profile, struct recorded_books *recorded, uint32_t base)
{
    size_t count = recorded->sessions.item_count;
    profile->session_jsons = calloc(count + 1, sizeof *profile->session_jsons);
    if (profile->session_jsons == NULL) {
        return -ENOMEM;
    }
    if (base != INTERN_NONE) {
        profile->session_json = strdup(recorded->told[base].session_json);
        if (profile->session_json == NULL) {
            return -ENOMEM;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (recorded->told[i].session_json != NULL) {
            profile->session_jsons[profile->session_count++] =
                take_ptr(recorded->told[i].session_json);
        }
    }
    return 0;
}

/* Finds the machine of each session, in an array by session (returned: free()); NULL: no memory. */
static uint32_t *find_hosts_of_sessions(struct profile *profile,
                                        const struct recorded_books *recorded)
{
    size_t count = recorded->sessions.item_count;
    cleanup_(freep) uint32_t *hosts = calloc(count + 1, sizeof *hosts);
    for (size_t i = 0; i < count && hosts != NULL; i++) {
        cleanup_(json_freep) cJSON *session = cJSON_Parse(recorded->told[i].session_json);
        const char *host = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(session, "host"));
        hosts[i] = INTERN_NONE;
        if (host != NULL && intern_add(&profile->texts, host, strlen(host), &hosts[i]) < 0) {
            return NULL;
        }
    }
    return take_ptr(hosts);
}

/* Finds the machine of each segment. A recording can have many segments of one session. */
static int find_hosts(struct profile *profile, const struct recorded_books *recorded)
{
    cleanup_(freep) uint32_t *hosts = find_hosts_of_sessions(profile, recorded);
    profile->hosts = calloc(recorded->segment_count + 1, sizeof *profile->hosts);
    if (hosts == NULL || profile->hosts == NULL) {
        return -ENOMEM;
    }
    profile->host_count = recorded->segment_count;
    for (size_t i = 0; i < recorded->segment_count; i++) {
        uint32_t session = recorded->of_segments[i];
        profile->hosts[i] = session == INTERN_NONE ? INTERN_NONE : hosts[session];
    }
    return 0;
}

int session_clock_unify(struct profile *profile, struct recorded_books *recorded)
{
    cleanup_(clocks_done) struct clocks clocks = {0};
    bool moves = false;
    int r = find_base(&clocks, recorded);
    r = r < 0 ? r : find_later(&clocks, recorded, &moves);
    if (r == 0 && moves) {
        move_times(profile, &clocks);
    }
    r = r < 0 ? r : find_hosts(profile, recorded);
    return r < 0 ? r : take_sessions(profile, recorded, clocks.base);
}

bool profile_wall_offset_ns(const struct profile *profile, int64_t *ret)
{
    return session_clock_offset_ns(profile->session_json, ret);
}
