/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a frame is known by in all recordings of a comparison. The folder of a module is no part of
 * that: a program that was built in another one is the same program.
 */

#include "profile.h"

/* Members are of the profile's `texts`, or INTERN_NONE. */
struct frame_identity {
    uint32_t name;
    uint32_t module;   /* the last part of its path */
    uint32_t build_id; /* of a frame called by an address, which is another function elsewhere */
};

/* With `of_module` all frames of a module are one, which has its name. */
struct frame_identity frame_identity(const struct profile *profile,
                                     const struct profile_frame *frame, bool of_module);
