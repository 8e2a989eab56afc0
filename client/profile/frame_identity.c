/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Finds what a frame is known by in other recordings. The rows of a comparison and the frames of
 * its flame graph are both matched by that, so that they have the same numbers.
 */
#include "frame_identity.h"

#include "unnamed.h"

struct frame_identity frame_identity(const struct profile *profile,
                                     const struct profile_frame *frame, bool of_module)
{
    struct frame_identity identity = {frame->name, INTERN_NONE, INTERN_NONE};
    if (frame->module != INTERN_NONE) {
        const struct profile_module *module = &profile->modules[frame->module];
        identity.module = module->basename;
        identity.name = of_module ? module->basename : frame->name;
        if (unnamed_is_name(profile_text(profile, identity.name),
                            profile_text(profile, module->basename))) {
            identity.build_id = module->build_id;
        }
    }
    return identity;
}
