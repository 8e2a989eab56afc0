/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads small files of /proc, /sys and /etc, below a root that may be a folder of a test. None of
 * them is waited for: what blocks is opened without blocking.
 */
#include "files.h"

#include "cleanup.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

ssize_t files_read(const char *root, const char *path, char *into, size_t capacity_bytes)
{
    char whole[FILES_PATH_BYTES];
    size_t used_bytes = 0;
    into[0] = '\0';
    int length = snprintf(whole, sizeof whole, "%s%s", root, path);
    if (length < 0 || (size_t)length >= sizeof whole) {
        return -ENAMETOOLONG;
    }
    cleanup_(closep) int fd = open(whole, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return -errno;
    }
    while (used_bytes < capacity_bytes - 1) {
        ssize_t got = read(fd, into + used_bytes, capacity_bytes - 1 - used_bytes);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            into[0] = '\0';
            return -errno;
        }
        if (got == 0) {
            break;
        }
        used_bytes += (size_t)got;
    }
    into[used_bytes] = '\0';
    return (ssize_t)used_bytes;
}

struct fact fact_known(int64_t value)
{
    return (struct fact){.value = value};
}

struct fact fact_unknown(const char *what, int error)
{
    struct fact fact = {0};
    (void)snprintf(fact.why, sizeof fact.why, "%.48s: %.40s", what, strerror(error));
    return fact;
}

struct fact files_number(const char *root, const char *path)
{
    char text[64];
    ssize_t bytes = files_read(root, path, text, sizeof text);
    char *end = text;
    if (bytes < 0) {
        return fact_unknown(path, (int)-bytes);
    }
    long long value = strtoll(text, &end, 10);
    return end == text ? fact_unknown(path, EBADMSG) : fact_known(value);
}

void files_line(const char *root, const char *path, char *into, size_t capacity_bytes)
{
    (void)files_read(root, path, into, capacity_bytes);
    into[strcspn(into, "\n")] = '\0';
}
