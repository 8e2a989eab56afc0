/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The file of what was sent, on filesystems that refuse a lock. The linker puts the function here
 * in the place of the system's.
 */
#include "progress.h"
#include "unit_test.h"

#include <errno.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* What the next lock fails with; 0: it is taken. */
static int lock_error;

int __real_flock(int fd, int operation);
int __wrap_flock(int fd, int operation);

int __wrap_flock(int fd, int operation)
{
    if (lock_error != 0) {
        errno = lock_error;
        return -1;
    }
    return __real_flock(fd, operation);
}

static char path[64];

static int make_file(void **state)
{
    (void)state;
    (void)snprintf(path, sizeof path, "/tmp/push_progress.XXXXXX");
    int fd = mkstemp(path);
    lock_error = 0;
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
