/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads bytes from a descriptor or memory, through zlib where they are compressed. Several gzip
 * members in a row are one stream, and zeros behind the last are ignored, as gzip itself does; a
 * tape or a disk image pads with them. The feed interprets the bytes.
 */
#include "recording.h"

#include "cleanup.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#define PIECE_BYTES ((size_t)65536)

struct input {
    const char *name;
    int fd; /* -1: `rest` is all there is */
    const uint8_t *rest;
    size_t rest_bytes;
    bool compressed;
    bool in_member;  /* of a gzip stream: its end has not been seen */
    bool in_padding; /* zeros behind a member were seen */
    z_stream inflate;
    uint8_t piece[PIECE_BYTES];
    size_t piece_used_bytes;
    size_t piece_bytes;
    struct feed feed;
};

static struct input *input_free(struct input *input)
{
    if (input != NULL) {
        if (input->compressed) {
            (void)inflateEnd(&input->inflate);
        }
        input->fd = input->fd == STDIN_FILENO ? -1 : close_fd(input->fd);
        feed_done(&input->feed);
        free(input);
    }
    return NULL;
}

static void input_freep(struct input **input)
{
    *input = input_free(*input);
}

static struct input *input_new(const char *name)
{
    cleanup_(input_freep) struct input *input = calloc(1, sizeof *input);
    if (input == NULL) {
        return NULL;
    }
    input->name = name;
    input->fd = -1;
    return feed_init(&input->feed) < 0 ? NULL : take_ptr(input);
}

static int refuse_memory(const struct input *input, struct fault *reterr)
{
    return fault_set(reterr, ENOMEM, "%s: there is not enough memory", input->name);
}

/* -EBADMSG is said of what the file has in it, so that of a filesystem becomes -EIO. */
static int refuse_file(const char *name, const char *what, struct fault *reterr)
{
    return fault_set(reterr, errno == EBADMSG ? EIO : errno, "%s cannot be %s: %s", name, what,
                     strerror(errno));
}

static int open_file(struct input *input, const char *path, struct fault *reterr)
{
    struct stat status;
    if (strcmp(path, "-") == 0) {
        input->fd = STDIN_FILENO;
        return 0;
    }
    input->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (input->fd < 0 || fstat(input->fd, &status) < 0) {
        return refuse_file(path, "opened", reterr);
    }
    if (S_ISDIR(status.st_mode)) {
        return fault_set(reterr, EISDIR, "%s is a directory, not a recording", path);
    }
    return 0;
}

/* Bytes as they stand in the file. `*ret_bytes` is 0 at its end. */
static int read_stored(struct input *input, uint8_t *into, size_t capacity_bytes, size_t *ret_bytes,
                       struct fault *reterr)
{
    ssize_t got = 0;
    if (input->fd < 0) {
        got = (ssize_t)(input->rest_bytes < capacity_bytes ? input->rest_bytes : capacity_bytes);
        if (got > 0) {
            memcpy(into, input->rest, (size_t)got);
            input->rest += got;
            input->rest_bytes -= (size_t)got;
        }
    } else {
        do {
            got = read(input->fd, into, capacity_bytes);
        } while (got < 0 && errno == EINTR);
        if (got < 0) {
            return refuse_file(input->name, "read", reterr);
        }
    }
    *ret_bytes = (size_t)got;
    return 0;
}

static int refill_piece(struct input *input, struct fault *reterr)
{
    size_t got = 0;
    int r = read_stored(input, input->piece, PIECE_BYTES, &got, reterr);
    input->piece_used_bytes = 0;
    input->piece_bytes = r < 0 ? 0 : got;
    return r;
}

