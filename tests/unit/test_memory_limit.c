/* SPDX-License-Identifier: Apache-2.0 */

/* Which limit of the control groups counts. The trees are made up, in a folder of their own. */
#include "memory_limit.h"
#include "unit_test.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)

static char root[] = "/tmp/memory-limit-XXXXXX";

static uint64_t machine_bytes(void)
{
    return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void write_file(const char *name, const char *text)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *slash = strchr(path + strlen(root) + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0700);
        *slash = '/';
    }
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

TEST(takes_the_least_limit_of_the_groups_above)
{
    static const struct {
        const char *groups;
        uint64_t bytes; /* 0: the machine's */
    } cases[] = {
        {"0::/a.slice/b.service\n", 64 * MIB},
        {"0::/a.slice\n", 96 * MIB},
        {"0::/a.slice/b.service/deeper\n", 64 * MIB},
        {"0::/a.slice/unlimited.service\n", 96 * MIB},
        {"0::/\n", 0},
        {"0::/elsewhere\n", 0},
        {"8:pids:/a.slice/b.service\n4:memory:/old\n0::/\n", 32 * MIB},
        {"4:cpu,memory:/old\n", 32 * MIB},
        {"4:memory_of_another:/old\n", 0},
        {"4:memory:/not/there\n", 128 * MIB},
        {"", 0},
        {"nonsense\n:\n::\n", 0},
    };
    write_file("a.slice/memory.max", "100663296\n");
    write_file("a.slice/b.service/memory.max", "67108864\n");
    write_file("a.slice/unlimited.service/memory.max", "max\n");
    write_file("memory/old/memory.limit_in_bytes", "33554432\n");
    write_file("memory/memory.limit_in_bytes", "134217728\n");
    char groups[PATH_MAX];
    (void)snprintf(groups, sizeof groups, "%s/groups", root);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        write_file("groups", cases[i].groups);
        uint64_t expected = cases[i].bytes == 0 ? machine_bytes() : cases[i].bytes;
        assert_int_equal(memory_limit_bytes(groups, root), expected);
    }
}

TEST(is_the_machines_memory_without_groups)
{
    assert_int_equal(memory_limit_bytes("/does/not/exist", "/does/not/exist"), machine_bytes());
    assert_true(memory_limit_bytes(MEMORY_LIMIT_GROUPS, MEMORY_LIMIT_ROOT) <= machine_bytes());
}

static int make_root(void **state)
{
    (void)state;
    return mkdtemp(root) == NULL ? -1 : 0;
}

static int remove_root(void **state)
{
    static const char *const names[] = {
        "a.slice/b.service/memory.max",
        "a.slice/b.service",
        "a.slice/unlimited.service/memory.max",
        "a.slice/unlimited.service",
        "a.slice/memory.max",
        "a.slice",
        "memory/old/memory.limit_in_bytes",
        "memory/old",
        "memory/memory.limit_in_bytes",
        "memory",
        "groups",
        "",
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        char path[PATH_MAX];
        (void)snprintf(path, sizeof path, "%s/%s", root, names[i]);
        (void)remove(path);
    }
    return 0;
}
TEST_GROUP(make_root, remove_root)
