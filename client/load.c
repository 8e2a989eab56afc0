/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Loading with words: what is cut off is still shown, as `gzip -d` does, but it is no success.
 */
#include "load.h"

#include "cleanup.h"
#include "lines.h"
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

int load_detail(const char *path, enum load_detail detail, struct profile *profile)
{
    if (detail == LOAD_FUNCTIONS) {
        return EXIT_DONE;
    }
    cleanup_(lines_remote_freep) struct lines_remote *remote = lines_remote_new();
    if (lines_add(profile, detail == LOAD_LINES, remote) < 0) {
        return complain("%s: there is not enough memory", path);
    }
    if (lines_remote_fault(remote) != NULL) {
        (void)complain("debuginfod: %s; what this machine has itself is shown",
                       lines_remote_fault(remote));
    }
    return EXIT_DONE;
}