/* Looks at the first bytes, and starts the decompressor if they are gzip's. */
static int detect_compression(struct input *input, struct fault *reterr)
{
    while (input->piece_bytes < 2) {
        size_t got = 0;
        int r = read_stored(input, input->piece + input->piece_bytes,
                            PIECE_BYTES - input->piece_bytes, &got, reterr);
        if (r < 0) {
            return r;
        }
        if (got == 0) {
            return 0;
        }
        input->piece_bytes += got;
    }
    if (input->piece[0] == 0x1f && input->piece[1] == 0x8b) {
        if (inflateInit2(&input->inflate, 15 + 16) != Z_OK) {
            return refuse_memory(input, reterr);
        }
        input->compressed = true;
    }
    return 0;
}

static int hand_out(size_t bytes, size_t *ret_bytes)
{
    *ret_bytes = bytes;
    return 0;
}

static int refuse_gzip(const struct input *input, struct fault *reterr)
{
    return fault_set(reterr, EBADMSG, "%s is damaged: its gzip data cannot be decompressed",
                     input->name);
}

/* Passes over zeros where a member may begin. Returns 0; -EBADMSG: something follows them. */
static int pass_padding(struct input *input, struct fault *reterr)
{
    while (input->piece_used_bytes < input->piece_bytes &&
           input->piece[input->piece_used_bytes] == 0) {
        input->piece_used_bytes++;
        input->in_padding = true;
    }
    bool has_more = input->piece_used_bytes < input->piece_bytes;
    return input->in_padding && has_more ? refuse_gzip(input, reterr) : 0;
}

static int read_inflated(struct input *input, uint8_t *into, size_t capacity_bytes,
                         size_t *ret_bytes, struct fault *reterr)
{
    z_stream *stream = &input->inflate;
    stream->next_out = into;
    stream->avail_out = (uInt)capacity_bytes;
    while (stream->avail_out == capacity_bytes) {
        int r = input->piece_used_bytes == input->piece_bytes ? refill_piece(input, reterr) : 0;
        r = r < 0 || input->in_member ? r : pass_padding(input, reterr);
        if (r < 0) {
            return r;
        }
        if (input->piece_bytes == 0) {
            break;
        }
        if (input->in_padding) {
            continue;
        }
        if (!input->in_member) {
            (void)inflateReset(stream);
            input->in_member = true;
        }
        size_t offered = input->piece_bytes - input->piece_used_bytes;
        stream->next_in = input->piece + input->piece_used_bytes;
        stream->avail_in = (uInt)offered;
        int z = inflate(stream, Z_NO_FLUSH);
        input->piece_used_bytes += offered - stream->avail_in;
        input->in_member = z != Z_STREAM_END;
        if (z == Z_MEM_ERROR) {
            return refuse_memory(input, reterr);
        }
        if (z != Z_OK && z != Z_STREAM_END && z != Z_BUF_ERROR) {
            /* What came before the damage is handed out first; the next call fails at once. */
            return stream->avail_out < capacity_bytes
                       ? hand_out(capacity_bytes - stream->avail_out, ret_bytes)
                       : refuse_gzip(input, reterr);
        }
    }
    *ret_bytes = capacity_bytes - stream->avail_out;
    return 0;
}

/* Bytes of records. `*ret_bytes` is 0 at the input's end. */
static int read_plain(struct input *input, uint8_t *into, size_t room, size_t *ret_bytes,
                      struct fault *reterr)
{
    if (input->compressed) {
        return read_inflated(input, into, room, ret_bytes, reterr);
    }
    size_t left = input->piece_bytes - input->piece_used_bytes;
    if (left == 0) {
        return read_stored(input, into, room, ret_bytes, reterr);
    }
    size_t got = left < room ? left : room;
    memcpy(into, input->piece + input->piece_used_bytes, got);
    input->piece_used_bytes += got;
    *ret_bytes = got;
    return 0;
}

/* Puts more bytes into the feed. `*ret_bytes` is 0 at the input's end. */
static int fill_feed(struct input *input, size_t *ret_bytes, struct fault *reterr)
{
    size_t room = 0;
    uint8_t *into = feed_space(&input->feed, &room);
    return read_plain(input, into, room, ret_bytes, reterr);
}

