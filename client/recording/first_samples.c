/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Keeps the first sample of each segment with the id of its session, which may stand before the
 * sample or behind it. An id that is longer than the daemon's is compared by what there is room
 * for. Sorted, equal samples stand together.
 */
#include "first_samples.h"

#include "cleanup.h"
#include "compare.h"
#include "grow.h"
#include "json.h"
#include "recording.h"
#include "seeded_hash.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void first_samples_done(struct first_samples *firsts)
{
    free(firsts->samples);
    *firsts = (struct first_samples){0};
}

static int append(struct first_samples *firsts, const struct first_sample *sample)
{
    if (grow(firsts->samples, firsts->capacity, firsts->count + 1) < 0) {
        return -ENOMEM;
    }
    firsts->samples[firsts->count++] = *sample;
    return 0;
}

static int end_segment(struct first_samples *firsts)
{
    bool is_known = firsts->has_next && firsts->next.session[0] != '\0';
    firsts->next.recording = firsts->recording_count;
    int r = is_known ? append(firsts, &firsts->next) : 0;
    firsts->next = (struct first_sample){0};
    firsts->has_next = false;
    return r;
}

/* What each reading of a session says of it. */
static uint64_t hash_origin(const cJSON *session)
{
    static const char *const members[] = {"host", "created_boot_ns", "created_realtime_ns"};
    uint64_t hash = 0;
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        const char *text =
            cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(session, members[i]));
        hash = seeded_hash_pair(hash, text == NULL ? 0 : seeded_hash(text, strlen(text)));
    }
    return hash;
}

static int take_session(struct first_samples *firsts, const struct fxt_data *data)
{
    cleanup_(freep) char *object = NULL;
    int r = data_take_object(data, &object);
    if (r < 0 || object == NULL) {
        return r;
    }
    cleanup_(json_freep) cJSON *session = cJSON_Parse(object);
    const char *id = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(session, "session"));
    (void)snprintf(firsts->next.session, sizeof firsts->next.session, "%s", id == NULL ? "" : id);
    firsts->next.origin = hash_origin(session);
    return 0;
}

static void take_sample(struct first_samples *firsts, const struct fxt_sample *sample)
{
    if (firsts->has_next || (sample->fields & FXT_SAMPLE_CONTINUATION_COMPLETION) != 0) {
        return;
    }
    firsts->next.time_ns = sample->boot_ts_ns;
    firsts->next.pid = sample->pid;
    firsts->next.tid = sample->tid;
    firsts->next.cpu = sample->cpu;
    firsts->next.event = sample->event;
    firsts->has_next = true;
}

int first_samples_see(struct first_samples *firsts, const struct fxt_record *record)
{
    if (record->kind == FXT_RECORD_SAMPLE) {
        take_sample(firsts, &record->sample);
    } else if (record->kind == FXT_RECORD_MAGIC) {
        return end_segment(firsts);
    } else if (record->kind == FXT_RECORD_DATA && data_is_named(&record->data, DATA_NAME_SESSION)) {
        return take_session(firsts, &record->data);
    }
    return 0;
}

int first_samples_end(struct first_samples *firsts)
{
    int r = end_segment(firsts);
    firsts->recording_count++;
    return r;
}

int first_samples_add(struct first_samples *into, const struct first_samples *from)
{
    int r = 0;
    for (size_t i = 0; i < from->count && r == 0; i++) {
        struct first_sample sample = from->samples[i];
        sample.recording += into->recording_count;
        r = append(into, &sample);
    }
    into->recording_count += from->recording_count;
    return r;
}

static int compare_segments(const struct first_sample *a, const struct first_sample *b)
{
    int r = compare_u64(a->time_ns, b->time_ns);
    r = r == 0 ? compare_u64(a->tid, b->tid) : r;
    r = r == 0 ? compare_u64(a->pid, b->pid) : r;
    r = r == 0 ? compare_u64(a->cpu, b->cpu) : r;
    r = r == 0 ? compare_u64(a->event, b->event) : r;
    return r == 0 ? strcmp(a->session, b->session) : r;
}

static int compare_samples(const void *left, const void *right)
{
    const struct first_sample *a = left;
    const struct first_sample *b = right;
    int r = compare_segments(a, b);
    return r == 0 ? compare_u64(a->recording, b->recording) : r;
}

bool first_samples_find_shared(struct first_samples *firsts, size_t *ret_first, size_t *ret_second)
{
    const struct first_sample *samples = firsts->samples;
    bool is_found = false;
    if (firsts->count > 0) {
        qsort(firsts->samples, firsts->count, sizeof *firsts->samples, compare_samples);
    }
    for (size_t i = 1; i < firsts->count; i++) {
        const struct first_sample *a = &samples[i - 1];
        const struct first_sample *b = &samples[i];
        if (a->recording != b->recording && compare_segments(a, b) == 0 &&
            (!is_found || b->recording < *ret_second)) {
            *ret_first = (size_t)a->recording;
            *ret_second = (size_t)b->recording;
            is_found = true;
        }
    }
    return is_found;
}

static int compare_sessions(const void *left, const void *right)
{
    const struct first_sample *a = left;
    const struct first_sample *b = right;
    int r = strcmp(a->session, b->session);
    return r == 0 ? compare_u64(a->recording, b->recording) : r;
}

bool first_samples_find_mistaken(struct first_samples *firsts, size_t *ret_first,
                                 size_t *ret_second)
{
    const struct first_sample *samples = firsts->samples;
    if (firsts->count > 0) {
        qsort(firsts->samples, firsts->count, sizeof *firsts->samples, compare_sessions);
    }
    for (size_t i = 1; i < firsts->count; i++) {
        const struct first_sample *a = &samples[i - 1];
        const struct first_sample *b = &samples[i];
        if (a->recording != b->recording && strcmp(a->session, b->session) == 0 &&
            a->origin != b->origin) {
            *ret_first = (size_t)a->recording;
            *ret_second = (size_t)b->recording;
            return true;
        }
    }
    return false;
}
