/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Sees whether recordings may be compared. What they say of themselves may come from any user's
 * file: what is of another type than it should be counts as not there. What changes the meaning of
 * a function's samples is refused; what may be meant, such as another host, is said.
 */
#include "books_print.h"
#include "cleanup.h"
#include "diff_parts.h"
#include "fault.h"
#include "grow.h"
#include "json.h"
#include "session_facts.h"
#include "text_out.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#define DEPTH_MAX     16
#define SEVERAL       "several kinds"
#define MISSING_LIMIT 0.05
#define NS_PER_S      1e9
#define HARDLY_SHARED 0.1

static const struct {
    const char *what;
    bool is_refused;
} facts[] = {
    [FACT_KERNEL_STACKS] = {"stacks of the kernel", true},
    [FACT_UNWIND] = {"the ways in which stacks were unwound", true},
    [FACT_EVENTS] = {"the events that were sampled", true},
    [FACT_TARGETS] = {"what was recorded", false},
    [FACT_HOST] = {"the host", false},
    [FACT_KERNEL] = {"the kernel's version", false},
};

/* Adds a sentence that stands above the rows. Returns 0, or -ENOMEM. */
__attribute__((format(printf, 2, 3))) static int warn_of(struct diff *diff, const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    int length = vasprintf(&text, format, args);
    va_end(args);
    if (length < 0) {
        return -ENOMEM;
    }
    if (grow(diff->warnings, diff->warning_capacity, diff->warning_count + 1) < 0) {
        free(text);
        return -ENOMEM;
    }
    diff->warnings[diff->warning_count++] = text;
    return 0;
}

/* Takes a text (taken; NULL: there is none) for a fact, which another session may have too. */
static void add_fact(struct part *part, enum part_fact fact, char *text, bool is_first)
{
    bool is_same = is_first || (text != NULL && part->facts[fact] != NULL &&
                                strcmp(text, part->facts[fact]) == 0);
    if (is_same) {
        free(part->facts[fact]);
        part->facts[fact] = text;
        return;
    }
    free(text);
    free(part->facts[fact]);
    part->facts[fact] = strdup(SEVERAL);
}

/* A text of a config, or whether a recording has what it names. Returned: free(). */
static char *copy_member(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    const char *text = cJSON_IsString(item)  ? item->valuestring
                       : cJSON_IsTrue(item)  ? "them"
                       : cJSON_IsFalse(item) ? "none"
                                             : NULL;
    return text == NULL ? NULL : strdup(text);
}

/* An event as `profctl events` lists it, "page-faults:100", whatever name the user had for it; the
 * clock's rate is compared by itself. One that is counted with another is "instructions with
 * cycles". */
static void write_event(FILE *file, const cJSON *event, bool is_first)
{
    char listed[PROFILE_EVENT_NAME_BYTES];
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(event, "event"));
    const cJSON *period = cJSON_GetObjectItemCaseSensitive(event, "period");
    const cJSON *unit = cJSON_GetObjectItemCaseSensitive(event, "unit");
    const cJSON *leader = cJSON_GetObjectItemCaseSensitive(event, "leader");
    bool is_time = cJSON_IsString(unit) && strcmp(unit->valuestring, "ns") == 0;
    text_print(file, name == NULL ? "[unknown]" : profile_event_listed_name(name, listed));
    if (cJSON_IsString(leader)) {
        (void)fputs(" with ", file);
        text_print(file, profile_event_listed_name(leader->valuestring, listed));
    } else if (!is_first && !is_time && cJSON_IsNumber(period)) {
        (void)fprintf(file, ":%.0f", period->valuedouble);
    }
}

/* "cpu-clock, off-cpu and preempted"; a session that lists none has the clock alone. Returned:
 * free(). */