/* Puts the input's name before what the feed says. */
static int pass_records(struct input *input, size_t size_bytes, feed_record_fn on_record,
                        void *userdata, struct fault *reterr)
{
    struct fault fault = {0};
    int r = feed_filled(&input->feed, size_bytes, on_record, userdata, &fault);
    return fault.code == 0 ? r : fault_set(reterr, fault.code, "%s %s", input->name, fault.text);
}

static int read_all(struct input *input, feed_record_fn on_record, void *userdata,
                    struct input_summary *ret, struct fault *reterr)
{
    size_t got = 0;
    struct fault fault = {0};
    int r = detect_compression(input, &fault);
    do {
        if (r == 0) {
            r = fill_feed(input, &got, &fault);
        }
        if (r == 0 && got > 0) {
            r = pass_records(input, got, on_record, userdata, &fault);
        }
    } while (r == 0 && got > 0);
    /* The caller's own faults have no text. */
    bool damaged = r == -EBADMSG && fault.code == EBADMSG && input->feed.record_count > 0;
    if (r < 0 && !damaged) {
        return fault.code == 0 ? r : fault_set(reterr, fault.code, "%s", fault.text);
    }
    bool truncated =
        !damaged && (feed_has_rest(&input->feed) || (input->compressed && input->in_member));
    if (input->feed.record_count == 0) {
        return fault_set(reterr, EBADMSG, "%s is not a recording: %s", input->name,
                         truncated ? "it ends within its first record" : "it is empty");
    }
    *ret = (struct input_summary){
        .size_bytes = input->feed.size_bytes,
        .record_count = input->feed.record_count,
        .truncated = truncated,
        .damaged = damaged,
    };
    return 0;
}

int input_read(const char *path, feed_record_fn on_record, void *userdata,
               struct input_summary *ret, struct fault *reterr)
{
    cleanup_(input_freep) struct input *input =
        input_new(strcmp(path, "-") == 0 ? "standard input" : path);
    if (input == NULL) {
        return fault_set(reterr, ENOMEM, "%s: there is not enough memory", path);
    }
    int r = open_file(input, path, reterr);
    return r < 0 ? r : read_all(input, on_record, userdata, ret, reterr);
}

int input_copy(const char *path, uint64_t size_bytes, FILE *to, struct fault *reterr)
{
    cleanup_(input_freep) struct input *input = input_new(path);
    if (input == NULL) {
        return fault_set(reterr, ENOMEM, "%s: there is not enough memory", path);
    }
    int r = open_file(input, path, reterr);
    r = r < 0 ? r : detect_compression(input, reterr);
    while (r == 0 && size_bytes > 0) {
        uint8_t bytes[PIECE_BYTES];
        size_t wanted = size_bytes < sizeof bytes ? (size_t)size_bytes : sizeof bytes;
        size_t got = 0;
        r = read_plain(input, bytes, wanted, &got, reterr);
        if (r == 0 && got == 0) {
            r = fault_set(reterr, EIO, "%s has become shorter", path);
        }
        (void)fwrite(bytes, 1, got, to);
        size_bytes -= got;
    }
    return r;
}

int input_read_memory(const uint8_t *bytes, size_t size_bytes, feed_record_fn on_record,
                      void *userdata, struct input_summary *ret, struct fault *reterr)
{
    cleanup_(input_freep) struct input *input = input_new("recording");
    if (input == NULL) {
        return fault_set(reterr, ENOMEM, "recording: there is not enough memory");
    }
    input->rest = bytes;
    input->rest_bytes = size_bytes;
    return read_all(input, on_record, userdata, ret, reterr);
}

/* A feed_record_fn: one record is enough. */
static int stop_reading(const struct fxt_record *record, void *userdata)
{
    (void)record, (void)userdata;
    return -ECANCELED;
}

bool input_is_recording(const char *path)
{
    struct input_summary summary;
    struct stat status;
    return strcmp(path, "-") != 0 && stat(path, &status) == 0 && S_ISREG(status.st_mode) &&
           input_read(path, stop_reading, NULL, &summary, NULL) == -ECANCELED;
}
