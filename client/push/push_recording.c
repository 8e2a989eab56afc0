/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Sends one recording, a request at a time: the samples of the clock first, then those of each
 * other event, for which it is read again. What became of a request is written down before the next
 * one is made, so a run that is cut off leaves at most one in doubt: the one that it was sending.
 */
#include "push.h"

#include "cleanup.h"
#include "clock.h"
#include "json.h"
#include "lines.h"
#include "options.h"
#include "profile.h"
#include "progress.h"
#include "pusher.h"
#include "raw_copy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define TIME_BYTES 32

/* The recording at hand. */
struct sending {
    struct pusher *pusher;
    const char *path;
    const char *progress_path;
    const struct profile *clock; /* what was loaded first */
    uint64_t sample_count;       /* of all events */
    uint64_t before;             /* of those before the one at hand */
    struct progress progress;
};

static void sending_done(struct sending *sending)
{
    progress_close(&sending->progress);
}

static const char *say_time(uint64_t unix_ns, char *into)
{
    time_t seconds = (time_t)(unix_ns / NS_PER_S);
    struct tm utc;
    (void)gmtime_r(&seconds, &utc);
    (void)strftime(into, TIME_BYTES, "%Y-%m-%dT%H:%M:%SZ", &utc);
    return into;
}

/* What a file of progress is about. */
static void make_key(const struct sending *sending, char *into)
{
    const struct profile *profile = sending->clock;
    cleanup_(json_freep) cJSON *session = cJSON_Parse(profile->session_json);
    const char *id = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(session, "session"));
    (void)snprintf(into, PROGRESS_KEY_BYTES,
                   "recording %.64s %" PRIu64 " %zu %" PRIu64 " to %.300s", id == NULL ? "-" : id,
                   profile->first_ns, profile->sample_count, profile->read_bytes,
                   sending->pusher->target.url);
    for (char *at = into; *at != '\0'; at++) {
        *at = *at == '\n' ? ' ' : *at;
    }
}

/* Says once what a store says again and again. */
static void complain_later(struct pusher *pusher, const struct answer *answer)
{
    struct fault fault;
    (void)fault_set(&fault, EAGAIN, "%s: %s; trying again", pusher->target.url, answer->text);
    pusher_complain(pusher, fault.text);
    if (answer->is_unsure) {
        pusher->totals.unsure++;
        (void)complain("%s: all of a request was sent, but no answer came; it is sent again, and "
                       "its profiles have the same profile_id",
                       pusher->target.url);
    }
}

/* Says which samples the store does not have. */
static void complain_rejected(const struct sending *sending, const struct otlp_request *request,
                              const struct answer *answer)
{
    char from[TIME_BYTES];
    char to[TIME_BYTES];
    char profiles[64] = "";
    if (answer->kind == ANSWER_PARTLY) {
        (void)snprintf(profiles, sizeof profiles, "%" PRIu64 " of %zu profiles of ",
                       answer->rejected_profiles, request->profile_count);
    }
    (void)complain("%s: rejected: %sa request of %zu samples from %s to %s: %s", sending->path,
                   profiles, request->sample_count, say_time(request->first_unix_ns, from),
                   say_time(request->last_unix_ns, to),
                   answer->text[0] == '\0' ? "the store does not say why" : answer->text);
}

/* Counts what was answered for good, and writes it down. */
static int settle(struct sending *sending, const struct otlp_request *request,
                  const struct answer *answer, struct fault *reterr)
{
    struct progress *progress = &sending->progress;
    struct push_totals *totals = &sending->pusher->totals;
    uint64_t samples = request->sample_count;
    progress->position += samples;
    if (answer->kind == ANSWER_ACCEPTED) {
        progress->accepted += samples;
    } else if (answer->kind == ANSWER_PARTLY) {
        progress->partly += samples;
        progress->rejected_profiles += answer->rejected_profiles;
    } else {
        progress->rejected += samples;
    }
    if (answer->kind != ANSWER_REJECTED && answer->kind != ANSWER_TOO_LARGE) {
        totals->body_bytes += answer->sent_bytes;
        totals->message_bytes += request->size_bytes;
    }
    totals->cut_stacks += request->cut_count;
    if (answer->kind != ANSWER_ACCEPTED) {
        complain_rejected(sending, request, answer);
    } else if (answer->text[0] != '\0') {
        (void)complain("%s: the store says: %s", sending->pusher->target.url, answer->text);
    }
    pusher_taken(sending->pusher);
    return progress_save(progress, sending->progress_path, reterr);
}

/* Posts a request until it is settled. `*ret_max`: that many samples at most are wanted; 0: it is
 * settled. */
