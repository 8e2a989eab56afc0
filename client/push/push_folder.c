/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Sends a folder of recordings, round by round. What is settled is removed, its file of progress
 * after it: were that gone first, and the process too, all would be sent again. A recording counts
 * when it is removed, or when the run ends within it. Room and age are judged before each wait, so
 * a store that is away for long costs no more than is allowed.
 */
#include "push.h"

#include "cleanup.h"
#include "clock.h"
#include "options.h"
#include "pusher.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PATH_BYTES   ((size_t)4096)
#define REASON_BYTES ((size_t)160)
#define PATIENCE_S   UINT64_MAX

struct folder {
    const char *path;
    const struct push_keep *keep;
    const char *current; /* the recording that is being sent; NULL: none */
    bool is_lost;        /* it was given up meanwhile */
};

static bool ends_in(const char *name, const char *ending)
{
    size_t bytes = strlen(name);
    size_t ending_bytes = strlen(ending);
    return bytes > ending_bytes && strcmp(name + bytes - ending_bytes, ending) == 0;
}

/* What is no file may have such a name too: a pipe would be waited for. */
static int is_recording(const struct dirent *entry)
{
    bool is_file =
        entry->d_type == DT_REG || entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN;
    return is_file && entry->d_name[0] != '.' &&
           (ends_in(entry->d_name, ".fxt") || ends_in(entry->d_name, ".fxt.gz"));
}

/* The names of the recordings, in the order of their bytes. */
struct names {
    struct dirent **entries; /* owned, as what is in it */
    int count;
};

static void names_done(struct names *names)
{
    for (int i = 0; i < names->count; i++) {
        free(names->entries[i]);
    }
    free(names->entries);
}

static int compare_names(const struct dirent **left, const struct dirent **right)
{
    return strcmp((*left)->d_name, (*right)->d_name);
}

static bool list(const struct folder *folder, struct names *ret)
{
    ret->count = scandir(folder->path, &ret->entries, is_recording, compare_names);
    if (ret->count < 0) {
        ret->count = 0;
        (void)complain("%s cannot be listed: %s", folder->path, strerror(errno));
        return false;
    }
    return true;
}

static bool make_path(const struct folder *folder, const char *name, const char *ending, char *into)
{
    int bytes = snprintf(into, PATH_BYTES, "%s/%s%s", folder->path, name, ending);
    return bytes > 0 && (size_t)bytes < PATH_BYTES;
}

/* Removes a recording, and what was noted of it. */
static bool remove_recording(struct pusher *pusher, const struct folder *folder, const char *name)
{
    char path[PATH_BYTES];
    struct fault fault;
    if (!make_path(folder, name, "", path) || (unlink(path) < 0 && errno != ENOENT)) {
        (void)fault_set(&fault, errno, "%s/%s cannot be removed: %s", folder->path, name,
                        strerror(errno));
        pusher_complain_once(pusher, fault.text);
        return false;
    }
    if (make_path(folder, name, PUSH_PROGRESS_ENDING, path)) {
        (void)unlink(path);
    }
    return true;
}

/* Removes a recording that is not sent to its end, and says what of it is lost. */
static bool give_up(struct pusher *pusher, struct folder *folder, const char *name,
                    const char *reason)
{
    char path[PATH_BYTES];
    char progress_path[PATH_BYTES];
    struct progress progress = PROGRESS_NONE;
    if (!make_path(folder, name, "", path) ||
        !make_path(folder, name, PUSH_PROGRESS_ENDING, progress_path)) {
        return false;
    }
    uint64_t samples = pusher_count_samples(path);
    if (!progress_peek(progress_path, &progress) || progress.position > samples) {
        progress = PROGRESS_NONE;
    }
    uint64_t left = samples - progress.position;
    bool is_copied = pusher_copy(pusher, path);
    if (!remove_recording(pusher, folder, name)) {
        return false;
    }
    pusher_count(pusher, samples, &progress);
    pusher->totals.given_up++;
    pusher->totals.given_up_samples += left;
    (void)complain("%s: given up: %" PRIu64 " of %" PRIu64 " samples were not sent%s: %s; %" PRIu64
                   " recordings with %" PRIu64 " samples were given up since this run began",
                   name, left, samples, is_copied ? "" : ", and it was not copied", reason,
                   pusher->totals.given_up, pusher->totals.given_up_samples);
    folder->is_lost =
        folder->is_lost || (folder->current != NULL && strcmp(name, folder->current) == 0);
    return true;
}

