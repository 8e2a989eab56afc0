/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A walk of folders that are said to be control groups: the linker has this file's open(),
 * openat(), readdir() and fstatfs() called in place of the C library's (--wrap).
 */
#include "proc_cgroups.h"

#include "cleanup.h"
#include "unit_test.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#define MOUNTED "/sys/fs/cgroup"
#define GONE    "gone"
#define CLOSED  "closed"

/* An entry that is read so often, since it takes long to make as many. */
#define REPEATED    "repeated"
#define REPETITIONS 2500

static char top[] = "/tmp/test_proc_cgroups.XXXXXX";
static char hierarchy[64];
static const char *mounted_at = MOUNTED;
static long magic;
static size_t repetitions_left;
static int folder_errno; /* with which the reading of a folder ends too soon; 0: it does not */

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    if (strncmp(path, MOUNTED, strlen(MOUNTED)) != 0) {
        return __real_open(path, flags);
    }
    if (strcmp(path, mounted_at) != 0) {
        errno = ENOENT;
        return -1;
    }
    return __real_open(hierarchy, flags);
}

int __real_openat(int fd, const char *path, int flags, ...);
int __wrap_openat(int fd, const char *path, int flags, ...);
int __wrap_openat(int fd, const char *path, int flags, ...)
{
    if (strcmp(path, GONE) == 0 || strcmp(path, CLOSED) == 0) {
        errno = strcmp(path, GONE) == 0 ? ENOENT : EACCES;
        return -1;
    }
    return __real_openat(fd, path, flags);
}

struct dirent *__real_readdir(DIR *folder);
struct dirent *__wrap_readdir(DIR *folder);
struct dirent *__wrap_readdir(DIR *folder)
{
    static struct dirent *repeated;
    if (repetitions_left > 0) {
        repetitions_left--;
        return repeated;
    }
    struct dirent *entry = __real_readdir(folder);
    if (folder_errno != 0) {
        errno = folder_errno;
        return NULL;
    }
    if (entry != NULL && strcmp(entry->d_name, REPEATED) == 0) {
        repeated = entry;
        repetitions_left = REPETITIONS - 1;
    }
    return entry;
}

int __wrap_fstatfs(int fd, struct statfs *ret);
int __wrap_fstatfs(int fd, struct statfs *ret)
{
    assert_true(fd >= 0);
    *ret = (struct statfs){.f_type = magic};
    return 0;
}

static int set_up(void **state)
{
    (void)state;
    mounted_at = MOUNTED;
    magic = CGROUP2_SUPER_MAGIC;
    repetitions_left = 0;
    (void)strcpy(top + strlen(top) - 6, "XXXXXX");
    if (mkdtemp(top) == NULL) {
        return -1;
    }
    (void)snprintf(hierarchy, sizeof hierarchy, "%s/h", top);
    return mkdir(hierarchy, 0700);
}

static int tear_down(void **state)
{
    char command[128];
    (void)state;
    (void)snprintf(command, sizeof command, "rm -r %s", top);
    return system(command); /* NOLINT: no name comes from outside */
}

#define WALK(name) TEST_WITH(name, set_up, tear_down)

static void make(const char *path)
{
    char whole[512];
    (void)snprintf(whole, sizeof whole, "%s%s", hierarchy, path);
    assert_int_equal(mkdir(whole, 0700), 0);
}

static uint64_t id_of(const char *path)
{
    char whole[512];
    struct stat status;
    (void)snprintf(whole, sizeof whole, "%s%s", hierarchy, path);
    assert_int_equal(stat(whole, &status), 0);
    return status.st_ino;
}

/* Where a path stands in a reading, or SIZE_MAX. */
static size_t place_of(const struct proc_reading *reading, const char *path)
{
    const char *at = reading->cgroup_paths;
    for (size_t i = 0; i < reading->cgroup_count; i++) {
        if (strcmp(at, path) == 0) {
            return i;
        }
        at += strlen(at) + 1;
    }
    return SIZE_MAX;
}

static void expect_group(const struct proc_reading *reading, const char *path)
{
    size_t i = place_of(reading, path);
    if (i == SIZE_MAX) {
        fail_msg("%s is not there", path);
    }
    assert_int_equal(reading->cgroup_ids[i], id_of(path));
}

WALK(reads_each_group_with_its_id)
{
    static const char *const paths[] = {"/a.slice", "/a.slice/b.service", "/a.slice/b.service/c",
                                        "/.hidden", "/d"};
    char file[128];
    char link_path[128];
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        make(paths[i]);
    }
    (void)snprintf(file, sizeof file, "%s/cgroup.procs", hierarchy);
    (void)snprintf(link_path, sizeof link_path, "%s/link", hierarchy);
    assert_int_equal(close(creat(file, 0600)), 0);
    assert_int_equal(symlink("a.slice", link_path), 0);
    cleanup_(freep) struct proc_reading *reading = proc_cgroups_read(0);
    assert_non_null(reading);
    assert_int_equal(reading->error, 0);
    assert_int_equal(reading->part, PROC_PART_CGROUPS);
    assert_false(reading->cut);
    assert_true(reading->scan.begin_ns > 0 && reading->scan.end_ns >= reading->scan.begin_ns);
    assert_int_equal(reading->cgroup_count, 1 + COUNT_OF(paths));
    assert_string_equal(reading->cgroup_paths, "/");
    assert_int_equal(reading->cgroup_ids[0], id_of("/"));
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        expect_group(reading, paths[i]);
    }
}