static enum push_result post(struct sending *sending, const struct otlp_request *request,
                             size_t *ret_max, struct fault *reterr)
{
    struct pusher *pusher = sending->pusher;
    struct answer answer;
    *ret_max = 0;
    for (;;) {
        if (transport_post(pusher->transport, request->bytes, request->size_bytes, &answer) < 0) {
            (void)fault_set(reterr, ENOMEM, "%s: there is not enough memory", sending->path);
            return PUSH_FAILED;
        }
        pusher->totals.requests++;
        if (answer.kind == ANSWER_REFUSED) {
            (void)fault_set(reterr, EACCES, "%s: %s", pusher->target.url, answer.text);
            return PUSH_LATER;
        }
        if (answer.kind == ANSWER_TOO_LARGE && request->sample_count > 1) {
            *ret_max = request->sample_count / 2;
            return PUSH_SETTLED;
        }
        if (answer.kind != ANSWER_LATER) {
            return settle(sending, request, &answer, reterr) < 0 ? PUSH_FAILED : PUSH_SETTLED;
        }
        complain_later(pusher, &answer);
        if (!pusher_wait(pusher, answer.wait_s)) {
            (void)fault_set(reterr, EAGAIN, "%s: %s", pusher->target.url,
                            pusher_is_stopped() ? "stopped by a signal" : answer.text);
            return PUSH_LATER;
        }
        pusher->totals.retries++;
    }
}

/* Sends what is not settled yet of an event. */
static enum push_result send_rest(struct sending *sending, const struct profile *profile,
                                  struct otlp_requests *requests, struct fault *reterr)
{
    enum push_result result = PUSH_SETTLED;
    size_t sample_max = SIZE_MAX;
    uint64_t end = sending->before + profile->sample_count;
    while (result == PUSH_SETTLED && sending->progress.position < end) {
        struct otlp_request request;
        size_t wanted_max = 0;
        size_t position = (size_t)(sending->progress.position - sending->before);
        if (pusher_is_stopped()) {
            (void)fault_set(reterr, EINTR, "stopped by a signal");
            return PUSH_LATER;
        }
        if (otlp_requests_make(requests, position, sample_max, &request) < 0) {
            (void)fault_set(reterr, ENOMEM, "%s: there is not enough memory", sending->path);
            return PUSH_FAILED;
        }
        result = post(sending, &request, &wanted_max, reterr);
        sample_max = wanted_max > 0 ? wanted_max : sample_max;
        free(request.bytes);
    }
    return result;
}

/* Sends the samples of one event. */
static enum push_result send_event(struct sending *sending, const struct profile *profile,
                                   struct fault *reterr)
{
    cleanup_(otlp_requests_freep) struct otlp_requests *requests = NULL;
    if (otlp_requests_new(profile, &sending->pusher->target.limits, &requests) < 0) {
        (void)fault_set(reterr, ENOMEM, "%s: there is not enough memory", sending->path);
        return PUSH_FAILED;
    }
    return send_rest(sending, profile, requests, reterr);
}

/* Loads the samples of an event (NULL: the clock). Functions without a name are found in the files
 * of this machine, as by every verb: so a function is one frame, and not one for each of its
 * addresses. */
static enum push_result load(const char *path, const char *event, struct profile **ret,
                             struct fault *reterr)
{
    struct lines_losses losses = {0};
    int r = profile_load(path, PROFILE_NAMES_READABLE, event, ret, reterr);
    if (r == 0 && lines_add(*ret, LINES_WANT_FUNCTIONS, NULL, &losses) < 0) {
        r = fault_set(reterr, ENOMEM, "%s: there is not enough memory", path);
    }
    return r == 0 ? PUSH_SETTLED : r == -ENOMEM ? PUSH_FAILED : PUSH_BROKEN;
}

/* Sends the samples of each event. */
static enum push_result send_events(struct sending *sending, struct fault *reterr)
{
    const struct profile *clock = sending->clock;
    enum push_result result = send_event(sending, clock, reterr);
    sending->before = clock->sample_count;
    if (result == PUSH_SETTLED && clock->event_count > 1 && strcmp(sending->path, "-") == 0) {
        (void)fault_set(reterr, ESPIPE,
                        "standard input cannot be read twice, so samples of %s%s are not sent; "
                        "name a file",
                        clock->event_names[1], clock->event_count > 2 ? " and other events" : "");
        return PUSH_LATER;
    }
    for (size_t i = 1; i < clock->event_count && result == PUSH_SETTLED; i++) {
        cleanup_(profile_freep) struct profile *profile = NULL;
        result = load(sending->path, clock->event_names[i], &profile, reterr);
        result = result == PUSH_SETTLED ? send_event(sending, profile, reterr) : result;
        sending->before += profile == NULL ? 0 : profile->sample_count;
    }
    return result;
}

