/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whether a core dump of this process would have the memory at an address. */

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* By the flag "dd" of the mapping in /proc/self/smaps; true when there is no telling. */
static inline bool is_in_core_dump(const void *address)
{
    FILE *file = fopen("/proc/self/smaps", "re");
    char line[512];
    uint64_t start = 0;
    uint64_t end = 0;
    bool here = false;
    bool left_out = false;
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " ", &start, &end) == 2) {
            here = start <= (uintptr_t)address && (uintptr_t)address < end;
        } else if (here && strncmp(line, "VmFlags:", 8) == 0) {
            left_out = strstr(line, " dd") != NULL;
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return !left_out;
}
