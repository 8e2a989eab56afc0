/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Selects samples. Times become those of the recording first; then each sample is judged by
 * itself. The profile keeps its tables: what only other samples used stays in them.
 */
#include "selection.h"

#include "cleanup.h"
#include "duration.h"
#include "extremes.h"
#include "selection_none.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#define NS_PER_S     INT64_C(1000000000)
#define EARLY_S      3600
#define OFFSET_MAX_S UINT64_C(1000000000)
#define YEAR_MAX     2261 /* what 64 bits of nanoseconds hold */

static bool names_tasks(const struct selection *selection)
{
    return selection->pid_count > 0 || selection->tid_count > 0 || selection->comm_count > 0 ||
           selection->uid_count > 0 || selection->unit_count > 0 || selection->cgroup_count > 0;
}

bool selection_is_empty(const struct selection *selection)
{
    return selection->from.kind == SELECTION_ANY_TIME && selection->to.kind == SELECTION_ANY_TIME &&
           !names_tasks(selection) && selection->module_count == 0;
}

static bool parse_offset(const char *text, struct selection_time *ret)
{
    uint64_t offset_ns = 0;
    if (!duration_parse(text, OFFSET_MAX_S * (uint64_t)NS_PER_S, &offset_ns)) {
        return false;
    }
    *ret = (struct selection_time){.kind = SELECTION_OFFSET, .offset_ns = offset_ns};
    return true;
}

/* Whether there is such a day, in a year that times are known of. */
static bool is_date(const struct tm *tm)
{
    struct tm date = {.tm_year = tm->tm_year, .tm_mon = tm->tm_mon, .tm_mday = tm->tm_mday};
    (void)timegm(&date);
    return tm->tm_year >= 70 && tm->tm_year + 1900 <= YEAR_MAX && date.tm_mday == tm->tm_mday;
}

bool selection_parse_time(const char *text, struct selection_time *ret)
{
    struct tm tm = {0};
    uint64_t fraction_ns = 0;
    const char *end = strptime(text, "%Y-%m-%d", &tm);
    bool has_date = end != NULL && (*end == 'T' || *end == ' ');
    if (strchr(text, ':') == NULL) {
        return parse_offset(text, ret);
    }
    end = strptime(has_date ? end + 1 : text, "%H:%M", &tm);
    if (end != NULL && *end == ':') {
        end = strptime(end + 1, "%S", &tm);
    }
    if (end != NULL && *end == '.') {
        end = duration_fraction(end + 1, (uint64_t)NS_PER_S, &fraction_ns);
    }
    if (end == NULL || *end != '\0' || (has_date && !is_date(&tm))) {
        return false;
    }
    *ret = (struct selection_time){
        .kind = has_date ? SELECTION_DATE : SELECTION_TIME_OF_DAY,
        .offset_ns = fraction_ns,
        .year = tm.tm_year + 1900,
        .month = tm.tm_mon + 1,
        .day = tm.tm_mday,
        .hour = tm.tm_hour,
        .minute = tm.tm_min,
        .second = tm.tm_sec,
    };
    return true;
}

/* Seconds since 1970 of a time of the wall clock, so many days behind its date. */
static int64_t seconds_of(struct tm date, const struct selection_time *time, int days)
{
    date.tm_mday += days;
    date.tm_hour = time->hour;
    date.tm_min = time->minute;
    date.tm_sec = time->second;
    date.tm_isdst = -1;
    return mktime(&date);
}

/* The same. Without a date it is the first such time from an hour before `first_s` on: a recording
 * may go on past midnight, or have begun just behind it. */
static int64_t wall_seconds(const struct selection_time *time, int64_t first_s)
{
    const time_t first = (time_t)first_s;
    struct tm date = {0};
    (void)localtime_r(&first, &date);
    if (time->kind == SELECTION_DATE) {
        date.tm_year = time->year - 1900;
        date.tm_mon = time->month - 1;
        date.tm_mday = time->day;
        return seconds_of(date, time, 0);
    }
    for (int days = -1; days < 1; days++) {
        int64_t seconds = seconds_of(date, time, days);
        if (seconds >= first_s - EARLY_S) {
            return seconds;
        }
    }
    return seconds_of(date, time, 1);
}