/* On a machine with version 1, the kernel says groups of the hierarchy of perf_event. */
WALK(finds_the_hierarchy_that_samples_are_of)
{
    static const struct {
        const char *path;
        long magic;
        int error;
    } rows[] = {
        {MOUNTED, CGROUP2_SUPER_MAGIC, 0},
        {MOUNTED "/unified", CGROUP2_SUPER_MAGIC, 0},
        {MOUNTED "/perf_event", CGROUP_SUPER_MAGIC, 0},
        {MOUNTED "/perf_event", CGROUP2_SUPER_MAGIC, -ENOENT},
        {MOUNTED, TMPFS_MAGIC, -ENOENT},
        {"/none", CGROUP2_SUPER_MAGIC, -ENOENT},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        mounted_at = rows[i].path;
        magic = rows[i].magic;
        cleanup_(freep) struct proc_reading *reading = proc_cgroups_read(0);
        assert_non_null(reading);
        assert_int_equal(reading->part, PROC_PART_CGROUPS);
        assert_int_equal(reading->error, rows[i].error);
        assert_int_equal(reading->cgroup_count, rows[i].error == 0 ? 1 : 0);
    }
}

WALK(is_cut_where_a_group_is_not_read_to_its_end)
{
    static const int errors[] = {EIO, ENOENT, ENODEV}; /* with the last ones it has ended */
    for (size_t i = 0; i < COUNT_OF(errors); i++) {
        folder_errno = errors[i];
        cleanup_(freep) struct proc_reading *reading = proc_cgroups_read(0);
        folder_errno = 0;
        assert_non_null(reading);
        assert_int_equal(reading->error, 0);
        assert_int_equal(reading->cgroup_count, 1);
        assert_int_equal(reading->cut, i == 0);
    }
}

WALK(goes_on_where_a_group_has_ended)
{
    make("/" GONE);
    make("/" GONE "/below");
    for (char name[] = "/a"; name[1] <= 'z'; name[1]++) {
        make(name);
    }
    cleanup_(freep) struct proc_reading *reading = proc_cgroups_read(0);
    assert_non_null(reading);
    assert_false(reading->cut);
    for (char name[] = "/a"; name[1] <= 'z'; name[1]++) {
        expect_group(reading, name);
    }
    assert_int_equal(place_of(reading, "/" GONE "/below"), SIZE_MAX);
}

WALK(goes_on_where_a_group_is_closed_and_says_so)
{
    make("/" CLOSED);
    for (char name[] = "/a"; name[1] <= 'z'; name[1]++) {
        make(name);
    }
    cleanup_(freep) struct proc_reading *reading = proc_cgroups_read(0);
    assert_non_null(reading);
    assert_int_equal(reading->error, 0);
    assert_true(reading->cut);
    for (char name[] = "/a"; name[1] <= 'z'; name[1]++) {
        expect_group(reading, name);
    }
}

/* Folders in one another, with names as long as can be. Returns the deepest one, opened. */
static int make_deep(size_t count)
{
    char name[256];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    int fd = __real_open(hierarchy, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(mkdirat(fd, name, 0700), 0);
        int below = __real_openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        (void)close(fd);
        fd = below;
        assert_true(fd >= 0);
    }
    return fd;
}

WALK(leaves_out_what_is_too_deep_and_goes_on)
{
    (void)close_fd(make_deep(20));
    make("/a");
    make("/z");
    cleanup_(freep) struct proc_reading *reading = proc_cgroups_read(0);
    assert_non_null(reading);
    assert_int_equal(reading->error, 0);
    assert_true(reading->cut);
    assert_int_equal(reading->cgroup_count, 1 + 2 + 15); /* 15 * 256 bytes, and 256 no more */
    expect_group(reading, "/a");
    expect_group(reading, "/z");
}

/* As many of the longest as fill the list: what is near the root is there all the same. */
WALK(has_the_groups_near_the_root_however_many_are_deep)
{
    cleanup_(closep) int deep = make_deep(15);
    assert_int_equal(mkdirat(deep, REPEATED, 0700), 0);
    make("/a");
    make("/a/b");
    make("/z");
    cleanup_(freep) struct proc_reading *reading = proc_cgroups_read(0);
    assert_non_null(reading);
    assert_int_equal(reading->error, 0);
    assert_true(reading->cut);
    assert_in_range(reading->cgroup_count, 2000, REPETITIONS);
    expect_group(reading, "/a");
    expect_group(reading, "/a/b");
    expect_group(reading, "/z");
}
