/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Writes an output file. The bytes go to a file beside it (`temporary_path` is set), which is
 * renamed at the end, or directly to a pipe or device of the caller's or root's. A symbolic link is
 * followed to its file, and one of the caller's or root's to where that would be, so it stays a
 * link. Recordings show what a machine runs, so only the owner can read a new file; a file of the
 * caller's own that is replaced keeps its mode. On request, the replaced file stays as PATH.old:
 * the two files exchange their names first, so PATH never goes missing.
 *
 * With a tag the file beside has a name that a later run finds, and that says how much of it counts
 * (partial.h). A compressed one is a gzip member from mark to mark.
 */
#include "output.h"

#include "cleanup.h"
#include "partial.h"
#include "text_out.h"
#include "unfinished.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#define DEFLATE_PIECE_BYTES ((size_t)65536)
#define STREAM_BYTES        ((size_t)65536)
#define COMPARED_BYTES      ((size_t)16384) /* at once */
#define LINKS_MAX           40              /* behind one another, as for the kernel */

/* Of zlib: takes half of the time of its default level or less, for 2 to 9 % more bytes. */
#define LEVEL 4

struct output {
    char *path;           /* owned; where it ends up */
    char *temporary_path; /* owned; NULL: written straight, or named already */
    int fd;
    uint64_t written_bytes;
    bool is_compressed;
    bool in_member; /* of the gzip stream: something stands behind its last end */
    z_stream deflate;
    bool leaves_old;           /* output_leave_old() was called */
    char *old_path;            /* owned; where the replaced file is now; NULL: there is none */
    bool has_lost_older;       /* that was at `old_path` */
    char *tag;                 /* owned; NULL: a later run does not go on */
    struct partial marked;     /* with a tag: what a later run goes on behind */
    FILE *stream;              /* owned; NULL: none was requested */
    struct fault stream_fault; /* of the first write through it that failed; code 0: none */
    uint8_t piece[DEFLATE_PIECE_BYTES];
    char stream_buffer[STREAM_BYTES];
};

/* Removes the file beside, or what is not marked of it. */
static void give_up(struct output *output)
{
    if (output->marked.mark == 0) {
        (void)unlink(output->temporary_path);
    } else if (output->fd >= 0) {
        (void)!ftruncate(output->fd, (off_t)output->marked.size_bytes);
    }
    unfinished_end();
}

struct output *output_free(struct output *output)
{
    if (output != NULL) {
        if (output->stream != NULL) {
            (void)fclose(output->stream);
        }
        if (output->temporary_path != NULL) {
            give_up(output);
        }
        if (output->is_compressed) {
            (void)deflateEnd(&output->deflate);
        }
        output->fd = output->fd == STDOUT_FILENO ? -1 : close_fd(output->fd);
        free(output->path);
        free(output->temporary_path);
        free(output->old_path);
        free(output->tag);
        free(output);
    }
    return NULL;
}

void output_freep(struct output **output)
{
    *output = output_free(*output);
}

static const char *remedy_for(int code)
{
    switch (code) {
    case ENOENT:
    case ENOTDIR:
        return "make that folder first, or name another file with -o";
    case ENOSPC:
    case EDQUOT:
        return "free some room, or name another file with -o";
    case EACCES:
    case EPERM:
    case EROFS:
        return "name a file in a folder that is yours with -o";
    default:
        return "name another file with -o";
    }
}

static int refuse_create(const char *path, int code, struct fault *reterr)
{
    return fault_set(reterr, code, "%s cannot be written: %s; %s", path, strerror(code),
                     remedy_for(code));
}

static int refuse_memory(const char *path, struct fault *reterr)
{
    return fault_set(reterr, ENOMEM, "%s: there is not enough memory", path);
}

/* True when the file is what an earlier run of this user has left, as its name says. */
static bool is_sound(int fd, const struct partial *partial)
{
    struct stat status;
    return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
           status.st_nlink == 1 && (uint64_t)status.st_size >= partial->size_bytes;
}