/* The recording's time of a time of the wall clock. False: the recording does not know it. */
static bool find_wall_time(const struct selection_time *time, const struct profile *profile,
                           uint64_t *ret_ns)
{
    int64_t offset_ns = 0;
    int64_t first_ns = 0;
    int64_t wall_ns = 0;
    if (!profile_wall_offset_ns(profile, &offset_ns) ||
        __builtin_add_overflow(profile->first_ns, offset_ns, &first_ns) ||
        __builtin_mul_overflow(wall_seconds(time, first_ns / NS_PER_S), NS_PER_S, &wall_ns) ||
        __builtin_add_overflow(wall_ns, time->offset_ns, &wall_ns) ||
        __builtin_sub_overflow(wall_ns, offset_ns, &wall_ns)) {
        return false;
    }
    *ret_ns = wall_ns > 0 ? (uint64_t)wall_ns : 0;
    return true;
}

/* The recording's time that is meant. */
static int find_time(const struct selection_time *time, const struct profile *profile,
                     uint64_t otherwise_ns, uint64_t *ret_ns, struct fault *reterr)
{
    if (time->kind == SELECTION_ANY_TIME) {
        *ret_ns = otherwise_ns;
        return 0;
    }
    if (time->kind == SELECTION_OFFSET) {
        uint64_t origin_ns = profile->first_ns - profile->unselected_ns;
        *ret_ns =
            time->offset_ns > UINT64_MAX - origin_ns ? UINT64_MAX : origin_ns + time->offset_ns;
        return 0;
    }
    return find_wall_time(time, profile, ret_ns)
               ? 0
               : fault_set(reterr, ENODATA,
                           "does not say what time of the day it was; give the seconds since its "
                           "first sample");
}

static bool has_number(const uint64_t *numbers, size_t count, uint64_t number)
{
    for (size_t i = 0; i < count; i++) {
        if (numbers[i] == number) {
            return true;
        }
    }
    return false;
}

/* Whether one of them is the name, as "[kernel]", or a glob of it. */
static bool has_match(const char *const *globs, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(globs[i], name) == 0 || fnmatch(globs[i], name, 0) == 0) {
            return true;
        }
    }
    return false;
}

static bool has_name(const struct selection *selection, const struct profile *profile,
                     uint32_t text)
{
    return text != INTERN_NONE &&
           has_match(selection->comms, selection->comm_count, profile_text(profile, text));
}

/* Whether a path is the prefix or lies below it. */
static bool has_cgroup(const struct selection *selection, const char *path)
{
    for (size_t i = 0; i < selection->cgroup_count; i++) {
        size_t bytes = strlen(selection->cgroups[i]);
        while (bytes > 0 && selection->cgroups[i][bytes - 1] == '/') {
            bytes--;
        }
        if (strncmp(path, selection->cgroups[i], bytes) == 0 &&
            (path[bytes] == '\0' || path[bytes] == '/')) {
            return true;
        }
    }
    return false;
}

static bool has_unit(const struct selection *selection, const struct profile *profile,
                     uint32_t unit)
{
    const char *name = unit == INTERN_NONE ? "" : profile_text(profile, unit);
    for (size_t i = 0; i < selection->unit_count && name[0] != '\0'; i++) {
        if (unit_glob_matches(selection->units[i], name, strlen(name))) {
            return true;
        }
    }
    return false;
}

static bool has_owner(const struct selection *selection, const struct profile *profile,
                      const struct profile_task *task)
{
    const struct profile_owner *owner = profile_owner(profile, task->owner);
    for (size_t i = 0; i < selection->uid_count; i++) {
        if (owner->uid != PROFILE_UID_UNKNOWN && owner->uid == selection->uids[i]) {
            return true;
        }
    }
    return has_unit(selection, profile, owner->unit) ||
           has_unit(selection, profile, owner->user_unit) ||
           (owner->cgroup != INTERN_NONE &&
            has_cgroup(selection, profile_text(profile, owner->cgroup)));
}

