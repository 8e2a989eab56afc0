/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Sends one recording, a request at a time: the samples of the clock first, then those of each
 * other event, for which it is read again. What became of a request is written down before the next
 * one is made, so a run that is cut off leaves at most one in doubt: the one that it was sending.
 */
#include "push.h"

#include "cleanup.h"
#include "clock.h"
#include "extremes.h"
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
#include <zlib.h>

#define TIME_BYTES 32
#define YOUNG_S    600

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

/* Standard input has no name by which it could be read again, or be gone. */
static bool is_named(const char *path)
{
    return strcmp(path, "-") != 0;
}

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
    const char *url = sending->pusher->target.url;
    (void)snprintf(into, PROGRESS_KEY_BYTES,
                   "recording %.64s %" PRIu64 " %zu %" PRIu64 " to %.250s %08lx",
                   id == NULL ? "-" : id, profile->first_ns, profile->sample_count,
                   profile->read_bytes, url, crc32(0, (const uint8_t *)url, (uInt)strlen(url)));
    for (char *at = into; *at != '\0'; at++) {
        *at = *at == '\n' ? ' ' : *at;
    }
}

/* Says once what a store says again and again. */
static void complain_later(struct pusher *pusher, const struct answer *answer)
{
    struct fault fault;
    char patience[64] = "";
    if (!pusher->is_of_folder) {
        (void)snprintf(patience, sizeof patience, " until nothing was taken for %" PRIu64 " s",
                       pusher->patience_ns / NS_PER_S);
    }
    (void)fault_set(&fault, EAGAIN, "%s: %s; trying again%s", pusher->target.url, answer->text,
                    patience);
    pusher_complain(pusher, fault.text);
    if (answer->is_unsure) {
        pusher->totals.unsure++;
        (void)complain("%s: all of a request was sent, but no answer came; it is sent again, and "
                       "its profiles have the same profile_id",
                       pusher->target.url);
    }
}

/* How many profiles were rejected: no more than there are, whatever the store says. */
static uint64_t rejected_profiles(const struct otlp_request *request, const struct answer *answer)
{
    return min_u64(answer->rejected_profiles, request->profile_count);
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
                       rejected_profiles(request, answer), request->profile_count);
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
        progress->rejected_profiles += rejected_profiles(request, answer);
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
    int r = progress_save(progress, sending->progress_path, reterr);
    if (r == 0) {
        pusher_taken(sending->pusher);
    }
    return r;
}

/* Notes that the store has refused a request as too large. A run that goes on here divides the
 * samples as this one does, so that a profile that comes twice has the same id. */
static enum push_result halve(struct sending *sending, const struct otlp_request *request,
                              struct fault *reterr)
{
    sending->progress.sample_max = request->sample_count / 2;
    return progress_save(&sending->progress, sending->progress_path, reterr) < 0 ? PUSH_FAILED
                                                                                 : PUSH_SETTLED;
}

