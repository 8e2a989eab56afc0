/* SPDX-License-Identifier: Apache-2.0 */

/* Where the debug file of a file is looked for, and whose is opened. */
#include "module_load.h"
#include "unit_test.h"

#include <sys/statvfs.h>
#include <unistd.h>

static bool find_path(const struct module_request *request, const char *build_id, size_t bytes,
                      char *ret)
{
    const struct module_load load = {.request = *request, .debug_fd = -1};
    const struct elf_worker_table table = {
        .symbols = {.build_id = (const uint8_t *)build_id, .build_id_bytes = bytes}};
    return module_load_debug_path(&load, &table, ret);
}

TEST(spells_a_build_id_of_any_bytes)
{
    const struct module_request symbols = {.source = MODULE_FILE, .table = MODULE_SYMBOLS};
    char path[MODULE_DEBUG_PATH_BYTES];
    char longest[SYMBOL_BUILD_ID_BYTES_MAX];
    assert_true(find_path(&symbols, "\x01../../\xff", 8, path));
    assert_string_equal(path, "/usr/lib/debug/.build-id/01/2e2e2f2e2e2fff.debug");
    memset(longest, 0xab, sizeof longest);
    assert_true(find_path(&symbols, longest, sizeof longest, path));
    assert_int_equal(strlen(path), strlen("/usr/lib/debug/.build-id//.debug") + 2 * sizeof longest);
    assert_false(find_path(&symbols, longest, 7, path));
    assert_false(find_path(&symbols, longest, 0, path));
}

TEST(looks_for_symbols_of_files_only_and_once)
{
    static const struct module_request others[] = {
        {.source = MODULE_FILE, .table = MODULE_CFI},
        {.source = MODULE_VDSO, .table = MODULE_SYMBOLS},
        {.source = MODULE_KERNEL, .table = MODULE_SYMBOLS},
        {.source = MODULE_PERF_MAP, .table = MODULE_SYMBOLS},
    };
    char path[MODULE_DEBUG_PATH_BYTES];
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_false(find_path(&others[i], "12345678", 8, path));
    }
    char map[1];
    const struct module_load again = {.debug_fd = -1, .first.map = map};
    const struct elf_worker_table table = {
        .symbols = {.build_id = (const uint8_t *)"12345678", .build_id_bytes = 8}};
    assert_false(module_load_debug_path(&again, &table, path));
}

static bool guard(const struct module_place *place, void *userdata)
{
    (void)place;
    return userdata == NULL;
}

static enum module_failure open_own(const char *path, void *refuse)
{
    struct module_file file = {.fd = -1};
    const struct module_guard guards = {.place = guard, .userdata = refuse};
    enum module_failure failure = module_file_open_own(path, &guards, &file);
    assert_int_equal(file.fd >= 0, failure == MODULE_FAILURE_NONE);
    (void)close(file.fd);
    return failure;
}

TEST(opens_what_root_has_written_only)
{
    static char path[] = "/tmp/module_load.XXXXXX";
    struct statvfs filesystem;
    int refuse = 1;
    assert_int_equal(statvfs("/etc", &filesystem), 0);
    bool foreign = (filesystem.f_flag & ST_NOSUID) != 0;
    assert_int_equal(open_own("/etc/passwd", NULL),
                     foreign ? MODULE_FAILURE_IDENTITY : MODULE_FAILURE_NONE);
    assert_int_equal(open_own("/etc/passwd", &refuse), MODULE_FAILURE_NOT_FOUND);
    assert_int_equal(open_own("/usr/lib/debug/.build-id/00/none.debug", NULL),
                     MODULE_FAILURE_NOT_FOUND);
    assert_int_equal(open_own("/etc", NULL), MODULE_FAILURE_NOT_FILE);
    assert_int_equal(open_own("/dev/zero", NULL), MODULE_FAILURE_NOT_FILE);

    (void)close(mkstemp(path));
    if (geteuid() == 0) {
        assert_int_equal(chown(path, 4711, 4711), 0);
    }
    assert_int_equal(open_own(path, NULL), MODULE_FAILURE_IDENTITY);
    (void)unlink(path);
}
