/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One `profctl read`: the unread samples of the detached session, into a file.
 * verb_read.c reads the options.
 */

#include "attach.h"

struct read_request {
    struct attach_request attach;
    const char *output_path; /* "-": standard output */
    bool appends;            /* to the recording that the file holds */
    bool replaces;           /* that recording */
    bool shows_books;        /* of each CPU */
    bool is_native;          /* without packets for Perfetto */
};

/* Returns an exit status. */
int read_run(const struct read_request *request);
