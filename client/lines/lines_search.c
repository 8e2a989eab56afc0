/* SPDX-License-Identifier: Apache-2.0 */

/*
 * lines_search() tries the possible paths of a debug file in turn. Paths come from the recording,
 * and names of further files from files, so they may lead anywhere: regular_file_open() opens only
 * regular files, and a child parses them. A file counts only if its build-id is right. A file that
 * needs another one (dwz) counts only with it.
 */
#include "lines_search.h"

#include "cleanup.h"
#include "regular_file.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define DEBUG_FOLDER "/usr/lib/debug"

/* After so many children that did not answer, whatever is next would only take as long. */
#define HANGS_MAX 3

/* Where a search has got to. */
struct search {
    struct lines_readers *readers; /* borrowed, as the next three */
    const char *module;
    const struct lines_build_id *build_id;
    struct lines_remote *remote;
    struct lines_worker *sharer; /* borrowed; of an alternate: it has the file that needs it */
    struct lines_found found;    /* owned */
    bool needs_code;             /* the file itself is wanted, whatever its debugging information */
    bool has_broken;
    bool has_lost;    /* the child that is asked is gone */
    bool has_skipped; /* a file was not looked at, since no child would survive it */
};

static bool find_alternate(struct search *parent, struct lines_worker *worker, const char *path,
                           const struct lines_about *about);

void lines_readers_done(struct lines_readers *readers)
{
    for (size_t i = 0; i < LINES_READERS; i++) {
        readers->workers[i] = lines_worker_free(readers->workers[i]);
    }
}

static void note_loss(struct lines_losses *losses, const char *path, const char *ending)
{
    if (losses->count++ == 0) {
        (void)snprintf(losses->path, sizeof losses->path, "%s", path);
        (void)snprintf(losses->ending, sizeof losses->ending, "%s", ending);
    }
}

void lines_readers_lose(struct lines_readers *readers, struct lines_worker *worker, int r,
                        const char *path)
{
    note_loss(&readers->losses, path, lines_worker_ending(worker));
    readers->losses.hang_count += r == -ETIME;
    readers->losses.is_hopeless |=
        readers->losses.hang_count >= HANGS_MAX || lines_worker_is_useless(worker);
    for (size_t i = 0; i < LINES_READERS; i++) {
        if (readers->workers[i] == worker) {
            readers->workers[i] = lines_worker_free(worker);
        }
    }
}

/* The child for a file, started if there is none; NULL: there can be none, which is noted in the
 * search. */
static struct lines_worker *find_worker(struct search *search, int fd, bool is_remote,
                                        const char *path)
{
    struct lines_readers *readers = search->readers;
    struct stat status;
    if (readers->losses.is_hopeless || fstat(fd, &status) < 0) {
        search->has_skipped |= readers->losses.is_hopeless;
        return NULL;
    }
    enum lines_reader_of which = is_remote            ? LINES_READER_OF_REMOTE
                                 : status.st_uid == 0 ? LINES_READER_OF_ROOT
                                                      : LINES_READER_OF_USER;
    if (is_remote || (which == LINES_READER_OF_USER && readers->user != status.st_uid)) {
        readers->workers[which] = lines_worker_free(readers->workers[which]);
        readers->user = is_remote ? readers->user : status.st_uid;
    }
    if (readers->workers[which] == NULL) {
        int r = lines_worker_start(&readers->workers[which]);
        if (r < 0) {
            char ending[LINES_ENDING_BYTES];
            (void)snprintf(ending, sizeof ending, "cannot be started: %s", strerror(-r));
            note_loss(&readers->losses, path, ending);
            readers->losses.is_hopeless = true;
            search->has_lost = true;
        }
    }
    return readers->workers[which];
}

static bool is_wanted(const struct search *search, const struct lines_about *about)
{
    return about->build_id_bytes == search->build_id->size_bytes &&
           memcmp(about->build_id, search->build_id->bytes, search->build_id->size_bytes) == 0;
}

/* Whether the file that the child has open can be read: with what it needs, if it needs that. */
static bool make_whole(struct search *search, struct lines_worker *worker, const char *path,
                       const struct lines_about *about)
{
    if (about->state != 0 || about->alternate_id_bytes == 0) {
        return about->state == 0;
    }
    return search->sharer == NULL && find_alternate(search, worker, path, about);
}

/* Takes the file if it is the one; else `*ret_link` (free()) names another where it tells one. `fd`
 * is borrowed. */
static int try_descriptor(struct search *search, int fd, const char *path, bool is_remote,
                          char **ret_link)
{
    struct lines_about about;
    struct lines_worker *worker = search->sharer;
    if (worker == NULL) {
        worker = find_worker(search, fd, is_remote, path);
    }
    if (worker == NULL) {
        search->has_broken = true;
        return 0;
    }
    int r = lines_worker_open(worker, search->sharer == NULL ? LINES_OPEN : LINES_OPEN_ALTERNATE,
                              fd, &about);
    if (r < 0) {
        lines_readers_lose(search->readers, worker, r, path);
        search->has_broken = true;
        search->has_lost = true;
        return 0;
    }
    if (!is_wanted(search, &about)) {
        return 0;
    }
    if (search->needs_code || make_whole(search, worker, path, &about)) {
        search->found.worker = worker;
        search->found.path = strdup(path);
        return search->found.path == NULL ? -ENOMEM : 0;
    }
    search->has_broken |= about.state != -ENOENT;
    if (ret_link != NULL && about.link[0] != '\0') {
        *ret_link = strdup(about.link);
    }
    return 0;
}

