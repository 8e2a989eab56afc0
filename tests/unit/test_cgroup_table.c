/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What was told is found, within the bounds: what is told and never sampled displaces its like
 * alone, and what is sampled stays, each account with its share.
 */
#include "cgroup_table.h"
#include "unit_test.h"

#define ROOT     0
#define LONG     4095 /* bytes of the longest path that is taken */
#define TOLD_MAX ((size_t)4 << 20)

#define TABLE(name)                                                                                \
    TEST_MADE(struct cgroup_table *table, name, cgroup_table_new(), cgroup_table_free)

/* A path of `bytes` bytes that no other id has; valid until the next call. */
static const char *path_of(uint64_t id, size_t bytes)
{
    static char path[LONG + 2];
    assert_in_range(bytes, 32, sizeof path - 1);
    memset(path, 'x', bytes);
    path[bytes] = '\0';
    (void)snprintf(path, 32, "/%020llu", (unsigned long long)id);
    path[strlen(path)] = '/';
    return path;
}

TABLE(finds_what_was_told_with_its_owner)
{
    char path[] = "/system.slice/cron.service/x";
    cgroup_table_tell(table, 1, "/");
    cgroup_table_tell(table, 7, path);
    assert_true(cgroup_table_knows(table, 7));
    assert_false(cgroup_table_knows(table, 8));
    assert_null(cgroup_table_find(table, 8, ROOT));
    memset(path, 'y', sizeof path - 1); /* the table has a copy */
    const struct cgroup *group = cgroup_table_find(table, 7, ROOT);
    assert_non_null(group);
    assert_int_equal(group->id, 7);
    assert_string_equal(group->path, "/system.slice/cron.service/x");
    assert_ptr_equal(group->owner.unit.text, group->path + strlen("/system.slice/"));
    assert_int_equal(group->owner.unit.bytes, strlen("cron.service"));
    assert_true(cgroup_table_knows(table, 7));
    assert_ptr_equal(cgroup_table_find(table, 7, 1000), group);
    assert_string_equal(cgroup_table_find(table, 1, ROOT)->path, "/");
}

TABLE(groups_of_one_owner_have_one_key)
{
    static const char *const paths[] = {"/a.service", "/a.service/x", "/a.service/y/z",
                                        "/b.service", "/nothing",     "/nothing/else"};
    const struct cgroup *groups[COUNT_OF(paths)];
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        cgroup_table_tell(table, i + 1, paths[i]);
        groups[i] = cgroup_table_find(table, i + 1, ROOT);
    }
    assert_true(groups[0]->owner_key == groups[1]->owner_key);
    assert_true(groups[0]->owner_key == groups[2]->owner_key);
    assert_true(groups[0]->owner_key != groups[3]->owner_key);
    assert_true(groups[0]->owner_key != groups[4]->owner_key);
    assert_true(groups[4]->owner_key == groups[5]->owner_key);
}

TABLE(a_path_that_is_known_stays)
{
    cgroup_table_tell(table, 7, "/first");
    cgroup_table_tell(table, 7, "/second");
    assert_string_equal(cgroup_table_find(table, 7, ROOT)->path, "/first");
    cgroup_table_tell(table, 7, "/third");
    assert_string_equal(cgroup_table_find(table, 7, ROOT)->path, "/first");
}

TABLE(refuses_what_is_no_path)
{
    static const char *const texts[] = {"", "a", "a/b", "//enomem", "//"};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        cgroup_table_tell(table, 7, texts[i]);
        assert_false(cgroup_table_knows(table, 7));
    }
    cgroup_table_tell(table, 7, path_of(7, LONG + 1));
    assert_false(cgroup_table_knows(table, 7));
    cgroup_table_tell(table, 7, path_of(7, LONG));
    assert_true(cgroup_table_knows(table, 7));
}

/* A sample that has no group has this id. */
TABLE(no_group_has_the_id_zero)
{
    cgroup_table_tell(table, 0, "/zero");
    assert_false(cgroup_table_knows(table, 0));
    assert_null(cgroup_table_find(table, 0, ROOT));
}

