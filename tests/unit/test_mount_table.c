/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which mounts of a list are local.
 */
#include "mount_table.h"
#include "unit_test.h"

#include <sys/sysmacros.h>
#include <unistd.h>

#define BOUND_BYTES ((size_t)8 << 20) /* docs/bounds.md */

static char list_path[] = "/tmp/test-mount-table-XXXXXX";

static int make_list(void **state)
{
    (void)state;
    int fd = mkstemp(list_path);
    (void)close(fd);
    return fd < 0 ? -1 : 0;
}

static int remove_list(void **state)
{
    (void)state;
    return unlink(list_path);
}

TEST_GROUP(make_list, remove_list)

/* These mounts behind `padding_bytes` of other ones. */
static void write_list(size_t padding_bytes, const char *mounts)
{
    char long_path[4000];
    FILE *file = fopen(list_path, "we");
    assert_non_null(file);
    memset(long_path, 'x', sizeof long_path);
    for (size_t written = 0; written < padding_bytes;) {
        written += (size_t)fprintf(file, "7 1 0:9 / /%.*s rw - tmpfs none rw\n",
                                   (int)sizeof long_path, long_path);
    }
    (void)fputs(mounts, file);
    assert_int_equal(fclose(file), 0);
}

static bool is_local(uint64_t mount_id, unsigned device_major, unsigned device_minor)
{
    return mount_table_is_local(list_path, mount_id, makedev(device_major, device_minor));
}

static const char mounts[] = "21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
                             "no mount at all\n"
                             "22 21 0:40 / /mnt rw master:2 propagate_from:3 - nfs4 host:/ rw\n"
                             "23 21 0:41 / /fuse rw - fuse.ext4 ext4 rw\n"
                             "25 21 0:43 / /container rw - overlay overlay rw\n"
                             "24 21 0:42 / /tmp rw - tmpfs tmpfs rw\n";

/* By its id, as with a subvolume, of which another device is known; by its device, as in a
 * container, which has mounts of its own. */
TEST(knows_a_mount_by_id_or_device)
{
    write_list(0, mounts);
    assert_true(is_local(21, 0, 99));
    assert_true(is_local(99, 8, 1));
    assert_true(is_local(0, 8, 1));
    assert_true(is_local(25, 0, 43));
    assert_true(is_local(99, 0, 43));
    assert_false(is_local(22, 0, 40));
    assert_false(is_local(23, 0, 41));
    assert_false(is_local(0, 0, 41));
    assert_false(is_local(99, 0, 99));
    assert_false(is_local(0, 0, 99));
}

TEST(looks_no_further_than_its_bound)
{
    write_list(BOUND_BYTES - 8192, mounts);
    assert_true(is_local(24, 0, 42));
    write_list(BOUND_BYTES, mounts);
    assert_false(is_local(24, 0, 42));
}

TEST(passes_over_a_line_without_end)
{
    static char list[40000];
    int used = snprintf(list, sizeof list, "20 1 0:7 / /");
    memset(list + used, 'x', 30000);
    (void)snprintf(list + used + 30000, sizeof list - 30000 - (size_t)used,
                   " rw - tmpfs none rw\n%s", mounts);
    write_list(0, list);
    assert_false(is_local(20, 0, 7));
    assert_true(is_local(24, 0, 42));
}

TEST(knows_nothing_without_a_list)
{
    assert_false(mount_table_is_local("/tmp/no/such/list", 21, makedev(8, 1)));
}