static char *print_events(const cJSON *session)
{
    const cJSON *events = cJSON_GetObjectItemCaseSensitive(session, "events");
    int count = cJSON_GetArraySize(events);
    char *text = NULL;
    size_t text_bytes = 0;
    FILE *file = open_memstream(&text, &text_bytes);
    if (file == NULL) {
        return NULL;
    }
    (void)fputs(count == 0 ? "cpu-clock" : "", file);
    for (int i = 0; i < count; i++) {
        (void)fputs(i == 0 ? "" : i + 1 < count ? ", " : " and ", file);
        write_event(file, cJSON_GetArrayItem(events, i), i == 0);
    }
    (void)fclose(file);
    return text;
}

static void take_session(struct part *part, const char *json, bool is_first)
{
    cleanup_(json_freep) cJSON *session = NULL;
    if (json_parse(json, strlen(json), DEPTH_MAX, &session, NULL) < 0) {
        return;
    }
    const cJSON *config = cJSON_GetObjectItemCaseSensitive(session, "config");
    add_fact(part, FACT_KERNEL_STACKS, copy_member(config, "kernel_stacks"), is_first);
    add_fact(part, FACT_UNWIND, copy_member(config, "unwind"), is_first);
    add_fact(part, FACT_EVENTS, print_events(session), is_first);
}

static void take_text(char **from, char **into)
{
    free(*into);
    *into = take_ptr(*from);
}

static double ticks_of(const struct profile *profile, const char *term)
{
    int64_t ticks = 0;
    return books_print_total(profile->books_json, term, &ticks) && ticks > 0 ? (double)ticks : 0;
}

/* A sum of the books of another event than the clock. */
static double count_of(const struct profile *profile, const char *member)
{
    int64_t count = 0;
    return books_print_event(profile->books_json, profile->event.name, member, &count) && count > 0
               ? (double)count
               : 0;
}

int part_take_facts(struct part *part, const struct profile *profile)
{
    struct session_facts session;
    for (size_t i = 0; i < profile->session_count; i++) {
        take_session(part, profile->session_jsons[i], i == 0);
    }
    session_facts_take(profile, &session);
    take_text(&session.targets, &part->facts[FACT_TARGETS]);
    take_text(&session.host, &part->facts[FACT_HOST]);
    take_text(&session.kernel, &part->facts[FACT_KERNEL]);
    part->is_whole = session.is_whole;
    session_facts_done(&session);
    part->length_s = (double)profile_span(profile).length_ns / NS_PER_S;
    if (!profile->event.is_clock) {
        part->counted = count_of(profile, "counted");
        part->sampled = count_of(profile, "sampled");
        return 0;
    }
    part->period_ns = profile_period_ns(profile);
    part->cpu_s = profile_cpu_seconds(profile);
    part->expected = ticks_of(profile, "expected");
    part->seen = part->expected - ticks_of(profile, "lost") - ticks_of(profile, "throttled") -
                 ticks_of(profile, "missed") - ticks_of(profile, "dropped");
    return 0;
}

/* Whether two recordings differ in a fact. A number of a process differs in every run. */
static bool differs(const struct part *a, const struct part *b, enum part_fact fact)
{
    const char *left = a->facts[fact];
    const char *right = b->facts[fact];
    if (left == NULL || right == NULL) {
        return left != right && fact == FACT_EVENTS;
    }
    bool are_processes = fact == FACT_TARGETS && strncmp(left, "process", 7) == 0 &&
                         strncmp(right, "process", 7) == 0;
    return strcmp(left, right) != 0 && !are_processes;
}

/* The first recording that differs from the first of all, or NULL. */
static const struct part *find_differing(const struct diff *diff, enum part_fact fact)
{
    for (size_t i = 1; i < diff->part_count; i++) {
        if (differs(&diff->parts[0], &diff->parts[i], fact)) {
            return &diff->parts[i];
        }
    }
    return NULL;
}

static const char *fact_text(const struct part *part, enum part_fact fact)
{
    return part->facts[fact] == NULL ? "unknown" : part->facts[fact];
}

