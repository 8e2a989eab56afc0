/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A whole file into memory, of which one byte more than allowed is read to see that there is more.
 */
#include "text_file.h"

#include "cleanup.h"

#include <fcntl.h>
#include <string.h>

/* Reads until the file's end or until `capacity_bytes` are there. */
static ssize_t read_fully(int fd, char *into, size_t capacity_bytes)
{
    size_t used_bytes = 0;
    while (used_bytes < capacity_bytes) {
        ssize_t got = read(fd, into + used_bytes, capacity_bytes - used_bytes);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return -errno;
        }
        if (got == 0) {
            break;
        }
        used_bytes += (size_t)got;
    }
    return (ssize_t)used_bytes;
}

int text_file_read(const char *path, size_t maximum_bytes, char **ret, size_t *ret_bytes,
                   struct fault *reterr)
{
    cleanup_(closep) int fd = -1;
    cleanup_(freep) char *text = malloc(maximum_bytes + 2);
    int from = STDIN_FILENO;
    if (text == NULL) {
        return fault_set(reterr, ENOMEM, "%s: there is not enough memory", path);
    }
    if (strcmp(path, "-") != 0) {
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0) {
            return fault_set(reterr, errno, "%s cannot be opened: %s", path, strerror(errno));
        }
        from = fd;
    }
    ssize_t size_bytes = read_fully(from, text, maximum_bytes + 1);
    if (size_bytes < 0) {
        return fault_set(reterr, (int)-size_bytes, "%s cannot be read: %s", path,
                         strerror((int)-size_bytes));
    }
    if ((size_t)size_bytes > maximum_bytes) {
        return fault_set(reterr, EFBIG, "%s is too long: it may have %zu bytes", path,
                         maximum_bytes);
    }
    text[size_bytes] = '\0';
    *ret = take_ptr(text);
    *ret_bytes = (size_t)size_bytes;
    return 0;
}
