/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What profctl does with a connection beyond profctl.h: it tells its user what the daemon's replies
 * said besides, and goes on where another profctl was ended. Not part of the shared library.
 */

#include "profctl.h"

#include <stdint.h>

/* What is not known is "" or 0. */
#define CONNECTION_REMARKS_MAX  4
#define CONNECTION_REMARK_BYTES 320
struct connection_notes {
    char session[64];    /* its id */
    char state[16];      /* as Attach found it */
    char stopped_by[16]; /* of the last Stop */
    int64_t holds_s;     /* of Create: how long it can run unread */
    char remarks[CONNECTION_REMARKS_MAX][CONNECTION_REMARK_BYTES]; /* the "notes" of Create */
    size_t remark_count;
    uint64_t sequence;          /* of the last bytes read */
    struct profctl_fault fault; /* of the last call that has none to fill, code 0: it succeeded */
};

/* Borrowed from the connection. */
const struct connection_notes *connection_notes(const struct profctl *conn);

/* Has the next read confirm what another connection read under `sequence`. */
void connection_acknowledge(struct profctl *conn, uint64_t sequence);

/* The socket's path, borrowed from the connection. */
const char *connection_path(const struct profctl *conn);

/* For cleanup_(). */
static inline void connection_closep(struct profctl **conn)
{
    *conn = profctl_disconnect(*conn);
}
