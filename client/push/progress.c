/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The file has one line of numbers and one with the key, and always the same length, so it is
 * written over in its place, by one call where the filesystem takes it whole.
 */
#include "progress.h"

#include "cleanup.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

#define FILE_BYTES ((size_t)1024)
#define HEAD       "profctl push 2"

/* Reads " NAME NUMBER", and moves behind it. */
static bool scan_number(const char **at, const char *name, uint64_t *ret)
{
    size_t bytes = strlen(name);
    char *end = NULL;
    if ((*at)[0] != ' ' || strncmp(*at + 1, name, bytes) != 0 || (*at)[1 + bytes] != ' ' ||
        (*at)[2 + bytes] < '0' || (*at)[2 + bytes] > '9') {
        return false;
    }
    errno = 0;
    *ret = strtoull(*at + 2 + bytes, &end, 10);
    *at = end;
    return errno == 0;
}

static bool scan(const char *text, struct progress *ret)
{
    const char *at = text + strlen(HEAD);
    if (strncmp(text, HEAD, strlen(HEAD)) != 0 || !scan_number(&at, "position", &ret->position) ||
        !scan_number(&at, "accepted", &ret->accepted) ||
        !scan_number(&at, "partly", &ret->partly) ||
        !scan_number(&at, "rejected", &ret->rejected) ||
        !scan_number(&at, "profiles", &ret->rejected_profiles) ||
        !scan_number(&at, "largest", &ret->sample_max) || *at != '\n' ||
        ret->accepted > ret->position || ret->partly > ret->position - ret->accepted ||
        ret->rejected != ret->position - ret->accepted - ret->partly) {
        return false;
    }
    size_t key_bytes = strcspn(++at, "\n");
    if (at[key_bytes] != '\n' || key_bytes >= sizeof ret->key) {
        return false;
    }
    memcpy(ret->key, at, key_bytes);
    ret->key[key_bytes] = '\0';
    return true;
}

static int parse(const char *path, const char *text, const char *key, struct progress *ret,
                 struct fault *reterr)
{
    if (!scan(text, ret)) {
        return fault_set(reterr, EBADMSG,
                         "%s is not what profctl push writes; remove it to send all again", path);
    }
    if (strcmp(ret->key, key) != 0 && ret->position == 0) {
        ret->sample_max = 0; /* nothing was sent, wherever it was to go */
    } else if (strcmp(ret->key, key) != 0) {
        return fault_set(reterr, ESTALE,
                         "%s is about another recording or store; remove it to send all, or name "
                         "another file with --progress",
                         path);
    }
    return 0;
}

/* The code of a call that has failed. ESTALE and EBADMSG are kept for what the file says, and EBUSY
 * for another sender: those of a filesystem become EIO. */
static int call_error(void)
{
    return errno == ESTALE || errno == EBADMSG || errno == EBUSY ? EIO : errno;
}

int progress_open(const char *path, const char *key, struct progress *ret, struct fault *reterr)
{
    cleanup_(progress_close) struct progress progress = PROGRESS_NONE;
    char text[FILE_BYTES + 1] = {0};
    if (path == NULL) {
        *ret = progress;
        return 0;
    }
    progress.fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (progress.fd < 0) {
        return fault_set(reterr, call_error(),
                         "%s, where it would be kept what has been sent, cannot be opened: %s; "
                         "name another with --progress",
                         path, strerror(errno));
    }
    if (flock(progress.fd, LOCK_EX | LOCK_NB) < 0) {
        return errno == EWOULDBLOCK
                   ? fault_set(reterr, EBUSY, "%s: another profctl is sending this recording", path)
                   : fault_set(reterr, call_error(),
                               "%s cannot be locked: %s; name another with --progress", path,
                               strerror(errno));
    }
    ssize_t bytes = pread(progress.fd, text, FILE_BYTES, 0);
    if (bytes < 0) {
        return fault_set(reterr, call_error(), "%s cannot be read: %s", path, strerror(errno));
    }
    text[bytes] = '\0';
    int r = bytes == 0 ? 0 : parse(path, text, key, &progress, reterr);
    if (r < 0) {
        return r;
    }
    (void)snprintf(progress.key, sizeof progress.key, "%s", key);
    *ret = progress;
    progress.fd = -1;
    return 0;
}

bool progress_peek(const char *path, struct progress *ret)
{
    char text[FILE_BYTES + 1] = {0};
    cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    ssize_t bytes = fd < 0 ? 0 : pread(fd, text, FILE_BYTES, 0);
    text[bytes < 0 ? 0 : bytes] = '\0';
    *ret = PROGRESS_NONE;
    return scan(text, ret);
}

/* Writes FILE_BYTES, of which a filesystem that is almost full takes a part. False: errno. */
static bool write_all(int fd, const char *text)
{
    for (size_t done = 0; done < FILE_BYTES;) {
        ssize_t taken = pwrite(fd, text + done, FILE_BYTES - done, (off_t)done);
        if (taken <= 0) {
            errno = taken == 0 ? ENOSPC : errno;
            return false;
        }
        done += (size_t)taken;
    }
    return true;
}

int progress_save(const struct progress *progress, const char *path, struct fault *reterr)
{
    char text[FILE_BYTES + 1];
    if (progress->fd < 0) {
        return 0;
    }
    int bytes =
        snprintf(text, sizeof text,
                 HEAD " position %" PRIu64 " accepted %" PRIu64 " partly %" PRIu64
                      " rejected %" PRIu64 " profiles %" PRIu64 " largest %" PRIu64 "\n%s\n",
                 progress->position, progress->accepted, progress->partly, progress->rejected,
                 progress->rejected_profiles, progress->sample_max, progress->key);
    memset(text + bytes, ' ', FILE_BYTES - (size_t)bytes);
    text[FILE_BYTES - 1] = '\n';
    if (!write_all(progress->fd, text) || fdatasync(progress->fd) < 0) {
        return fault_set(reterr, errno, "%s cannot be written: %s", path, strerror(errno));
    }
    return 0;
}

void progress_close(struct progress *progress)
{
    progress->fd = close_fd(progress->fd);
}
