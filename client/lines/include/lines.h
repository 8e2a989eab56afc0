/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Adds to a profile what files of this machine know. A function that the recording cannot name
 * becomes one frame, by the call-frame information of its module. Debugging information makes
 * inlined functions frames, and has more names. A child without rights parses the files. Says
 * nothing itself: each module's `source` and `debug_file` tell what was found of the latter.
 */

#include "lines_remote.h"
#include "profile.h"

#include <stdbool.h>
#include <stddef.h>

/* Files that were not read: a file ended the child which read it, no child could be started for a
 * file, or files were skipped after that had happened too often. All zero at first. */
struct lines_losses {
    size_t count;      /* skipped files of one module count once */
    size_t hang_count; /* of them: the child did not answer */
    bool is_hopeless;  /* all further files were skipped */
    char path[256];    /* the first file of `count` */
    char ending[160];  /* what became of its child: "was ended by signal 7 (Bus error)" */
};

enum lines_detail {
    LINES_WANT_FUNCTIONS, /* where functions without names begin: no file is opened without need */
    LINES_WANT_INLINED,   /* and what was inlined */
    LINES_WANT_LINES,     /* and files and lines, by which frames are told apart then */
};

/*
 * Looks all addresses of the profile's stacks up, and resolves its samples again where that changes
 * them. `remote` is asked for debugging information that this machine does not have; NULL: none is.
 * Returns 0 with `*ret_losses`, or -ENOMEM.
 */
int lines_add(struct profile *profile, enum lines_detail detail, struct lines_remote *remote,
              struct lines_losses *ret_losses);

/* Is the child that parses, and never returns, where the arguments of main() say so. */
void lines_reader_start(int argc, char **argv);
