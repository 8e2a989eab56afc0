/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads the memory limits of this process's control groups, of either kind: memory.max in the one
 * tree of all controllers, memory.limit_in_bytes in the tree of the memory controller. A group's
 * limit holds for all groups below it, so each folder on the way to the root is read. In a
 * container the path may be one of the host's, which is not there; then the root is read, the
 * container's own.
 */
#include "memory_limit.h"

#include "cleanup.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GROUPS_BYTES 8192
#define NUMBER_BYTES 32

/* Up to `bytes` - 1 of a file, as a string; empty where there is none. */
static void read_text(const char *path, char *text, size_t bytes)
{
    cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, bytes - 1);
    text[got > 0 ? got : 0] = '\0';
}

/* "max", and what is no number, limits nothing. */
static uint64_t read_limit(const char *path)
{
    char text[NUMBER_BYTES];
    char *end = text;
    read_text(path, text, sizeof text);
    unsigned long long limit = strtoull(text, &end, 10);
    return end == text ? UINT64_MAX : limit;
}

/* The least limit of `group` (changed) below `tree`, and of the groups above it. */
static uint64_t find_least(const char *tree, char *group, const char *name)
{
    uint64_t least = UINT64_MAX;
    for (;;) {
        char path[PATH_MAX];
        int bytes = snprintf(path, sizeof path, "%s%s/%s", tree, group, name);
        if (bytes > 0 && (size_t)bytes < sizeof path) {
            uint64_t limit = read_limit(path);
            least = limit < least ? limit : least;
        }
        char *last = strrchr(group, '/');
        if (last == NULL) {
            return least;
        }
        *last = '\0';
    }
}

static bool has_memory(const char *controllers)
{
    const char *found = strstr(controllers, "memory");
    const char *end = found == NULL ? NULL : found + strlen("memory");
    return found != NULL && (found == controllers || found[-1] == ',') &&
           (*end == '\0' || *end == ',');
}

/* Of a line "NUMBER:CONTROLLERS:GROUP" (changed). */
static uint64_t limit_of_line(char *line, const char *root)
{
    char *controllers = strchr(line, ':');
    char *group = controllers == NULL ? NULL : strchr(controllers + 1, ':');
    if (group == NULL) {
        return UINT64_MAX;
    }
    *group++ = '\0';
    controllers++;
    if (*controllers == '\0') {
        return find_least(root, group, "memory.max");
    }
    char tree[PATH_MAX];
    int bytes = snprintf(tree, sizeof tree, "%s/memory", root);
    bool fits = bytes > 0 && (size_t)bytes < sizeof tree;
    return fits && has_memory(controllers) ? find_least(tree, group, "memory.limit_in_bytes")
                                           : UINT64_MAX;
}

uint64_t memory_limit_bytes(const char *groups_path, const char *root)
{
    uint64_t least = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    char text[GROUPS_BYTES];
    char *rest = text;
    read_text(groups_path, text, sizeof text);
    for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
        uint64_t limit = limit_of_line(line, root);
        least = limit < least ? limit : least;
    }
    return least;
}