/* Takes up what an earlier run has left, and says so. */
static int begin(struct sending *sending, struct fault *reterr)
{
    char key[PROGRESS_KEY_BYTES];
    make_key(sending, key);
    int r = progress_open(sending->progress_path, key, &sending->progress, reterr);
    if (r == -ESTALE && sending->pusher->is_of_folder) {
        (void)complain("%s was begun for another store; it is sent from its beginning",
                       sending->path);
        (void)unlink(sending->progress_path);
        r = progress_open(sending->progress_path, key, &sending->progress, reterr);
    }
    uint64_t all = sending->sample_count;
    if (r == 0 && sending->progress.position > all) {
        r = fault_set(reterr, EBADMSG, "%s says that more was sent than there is; remove it",
                      sending->progress_path);
    }
    if (r == 0 && sending->progress.position > 0 && sending->pusher->last_text[0] == '\0') {
        (void)complain("%s: %" PRIu64 " of %" PRIu64
                       " samples were sent before; going on behind them",
                       sending->path, sending->progress.position, all);
    }
    return r;
}

static enum push_result send_recording(struct pusher *pusher, const char *path,
                                       const char *progress_path, const struct profile *clock,
                                       struct fault *reterr)
{
    int64_t wall_offset_ns = 0;
    bool has_events = clock->event_count > 1 && strcmp(path, "-") != 0;
    cleanup_(sending_done) struct sending sending = {
        .pusher = pusher,
        .path = path,
        .progress_path = progress_path,
        .clock = clock,
        .sample_count = has_events ? pusher_count_samples(path) : clock->sample_count,
        .progress = PROGRESS_NONE,
    };
    if (!profile_wall_offset_ns(clock, &wall_offset_ns)) {
        if (sending.sample_count == 0) {
            return PUSH_SETTLED;
        }
        (void)fault_set(reterr, ENODATA,
                        "%s does not say what time it was, and stores want to know", path);
        return PUSH_BROKEN;
    }
    if (begin(&sending, reterr) < 0) {
        return PUSH_FAILED;
    }
    enum push_result result = send_events(&sending, reterr);
    if (result == PUSH_SETTLED || !pusher->is_of_folder) {
        pusher_count(pusher, result == PUSH_SETTLED ? sending.before : sending.sample_count,
                     &sending.progress);
    }
    return result;
}

/* Makes the copy in the folder. */
static enum push_result copy(struct pusher *pusher, const char *path, const struct profile *profile,
                             struct fault *reterr)
{
    uint64_t bytes = 0;
    if (pusher->target.raw_folder == NULL) {
        return PUSH_SETTLED;
    }
    int r = raw_copy(path, pusher->target.raw_folder, profile_host(profile, 0), &bytes, reterr);
    pusher->totals.copied_bytes += bytes;
    return r < 0 ? PUSH_LATER : PUSH_SETTLED;
}

enum push_result pusher_send(struct pusher *pusher, const char *path, const char *progress_path,
                             uint64_t patience_s)
{
    cleanup_(profile_freep) struct profile *profile = NULL;
    struct fault fault = {0};
    pusher->patience_ns = patience_s > UINT64_MAX / NS_PER_S ? UINT64_MAX : patience_s * NS_PER_S;
    enum push_result loaded = load(path, NULL, &profile, &fault);
    if (loaded != PUSH_SETTLED) {
        (void)complain("%s", fault.text);
        return loaded;
    }
    if (profile->input.truncated || profile->input.damaged) {
        (void)complain("%s is not whole; sending the samples before byte %" PRIu64, path,
                       profile->input.size_bytes);
    }
    enum push_result copied = copy(pusher, path, profile, &fault);
    if (copied != PUSH_SETTLED) {
        pusher_complain(pusher, fault.text);
    }
    enum push_result sent = pusher->transport == NULL
                                ? PUSH_SETTLED
                                : send_recording(pusher, path, progress_path, profile, &fault);
    /* In a folder EAGAIN is the end of a wait: the recording was given up, which is said. */
    if (sent != PUSH_SETTLED && !(pusher->is_of_folder && fault.code == EAGAIN)) {
        pusher_complain(pusher, fault.text);
    }
    pusher->totals.samples += pusher->transport == NULL ? profile->sample_count : 0;
    pusher->totals.recordings += sent == PUSH_SETTLED && copied == PUSH_SETTLED;
    return sent != PUSH_SETTLED ? sent : copied;
}
