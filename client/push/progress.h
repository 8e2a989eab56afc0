/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How far a recording has been sent, in a small file: so a later run goes on behind what the store
 * has. The file is of one recording and one store; one process has it at a time.
 */

#include "fault.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROGRESS_KEY_BYTES ((size_t)512)

struct progress {
    int fd; /* owned; -1: nothing is kept */
    char key[PROGRESS_KEY_BYTES];
    uint64_t position; /* samples that are settled, in the order of time */
    uint64_t accepted;
    uint64_t partly;
    uint64_t rejected;
    uint64_t rejected_profiles;
    uint64_t sample_max; /* of a request, since the store has refused a larger one; 0: any */
};

#define PROGRESS_NONE ((struct progress){.fd = -1})

/*
 * Opens the file `path` (NULL: none), or makes it. `key` says what it has to be about. Returned:
 * progress_close(). Returns 0, or with a sentence in `reterr` -ESTALE: it is about something else;
 * -EBADMSG: it is not what is written here; -EBUSY: another process has it; another -errno.
 */
int progress_open(const char *path, const char *key, struct progress *ret, struct fault *reterr);

/* Reads what the file says, whatever it is about. False: it says nothing. */
bool progress_peek(const char *path, struct progress *ret);

/* Writes it down, and waits until the disk has it. Returns 0, or -errno with a sentence. */
int progress_save(const struct progress *progress, const char *path, struct fault *reterr);

void progress_close(struct progress *progress);
