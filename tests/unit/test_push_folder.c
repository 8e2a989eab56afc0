/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which recordings leave a folder unsent. They are older than what may be being written, and are
 * copied, so there is no store. The linker puts the functions here in the place of the system's and
 * of zlib's.
 */
#include "cleanup.h"
#include "made_recording.h"
#include "push.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <zlib.h>

/* How often the recording cannot be opened, and why. */
static unsigned open_failures;
static int open_error;

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);

int __wrap_open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    if (open_failures > 0 && strstr(path, "/in/") != NULL) {
        open_failures--;
        errno = open_error;
        return -1;
    }
    return __real_open(path, flags, mode);
}

/* Whether memory fails when something is decompressed next. */
static bool inflate_fails;

int __real_inflate(z_stream *stream, int flush);
int __wrap_inflate(z_stream *stream, int flush);

int __wrap_inflate(z_stream *stream, int flush)
{
    bool fails = inflate_fails;
    inflate_fails = false;
    return fails ? Z_MEM_ERROR : __real_inflate(stream, flush);
}

static void write_file(const char *path, const void *bytes, size_t size_bytes)
{
    static const struct timespec long_ago[] = {{.tv_nsec = UTIME_NOW}, {.tv_sec = 1000000000}};
    cleanup_(closep) int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, size_bytes), size_bytes);
    assert_int_equal(futimens(fd, long_ago), 0);
}

/* Sends a folder with a recording of these bytes. */
static struct push_totals send_folder(const void *bytes, size_t size_bytes)
{
    static const struct push_keep keep = {.bytes = UINT64_MAX, .age_s = UINT64_MAX};
    static const char *const names[] = {"in/a.fxt", "in", "out/unknown/a.fxt", "out/unknown",
                                        "out"};
    char folder[] = "/tmp/push_folder.XXXXXX";
    cleanup_(pusher_freep) struct pusher *pusher = NULL;
    struct fault fault = {0};
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(mkdir("in", 0700), 0);
    assert_int_equal(mkdir("out", 0700), 0);
    write_file(names[0], bytes, size_bytes);
    assert_int_equal(pusher_new(&(struct push_target){.raw_folder = "out"}, &pusher, &fault), 0);
    assert_true(pusher_send_folder(pusher, "./in", &keep));
    struct push_totals totals = *pusher_totals(pusher);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        (void)remove(names[i]);
    }
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(rmdir(folder), 0);
    return totals;
}

TEST(tries_again_what_could_not_be_read)
{
    static const int errors[] = {ESTALE, ETIMEDOUT, ENOTCONN, EIO, EBADMSG};
    for (size_t i = 0; i < COUNT_OF(errors); i++) {
        cleanup_(freep) struct recording *recording = recording_of("sample 1000 7 1 0x10");
        open_error = errors[i];
        open_failures = 1;
        struct push_totals totals = send_folder(recording->memory, recording->writer.used_bytes);
        assert_int_equal(open_failures, 0);
        assert_int_equal(totals.given_up, 0);
        assert_int_equal(totals.recordings, 1);
        assert_int_equal(totals.copied_bytes, recording->writer.used_bytes);
    }
}

TEST(tries_again_what_it_had_no_memory_for)
{
    cleanup_(freep) struct recording *recording = recording_of("sample 1000 7 1 0x10");
    uint8_t compressed[4096];
    z_stream stream = {
        .next_in = (uint8_t *)recording->memory,
        .avail_in = (uInt)recording->writer.used_bytes,
        .next_out = compressed,
        .avail_out = sizeof compressed,
    };
    assert_int_equal(deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    assert_int_equal(deflateEnd(&stream), Z_OK);
    inflate_fails = true;
    struct push_totals totals = send_folder(compressed, stream.total_out);
    assert_false(inflate_fails);
    assert_int_equal(totals.given_up, 0);
    assert_int_equal(totals.recordings, 1);
}

TEST(gives_up_what_is_no_recording)
{
    static const char nothing[] = "no recording";
    static const uint8_t no_gzip[] = {0x1f, 0x8b, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    struct push_totals totals = send_folder(nothing, strlen(nothing));
    assert_int_equal(totals.given_up, 1);
    totals = send_folder(no_gzip, sizeof no_gzip);
    assert_int_equal(totals.given_up, 1);
    totals = send_folder("", 0);
    assert_int_equal(totals.given_up, 1);
}
