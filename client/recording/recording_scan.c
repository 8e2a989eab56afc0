/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Records through a feed, of which only samples, sessions and books are looked at. The daemon names
 * the session of a segment before its samples; in a file that does not, counts are off, no more.
 */
#include "recording.h"

#include "cleanup.h"
#include "json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int record_scan_init(struct record_scan *scan)
{
    *scan = (struct record_scan){0};
    return feed_init(&scan->feed);
}

void record_scan_done(struct record_scan *scan)
{
    feed_done(&scan->feed);
    free(scan->books_json);
    free(scan->is_pid_seen);
    unread_modules_done(&scan->unread);
    scan->books_json = NULL;
    scan->is_pid_seen = NULL;
}

int record_scan_watch(struct record_scan *scan, const int32_t *pids, size_t count)
{
    bool *seen = calloc(count == 0 ? 1 : count, sizeof *seen);
    if (seen == NULL) {
        return -ENOMEM;
    }
    free(scan->is_pid_seen);
    scan->is_pid_seen = seen;
    scan->pids = pids;
    scan->pid_count = count;
    return 0;
}

static void see_pid(struct record_scan *scan, uint64_t pid)
{
    for (size_t i = 0; i < scan->pid_count; i++) {
        if ((uint64_t)scan->pids[i] == pid) {
            scan->is_pid_seen[i] = true;
        }
    }
}

void record_scan_tell_apart(struct record_scan *scan, const char *session)
{
    scan->session = session;
    scan->is_other = true;
}

uint64_t record_scan_other_count(const struct record_scan *scan)
{
    return scan->other_count + (scan->is_other ? scan->sample_count - scan->segment_at : 0);
}

uint64_t record_scan_other_event_count(const struct record_scan *scan)
{
    return scan->other_event_count +
           (scan->is_other ? scan->event_sample_count - scan->segment_event_at : 0);
}

static void begin_segment(struct record_scan *scan)
{
    scan->other_count = record_scan_other_count(scan);
    scan->other_event_count = record_scan_other_event_count(scan);
    scan->segment_at = scan->sample_count;
    scan->segment_event_at = scan->event_sample_count;
    scan->is_other = scan->session != NULL;
}

/* Looks whose segment it is. */
static int see_session(struct record_scan *scan, const struct fxt_data *data)
{
    cleanup_(freep) char *object = NULL;
    int r = scan->session == NULL ? 0 : data_take_object(data, &object);
    if (r < 0 || object == NULL) {
        return r;
    }
    cleanup_(json_freep) cJSON *session = cJSON_Parse(object);
    const char *id = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(session, "session"));
    scan->is_other = id == NULL || strcmp(id, scan->session) != 0;
    return 0;
}

int record_scan_record(const struct fxt_record *record, void *userdata)
{
    struct record_scan *scan = userdata;
    if (record->kind == FXT_RECORD_SAMPLE) {
        bool is_completion = (record->sample.fields & FXT_SAMPLE_CONTINUATION_COMPLETION) != 0;
        scan->sample_count += !is_completion && record->sample.event == 0;
        scan->event_sample_count += !is_completion && record->sample.event != 0;
        if ((record->sample.fields & FXT_SAMPLE_PID) != 0) {
            see_pid(scan, record->sample.pid);
        }
        return 0;
    }
    unread_modules_see(&scan->unread, record);
    if (record->kind == FXT_RECORD_MAGIC) {
        begin_segment(scan);
    } else if (record->kind == FXT_RECORD_DATA && data_is_named(&record->data, DATA_NAME_SESSION)) {
        return see_session(scan, &record->data);
    } else if (record->kind == FXT_RECORD_DATA && !scan->is_other &&
               data_is_named(&record->data, DATA_NAME_BOOKS)) {
        scan->books_count++;
        return data_take_object(&record->data, &scan->books_json);
    } else if (record->kind == FXT_RECORD_DATA && !scan->is_other && scan->on_thread != NULL &&
               data_is_named(&record->data, DATA_NAME_THREADS)) {
        return data_each_line(&record->data, scan->on_thread, scan->thread_userdata);
    }
    return 0;
}

void record_scan_add(struct record_scan *scan, const void *bytes, size_t size_bytes)
{
    const uint8_t *at = bytes;
    while (size_bytes > 0 && scan->fault.code == 0) {
        size_t room = 0;
        uint8_t *into = feed_space(&scan->feed, &room);
        size_t part = size_bytes < room ? size_bytes : room;
        memcpy(into, at, part);
        (void)feed_filled(&scan->feed, part, record_scan_record, scan, &scan->fault);
        at += part;
        size_bytes -= part;
    }
}
