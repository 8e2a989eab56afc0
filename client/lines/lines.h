/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Adds to a profile what debugging information knows: inlined functions become frames, and
 * functions that the recording cannot name get names. Says nothing itself: each module's `source`
 * and `debug_file` tell what was found.
 */

#include "lines_remote.h"
#include "profile.h"

/*
 * Looks all addresses of the profile's stacks up, and resolves its samples again. With `has_lines`
 * frames have files and lines too, and are told apart by them. `remote` is asked for what this
 * machine does not have; NULL: nobody is. Returns 0, or -ENOMEM.
 */
int lines_add(struct profile *profile, bool has_lines, struct lines_remote *remote);
