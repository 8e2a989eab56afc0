/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How many descriptors this process has open: what a test opens must be closed at its end. */
#include "unit_test.h"

#include <dirent.h>

static inline size_t count_descriptors(void)
{
    size_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    while (readdir(folder) != NULL) {
        count++;
    }
    assert_int_equal(closedir(folder), 0);
    return count;
}
