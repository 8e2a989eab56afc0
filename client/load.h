/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "profile.h"

/*
 * Loads a recording for a verb, and complains if that fails. `*ret` (returned: profile_free())
 * stays as it is then. A recording that is cut off is loaded and complained about too. Returns the
 * exit status that this makes.
 */
int load_profile(const char *path, enum profile_names names, struct profile **ret);

/* Complains about a recording that is cut off. Returns EXIT_FAILED. */
int complain_truncated(const char *path, const struct input_summary *input);