/* An alternate whose search has lost the child has lost the file that needs it, too. */
static bool is_over(const struct search *search)
{
    return search->found.path != NULL || (search->sharer != NULL && search->has_lost);
}

static int try_path(struct search *search, const char *path, char **ret_link)
{
    if (is_over(search)) {
        return 0;
    }
    cleanup_(closep) int fd = regular_file_open(path);
    return fd < 0 ? 0 : try_descriptor(search, fd, path, false, ret_link);
}

__attribute__((format(printf, 2, 3))) static int try_format(struct search *search,
                                                            const char *format, ...)
{
    cleanup_(freep) char *path = NULL;
    va_list args;
    va_start(args, format);
    int path_bytes = vasprintf(&path, format, args);
    va_end(args);
    if (path_bytes < 0) {
        path = NULL;
        return -ENOMEM;
    }
    return try_path(search, path, NULL);
}

/* Where distributions keep them: named by the build-id, its first byte a folder. */
static int try_debug_folder(struct search *search)
{
    char hex[2 * LINES_BUILD_ID_BYTES_MAX + 1] = "";
    for (size_t i = 0; i < search->build_id->size_bytes; i++) {
        (void)sprintf(hex + 2 * i, "%02x", search->build_id->bytes[i]);
    }
    return try_format(search, DEBUG_FOLDER "/.build-id/%.2s/%s.debug", hex, hex + 2);
}

static int try_module(struct search *search)
{
    cleanup_(freep) char *link = NULL;
    if (search->module[0] != '/') {
        return try_debug_folder(search);
    }
    int r = try_path(search, search->module, &link);
    if (r == 0) {
        r = try_debug_folder(search);
    }
    if (r < 0 || is_over(search) || link == NULL) {
        return r;
    }
    int folder_bytes = (int)(strrchr(search->module, '/') - search->module);
    const char *folder = search->module;
    r = try_format(search, "%.*s/%s", folder_bytes, folder, link);
    if (r == 0) {
        r = try_format(search, "%.*s/.debug/%s", folder_bytes, folder, link);
    }
    if (r == 0) {
        r = try_format(search, DEBUG_FOLDER "%.*s/%s", folder_bytes, folder, link);
    }
    return r;
}

static int try_remote(struct search *search)
{
    cleanup_(freep) char *path = NULL;
    cleanup_(closep) int fd = -1;
    if (search->remote == NULL || is_over(search) ||
        lines_remote_find(search->remote, search->build_id->bytes, search->build_id->size_bytes,
                          &fd, &path) < 0) {
        return 0;
    }
    return try_descriptor(search, fd, path, true, NULL);
}

/* Has the child open what the file at `path` shares with others. */
static bool find_alternate(struct search *parent, struct lines_worker *worker, const char *path,
                           const struct lines_about *about)
{
    struct lines_build_id build_id = {.size_bytes = about->alternate_id_bytes};
    cleanup_(freep) char *name = NULL;
    /* A name that is not absolute starts from the file's own folder. */
    const char *slash = about->alternate[0] == '/' ? NULL : strrchr(path, '/');
    int folder_bytes = slash == NULL ? 0 : (int)(slash - path + 1);
    if (asprintf(&name, "%.*s%s", folder_bytes, path, about->alternate) < 0) {
        name = NULL;
        return false;
    }
    memcpy(build_id.bytes, about->alternate_id, about->alternate_id_bytes);
    struct search search = {
        .readers = parent->readers,
        .module = name,
        .build_id = &build_id,
        .remote = parent->remote,
        .sharer = worker,
    };
    if (try_module(&search) == 0) {
        (void)try_remote(&search);
    }
    parent->has_lost |= search.has_lost;
    bool is_found = search.found.path != NULL;
    free(search.found.path);
    return is_found;
}

/* The end of a search: `r` is what its steps gave. */
static int finish(struct search *search, int r, struct lines_found *ret)
{
    if (search->found.path == NULL) {
        /* One file of the module, however many places were to be looked at. */
        search->readers->losses.count += search->has_skipped && !search->has_lost;
        return r < 0 ? r : search->has_broken ? -EBADMSG : -ENOENT;
    }
    *ret = search->found;
    return 0;
}

int lines_search_module(struct lines_readers *readers, const char *module,
                        const struct lines_build_id *build_id, struct lines_found *ret)
{
    struct search search = {
        .readers = readers, .module = module, .build_id = build_id, .needs_code = true};
    return finish(&search, try_path(&search, module, NULL), ret);
}

int lines_search(struct lines_readers *readers, const char *module,
                 const struct lines_build_id *build_id, struct lines_remote *remote,
                 struct lines_found *ret)
{
    struct search search = {
        .readers = readers, .module = module, .build_id = build_id, .remote = remote};
    int r = try_module(&search);
    if (r == 0) {
        r = try_remote(&search);
    }
    return finish(&search, r, ret);
}