/* Gives up what is too old, and the oldest of what has no room. */
static void keep_limits(struct pusher *pusher, struct folder *folder)
{
    cleanup_(names_done) struct names names = {.count = 0};
    if (!list(folder, &names)) {
        return;
    }
    cleanup_(freep) uint64_t *sizes = calloc((size_t)names.count + 1, sizeof *sizes);
    uint64_t now_s = clock_ns(CLOCK_REALTIME) / NS_PER_S;
    uint64_t total_bytes = 0;
    char path[PATH_BYTES];
    char reason[REASON_BYTES];
    for (int i = 0; i < names.count && sizes != NULL; i++) {
        struct stat status;
        const char *name = names.entries[i]->d_name;
        if (!make_path(folder, name, "", path) || stat(path, &status) < 0 ||
            !S_ISREG(status.st_mode)) {
            continue;
        }
        uint64_t since_s = status.st_mtime < 0 ? 0 : (uint64_t)status.st_mtime;
        if (since_s < now_s && now_s - since_s > folder->keep->age_s) {
            (void)snprintf(reason, sizeof reason, "it is older than %" PRIu64 " s",
                           folder->keep->age_s);
            (void)give_up(pusher, folder, name, reason);
            continue;
        }
        sizes[i] = (uint64_t)status.st_size;
        total_bytes += sizes[i];
    }
    for (int i = 0; i < names.count && sizes != NULL && total_bytes > folder->keep->bytes; i++) {
        if (sizes[i] > 0) {
            (void)snprintf(reason, sizeof reason,
                           "%" PRIu64 " bytes of recordings wait, and %" PRIu64 " may", total_bytes,
                           folder->keep->bytes);
            total_bytes -= give_up(pusher, folder, names.entries[i]->d_name, reason) ? sizes[i] : 0;
        }
    }
}

/* Whether the recording at hand is still to be sent. */
static bool on_wait(struct pusher *pusher, void *userdata)
{
    struct folder *folder = userdata;
    keep_limits(pusher, folder);
    return !folder->is_lost;
}

/* Counts what the recording has come to that was sent last. */
static void count(struct pusher *pusher)
{
    pusher_count(pusher, pusher->sent_samples, &pusher->sent);
}

/* Sends one recording. PUSH_SETTLED: it is not there any more. */
static enum push_result send_one(struct pusher *pusher, struct folder *folder, const char *name)
{
    char path[PATH_BYTES];
    char progress_path[PATH_BYTES];
    if (!make_path(folder, name, "", path) ||
        !make_path(folder, name, PUSH_PROGRESS_ENDING, progress_path)) {
        pusher_complain_once(pusher, "a name in the folder is too long");
        return PUSH_FAILED;
    }
    folder->current = name;
    folder->is_lost = false;
    enum push_result result = pusher_send(pusher, path, progress_path, PATIENCE_S);
    folder->current = NULL;
    if (result == PUSH_SETTLED) {
        if (!pusher_is_same(pusher, path) || !remove_recording(pusher, folder, name)) {
            return PUSH_FAILED;
        }
        count(pusher);
        pusher->totals.recordings++;
    } else if (result == PUSH_BROKEN) {
        bool is_gone = give_up(pusher, folder, name, "it is no recording that can be sent");
        return is_gone ? PUSH_SETTLED : PUSH_FAILED;
    }
    return folder->is_lost ? PUSH_SETTLED : result;
}

/* Sends each recording once. PUSH_LATER: the run was stopped, or the store refuses the sender. */
static enum push_result send_round(struct pusher *pusher, struct folder *folder,
                                   const struct names *names)
{
    enum push_result result = PUSH_FAILED;
    for (int i = 0; i < names->count; i++) {
        enum push_result of_one = send_one(pusher, folder, names->entries[i]->d_name);
        if (of_one == PUSH_LATER) {
            count(pusher);
            return PUSH_LATER;
        }
        result = of_one == PUSH_SETTLED ? PUSH_SETTLED : result;
    }
    return result;
}

/* Removes what was noted of recordings that are not there any more. */
static void remove_orphans(const struct folder *folder)
{
    char path[PATH_BYTES];
    char recording_path[PATH_BYTES];
    DIR *open = opendir(folder->path);
    for (struct dirent *entry = NULL; open != NULL && (entry = readdir(open)) != NULL;) {
        struct stat status;
        if (!ends_in(entry->d_name, PUSH_PROGRESS_ENDING) ||
            !make_path(folder, entry->d_name, "", path)) {
            continue;
        }
        (void)snprintf(recording_path, sizeof recording_path, "%.*s",
                       (int)(strlen(path) - strlen(PUSH_PROGRESS_ENDING)), path);
        if (lstat(recording_path, &status) < 0 && errno == ENOENT) {
            (void)unlink(path);
        }
    }
    if (open != NULL) {
        (void)closedir(open);
    }
}

bool pusher_send_folder(struct pusher *pusher, const char *path, const struct push_keep *keep)
{
    struct folder folder = {.path = path, .keep = keep};
    pusher->is_of_folder = true;
    pusher->patience_ns = UINT64_MAX;
    pusher->on_wait = on_wait;
    pusher->userdata = &folder;
    remove_orphans(&folder);
    for (;;) {
        cleanup_(names_done) struct names names = {.count = 0};
        keep_limits(pusher, &folder);
        if (!list(&folder, &names)) {
            return false;
        }
        enum push_result result =
            names.count == 0 ? PUSH_SETTLED : send_round(pusher, &folder, &names);
        if (names.count == 0 || result == PUSH_LATER) {
            return names.count == 0;
        }
        if (result == PUSH_FAILED) {
            (void)pusher_wait(pusher, 0);
        }
    }
}
