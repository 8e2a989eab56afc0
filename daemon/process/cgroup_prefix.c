/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One line of /proc/PID/cgroup at a time against one prefix. A path may hold colons, so it is what
 * follows the second one; it holds no newline, which mkdir refuses in cgroupfs. What is no such
 * line matches nothing.
 */
#include "cgroup_prefix.h"

#include <stddef.h>
#include <string.h>

#define MOUNT_FOLDER   "/sys/fs/cgroup"
#define NAMED_PREFIX   "name="   /* of a hierarchy without a controller */
#define UNIFIED_FOLDER "unified" /* version 2 beside version 1, as systemd mounts it */

struct span {
    const char *text;
    size_t bytes;
};

static struct span span_until(const char *text, char end)
{
    return (struct span){text, (size_t)(strchrnul(text, end) - text)};
}

static bool equal(struct span a, struct span b)
{
    return a.bytes == b.bytes && memcmp(a.text, b.text, a.bytes) == 0;
}

/* Slashes at the end of a prefix say nothing. */
static bool begins_with(struct span path, const char *prefix)
{
    size_t bytes = strlen(prefix);
    while (bytes > 0 && prefix[bytes - 1] == '/') {
        bytes--;
    }
    return path.bytes >= bytes && memcmp(path.text, prefix, bytes) == 0 &&
           (path.bytes == bytes || path.text[bytes] == '/');
}

/* Whether a folder of /sys/fs/cgroup is where the hierarchy of these controllers is mounted: all of
 * them ("cpu,cpuacct"), one of them, or its name. */
static bool is_mounted_at(struct span controllers, struct span folder)
{
    if (controllers.bytes == 0) {
        return equal(folder, span_until(UNIFIED_FOLDER, '\0'));
    }
    if (equal(controllers, folder)) {
        return true;
    }
    while (controllers.bytes > 0) {
        const char *comma = memchr(controllers.text, ',', controllers.bytes);
        size_t bytes = comma == NULL ? controllers.bytes : (size_t)(comma - controllers.text);
        struct span one = {controllers.text, bytes};
        size_t named_bytes = sizeof NAMED_PREFIX - 1;
        if (bytes > named_bytes && memcmp(one.text, NAMED_PREFIX, named_bytes) == 0) {
            one = (struct span){one.text + named_bytes, bytes - named_bytes};
        }
        if (equal(one, folder)) {
            return true;
        }
        bytes += comma == NULL ? 0 : 1;
        controllers = (struct span){controllers.text + bytes, controllers.bytes - bytes};
    }
    return false;
}

/* What follows /sys/fs/cgroup, or NULL when the prefix is not below it. */
static const char *below_mount(const char *prefix)
{
    size_t bytes = sizeof MOUNT_FOLDER - 1;
    bool below = strncmp(prefix, MOUNT_FOLDER, bytes) == 0 &&
                 (prefix[bytes] == '/' || prefix[bytes] == '\0');
    return below ? prefix + bytes : NULL;
}

static bool matches(struct span controllers, struct span path, const char *prefix)
{
    const char *folder = below_mount(prefix);
    if (folder == NULL) {
        return begins_with(path, prefix);
    }
    struct span first = span_until(folder + strspn(folder, "/"), '/');
    if (first.bytes == 0) {
        return begins_with(path, ""); /* the folder of all hierarchies */
    }
    return (controllers.bytes == 0 && begins_with(path, folder)) ||
           (is_mounted_at(controllers, first) && begins_with(path, first.text + first.bytes));
}

bool cgroup_has_prefix(const char *lines, const char *prefix)
{
    while (*lines != '\0') {
        struct span line = span_until(lines, '\n');
        const char *first = memchr(line.text, ':', line.bytes);
        const char *second =
            first == NULL ? NULL : memchr(first + 1, ':', line.bytes - (size_t)(first + 1 - lines));
        if (second != NULL) {
            struct span controllers = {first + 1, (size_t)(second - first - 1)};
            struct span path = {second + 1, line.bytes - (size_t)(second + 1 - lines)};
            if (matches(controllers, path, prefix)) {
                return true;
            }
        }
        lines += line.bytes;
        lines += *lines == '\n' ? 1 : 0;
    }
    return false;
}