static bool has_task(const struct selection *selection, const struct profile *profile,
                     const struct profile_task *task)
{
    if (!names_tasks(selection) || has_owner(selection, profile, task) ||
        has_number(selection->pids, selection->pid_count, task->pid) ||
        has_number(selection->tids, selection->tid_count, task->tid)) {
        return true;
    }
    uint32_t thread = selection->comm_count == 0 ? INTERN_NONE : task->thread_name;
    return selection->comm_count > 0 && (has_name(selection, profile, task->process_name) ||
                                         has_name(selection, profile, thread));
}

/* Whether a module that is named has the frame. One that is in no module, as a marker, is known by
 * its name, as in a report by module. */
static bool is_in_module(const struct selection *selection, const struct profile *profile,
                         const struct profile_frame *frame)
{
    if (frame->module == INTERN_NONE) {
        return has_match(selection->modules, selection->module_count,
                         profile_text(profile, frame->name));
    }
    const struct profile_module *module = &profile->modules[frame->module];
    return has_match(selection->modules, selection->module_count,
                     profile_text(profile, module->name)) ||
           has_match(selection->modules, selection->module_count,
                     profile_text(profile, module->basename));
}

static uint32_t innermost(const struct profile *profile, const struct profile_sample *sample)
{
    size_t count = 0;
    return profile_chain(profile, sample->chain, &count)[0];
}

/* Marks the frames that modules which are named have, in an array by frame (returned: free()).
 * `*ret_marks` is NULL where none is named. */
static int mark_frames(const struct selection *selection, const struct profile *profile,
                       bool **ret_marks, struct fault *reterr)
{
    size_t count = profile->frames.item_count;
    bool has_sample = false;
    *ret_marks = NULL;
    if (selection->module_count == 0) {
        return 0;
    }
    cleanup_(freep) bool *marks = calloc(count + 1, sizeof *marks);
    if (marks == NULL) {
        return fault_set(reterr, ENOMEM, "there is not enough memory");
    }
    for (size_t i = 0; i < count; i++) {
        marks[i] = is_in_module(selection, profile, profile_frame(profile, (uint32_t)i));
    }
    for (size_t i = 0; i < profile->sample_count && !has_sample; i++) {
        has_sample = marks[innermost(profile, &profile->samples[i])];
    }
    if (!has_sample) {
        return fault_set(reterr, ESRCH,
                         "no sample was in a module '%s'; profctl report --by module%s%s lists "
                         "them",
                         selection->modules[0], selection->event == NULL ? "" : " --event ",
                         selection->event == NULL ? "" : selection->event);
    }
    *ret_marks = take_ptr(marks);
    return 0;
}

/* A part of the time. */
struct part {
    uint64_t from_ns;
    uint64_t to_ns;     /* UINT64_MAX: to the end */
    uint64_t origin_ns; /* of offsets: nothing that is selected lies before it */
};

/* Whether a part of the time has some of a sample. Of a wait it leaves in `sample` and `value` what
 * is within: that ends with the part, where the wait did not end in it. */
static bool cut_to_part(const struct profile *profile, size_t number, const struct part *part,
                        struct profile_sample *sample, uint64_t *value)
{
    bool is_all = part->from_ns == 0 && part->to_ns == UINT64_MAX;
    if (is_all || !profile->event.is_wait) {
        return is_all || (sample->time_ns >= part->from_ns &&
                          (sample->time_ns < part->to_ns || part->to_ns == UINT64_MAX));
    }
    uint64_t begin_ns = max_u64(profile_begin_ns(profile, number), part->from_ns);
    uint64_t end_ns = min_u64(sample->time_ns, part->to_ns);
    if (begin_ns >= end_ns || end_ns <= part->origin_ns) {
        return false;
    }
    *value = end_ns - begin_ns;
    sample->time_ns = end_ns == part->to_ns ? end_ns - 1 : end_ns;
    return true;
}

/* Whether a sample is selected, but for its time. */
static bool is_selected(const struct selection *selection, const struct profile *profile,
                        const bool *marks, const struct profile_sample *sample)
{
    return has_task(selection, profile, profile_task(profile, sample->task)) &&
           (marks == NULL || marks[innermost(profile, sample)]);
}

