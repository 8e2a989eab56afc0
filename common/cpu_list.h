/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* CPUs as sysfs prints them and people write them: "0-3,8". Pure. */

#include <stddef.h>
#include <stdint.h>

/* More CPUs than any kernel is built for (CONFIG_NR_CPUS of x86 ends at 8192). */
#define CPU_LIST_LIMIT 65536u

/*
 * Reads a list in rising order, with a newline at its end or without.
 * Returns 0 with the ids (returned: free()), or -EBADMSG when it is no such list or empty, -ENOMEM.
 */
int cpu_list_parse(const char *text, uint32_t **ret_cpus, size_t *ret_count);
