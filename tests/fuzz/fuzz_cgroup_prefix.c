/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A first line as the prefix, the rest as /proc/PID/cgroup: "/" matches whatever has a path at all,
 * slashes at the end of a prefix change nothing, and a longer prefix matches no more than a
 * shorter.
 */
#include "cgroup_prefix.h"
#include "fuzz_target.h"

#include <stdlib.h>
#include <string.h>

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char *prefix = calloc(1, size + 8);
    char *longer = calloc(1, size + 8);
    const uint8_t *newline = memchr(bytes, '\n', size);
    size_t prefix_bytes = newline == NULL ? size : (size_t)(newline - bytes);
    char *lines = newline == NULL ? calloc(1, 1)
                                  : strndup((const char *)newline + 1, size - prefix_bytes - 1);
    if (prefix != NULL && longer != NULL && lines != NULL) {
        memcpy(prefix, bytes, prefix_bytes);
        bool matches = cgroup_has_prefix(lines, prefix);
        (void)strcat(strcpy(longer, prefix), "//");
        require(cgroup_has_prefix(lines, longer) == matches);
        (void)strcat(longer, "x");
        require(matches || !cgroup_has_prefix(lines, longer));
        require(!matches || prefix[0] != '/' || strncmp(prefix, "/sys/fs/cgroup", 14) == 0 ||
                cgroup_has_prefix(lines, "/"));
    }
    free(prefix);
    free(longer);
    free(lines);
    return 0;
}
