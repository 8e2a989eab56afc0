/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Serves one file over HTTP on 127.0.0.1, for a viewer that runs in a browser of this machine. The
 * file is there under a path that has a random token, for requests that name this machine as their
 * host; a viewer's pages may read it, those of other origins may not. There is nothing else.
 */

#include "fault.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct view_viewer {
    const char *name;
    const char *format; /* of `profctl export`; NULL: it is the page of `profctl flamegraph` */
    const char *origin; /* of its pages: they alone may read the file; NULL: it has no others */
    const char *page;   /* the address of the page, before the file's address, which is escaped */
    const char *file_name; /* what the file is called in its address */
    uint16_t port;         /* the only one that its pages may ask; 0: any */
};

/* All viewers, the first one is taken where none is named. {0} ends the table. */
extern const struct view_viewer view_viewers[];

struct view_server;

/* Listens; nothing is answered yet. Returned: view_server_freep(). Returns 0, or -errno with a
 * sentence in `reterr`. */
int view_server_new(const struct view_viewer *viewer, struct view_server **ret,
                    struct fault *reterr);
void view_server_freep(struct view_server **server);

/* The address that a browser is to open. Borrowed. */
const char *view_server_url(const struct view_server *server);

/*
 * Answers requests until SIGINT or SIGTERM comes; with `is_once` also until the whole file was sent
 * once. `file` is borrowed, and all of it is written out. Returns 0, or -errno with a sentence in
 * `reterr`.
 */
int view_server_run(struct view_server *server, FILE *file, bool is_once, struct fault *reterr);