/* Refuses recordings that differ in a fact. A fault cuts long names, the refusal does not. */
static int refuse_fact(struct diff *diff, enum part_fact fact, const struct part *other,
                       struct fault *reterr)
{
    const struct part *first = &diff->parts[0];
    if (asprintf(&diff->refusal,
                 "%s differ: %s has %s, and %s has %s; the same function then has other samples; "
                 "--force compares them all the same",
                 facts[fact].what, first->name, fact_text(first, fact), other->name,
                 fact_text(other, fact)) < 0) {
        diff->refusal = NULL;
        return -ENOMEM;
    }
    return fault_set(reterr, EINVAL, "%s", diff->refusal);
}

static int check_facts(struct diff *diff, struct fault *reterr)
{
    const struct part *first = &diff->parts[0];
    for (enum part_fact fact = 0; fact < FACTS; fact++) {
        const struct part *other = find_differing(diff, fact);
        if (other == NULL) {
            continue;
        }
        if (facts[fact].is_refused && !diff->options.has_force) {
            return refuse_fact(diff, fact, other, reterr);
        }
        if (warn_of(diff, "%s %s: %s has %s, and %s has %s", facts[fact].what,
                    facts[fact].is_refused ? "differ" : "differs", first->name,
                    fact_text(first, fact), other->name, fact_text(other, fact)) < 0) {
            return -ENOMEM;
        }
    }
    return 0;
}

#define PERIOD_BYTES 64

/* "each 1.001 ms" */
static const char *period_words(uint64_t period_ns, char *into)
{
    if (period_ns == 0) {
        return "each of several periods, or of one that is not known";
    }
    (void)snprintf(into, PERIOD_BYTES, "each %.6g ms", (double)period_ns / 1e6);
    return into;
}

static int check_parts(struct diff *diff, struct fault *reterr)
{
    const struct part *first = &diff->parts[0];
    int r = 0;
    for (size_t i = 0; i < diff->part_count && r == 0; i++) {
        const struct part *part = &diff->parts[i];
        if (part->fold.sample_count == 0) {
            return fault_set(reterr, EINVAL, "%s has no samples to compare", part->name);
        }
        if (part->expected > 0 && part->seen < (1 - MISSING_LIMIT) * part->expected) {
            r = warn_of(diff,
                        "%s: %.0f %% of the ticks are missing, which may be those of a "
                        "function that grew",
                        part->name, 100 * (1 - part->seen / part->expected));
        }
        if (part->counted > 0 && part->sampled < (1 - MISSING_LIMIT) * part->counted) {
            r = warn_of(diff,
                        "%s: %.0f %% of what was counted has no sample, and may be a function's "
                        "that grew",
                        part->name, 100 * (1 - part->sampled / part->counted));
        }
        if (r == 0 && part->period_ns != first->period_ns) {
            char periods[2][PERIOD_BYTES];
            r = warn_of(diff, "the rates differ: %s has a sample %s, and %s %s", first->name,
                        period_words(first->period_ns, periods[0]), part->name,
                        period_words(part->period_ns, periods[1]));
        }
    }
    return r;
}

/* Whether the ticks that were seen are known of all recordings, and are those of what is compared.
 */
static bool has_ticks(const struct diff *diff)
{
    bool is_known = !diff->options.is_part_of_time;
    for (size_t i = 0; i < diff->part_count; i++) {
        const struct part *part = &diff->parts[i];
        is_known = is_known && (diff->event.is_clock ? part->seen > 0 : part->length_s > 0);
    }
    return is_known;
}

static void choose_per(struct diff *diff)
{
    bool is_whole = has_ticks(diff) && !diff->options.is_part;
    for (size_t i = 0; i < diff->part_count; i++) {
        is_whole = is_whole && diff->parts[i].is_whole;
    }
    if (diff->options.per == DIFF_PER_ANY) {
        diff->options.per = is_whole ? DIFF_PER_TIME : DIFF_PER_CPU;
    }
}

