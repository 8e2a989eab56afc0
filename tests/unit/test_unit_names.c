/* SPDX-License-Identifier: Apache-2.0 */

/* Units by the folders of their control groups, and links that are other names of units. */
#include "unit_names.h"
#include "unit_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

static const char *in_folder(const char *name)
{
    static char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int make_folder(void **state)
{
    static const char *const units[] = {"system.slice", "system.slice/redis-server.service",
                                        "system.slice/nginx.service"};
    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/test_unit_names-XXXXXX");
    if (mkdtemp(folder) == NULL) {
        return -1;
    }
    for (size_t i = 0; i < COUNT_OF(units); i++) {
        assert_int_equal(mkdir(in_folder(units[i]), 0700), 0);
    }
    assert_int_equal(
        symlink("/lib/systemd/system/redis-server.service", in_folder("redis.service")), 0);
    assert_int_equal(symlink("/dev/null", in_folder("masked.service")), 0);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    assert_int_equal(unlink(in_folder("redis.service")), 0);
    assert_int_equal(unlink(in_folder("masked.service")), 0);
    assert_int_equal(rmdir(in_folder("system.slice/redis-server.service")), 0);
    assert_int_equal(rmdir(in_folder("system.slice/nginx.service")), 0);
    assert_int_equal(rmdir(in_folder("system.slice")), 0);
    return rmdir(folder);
}

static void assert_missing(const char *glob, const char *expected)
{
    char *text = unit_names_describe_missing(folder, glob);
    if (expected == NULL) {
        assert_null(text);
    } else {
        assert_non_null(text);
        assert_string_equal(text, expected);
    }
    free(text);
}

TEST_WITH(proposes_units_of_like_names, make_folder, remove_folder)
{
    assert_missing("nginx.service", NULL);
    assert_missing("redis*", NULL);
    assert_missing("redis.service", "no process of unit 'redis' runs now; it is waited for; there "
                                    "are redis-server");
    assert_missing("ngnix.service", "no process of unit 'ngnix' runs now; it is waited for; did "
                                    "you mean nginx?");
    assert_missing("postfix.service", "no process of unit 'postfix' runs now; it is waited for");
    assert_null(unit_names_describe_missing("/nonexistent", "a.service"));
}

TEST_WITH(resolves_other_names_of_units, make_folder, remove_folder)
{
    const char *const folders[] = {"/nonexistent", folder, NULL};
    char name[UNIT_GLOB_BYTES_MAX + 1];
    assert_true(unit_names_resolve(folders, "redis.service", name));
    assert_string_equal(name, "redis-server.service");
    assert_false(unit_names_resolve(folders, "masked.service", name));
    assert_false(unit_names_resolve(folders, "nginx.service", name));
    assert_false(unit_names_resolve(folders, "redis*", name));
}
