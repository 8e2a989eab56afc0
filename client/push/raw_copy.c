/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Copies a recording. The host's name comes from the recording, so it is made a name of a folder
 * that leads nowhere else.
 */
#include "raw_copy.h"

#include "cleanup.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define COPY_BYTES ((size_t)65536)
#define NAME_BYTES ((size_t)256)

/* The name of a host as that of a folder. `into` has NAME_BYTES. */
static void name_folder(const char *host, char *into)
{
    (void)snprintf(into, NAME_BYTES, "%.64s", host == NULL || host[0] == '\0' ? "unknown" : host);
    for (char *at = into; *at != '\0'; at++) {
        bool is_plain = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
                        (*at >= '0' && *at <= '9') || *at == '-' || *at == '_' ||
                        (*at == '.' && at != into);
        *at = is_plain ? *at : '_';
    }
}

static int copy_bytes(int from, int into, uint64_t *ret_bytes)
{
    char bytes[COPY_BYTES];
    for (ssize_t got = 0; (got = read(from, bytes, sizeof bytes)) != 0;) {
        if (got < 0) {
            return -errno;
        }
        for (ssize_t done = 0; done < got;) {
            ssize_t put = write(into, bytes + done, (size_t)(got - done));
            if (put < 0) {
                return -errno;
            }
            done += put;
        }
        *ret_bytes += (uint64_t)got;
    }
    return fsync(into) < 0 ? -errno : 0;
}

/* Whether the file under that name has the same bytes. */
static bool is_copied(int from, int folder, const char *name)
{
    char ours[COPY_BYTES];
    char theirs[COPY_BYTES];
    cleanup_(closep) int there =
        openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    off_t at = 0;
    for (;;) {
        ssize_t got = pread(from, ours, sizeof ours, at);
        if (there < 0 || got < 0 || pread(there, theirs, sizeof theirs, at) != got ||
            memcmp(ours, theirs, (size_t)got) != 0) {
            return false;
        }
        if (got == 0) {
            return true;
        }
        at += got;
    }
}

/* Copies into a folder that is open, under a name that is not there yet. */
static int copy_into(int from, int folder, const char *name, uint64_t *ret_bytes)
{
    char temporary[NAME_BYTES + 16];
    (void)snprintf(temporary, sizeof temporary, ".%s.part", name);
    cleanup_(closep) int into =
        openat(folder, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0640);
    if (into < 0) {
        return -errno;
    }
    int r = copy_bytes(from, into, ret_bytes);
    if (r == 0 && (renameat(folder, temporary, folder, name) < 0 || fsync(folder) < 0)) {
        r = -errno;
    }
    if (r < 0) {
        (void)unlinkat(folder, temporary, 0);
    }
    return r;
}

int raw_copy(const char *path, const char *folder, const char *host, uint64_t *ret_bytes,
             struct fault *reterr)
{
    struct stat there;
    char host_name[NAME_BYTES];
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    name_folder(host, host_name);
    *ret_bytes = 0;
    cleanup_(closep) int from = open(path, O_RDONLY | O_CLOEXEC);
    if (from < 0) {
        return fault_set(reterr, errno, "%s cannot be opened: %s", path, strerror(errno));
    }
    cleanup_(closep) int above = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (above < 0 || (mkdirat(above, host_name, 0750) < 0 && errno != EEXIST)) {
        return fault_set(reterr, errno, "%s: no folder can be made there: %s%s", folder,
                         strerror(errno), errno == ENOENT ? "; make it first" : "");
    }
    cleanup_(closep) int into =
        openat(above, host_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (into < 0) {
        return fault_set(reterr, errno, "%s/%s cannot be opened: %s", folder, host_name,
                         strerror(errno));
    }
    if (fstatat(into, name, &there, AT_SYMLINK_NOFOLLOW) == 0) {
        return S_ISREG(there.st_mode) && is_copied(from, into, name)
                   ? 0
                   : fault_set(reterr, EEXIST, "%s/%s/%s: there is another file of that name",
                               folder, host_name, name);
    }
    int r = strlen(name) >= NAME_BYTES ? -ENAMETOOLONG : copy_into(from, into, name, ret_bytes);
    return r < 0 ? fault_set(reterr, -r, "%s/%s/%s cannot be written: %s", folder, host_name, name,
                             strerror(-r))
                 : 0;
}