/* Opens the file beside `output->path` that an earlier run has left. */
static int open_left(struct output *output, char *name, struct fault *reterr)
{
    /* Not to wait for a reader, where it is a pipe. */
    cleanup_(closep) int fd = open(name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    off_t size_bytes = (off_t)output->marked.size_bytes;
    if (fd < 0 || !is_sound(fd, &output->marked)) {
        return fault_set(reterr, EEXIST,
                         "%s is in the way and not what an earlier read has left; remove it", name);
    }
    if (ftruncate(fd, size_bytes) < 0 || lseek(fd, size_bytes, SEEK_SET) < 0) {
        return refuse_create(output->path, errno, reterr);
    }
    output->fd = take_fd(fd);
    output->written_bytes = output->marked.size_bytes;
    return 0;
}

/* Opens that file, or begins one. */
static int open_tagged(struct output *output, struct fault *reterr)
{
    cleanup_(freep) char *name = NULL;
    int r = partial_find(output->path, output->tag, &output->marked, &name);
    if (r == 0) {
        r = open_left(output, name, reterr);
    } else if (r != -ENOENT) {
        return refuse_create(output->path, -r, reterr);
    } else {
        name = partial_name(output->path, output->tag, &output->marked);
        if (name == NULL) {
            return refuse_memory(output->path, reterr);
        }
        output->fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        r = output->fd < 0 ? refuse_create(output->path, errno, reterr) : 0;
    }
    if (r == 0) {
        output->temporary_path = take_ptr(name);
    }
    return r;
}

/* Begins a file beside `output->path` that is no one else's. */
static int open_untagged(struct output *output, struct fault *reterr)
{
    cleanup_(freep) char *pattern = NULL;
    if (asprintf(&pattern, "%s.partial-XXXXXX", output->path) < 0) {
        pattern = NULL;
        return refuse_memory(output->path, reterr);
    }
    output->fd = mkostemp(pattern, O_CLOEXEC);
    if (output->fd < 0) {
        return refuse_create(output->path, errno, reterr);
    }
    output->temporary_path = take_ptr(pattern);
    return 0;
}

static int open_beside(struct output *output, mode_t mode, struct fault *reterr)
{
    int r = output->tag == NULL ? open_untagged(output, reterr) : open_tagged(output, reterr);
    if (r < 0) {
        return r;
    }
    if (fchmod(output->fd, mode) < 0) {
        return refuse_create(output->path, errno, reterr);
    }
    return 0;
}

/* The file that a link at `path` names. Returned: free(). NULL when there is no memory. */
static char *linked_path(const char *path, const char *target)
{
    const char *slash = strrchr(path, '/');
    char *linked = NULL;
    if (target[0] == '/' || slash == NULL) {
        return strdup(target);
    }
    return asprintf(&linked, "%.*s/%s", (int)(slash - path), path, target) < 0 ? NULL : linked;
}

/* The same path, or where a link that is there leads, if it is the caller's own or root's: another
 * user's may have been put there since anybody looked. Returned: free(). NULL with errno;
 * `*ret_any`: there is such a link. */
static char *follow_own_link(char *path, bool *ret_any)
{
    struct stat status;
    char target[PATH_MAX];
    cleanup_(freep) char *at = path;
    cleanup_(closep) int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    *ret_any = fd >= 0 && fstat(fd, &status) == 0 && S_ISLNK(status.st_mode) &&
               (status.st_uid == geteuid() || status.st_uid == 0);
    if (!*ret_any) {
        return take_ptr(at);
    }
    ssize_t bytes = readlinkat(fd, "", target, sizeof target - 1);
    if (bytes < 0) {
        return NULL;
    }
    target[bytes] = '\0';
    return linked_path(at, target);
}

/* Where a file will be that is not there: behind links, where there are some. Returned: free().
 * NULL with errno. */
static char *future_path(const char *path)
{
    char *at = strdup(path);
    bool any = true;
    for (int i = 0; i < LINKS_MAX && any && at != NULL; i++) {
        at = follow_own_link(at, &any);
    }
    if (any && at != NULL) {
        free(take_ptr(at));
        errno = ELOOP;
    }
    return at;
}

/* Where a file is that is there. Another one may have taken its place, behind a link that the
 * kernel would not follow. Returned: free(). NULL with errno. */
static char *present_path(const char *path, const struct stat *status)
{
    struct stat found;
    cleanup_(freep) char *real = realpath(path, NULL);
    if (real == NULL) {
        return NULL;
    }
    if (lstat(real, &found) < 0 || found.st_dev != status->st_dev ||
        found.st_ino != status->st_ino) {
        errno = ESTALE;
        return NULL;
    }
    return take_ptr(real);
}

/*
 * Where the file of a path is, or will be. A link that the kernel does not follow for this user
 * (fs.protected_symlinks) gives way to the file. Returned: free(). NULL with errno. `*ret_status`
 * where it `*ret_exists`.
 */
static char *real_path(const char *path, struct stat *ret_status, bool *ret_exists)
{
    *ret_exists = stat(path, ret_status) == 0;
    if (*ret_exists) {
        return S_ISREG(ret_status->st_mode) ? present_path(path, ret_status) : strdup(path);
    }
    if (errno == ELOOP) {
        return NULL;
    }
    return errno == ENOENT ? future_path(path) : strdup(path);
}

/* Whether a path names a descriptor of this process: what is behind it was given by the caller. */
static bool is_descriptor(const char *path)
{
    return strncmp(path, "/dev/fd/", strlen("/dev/fd/")) == 0 ||
           strncmp(path, "/proc/self/fd/", strlen("/proc/self/fd/")) == 0 ||
           strcmp(path, "/dev/stdout") == 0 || strcmp(path, "/dev/stderr") == 0;
}

/* Whether what is no regular file is the caller's own or root's, and so is each link at the end of
 * the path. Links to folders on the way are not looked at. What is written to another user's pipe
 * is that user's to read. */
static bool is_own_special(const char *path, const struct stat *status)
{
    struct stat found;
    cleanup_(freep) char *real = future_path(path);
    return (status->st_uid == geteuid() || status->st_uid == 0) && real != NULL &&
           lstat(real, &found) == 0 && found.st_dev == status->st_dev &&
           found.st_ino == status->st_ino;
}

/* Opens a pipe or a device. Nothing has been written when another one is found in its place. */
static int open_special(struct output *output, const char *path, const struct stat *status,
                        struct fault *reterr)
{
    struct stat opened;
    if (!is_descriptor(path) && !is_own_special(path, status)) {
        return fault_set(reterr, EPERM,
                         "%s is another user's pipe or device, or behind another user's link; name "
                         "another file with -o",
                         path);
    }
    output->fd = open(path, O_WRONLY | O_CLOEXEC);
    if (output->fd < 0 || fstat(output->fd, &opened) < 0) {
        return refuse_create(path, errno, reterr);
    }
    return opened.st_dev == status->st_dev && opened.st_ino == status->st_ino
               ? 0
               : refuse_create(path, ESTALE, reterr);
}

static int open_path(struct output *output, const char *path, struct fault *reterr)
{
    struct stat status;
    if (strcmp(path, "-") == 0) {
        output->path = strdup("standard output");
        output->fd = STDOUT_FILENO;
        return output->path == NULL ? fault_set(reterr, ENOMEM, "there is not enough memory") : 0;
    }
    bool exists = false;
    output->path = real_path(path, &status, &exists);
    if (output->path == NULL) {
        return refuse_create(path, errno, reterr);
    }
    if (exists && S_ISDIR(status.st_mode)) {
        return fault_set(reterr, EISDIR, "%s is a directory; name a file with -o", path);
    }
    if (exists && !S_ISREG(status.st_mode)) {
        return open_special(output, path, &status, reterr);
    }
    if (exists && access(path, W_OK) < 0) {
        return refuse_create(path, errno, reterr);
    }
    /* Another user's file may have been put there to be read by that user. */
    bool keeps_mode = exists && status.st_uid == geteuid();
    return open_beside(output, keeps_mode ? status.st_mode & 0777 : 0600, reterr);
}

int output_compress(struct output *output)
{
    if (output->is_compressed) {
        return 0;
    }
    if (deflateInit2(&output->deflate, LEVEL, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
        return -ENOMEM;
    }
    output->is_compressed = true;
    output->in_member = output->written_bytes == 0;
    return 0;
}

/* `tag` may be NULL. */
static int open_output(const char *path, const char *tag, struct output **ret, uint64_t *ret_mark,
                       struct fault *reterr)
{
    cleanup_(output_freep) struct output *output = calloc(1, sizeof *output);
    if (output == NULL) {
        return refuse_memory(path, reterr);
    }
    output->fd = -1;
    output->tag = tag == NULL ? NULL : strdup(tag);
    if (tag != NULL && output->tag == NULL) {
        return refuse_memory(path, reterr);
    }
    int r = open_path(output, path, reterr);
    if (r < 0) {
        return r;
    }
    size_t length = strlen(path);
    if (length > 3 && strcmp(path + length - 3, ".gz") == 0 && output_compress(output) < 0) {
        return refuse_memory(path, reterr);
    }
    *ret_mark = output->marked.mark;
    *ret = take_ptr(output);
    return 0;
}

int output_open(const char *path, struct output **ret, struct fault *reterr)
{
    uint64_t mark = 0;
    return open_output(path, NULL, ret, &mark, reterr);
}

int output_resume(const char *path, const char *tag, struct output **ret, uint64_t *ret_mark,
                  struct fault *reterr)
{
    return open_output(path, tag, ret, ret_mark, reterr);
}

int output_reserve(struct output *output, uint64_t size_bytes, struct fault *reterr)
{
    if (output->temporary_path == NULL || output->is_compressed || size_bytes == 0 ||
        fallocate(output->fd, FALLOC_FL_KEEP_SIZE, (off_t)output->written_bytes,
                  (off_t)size_bytes) == 0 ||
        (errno != ENOSPC && errno != EDQUOT && errno != EFBIG)) {
        return 0;
    }
    return fault_set(reterr, errno, "%s cannot be written: %s, up to %" PRIu64 " bytes are needed",
                     output->path, strerror(errno), size_bytes);
}

static int refuse_write(const struct output *output, int code, struct fault *reterr)
{
    bool is_full = code == ENOSPC || code == EDQUOT;
    return fault_set(reterr, code, "%s cannot be written: %s%s", output->path, strerror(code),
                     is_full ? "; free some room, or name another file with -o" : "");
}

static int write_stored(struct output *output, const uint8_t *bytes, size_t size_bytes,
                        struct fault *reterr)
{
    while (size_bytes > 0) {
        ssize_t written = write(output->fd, bytes, size_bytes);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written < 0) {
            return refuse_write(output, errno, reterr);
        }
        bytes += written;
        size_bytes -= (size_t)written;
        output->written_bytes += (uint64_t)written;
    }
    return 0;
}

/* Compresses `size_bytes` of at most UINT_MAX and writes what comes out. */
static int write_deflated(struct output *output, const uint8_t *bytes, size_t size_bytes, int flush,
                          struct fault *reterr)
{
    z_stream *stream = &output->deflate;
    /* zlib does not write there; its interface is older than const. */
    memcpy(&stream->next_in, &bytes, sizeof bytes);
    stream->avail_in = (uInt)size_bytes;
    do {
        stream->next_out = output->piece;
        stream->avail_out = sizeof output->piece;
        (void)deflate(stream, flush);
        int r =
            write_stored(output, output->piece, sizeof output->piece - stream->avail_out, reterr);
        if (r < 0) {
            return r;
        }
    } while (stream->avail_out == 0);
    return 0;
}

int output_write(struct output *output, const void *bytes, size_t size_bytes, struct fault *reterr)
{
    if (!output->is_compressed) {
        return write_stored(output, bytes, size_bytes, reterr);
    }
    const uint8_t *at = bytes;
    int r = 0;
    output->in_member = output->in_member || size_bytes > 0;
    while (size_bytes > 0 && r == 0) {
        size_t part = size_bytes < DEFLATE_PIECE_BYTES ? size_bytes : DEFLATE_PIECE_BYTES;
        r = write_deflated(output, at, part, Z_NO_FLUSH, reterr);
        at += part;
        size_bytes -= part;
    }
    return r;
}

static ssize_t on_stream_write(void *cookie, const char *bytes, size_t size_bytes)
{
    struct output *output = cookie;
    if (output->stream_fault.code != 0 ||
        output_write(output, bytes, size_bytes, &output->stream_fault) < 0) {
        errno = EIO;
        return 0;
    }
    return (ssize_t)size_bytes;
}

FILE *output_stream(struct output *output)
{
    const cookie_io_functions_t functions = {.write = on_stream_write};
    if (output->stream == NULL) {
        output->stream = fopencookie(output, "w", functions);
        if (output->stream != NULL) {
            (void)setvbuf(output->stream, output->stream_buffer, _IOFBF, STREAM_BYTES);
        }
    }
    return output->stream;
}

static int close_stream(struct output *output, struct fault *reterr)
{
    FILE *stream = take_ptr(output->stream);
    if (stream == NULL || (fclose(stream) == 0 && output->stream_fault.code == 0)) {
        return 0;
    }
    *reterr = output->stream_fault;
    return -output->stream_fault.code;
}

/* Writes the end of the gzip member, if one is open. */
static int end_member(struct output *output, struct fault *reterr)
{
    if (!output->is_compressed || !output->in_member) {
        return 0;
    }
    int r = write_deflated(output, NULL, 0, Z_FINISH, reterr);
    if (r == 0) {
        (void)deflateReset(&output->deflate);
        output->in_member = false;
    }
    return r;
}

int output_mark(struct output *output, uint64_t mark, struct fault *reterr)
{
    int r = end_member(output, reterr);
    if (r < 0 || output->tag == NULL || output->temporary_path == NULL) {
        return r;
    }
    struct partial partial = {.mark = mark, .size_bytes = output->written_bytes};
    cleanup_(freep) char *name = partial_name(output->path, output->tag, &partial);
    if (name == NULL) {
        return refuse_memory(output->path, reterr);
    }
    if (fdatasync(output->fd) < 0 || rename(output->temporary_path, name) < 0) {
        return refuse_write(output, errno, reterr);
    }
    free(output->temporary_path);
    output->temporary_path = take_ptr(name);
    output->marked = partial;
    return 0;
}

static int refuse_old(struct output *output, const char *old_path, int code, struct fault *reterr)
{
    int r = fault_set(reterr, code,
                      "%s is written, but the file that it replaces cannot be renamed to %s: %s; "
                      "that file is %s now",
                      output->path, old_path, strerror(code), output->temporary_path);
    free(output->temporary_path);
    output->temporary_path = NULL; /* so that output_free() removes nothing */
    return r;
}

/* Gives a file that is at `old_path` already the name `ret_path` (returned: free(); NULL: there is
 * none). */
static int set_aside(const struct output *output, const char *old_path, char **ret_path)
{
    struct stat status;
    const char *suffix = output->temporary_path + strlen(output->path);
    cleanup_(freep) char *path = NULL;
    *ret_path = NULL;
    if (lstat(old_path, &status) < 0 || S_ISDIR(status.st_mode)) {
        return 0;
    }
    if (asprintf(&path, "%s%s", old_path, suffix) < 0) {
        path = NULL;
        return -ENOMEM;
    }
    if (rename(old_path, path) < 0) {
        return -errno;
    }
    *ret_path = take_ptr(path);
    return 0;
}

/* The same as exchange_names() where names cannot be exchanged: `path` is missing for a moment.
 * What is at `old_path` already comes back after a failure. */
static int move_names(struct output *output, const char *old_path, struct fault *reterr)
{
    cleanup_(freep) char *aside_path = NULL;
    int r = set_aside(output, old_path, &aside_path);
    if (r < 0) {
        return refuse_write(output, -r, reterr);
    }
    bool is_moved = rename(output->path, old_path) == 0;
    if (is_moved && rename(output->temporary_path, output->path) == 0) {
        if (aside_path != NULL) {
            (void)unlink(aside_path);
        }
        return 0;
    }
    int code = errno;
    if (is_moved && rename(old_path, output->path) < 0) {
        return fault_set(reterr, code,
                         "%s cannot be written: %s; the file that was there is %s now",
                         output->path, strerror(code), old_path);
    }
    if (aside_path != NULL) {
        (void)rename(aside_path, old_path);
    }
    return refuse_write(output, code, reterr);
}

/* Renames the file beside to `path`, and the one that is there to `old_path`. */
static int exchange_names(struct output *output, const char *old_path, struct fault *reterr)
{
    if (renameat2(AT_FDCWD, output->temporary_path, AT_FDCWD, output->path, RENAME_EXCHANGE) < 0) {
        return move_names(output, old_path, reterr);
    }
    return rename(output->temporary_path, old_path) < 0
               ? refuse_old(output, old_path, errno, reterr)
               : 0;
}

/* Gives the file beside its name. */
static int take_name(struct output *output, struct fault *reterr)
{
    struct stat status;
    cleanup_(freep) char *old_path = NULL;
    bool has_old = output->leaves_old && stat(output->path, &status) == 0 &&
                   S_ISREG(status.st_mode) && status.st_size > 0;
    if (!has_old) {
        return rename(output->temporary_path, output->path) < 0
                   ? refuse_write(output, errno, reterr)
                   : 0;
    }
    if (asprintf(&old_path, "%s.old", output->path) < 0) {
        old_path = NULL;
        return refuse_memory(output->path, reterr);
    }
    bool has_older = lstat(old_path, &status) == 0;
    int r = exchange_names(output, old_path, reterr);
    if (r == 0) {
        output->has_lost_older = has_older;
        output->old_path = take_ptr(old_path);
    }
    return r;
}

int output_finish(struct output *output, struct fault *reterr)
{
    int r = close_stream(output, reterr);
    if (r == 0) {
        r = end_member(output, reterr);
    }
    if (r < 0 || output->fd == STDOUT_FILENO) {
        return r;
    }
    /* What was reserved and not needed is given back. */
    if (output->temporary_path != NULL && ftruncate(output->fd, (off_t)output->written_bytes) < 0) {
        return refuse_write(output, errno, reterr);
    }
    /* A network file system tells a full disk only now. */
    int fd = take_fd(output->fd);
    if (close(fd) < 0) {
        return refuse_write(output, errno, reterr);
    }
    unfinished_end(); /* what is called so may be the old file from now on */
    r = output->temporary_path == NULL ? 0 : take_name(output, reterr);
    if (r == 0) {
        free(output->temporary_path);
        output->temporary_path = NULL;
    }
    return r;
}

void output_remove_on_signals(struct output *output)
{
    if (output->temporary_path != NULL) {
        unfinished_remove_on_signals(output->temporary_path);
    }
}

void output_leave_old(struct output *output)
{
    output->leaves_old = true;
}

const char *output_old_path(const struct output *output)
{
    return output->old_path;
}

void output_print_old(FILE *to, const struct output *output)
{
    if (output->old_path == NULL) {
        return;
    }
    (void)fputs("what ", to);
    text_print(to, output->path);
    (void)fputs(" was before is ", to);
    text_print(to, output->old_path);
    (void)fputs(output->has_lost_older ? " now, in place of an older one\n" : " now\n", to);
}

/* Copies what is left to be read. */
static int copy_from(struct output *output, int fd, struct fault *reterr)
{
    ssize_t got = 1;
    while (got > 0) {
        do {
            got = read(fd, output->piece, sizeof output->piece);
        } while (got < 0 && errno == EINTR);
        int r = got > 0 ? write_stored(output, output->piece, (size_t)got, reterr) : 0;
        if (r < 0) {
            return r;
        }
    }
    return got < 0
               ? fault_set(reterr, errno, "%s cannot be read: %s", output->path, strerror(errno))
               : 0;
}

int output_copy(struct output *output, struct fault *reterr)
{
    uint8_t magic[2] = {0};
    cleanup_(closep) int fd = open(output->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || pread(fd, magic, sizeof magic, 0) < 0) {
        return fault_set(reterr, errno, "%s cannot be read: %s", output->path, strerror(errno));
    }
    bool is_compressed = magic[0] == 0x1f && magic[1] == 0x8b;
    if (is_compressed != output->is_compressed) {
        return fault_set(reterr, EINVAL, "%s is %scompressed, unlike what its name says",
                         output->path, is_compressed ? "" : "not ");
    }
    return copy_from(output, fd, reterr);
}

static bool is_same_begin(int fd, int copy_fd, uint8_t *piece, uint8_t *copy_piece)
{
    for (off_t at = 0;;) {
        ssize_t got = pread(fd, piece, COMPARED_BYTES, at);
        if (got <= 0) {
            return got == 0;
        }
        ssize_t copied = pread(copy_fd, copy_piece, (size_t)got, at);
        if (copied != got || memcmp(piece, copy_piece, (size_t)got) != 0) {
            return false;
        }
        at += got;
    }
}

bool output_has_copy(const struct output *output)
{
    uint8_t piece[COMPARED_BYTES];
    uint8_t copy_piece[COMPARED_BYTES];
    cleanup_(closep) int fd = open(output->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return errno == ENOENT;
    }
    cleanup_(closep) int copy_fd = open(output_temporary_name(output), O_RDONLY | O_CLOEXEC);
    return copy_fd >= 0 && is_same_begin(fd, copy_fd, piece, copy_piece);
}

bool output_is_left(const char *path, const char *tag)
{
    struct partial partial;
    struct stat status;
    bool exists = false;
    cleanup_(freep) char *real = real_path(path, &status, &exists);
    cleanup_(freep) char *name = NULL;
    return real != NULL && partial_find(real, tag, &partial, &name) == 0 && partial.mark > 0;
}

void output_discard(struct output *output)
{
    output->marked = (struct partial){0};
}

const char *output_keep(struct output *output)
{
    if (output->temporary_path == NULL) {
        return NULL;
    }
    /* So that it can be decompressed to its end, if there is room for that. */
    (void)end_member(output, NULL);
    if (output->written_bytes == 0) {
        return NULL;
    }
    free(output->path);
    output->path = take_ptr(output->temporary_path);
    return output->path;
}

const char *output_temporary_name(const struct output *output)
{
    return output->temporary_path == NULL ? output->path : output->temporary_path;
}

uint64_t output_size_bytes(const struct output *output)
{
    return output->written_bytes;
}

const char *output_plain_path(const char *path)
{
    static const char *const names[] = {"/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(path, names[i]) == 0) {
            return "-";
        }
    }
    return path;
}
