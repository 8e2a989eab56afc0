/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The file of what was sent, on filesystems that refuse a lock or take a part of what is written.
 * The linker puts the functions here in the place of the system's.
 */
#include "progress.h"
#include "unit_test.h"

#include <errno.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* What the next lock fails with; 0: it is taken. */
static int lock_error;

/* How many bytes the next calls take; what is behind them takes all. A negative one is -errno. */
static ssize_t taken_bytes[4];
static size_t taken_count;
static size_t taken_at;

int __real_flock(int fd, int operation);
int __wrap_flock(int fd, int operation);
ssize_t __real_pwrite(int fd, const void *bytes, size_t count, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *bytes, size_t count, off_t offset);

int __wrap_flock(int fd, int operation)
{
    if (lock_error != 0) {
        errno = lock_error;
        return -1;
    }
    return __real_flock(fd, operation);
}

ssize_t __wrap_pwrite(int fd, const void *bytes, size_t count, off_t offset)
{
    ssize_t taken = taken_at < taken_count ? taken_bytes[taken_at++] : (ssize_t)count;
    if (taken < 0) {
        errno = (int)-taken;
        return -1;
    }
    return taken == 0 ? 0 : __real_pwrite(fd, bytes, (size_t)taken, offset);
}

static void let_take(const ssize_t *bytes, size_t count)
{
    taken_at = 0;
    taken_count = count;
    memcpy(taken_bytes, bytes, count * sizeof *bytes);
    errno = 0;
}

static char path[64];

static int make_file(void **state)
{
    (void)state;
    (void)snprintf(path, sizeof path, "/tmp/push_progress.XXXXXX");
    int fd = mkstemp(path);
    lock_error = 0;
    taken_count = 0;
    return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

TEST_WITH(says_that_another_has_it_only_if_one_has, make_file, remove_file)
{
    struct progress first = PROGRESS_NONE;
    struct progress second = PROGRESS_NONE;
    struct fault fault = {0};
    assert_int_equal(progress_open(path, "key", &first, &fault), 0);
    assert_int_equal(progress_open(path, "key", &second, &fault), -EBUSY);
    assert_contains(fault.text, ": another profctl is sending this recording");
    progress_close(&first);
    lock_error = ESTALE; /* not that of a file about something else */
    assert_int_equal(progress_open(path, "key", &second, &fault), -EIO);
    lock_error = ENOLCK;
    assert_int_equal(progress_open(path, "key", &second, &fault), -ENOLCK);
    assert_contains(fault.text, path);
    assert_contains(fault.text, " cannot be locked: No locks available; name another with "
                                "--progress");
}

TEST_WITH(writes_on_behind_what_was_taken, make_file, remove_file)
{
    struct progress progress = PROGRESS_NONE;
    struct progress peeked = PROGRESS_NONE;
    struct fault fault = {0};
    assert_int_equal(progress_open(path, "key", &progress, &fault), 0);
    progress.position = 70;
    progress.accepted = 70;
    let_take(ROWS_OF(ssize_t, 20, 5));
    assert_int_equal(progress_save(&progress, path, &fault), 0);
    progress_close(&progress);
    assert_true(progress_peek(path, &peeked));
    assert_int_equal(peeked.position, 70);
    assert_string_equal(peeked.key, "key");
}

TEST_WITH(says_why_the_rest_was_not_taken, make_file, remove_file)
{
    struct progress progress = PROGRESS_NONE;
    struct fault fault = {0};
    assert_int_equal(progress_open(path, "key", &progress, &fault), 0);
    let_take(ROWS_OF(ssize_t, 20, -EDQUOT));
    assert_int_equal(progress_save(&progress, path, &fault), -EDQUOT);
    assert_contains(fault.text, " cannot be written: Disk quota exceeded");
    let_take(ROWS_OF(ssize_t, 20, 0));
    assert_int_equal(progress_save(&progress, path, &fault), -ENOSPC);
    assert_contains(fault.text, " cannot be written: No space left on device");
    progress_close(&progress);
}
