/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lists of CPUs are read twice, once to count: nothing is allocated for a text that is none.
 */
#include "cpu_list.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Reads digits into *ret; false when there are none or the id is out of all bounds. */
static bool take_cpu(const char **text, uint32_t *ret)
{
    uint32_t cpu = 0;
    const char *start = *text;
    for (; **text >= '0' && **text <= '9'; (*text)++) {
        cpu = cpu * 10 + (uint32_t)(**text - '0');
        if (cpu >= CPU_LIST_LIMIT) {
            return false;
        }
    }
    *ret = cpu;
    return *text != start;
}

/* Reads "first" or "first-last". */
static bool take_range(const char **text, uint32_t *ret_first, uint32_t *ret_last)
{
    if (!take_cpu(text, ret_first)) {
        return false;
    }
    *ret_last = *ret_first;
    if (**text == '-') {
        (*text)++;
        return take_cpu(text, ret_last) && *ret_last >= *ret_first;
    }
    return true;
}

/* Reads a whole list; writes the ids to `cpus` unless it is NULL. Returns their count, 0 for no
 * list.
 */
static size_t read_list(const char *text, uint32_t *cpus)
{
    size_t count = 0;
    uint32_t lowest_next = 0;
    for (;;) {
        uint32_t first;
        uint32_t last;
        if (!take_range(&text, &first, &last) || first < lowest_next) {
            return 0;
        }
        for (uint32_t cpu = first; cpus != NULL && cpu <= last; cpu++) {
            cpus[count + (cpu - first)] = cpu;
        }
        count += last - first + 1;
        lowest_next = last + 1;
        if (*text != ',') {
            break;
        }
        text++;
    }
    return *text == '\0' || strcmp(text, "\n") == 0 ? count : 0;
}

int cpu_list_parse(const char *text, uint32_t **ret_cpus, size_t *ret_count)
{
    size_t count = read_list(text, NULL);
    if (count == 0) {
        return -EBADMSG;
    }
    uint32_t *cpus = malloc(count * sizeof *cpus);
    if (cpus == NULL) {
        return -ENOMEM;
    }
    *ret_count = read_list(text, cpus);
    *ret_cpus = cpus;
    return 0;
}
