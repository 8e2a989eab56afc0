/* SPDX-License-Identifier: Apache-2.0 */

/*
 * States: written beside (`temporary_path` is set), or straight. A name that exists is followed to
 * the file that it means, so a symbolic link stays one. Recordings tell what a machine runs: a new
 * file is its owner's alone, and one that is replaced keeps its mode.
 */
#include "output.h"

#include "cleanup.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#define DEFLATE_PIECE_BYTES ((size_t)65536)

struct output {
    char *path;           /* owned; where it ends up */
    char *temporary_path; /* owned; NULL: written straight, or named already */
    int fd;
    uint64_t written_bytes;
    bool is_compressed;
    z_stream deflate;
    FILE *stream;              /* owned; NULL: nobody asked for one */
    struct fault stream_fault; /* of the first write through it that failed; code 0: none */
    uint8_t piece[DEFLATE_PIECE_BYTES];
};

struct output *output_free(struct output *output)
{
    if (output != NULL) {
        if (output->stream != NULL) {
            (void)fclose(output->stream);
        }
        if (output->temporary_path != NULL) {
            (void)unlink(output->temporary_path);
        }
        if (output->is_compressed) {
            (void)deflateEnd(&output->deflate);
        }
        output->fd = output->fd == STDOUT_FILENO ? -1 : close_fd(output->fd);
        free(output->path);
        free(output->temporary_path);
        free(output);
    }
    return NULL;
}

void output_freep(struct output **output)
{
    *output = output_free(*output);
}

static int refuse_create(const char *path, int code, struct fault *reterr)
{
    return fault_set(reterr, code,
                     "%s: cannot be written: %s; name a file in a folder that is yours with -o",
                     path, strerror(code));
}

/* Opens a file beside `output->path` that is no one else's. */
static int open_beside(struct output *output, mode_t mode, struct fault *reterr)
{
    cleanup_(freep) char *pattern = NULL;
    if (asprintf(&pattern, "%s.partial-XXXXXX", output->path) < 0) {
        pattern = NULL;
        return fault_set(reterr, ENOMEM, "%s: there is not enough memory", output->path);
    }
    output->fd = mkostemp(pattern, O_CLOEXEC);
    if (output->fd < 0) {
        return refuse_create(output->path, errno, reterr);
    }
    output->temporary_path = take_ptr(pattern);
    if (fchmod(output->fd, mode) < 0) {
        return refuse_create(output->path, errno, reterr);
    }
    return 0;
}

static int open_path(struct output *output, const char *path, struct fault *reterr)
{
    struct stat status;
    if (strcmp(path, "-") == 0) {
        output->path = strdup("standard output");
        output->fd = STDOUT_FILENO;
        return output->path == NULL ? fault_set(reterr, ENOMEM, "there is not enough memory") : 0;
    }
    bool exists = stat(path, &status) == 0;
    output->path = exists ? realpath(path, NULL) : strdup(path);
    if (output->path == NULL) {
        return refuse_create(path, errno, reterr);
    }
    if (exists && S_ISDIR(status.st_mode)) {
        return fault_set(reterr, EISDIR, "%s: is a directory; name a file with -o", path);
    }
    if (exists && !S_ISREG(status.st_mode)) {
        output->fd = open(path, O_WRONLY | O_CLOEXEC);
        return output->fd < 0 ? refuse_create(path, errno, reterr) : 0;
    }
    if (exists && access(path, W_OK) < 0) {
        return refuse_create(path, errno, reterr);
    }
    return open_beside(output, exists ? status.st_mode & 0777 : 0600, reterr);
}

int output_open(const char *path, bool is_compressed, struct output **ret, struct fault *reterr)
{
    cleanup_(output_freep) struct output *output = calloc(1, sizeof *output);
    if (output == NULL) {
        return fault_set(reterr, ENOMEM, "%s: there is not enough memory", path);
    }
    output->fd = -1;
    int r = open_path(output, path, reterr);
    if (r < 0) {
        return r;
    }
    if (is_compressed) {
        if (deflateInit2(&output->deflate, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8,
                         Z_DEFAULT_STRATEGY) != Z_OK) {
            return fault_set(reterr, ENOMEM, "%s: there is not enough memory", path);
        }
        output->is_compressed = true;
    }
    *ret = take_ptr(output);
    return 0;
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
            return fault_set(reterr, errno, "%s: cannot be written: %s", output->path,
                             strerror(errno));
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

int output_finish(struct output *output, struct fault *reterr)
{
    int r = close_stream(output, reterr);
    if (r < 0) {
        return r;
    }
    r = output->is_compressed ? write_deflated(output, NULL, 0, Z_FINISH, reterr) : 0;
    if (r < 0 || output->fd == STDOUT_FILENO) {
        return r;
    }
    /* A network file system tells a full disk only now. */
    int fd = take_fd(output->fd);
    if (close(fd) < 0 ||
        (output->temporary_path != NULL && rename(output->temporary_path, output->path) < 0)) {
        return fault_set(reterr, errno, "%s: cannot be written: %s", output->path, strerror(errno));
    }
    free(output->temporary_path);
    output->temporary_path = NULL;
    return 0;
}

const char *output_keep(struct output *output)
{
    if (output->temporary_path == NULL) {
        return NULL;
    }
    if (output->is_compressed) {
        /* So that it can be decompressed to its end, if there is room for that. */
        (void)write_deflated(output, NULL, 0, Z_FINISH, NULL);
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
