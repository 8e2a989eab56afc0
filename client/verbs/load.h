/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lines.h"
#include "options.h"
#include "profile.h"
#include "selection.h"

/*
 * Loads a recording for a verb, and complains if that fails. `*ret` (returned: profile_free())
 * stays as it is then. A recording that is cut off is loaded and complained about too. Returns the
 * exit status that this makes.
 */
int load_profile(const char *path, enum profile_names names, struct profile **ret);

/*
 * Leaves only what is selected of the recording at `path`, if anything is, and says on standard
 * error how much that is. Complains if it fails. Returns an exit status.
 */
int load_selection(const char *path, const struct selection *selection, struct profile *profile);

/* What a verb was asked to show of what files of this machine know. */
enum load_detail {
    LOAD_FUNCTIONS, /* functions: those that the recording names, and where others begin */
    LOAD_INLINED,   /* inlined functions */
    LOAD_LINES,     /* these, and files and lines */
    LOAD_ADDRESSES, /* nothing: no file is opened, and what has no name is shown by its address */
};

/*
 * Adds that to the profile of the recording at `path`, and complains if it fails, if servers that
 * were to be asked cannot be, or if there was no room for all that samples have. Returns an exit
 * status.
 */
int load_detail(const char *path, enum load_detail detail, struct profile *profile);

#define OPTION_ADDRESSES(at)                                                                       \
    {                                                                                              \
        0, "addresses", NULL,                                                                      \
            "functions without a name are shown by each address;\nno file is opened for them",     \
            options_raise, (at), LOAD_ADDRESSES                                                    \
    }

/* Complains about files that ended the child which read them, if there are any. */
void complain_losses(const struct lines_losses *losses);

/* Complains about a recording that is cut off or damaged. Returns EXIT_FAILED. */
int complain_truncated(const char *path, const struct input_summary *input);
