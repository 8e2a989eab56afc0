/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a list of mounts says, from a folder that stands for a process's in /proc. A user chooses
 * the length of that list.
 */
#include "mount_table.h"

#include "cleanup.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

#define BOUND_BYTES ((size_t)8 << 20) /* docs/bounds.md */

static char folder[] = "/tmp/test-mount-table-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL ? -1 : 0;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

/* The folder of a process with these mounts behind `padding_bytes` of other ones. */
static int open_process(size_t padding_bytes, const char *mounts)
{
    char path[64];
    char long_path[4000];
    (void)snprintf(path, sizeof path, "%s/mountinfo", folder);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    memset(long_path, 'x', sizeof long_path);
    for (size_t written = 0; written < padding_bytes;) {
        written += (size_t)fprintf(file, "7 1 0:9 / /%.*s rw - tmpfs none rw\n",
                                   (int)sizeof long_path, long_path);
    }
    (void)fputs(mounts, file);
    assert_int_equal(fclose(file), 0);
    int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static void close_process(int fd)
{
    char path[64];
    (void)snprintf(path, sizeof path, "%s/mountinfo", folder);
    assert_int_equal(unlink(path), 0);
    (void)close(fd);
}

static const char mounts[] = "21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
                             "no mount at all\n"
                             "22 21 0:40 / /mnt rw master:2 propagate_from:3 - nfs4 host:/ rw\n"
                             "23 21 0:41 / /fuse rw - fuse.ext4 ext4 rw\n"
                             "24 21 0:42 / /tmp rw - tmpfs tmpfs rw\n";

static void tells_device_and_filesystem_of_a_mount(void **state)
{
    (void)state;
    int fd = open_process(0, mounts);
    assert_int_equal(mount_table_device(fd, 21), makedev(8, 1));
    assert_int_equal(mount_table_device(fd, 22), makedev(0, 40));
    assert_int_equal(mount_table_device(fd, 25), 0);
    assert_true(mount_table_is_local(fd, 21));
    assert_false(mount_table_is_local(fd, 22));
    assert_false(mount_table_is_local(fd, 23));
    assert_true(mount_table_is_local(fd, 24));
    assert_false(mount_table_is_local(fd, 25));
    assert_false(mount_table_is_local(fd, 0));
    close_process(fd);
}

static void looks_no_further_than_its_bound(void **state)
{
    (void)state;
    int fd = open_process(BOUND_BYTES - 8192, mounts);
    assert_int_equal(mount_table_device(fd, 24), makedev(0, 42));
    assert_true(mount_table_is_local(fd, 24));
    close_process(fd);
    fd = open_process(BOUND_BYTES, mounts);
    assert_int_equal(mount_table_device(fd, 24), 0);
    assert_false(mount_table_is_local(fd, 24));
    close_process(fd);
}

static void passes_over_a_line_without_end(void **state)
{
    (void)state;
    static char list[40000];
    int used = snprintf(list, sizeof list, "20 1 0:7 / /");
    memset(list + used, 'x', 30000);
    (void)snprintf(list + used + 30000, sizeof list - 30000 - (size_t)used,
                   " rw - tmpfs none rw\n%s", mounts);
    int fd = open_process(0, list);
    assert_int_equal(mount_table_device(fd, 20), 0);
    assert_int_equal(mount_table_device(fd, 24), makedev(0, 42));
    close_process(fd);
}

static void says_nothing_without_a_list(void **state)
{
    (void)state;
    int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(mount_table_device(fd, 21), 0);
    assert_false(mount_table_is_local(fd, 21));
    (void)close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_device_and_filesystem_of_a_mount),
        cmocka_unit_test(looks_no_further_than_its_bound),
        cmocka_unit_test(passes_over_a_line_without_end),
        cmocka_unit_test(says_nothing_without_a_list),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
