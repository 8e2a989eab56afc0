/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the kernel answers of this process, against the text of its maps; and a path that is longer
 * than any text should be.
 */
#include "proc_map.h"
#include "unit_test.h"

#include "cleanup.h"
#include "proc_parse.h"
#include "proc_read.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE    ((size_t)4096)
#define FOLDERS 40 /* of 255 characters: 10 KB */

static bool allow(int32_t pid, uint64_t start_time_ns, uint32_t uid, void *userdata)
{
    (void)pid;
    (void)start_time_ns;
    (void)uid;
    (void)userdata;
    return true;
}

static int open_maps(void)
{
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    char path[PROC_MAP_PATH_BYTES];
    struct mapping_description mapping;
    assert_true(fd >= 0);
    if (proc_map_query(fd, 0, path, &mapping) == -ENOTTY) {
        (void)close(fd);
        skip(); /* Linux before 6.11 */
    }
    return fd;
}

static void assert_same(const struct mapping_description *a, const struct mapping_description *b)
{
    assert_string_equal(a->path, b->path);
    assert_true(a->start == b->start && a->end == b->end && a->file_offset == b->file_offset &&
                a->inode == b->inode && a->device_major == b->device_major &&
                a->device_minor == b->device_minor);
}

TEST(answers_what_the_text_says)
{
    cleanup_(closep) int fd = open_maps();
    char odd[] = "/tmp/proc map\nXXXXXX";
    int file_fd = mkstemp(odd);
    assert_true(file_fd >= 0 && ftruncate(file_fd, 3 * (off_t)PAGE) == 0);
    void *page = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, file_fd, (off_t)PAGE);
    void *memory = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(page != MAP_FAILED && memory != MAP_FAILED);
    for (int deleted = 0; deleted < 2; deleted++) {
        FILE *maps = fopen("/proc/self/maps", "re");
        char line[8192];
        char path[PROC_MAP_PATH_BYTES];
        struct mapping_description asked = {.end = 0};
        struct mapping_description told;
        size_t count = 0;
        assert_non_null(maps);
        while (fgets(line, sizeof line, maps) != NULL) {
            line[strcspn(line, "\n")] = '\0';
            if (proc_parse_maps_line(line, &told) == 1 && strcmp(told.path, "[vsyscall]") != 0) {
                assert_int_equal(proc_map_query(fd, asked.end, path, &asked), 0);
                assert_same(&asked, &told);
                count++;
            }
        }
        (void)fclose(maps);
        assert_true(count > 4);
        assert_int_equal(proc_map_query(fd, asked.end, path, &asked), -ENOENT);
        assert_int_equal(proc_map_query(fd, (uint64_t)(uintptr_t)page + 5, path, &asked), 0);
        assert_string_equal(asked.path, odd);
        assert_int_equal(asked.file_offset, PAGE);
        assert_int_equal(deleted == 0 ? unlink(odd) : 0, 0);
    }
    (void)munmap(page, PAGE);
    (void)munmap(memory, PAGE);
    (void)close(file_fd);
}

/* Folder in folder, which no path names as a whole. Returned: a descriptor of the innermost. */
static int make_deep(const char *top, const char *name)
{
    int fd = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < FOLDERS; i++) {
        assert_int_equal(mkdirat(fd, name, 0700), 0);
        int next = openat(fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
        (void)close(fd);
        assert_true(next >= 0);
        fd = next;
    }
    return fd;
}

/* The kernel writes each newline as four characters. */
TEST(reads_no_more_than_a_part_of_a_long_path)
{
    cleanup_(closep) int fd = open_maps();
    char top[] = "/tmp/test-proc-map-XXXXXX";
    char name[256];
    char path[PROC_MAP_PATH_BYTES];
    struct mapping_description mapping;
    memset(name, '\n', 255);
    name[255] = '\0';
    assert_non_null(mkdtemp(top));
    int folder_fd = make_deep(top, name);
    int file_fd = openat(folder_fd, "code", O_RDWR | O_CREAT | O_CLOEXEC, 0700);
    assert_true(file_fd >= 0 && ftruncate(file_fd, (off_t)PAGE) == 0);
    void *page = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, file_fd, 0);
    assert_true(page != MAP_FAILED);
    assert_int_equal(proc_map_query(fd, (uint64_t)(uintptr_t)page, path, &mapping), 0);
    assert_string_equal(mapping.path, "//toolong");
    assert_int_equal(mapping.start, (uint64_t)(uintptr_t)page);
    struct mapping_description at = {0};
    assert_int_equal(proc_map_at(fd, (uint64_t)(uintptr_t)page + 5, &at), 0);
    assert_int_equal(at.start, mapping.start);
    assert_int_equal(at.inode, mapping.inode);
    assert_int_equal(mprotect(page, PAGE, PROT_READ), 0);
    assert_int_equal(proc_map_at(fd, (uint64_t)(uintptr_t)page, &at), 0);
    assert_int_equal(at.inode, mapping.inode);
    assert_int_equal(proc_map_at(fd, 1, &at), -ENOENT);
    assert_int_equal(mprotect(page, PAGE, PROT_READ | PROT_EXEC), 0);

    /* And a reading of the process has its other mappings all the same. */
    struct proc_read *scan = proc_read_new();
    const struct proc_request request = {.part = PROC_PART_MAPPINGS, .pid = getpid()};
    struct proc_reading *reading = proc_read_read(scan, &request, allow, NULL);
    assert_non_null(reading);
    assert_int_equal(reading->error, 0);
    assert_false(reading->cut);
    bool is_told = false;
    bool has_libc = false;
    for (size_t i = 0; i < reading->scan.mapping_count; i++) {
        is_told = is_told || strcmp(reading->scan.mappings[i].path, "//toolong") == 0;
        has_libc = has_libc || strstr(reading->scan.mappings[i].path, "/libc.so") != NULL;
    }
    assert_true(is_told && has_libc);
    assert_true(reading->bytes < (size_t)1 << 20);
    free(reading);
    (void)proc_read_free(scan);
    (void)munmap(page, PAGE);
    (void)close(file_fd);
    (void)close(folder_fd);
    char command[64];
    (void)snprintf(command, sizeof command, "rm -rf %s", top);
    assert_int_equal(system(command), 0);
}

TEST(tells_what_is_no_such_file)
{
    char path[PROC_MAP_PATH_BYTES];
    struct mapping_description mapping;
    (void)close(open_maps());
    cleanup_(closep) int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_int_equal(proc_map_query(fd, 0, path, &mapping), -ENOTTY);
    assert_int_equal(proc_map_query(-1, 0, path, &mapping), -EBADF);
    assert_int_equal(proc_map_at(fd, 0, &mapping), -ENOTTY);
}