/* The same of another event than the clock: values become its units, or seconds. */
static double event_divisor_of(const struct diff *diff, const struct part *part)
{
    double unit = diff->event.is_time ? diff->unit / NS_PER_S : diff->unit;
    switch (diff->options.per) {
    case DIFF_PER_TIME:
        return part->length_s / unit;
    case DIFF_PER_WORK:
        return part->work / unit;
    case DIFF_PER_ANY:
    case DIFF_PER_CPU:
        break;
    }
    return fold_whole(&part->fold);
}

/* By what a recording's samples are divided. */
static double divisor_of(const struct diff *diff, const struct part *part)
{
    double missed = part->seen > 0 ? part->expected / part->seen : 1;
    if (!diff->event.is_clock) {
        return event_divisor_of(diff, part);
    }
    switch (diff->options.per) {
    case DIFF_PER_TIME:
        return part->seen;
    case DIFF_PER_WORK:
        return part->work / ((double)part->period_ns / NS_PER_S * missed);
    case DIFF_PER_ANY:
    case DIFF_PER_CPU:
        break;
    }
    return fold_whole(&part->fold);
}

static int find_divisors(struct diff *diff, struct fault *reterr)
{
    double samples[DIFF_SIDES] = {0};
    double divisors[DIFF_SIDES] = {0};
    choose_per(diff);
    if (diff->options.per == DIFF_PER_TIME && !has_ticks(diff)) {
        return fault_set(reterr, EINVAL,
                         "--per time: the ticks that there were %s; --per cpu needs none",
                         diff->options.is_part_of_time ? "in a part of the time are not known"
                                                       : "are not known, for want of books");
    }
    for (size_t i = 0; i < diff->part_count; i++) {
        struct part *part = &diff->parts[i];
        if (diff->options.per == DIFF_PER_WORK && part->period_ns == 0 && diff->event.is_clock) {
            return fault_set(reterr, EINVAL,
                             "--per work: %s does not say how much time a sample stands for, or "
                             "its sessions have several periods",
                             part->name);
        }
        part->divisor = divisor_of(diff, part);
        samples[part->side] += fold_whole(&part->fold);
        divisors[part->side] += part->divisor;
    }
    for (enum diff_side side = 0; side < DIFF_SIDES; side++) {
        diff->wholes[side] = samples[side] / divisors[side];
    }
    return 0;
}

int diff_check(struct diff *diff, struct fault *reterr)
{
    for (enum diff_side side = 0; side < DIFF_SIDES; side++) {
        if (diff->counts[side] == 0) {
            return fault_set(reterr, EINVAL, "a side has no recording");
        }
    }
    if (diff->has_units) {
        return fault_set(reterr, EINVAL, "the event has different units in these recordings");
    }
    int r = check_facts(diff, reterr);
    r = r < 0 ? r : check_parts(diff, reterr);
    return r < 0 ? r : find_divisors(diff, reterr);
}

int diff_check_overlap(struct diff *diff)
{
    double shared = 0;
    char whole[DIFF_UNIT_BYTES];
    if (diff->wholes[DIFF_BEFORE] <= 0 || diff->wholes[DIFF_AFTER] <= 0) {
        return 0;
    }
    for (size_t i = 0; i < diff->row_count; i++) {
        const double *values = diff->rows[i].self.values;
        shared += fmin(values[DIFF_BEFORE] / diff->wholes[DIFF_BEFORE],
                       values[DIFF_AFTER] / diff->wholes[DIFF_AFTER]);
    }
    return shared >= HARDLY_SHARED
               ? 0
               : warn_of(diff,
                         "hardly anything is in both: rows that both sides have are %.1f %% of the "
                         "%s; are these recordings of the same program?",
                         100 * shared, diff_whole_name(diff, whole));
}