/* Says why nothing is selected. */
static int refuse_none(const struct selection *selection, const struct profile *profile,
                       const bool *marks, struct fault *reterr)
{
    uint64_t origin_ns = profile->first_ns - profile->unselected_ns;
    uint64_t first_ns = UINT64_MAX;
    uint64_t last_ns = 0;
    for (size_t i = 0; i < profile->sample_count; i++) {
        const struct profile_sample *sample = &profile->samples[i];
        if (is_selected(selection, profile, marks, sample)) {
            first_ns = min_u64(first_ns, max_u64(profile_begin_ns(profile, i), origin_ns));
            last_ns = max_u64(last_ns, sample->time_ns);
        }
    }
    return selection_explain_none(selection, profile, first_ns, last_ns, reterr);
}

/* Adds up what the first samples stand for. */
static void find_total(struct profile *profile, size_t count)
{
    profile->value_total = 0;
    for (size_t i = 0; i < count && profile->values != NULL; i++) {
        profile->value_total += profile->values[i];
    }
}

/* Finds when the first samples were, from the first of them on. */
static void find_span(struct profile *profile, size_t count, uint64_t origin_ns)
{
    uint64_t first_ns = count == 0 ? 0 : UINT64_MAX;
    uint64_t last_ns = 0;
    for (size_t i = 0; i < count; i++) {
        first_ns = min_u64(first_ns, profile->samples[i].time_ns);
        last_ns = max_u64(last_ns, profile->samples[i].time_ns);
    }
    profile->unselected_ns = count == 0 ? profile->unselected_ns : first_ns - origin_ns;
    profile->first_ns = first_ns;
    profile->last_ns = last_ns;
}

/* Moves the samples that are selected to the front, with what they stand for. Returns how many. */
static size_t keep_selected(const struct selection *selection, struct profile *profile,
                            const bool *marks, const struct part *part)
{
    size_t kept = 0;
    for (size_t i = 0; i < profile->sample_count; i++) {
        struct profile_sample sample = profile->samples[i];
        uint64_t value = profile_value(profile, i);
        if (!cut_to_part(profile, i, part, &sample, &value) ||
            !is_selected(selection, profile, marks, &sample)) {
            continue;
        }
        if (profile->values != NULL) {
            profile->values[kept] = value;
        }
        profile->samples[kept++] = sample;
    }
    return kept;
}

size_t selection_apply_to_threads(const struct selection *selection, struct profile *profile)
{
    const bool is_part = selection->from.kind != SELECTION_ANY_TIME ||
                         selection->to.kind != SELECTION_ANY_TIME || selection->module_count > 0;
    size_t kept = 0;
    for (size_t i = 0; i < profile->thread_count && !is_part; i++) {
        if (has_task(selection, profile, &profile->threads[i].task)) {
            profile->threads[kept++] = profile->threads[i];
        }
    }
    profile->has_chosen_threads = profile->has_chosen_threads || kept < profile->thread_count;
    profile->thread_count = kept;
    return kept;
}

int selection_apply(const struct selection *selection, struct profile *profile,
                    struct fault *reterr)
{
    cleanup_(freep) bool *marks = NULL;
    struct part part = {.origin_ns = profile->first_ns - profile->unselected_ns};
    int r = find_time(&selection->from, profile, 0, &part.from_ns, reterr);
    r = r < 0 ? r : find_time(&selection->to, profile, UINT64_MAX, &part.to_ns, reterr);
    if (r < 0) {
        return r;
    }
    if (part.from_ns >= part.to_ns) {
        return fault_set(reterr, EINVAL, "the part that is selected ends before it begins");
    }
    r = mark_frames(selection, profile, &marks, reterr);
    if (r < 0) {
        return r;
    }
    size_t count = profile->sample_count;
    size_t kept = keep_selected(selection, profile, marks, &part);
    if (kept == 0 && count > 0) {
        return refuse_none(selection, profile, marks, reterr);
    }
    (void)selection_apply_to_threads(selection, profile);
    find_total(profile, kept);
    find_span(profile, kept, part.origin_ns);
    profile->unselected_count += count - kept;
    profile->sample_count = kept;
    profile->from_ns = max_u64(profile->from_ns, part.from_ns);
    if (part.to_ns != UINT64_MAX) {
        profile->to_ns = profile->to_ns == 0 ? part.to_ns : min_u64(profile->to_ns, part.to_ns);
    }
    return 0;
}
