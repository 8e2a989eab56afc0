/* SPDX-License-Identifier: Apache-2.0 */

/* What is opened and what is refused, by paths that a process which is gone had mapped. */
#include "module_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

static bool guard(uint64_t device, void *userdata)
{
    const uint64_t *refused = userdata;
    return refused == NULL || *refused != device;
}

static enum module_failure open_path(const char *path, uint64_t *refused_device)
{
    struct stat status = {0};
    struct module_file file = {.fd = -1};
    (void)stat(path, &status);
    const struct module_query query = {
        .pid = INT32_MAX,
        .parent_pid = INT32_MAX,
        .path = path,
        .device_major = major(status.st_dev),
        .device_minor = minor(status.st_dev),
        .inode = status.st_ino,
    };
    enum module_failure failure = module_file_open(&query, guard, refused_device, &file);
    assert_int_equal(file.fd >= 0, failure == MODULE_FAILURE_NONE);
    if (failure == MODULE_FAILURE_NONE) {
        assert_int_equal(file.identity.inode, status.st_ino);
        assert_int_equal(file.identity.size_bytes, status.st_size);
        (void)close(file.fd);
    }
    return failure;
}

static void opens_regular_files_by_clean_paths_only(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        enum module_failure failure;
    } cases[] = {
        {"/etc/passwd", MODULE_FAILURE_NONE},
        {"/etc", MODULE_FAILURE_NOT_FILE},
        {"/dev/zero", MODULE_FAILURE_NOT_FILE},
        {"/dev/zero (deleted)", MODULE_FAILURE_NOT_FILE},
        {"/SYSV00000000 (deleted)", MODULE_FAILURE_NOT_FILE},
        {"[anon]", MODULE_FAILURE_NOT_FILE},
        {"[vdso]", MODULE_FAILURE_NOT_FILE},
        {"//anon", MODULE_FAILURE_NOT_FILE},
        {"anon_inode:[perf_event]", MODULE_FAILURE_NOT_FILE},
        {"etc/passwd", MODULE_FAILURE_NOT_FILE},
        {"", MODULE_FAILURE_NOT_FILE},
        {"/missing", MODULE_FAILURE_NOT_FOUND},
        {"/etc/passwd/x", MODULE_FAILURE_NOT_FOUND},
        {"/memfd:gone (deleted)", MODULE_FAILURE_NOT_FOUND},
        {"/etc/../etc/passwd", MODULE_FAILURE_NOT_FOUND},
        {"/etc/..", MODULE_FAILURE_NOT_FOUND},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        enum module_failure failure = open_path(cases[i].path, NULL);
        if (failure != cases[i].failure) {
            fail_msg("%s: %d", cases[i].path, (int)failure);
        }
    }
}

static void touches_no_device_that_its_guard_refuses(void **state)
{
    (void)state;
    struct stat status;
    assert_int_equal(stat("/etc/passwd", &status), 0);
    uint64_t device = status.st_dev;
    assert_int_equal(open_path("/etc/passwd", &device), MODULE_FAILURE_NOT_FOUND);
    device++;
    assert_int_equal(open_path("/etc/passwd", &device), MODULE_FAILURE_NONE);
}

static void knows_whose_a_process_is(void **state)
{
    (void)state;
    assert_int_equal(module_file_owner(getpid()), getuid());
    assert_int_equal(module_file_owner(INT32_MAX), (uid_t)-1);
    assert_int_equal(module_file_owner(0), (uid_t)-1);
    assert_int_equal(module_file_owner(-1), (uid_t)-1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opens_regular_files_by_clean_paths_only),
        cmocka_unit_test(touches_no_device_that_its_guard_refuses),
        cmocka_unit_test(knows_whose_a_process_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