TABLE(a_flood_of_groups_displaces_none_that_was_sampled)
{
    const struct cgroup *sampled[100];
    size_t known_count = 0;
    for (uint64_t id = 1; id <= COUNT_OF(sampled); id++) {
        cgroup_table_tell(table, id, path_of(id, 40));
        sampled[id - 1] = cgroup_table_find(table, id, ROOT);
    }
    for (uint64_t id = 1001; id <= 41000; id++) {
        cgroup_table_tell(table, id, path_of(id, 40));
        assert_true(cgroup_table_knows(table, id)); /* the newest one is, as long as it is that */
    }
    for (uint64_t id = 1001; id <= 41000; id++) {
        known_count += cgroup_table_knows(table, id);
    }
    assert_in_range(known_count, 8192, 16384);
    for (uint64_t id = 1; id <= COUNT_OF(sampled); id++) {
        assert_ptr_equal(cgroup_table_find(table, id, ROOT), sampled[id - 1]);
        assert_string_equal(sampled[id - 1]->path, path_of(id, 40));
    }
}

TABLE(what_was_told_has_its_bytes)
{
    size_t known_count = 0;
    for (uint64_t id = 1; id <= 3000; id++) {
        cgroup_table_tell(table, id, path_of(id, LONG));
        assert_true(cgroup_table_knows(table, id));
    }
    for (uint64_t id = 1; id <= 3000; id++) {
        known_count += cgroup_table_knows(table, id);
    }
    assert_int_equal(known_count, TOLD_MAX / (LONG + 1));
    /* What is sampled makes room. */
    assert_non_null(cgroup_table_find(table, 3000, ROOT));
    cgroup_table_tell(table, 3001, path_of(3001, LONG));
    known_count = 0;
    for (uint64_t id = 1; id <= 3001; id++) {
        known_count += cgroup_table_knows(table, id);
    }
    assert_int_equal(known_count, TOLD_MAX / (LONG + 1) + 1);
}

/* Samples groups with the longest paths until the account has its share. Returns how many. */
static size_t sample_all(struct cgroup_table *table, uint64_t first_id, uint32_t account)
{
    for (uint64_t id = first_id; id < first_id + 10000; id++) {
        cgroup_table_tell(table, id, path_of(id, LONG));
        if (cgroup_table_find(table, id, account) == NULL) {
            return (size_t)(id - first_id);
        }
    }
    return SIZE_MAX;
}

TABLE(an_account_has_its_share_and_leaves_some_to_others)
{
    size_t first = sample_all(table, 1, 1000);
    assert_in_range(first, 1000, 3000);
    assert_non_null(cgroup_table_find(table, 1, 1000)); /* what it has */
    /* A refused group is known all the same, and an account with room gets it. The next account has
     * half the rest, unless both have one place in the quota; 15 in a row do not. */
    assert_true(cgroup_table_knows(table, first + 1));
    uint32_t other = 1001;
    while (other < 1016 && cgroup_table_find(table, first + 1, other) == NULL) {
        other++;
    }
    assert_non_null(cgroup_table_find(table, first + 1, 1000)); /* which the other one has paid */
    size_t second = sample_all(table, 20001, other);
    assert_in_range(second, first / 2 - 10, first / 2 + 10);
}

/* The groups that a walk has found, and that have no sample yet. */
TABLE(a_flood_of_groups_displaces_none_that_a_walk_found)
{
    enum {
        COUNT = 40000
    };
    static uint64_t ids[COUNT];
    static char paths[COUNT * 16];
    size_t used = 0;
    for (size_t i = 0; i < COUNT; i++) {
        ids[i] = 10 + 3 * i;
        used += (size_t)snprintf(paths + used, sizeof paths - used, "/w%zu", i) + 1;
    }
    cgroup_table_list(table, ids, COUNT, paths);
    for (uint64_t id = 1000000; id < 1100000; id++) {
        cgroup_table_tell(table, id, "/flood");
    }
    for (size_t i = 0; i < COUNT; i += 997) {
        char expected[16];
        (void)snprintf(expected, sizeof expected, "/w%zu", i);
        const struct cgroup *cgroup = cgroup_table_find(table, ids[i], ROOT);
        assert_non_null(cgroup);
        assert_string_equal(cgroup->path, expected);
        assert_false(cgroup_table_knows(table, ids[i] + 1));
    }
    /* Another walk has them no more, but for what was sampled; an empty one is a walk, too. */
    cgroup_table_list(table, ids, 0, "");
    assert_true(cgroup_table_knows(table, ids[0]));
    assert_false(cgroup_table_knows(table, ids[1]));
}
