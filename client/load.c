/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Loading with words: what is cut off is still shown, as `gzip -d` does, but it is no success.
 */
#include "load.h"

#include "options.h"

#include <inttypes.h>

int complain_truncated(const char *path, const struct input_summary *input)
{
    return complain("%s: ends within a record, after %" PRIu64 " bytes of whole ones; only what "
                    "stands before is shown",
                    path, input->size_bytes);
}

int load_profile(const char *path, enum profile_names names, struct profile **ret)
{
    struct fault fault = {0};
    struct profile *profile = NULL;
    if (profile_load(path, names, &profile, &fault) < 0) {
        return complain("%s", fault.text);
    }
    *ret = profile;
    return profile->input.truncated ? complain_truncated(path, &profile->input) : EXIT_DONE;
}
