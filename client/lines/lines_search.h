/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Finds the file that has a module's debugging information, and the child that has it open. A file
 * is known by its build-id and by nothing else: one of another build, whatever its name, would tell
 * wrong lines.
 */

#include "lines.h"
#include "lines_build_id.h"
#include "lines_remote.h"
#include "lines_worker.h"

#include <sys/types.h>

enum lines_reader_of {
    LINES_READER_OF_ROOT,
    LINES_READER_OF_USER,
    LINES_READER_OF_REMOTE
};
#define LINES_READERS 3

/* Answers about all files of a recording. */
#define LINES_ANSWERS_BYTES_MAX (UINT64_C(1) << 30)

/*
 * One child for each owner of files, so that a file which takes one over can spoil the lines of its
 * owner's other files only. All zero at first, but for `left_bytes`.
 */
struct lines_readers {
    struct lines_worker *workers[LINES_READERS]; /* owned, or NULL; by enum lines_reader_of */
    uid_t user;                                  /* whose files LINES_READER_OF_USER reads */
    uint64_t left_bytes;                         /* of what all answers together may have */
    struct lines_losses losses;
};

void lines_readers_done(struct lines_readers *readers);

/* Notes that a file was lost with its child, and frees that. `r` is what lines_worker_...() gave.
 */
void lines_readers_lose(struct lines_readers *readers, struct lines_worker *worker, int r,
                        const char *path);

struct lines_found {
    struct lines_worker *worker; /* borrowed; has the file open, and what it shares with others */
    char *path;                  /* owned: free() */
};

/* The module's own file, if it is there with this build-id. Returns as lines_search(). */
int lines_search_module(struct lines_readers *readers, const char *module,
                        const struct lines_build_id *build_id, struct lines_found *ret);

/*
 * The file for the module of this name and build-id: the module's own, one below /usr/lib/debug,
 * the one that the module links to, then the one that `remote` (NULL: none) has. Returns 0;
 * -ENOENT: there is none; -EBADMSG: there is one that cannot be read; -ENOMEM.
 */
int lines_search(struct lines_readers *readers, const char *module,
                 const struct lines_build_id *build_id, struct lines_remote *remote,
                 struct lines_found *ret);