/* Posts a request until it is settled, or a smaller one is wanted. */
static enum push_result post(struct sending *sending, const struct otlp_request *request,
                             struct fault *reterr)
{
    struct pusher *pusher = sending->pusher;
    struct answer answer;
    for (;;) {
        if (transport_post(pusher->transport, request->bytes, request->size_bytes, &answer) < 0) {
            (void)fault_set(reterr, ENOMEM, "%s: there is not enough memory", sending->path);
            return PUSH_FAILED;
        }
        pusher->totals.requests++;
        if (answer.kind == ANSWER_REFUSED) {
            (void)fault_set(reterr, EACCES, "%s: %s; the same command goes on here",
                            transport_url(pusher->transport), answer.text);
            return PUSH_LATER;
        }
        if (answer.kind == ANSWER_TOO_LARGE && request->sample_count > 1) {
            return halve(sending, request, reterr);
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
    uint64_t end = sending->before + profile->sample_count;
    while (result == PUSH_SETTLED && sending->progress.position < end) {
        struct otlp_request request;
        size_t sample_max = (size_t)sending->progress.sample_max;
        size_t position = (size_t)(sending->progress.position - sending->before);
        if (pusher_is_stopped()) {
            (void)fault_set(reterr, EINTR, "stopped by a signal");
            return PUSH_LATER;
        }
        if (otlp_requests_make(requests, position, sample_max == 0 ? SIZE_MAX : sample_max,
                               &request) < 0) {
            (void)fault_set(reterr, ENOMEM, "%s: there is not enough memory", sending->path);
            return PUSH_FAILED;
        }
        result = post(sending, &request, reterr);
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

/* What it means that a recording cannot be loaded. These two codes are of its contents alone: it is
 * none, or has no event that it names. Any other is of its file, which may be read later. */
static enum push_result result_of(int r)
{
    return r == -EBADMSG || r == -ESRCH ? PUSH_BROKEN : PUSH_FAILED;
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
    return r == 0 ? PUSH_SETTLED : result_of(r);
}

/* Sends the samples of each event. */
static enum push_result send_events(struct sending *sending, struct fault *reterr)
{
    const struct profile *clock = sending->clock;
    enum push_result result = send_event(sending, clock, reterr);
    sending->before = clock->sample_count;
    if (result == PUSH_SETTLED && clock->event_count > 1 && !sending->pusher->is_regular) {
        (void)fault_set(reterr, ESPIPE,
                        "%s cannot be read twice, so samples of %s%s are not sent; name a file",
                        is_named(sending->path) ? sending->path : "standard input",
                        clock->event_names[1], clock->event_count > 2 ? " and other events" : "");
        return PUSH_LATER;
    }
    for (size_t i = 1; i < clock->event_count && result == PUSH_SETTLED; i++) {
        cleanup_(profile_freep) struct profile *profile = NULL;
        result = load(sending->path, clock->event_names[i], &profile, reterr);
        if (result != PUSH_FAILED && !pusher_is_same(sending->pusher, sending->path)) {
            (void)fault_set(reterr, ESTALE, "%s has changed while it was sent", sending->path);
            return PUSH_FAILED;
        }
        result = result == PUSH_SETTLED ? send_event(sending, profile, reterr) : result;
        sending->before += profile == NULL ? 0 : profile->sample_count;
    }
    return result;
}

/* Opens the file of what was sent. */
static int open_progress(struct sending *sending, const char *key, struct fault *reterr)
{
    int r = progress_open(sending->progress_path, key, &sending->progress, reterr);
    if (r == 0 && sending->progress.position > sending->sample_count) {
        r = fault_set(reterr, EBADMSG, "%s says that more was sent than there is; remove it",
                      sending->progress_path);
        progress_close(&sending->progress);
    }
    return r;
}

/* Takes up what an earlier run has left, and says so. What is there is written once, so that a full
 * disk is known before anything is sent. In a folder there is no person to mend what was left. */
static int begin(struct sending *sending, struct fault *reterr)
{
    const char *path = sending->progress_path;
    struct pusher *pusher = sending->pusher;
    char key[PROGRESS_KEY_BYTES];
    make_key(sending, key);
    int r = open_progress(sending, key, reterr);
    if ((r == -ESTALE || r == -EBADMSG) && pusher->is_of_folder) {
        (void)complain("%s %s; it is sent from its beginning", sending->path,
                       r == -ESTALE ? "was begun for another store, or has changed"
                                    : "has a file of what was sent that says nothing");
        (void)unlink(path);
        r = open_progress(sending, key, reterr);
    }
    if (r == 0 && path != NULL && is_named(sending->path) && access(sending->path, F_OK) < 0 &&
        errno == ENOENT) {
        (void)unlink(path);
        r = fault_set(reterr, ENOENT, "%s is gone: another profctl has sent it", sending->path);
    }
    r = r < 0 ? r : progress_save(&sending->progress, path, reterr);
    if (r == 0 && sending->progress.position > 0 && pusher->last_text[0] == '\0') {
        (void)complain("%s: %" PRIu64 " of %" PRIu64
                       " samples were sent before; going on behind them",
                       sending->path, sending->progress.position, sending->sample_count);
    }
    return r;
}

/* How many samples the recording has; of what can be read once, of the clock. */
static uint64_t count_samples(const struct pusher *pusher, const char *path,
                              const struct profile *clock)
{
    uint64_t all = clock->event_count > 1 && pusher->is_regular ? pusher_count_samples(path) : 0;
    return max_u64(all, clock->sample_count);
}

/* Says which samples no event has. */
static void complain_left(const struct sending *sending)
{
    struct fault fault;
    if (sending->before < sending->sample_count) {
        (void)fault_set(&fault, ENODATA,
                        "%s: %" PRIu64 " samples are not sent: they are of no event that the "
                        "recording names, or stand for nothing",
                        sending->path, sending->sample_count - sending->before);
        pusher_complain_once(sending->pusher, fault.text);
    }
}

static enum push_result send_recording(struct pusher *pusher, const char *path,
                                       const char *progress_path, const struct profile *clock,
                                       struct fault *reterr)
{
    int64_t wall_offset_ns = 0;
    cleanup_(sending_done) struct sending sending = {
        .pusher = pusher,
        .path = path,
        .progress_path = progress_path,
        .clock = clock,
        .sample_count = pusher->sent_samples,
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
    pusher->sent = sending.progress;
    pusher->sent.fd = -1;
    if (result == PUSH_SETTLED) {
        complain_left(&sending);
    }
    return result;
}

/* Makes the copy in the folder. */
static bool copy(struct pusher *pusher, const char *path, const struct profile *profile,
                 struct fault *reterr)
{
    uint64_t bytes = 0;
    if (pusher->target.raw_folder == NULL) {
        return true;
    }
    int r = raw_copy(path, pusher->target.raw_folder, profile_host(profile, 0), &bytes, reterr);
    pusher->totals.copied_bytes += bytes;
    return r == 0;
}

bool pusher_is_same(const struct pusher *pusher, const char *path)
{
    const struct stat *before = &pusher->status;
    struct stat now;
    return stat(path, &now) == 0 && now.st_dev == before->st_dev && now.st_ino == before->st_ino &&
           now.st_size == before->st_size && now.st_mtim.tv_sec == before->st_mtim.tv_sec &&
           now.st_mtim.tv_nsec == before->st_mtim.tv_nsec;
}

bool pusher_copy(struct pusher *pusher, const char *path)
{
    cleanup_(profile_freep) struct profile *profile = NULL;
    struct fault fault = {0};
    return pusher->target.raw_folder == NULL ||
           (profile_load(path, PROFILE_NAMES_READABLE, NULL, &profile, &fault) == 0 &&
            copy(pusher, path, profile, &fault));
}

/* Says what went wrong. In a folder EAGAIN is the end of a wait, and ENOENT that of the recording:
 * it was given up, which is said, or another sender has removed it. */
static void complain_failed(struct pusher *pusher, const struct fault *fault)
{
    if (!pusher->is_of_folder || (fault->code != EAGAIN && fault->code != ENOENT)) {
        pusher_complain_once(pusher, fault->text);
    }
}

/* Whether the file may be one that is being written, by something that does not write as profctl
 * does, under another name. */
static bool is_young(const struct pusher *pusher)
{
    uint64_t now_s = clock_ns(CLOCK_REALTIME) / NS_PER_S;
    time_t written_s = pusher->status.st_mtime;
    return written_s > 0 && (uint64_t)written_s <= now_s && now_s - (uint64_t)written_s < YOUNG_S;
}

/* In a folder: whether what was found is to be waited for. Says so. */
static bool is_growing(struct pusher *pusher, const char *path)
{
    struct fault fault;
    if (!pusher->is_of_folder || !is_young(pusher)) {
        return false;
    }
    (void)fault_set(&fault, EAGAIN,
                    "%s is not whole; it is left until it is, or was written %d minutes ago", path,
                    YOUNG_S / 60);
    pusher_complain_once(pusher, fault.text);
    return true;
}

/* Sends and copies what was loaded. */
static enum push_result send_loaded(struct pusher *pusher, const char *path,
                                    const char *progress_path, const struct profile *profile)
{
    struct fault fault = {0};
    if (profile->input.truncated || profile->input.damaged) {
        (void)fault_set(&fault, EBADMSG,
                        "%s is not whole; sending the samples before byte %" PRIu64, path,
                        profile->input.size_bytes);
        pusher_complain_once(pusher, fault.text);
    }
    pusher->sent_samples = count_samples(pusher, path, profile);
    bool is_copied = copy(pusher, path, profile, &fault);
    if (!is_copied) {
        pusher_complain_once(pusher, fault.text);
    }
    enum push_result sent = pusher->transport == NULL
                                ? PUSH_SETTLED
                                : send_recording(pusher, path, progress_path, profile, &fault);
    if (sent != PUSH_SETTLED) {
        complain_failed(pusher, &fault);
    }
    return sent == PUSH_SETTLED && !is_copied ? PUSH_FAILED : sent;
}

enum push_result pusher_send(struct pusher *pusher, const char *path, const char *progress_path,
                             uint64_t patience_s)
{
    cleanup_(profile_freep) struct profile *profile = NULL;
    struct fault fault = {0};
    pusher->patience_ns = patience_s > UINT64_MAX / NS_PER_S ? UINT64_MAX : patience_s * NS_PER_S;
    pusher->sent_samples = 0;
    pusher->sent = PROGRESS_NONE;
    if (pusher_is_stopped()) {
        return PUSH_LATER;
    }
    pusher->is_regular =
        is_named(path) && stat(path, &pusher->status) == 0 && S_ISREG(pusher->status.st_mode);
    if (pusher->is_of_folder && !pusher->is_regular) {
        return PUSH_FAILED; /* it is gone, or leads to something that is no file */
    }
    enum push_result result = load(path, NULL, &profile, &fault);
    bool is_whole = result == PUSH_SETTLED && !profile->input.truncated && !profile->input.damaged;
    if (!is_whole && result != PUSH_FAILED && is_growing(pusher, path)) {
        result = PUSH_FAILED;
    } else if (result == PUSH_SETTLED) {
        result = send_loaded(pusher, path, progress_path, profile);
    } else {
        complain_failed(pusher, &fault);
    }
    if (!pusher->is_of_folder) {
        pusher_count(pusher, pusher->sent_samples, &pusher->sent);
        pusher->totals.recordings += result == PUSH_SETTLED;
    }
    return result;
}
