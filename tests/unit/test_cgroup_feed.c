/* SPDX-License-Identifier: Apache-2.0 */

/*
 * When a walk through the control groups is asked for: at the beginning, and for an id that is not
 * known, less often while walks do not bring it.
 */
#include "cgroup_feed.h"
#include "unit_test.h"

#define S    CGROUP_FEED_PERIOD_NS
#define ROOT 0

#define FEED(name) TEST_MADE(struct cgroup_feed *feed, name, cgroup_feed_new(), cgroup_feed_free)

/* A walk that was asked for has read one group; 0: none. */
static void end_walk(struct cgroup_feed *feed, uint64_t id)
{
    const struct proc_reading reading = {.part = PROC_PART_CGROUPS,
                                         .cgroup_ids = &id,
                                         .cgroup_count = id == 0 ? 0 : 1,
                                         .cgroup_paths = id == 0 ? NULL : "/walked"};
    cgroup_feed_take(feed, &reading);
}

/* The first walk, which is of all that there are. */
static void walk_first(struct cgroup_feed *feed)
{
    assert_true(cgroup_feed_take_request(feed));
    cgroup_feed_asked(feed, true);
    end_walk(feed, 1);
}

/* A sample of a group that is not known. Returns whether a walk is asked for. */
static bool sample_unknown(struct cgroup_feed *feed, uint64_t id, uint64_t time_ns)
{
    bool is_coming = false;
    assert_null(cgroup_feed_find(feed, id, ROOT, time_ns, &is_coming));
    bool is_wanted = cgroup_feed_take_request(feed);
    assert_int_equal(is_coming, is_wanted);
    cgroup_feed_asked(feed, is_wanted);
    return is_wanted;
}

/* The path of a group that is known. */
static const char *path_of(struct cgroup_feed *feed, uint64_t id)
{
    bool is_coming = true;
    const struct cgroup *cgroup = cgroup_feed_find(feed, id, ROOT, 100 * S, &is_coming);
    assert_non_null(cgroup);
    assert_false(is_coming);
    return cgroup->path;
}

FEED(asks_for_one_walk_at_the_beginning)
{
    bool is_coming = false;
    assert_true(cgroup_feed_take_request(feed));
    assert_false(cgroup_feed_take_request(feed));
    cgroup_feed_asked(feed, true);
    for (uint64_t time_ns = 0; time_ns < 10 * S; time_ns += S) {
        assert_null(cgroup_feed_find(feed, 7, ROOT, time_ns, &is_coming));
        assert_true(is_coming);
        assert_false(cgroup_feed_take_request(feed));
    }
    end_walk(feed, 7);
    assert_string_equal(path_of(feed, 7), "/walked");
    assert_false(cgroup_feed_take_request(feed));
}

FEED(needs_no_walk_for_what_the_kernel_told)
{
    walk_first(feed);
    cgroup_feed_tell(feed, 7, "/told", 1);
    assert_string_equal(path_of(feed, 7), "/told");
    assert_false(cgroup_feed_take_request(feed));
}

FEED(a_sample_without_a_group_waits_for_none)
{
    bool is_coming = true;
    assert_null(cgroup_feed_find(feed, 0, ROOT, 5 * S, &is_coming));
    assert_false(is_coming);
    walk_first(feed);
    assert_false(sample_unknown(feed, 0, 5 * S));
}

FEED(a_walk_is_not_repeated_within_a_period)
{
    walk_first(feed);
    assert_true(sample_unknown(feed, 7, 5 * S));
    end_walk(feed, 7);
    assert_false(sample_unknown(feed, 8, 6 * S - 1));
    assert_true(sample_unknown(feed, 8, 6 * S));
}

FEED(waits_longer_after_each_walk_that_was_of_no_use)
{
    uint64_t time_ns = 5 * S;
    walk_first(feed);
    for (uint64_t period_ns = S; period_ns <= 64 * S; period_ns *= 2) {
        assert_true(sample_unknown(feed, 7, time_ns));
        end_walk(feed, 1);
        assert_false(sample_unknown(feed, 7, time_ns + period_ns - 1));
        assert_false(sample_unknown(feed, 8, time_ns + period_ns - 1));
        time_ns += period_ns;
    }
    /* And no longer than that. */
    assert_true(sample_unknown(feed, 7, time_ns));
    end_walk(feed, 0);
    assert_false(sample_unknown(feed, 7, time_ns + 64 * S - 1));
    assert_true(sample_unknown(feed, 7, time_ns + 64 * S));
}

FEED(a_useful_walk_is_followed_as_soon_as_the_first)
{
    walk_first(feed);
    assert_true(sample_unknown(feed, 7, 5 * S));
    end_walk(feed, 0);
    assert_true(sample_unknown(feed, 7, 6 * S));
    end_walk(feed, 0);
    assert_true(sample_unknown(feed, 7, 8 * S));
    end_walk(feed, 7);
    assert_string_equal(path_of(feed, 7), "/walked");
    /* What was asked for has its wait from then; the one after it is short again. */
    assert_false(sample_unknown(feed, 8, 12 * S - 1));
    assert_true(sample_unknown(feed, 8, 12 * S));
    end_walk(feed, 8);
    assert_true(sample_unknown(feed, 9, 13 * S));
}

FEED(a_walk_that_nobody_takes_is_not_waited_for)
{
    bool is_coming = true;
    walk_first(feed);
    assert_null(cgroup_feed_find(feed, 7, ROOT, 5 * S, &is_coming));
    assert_true(is_coming && cgroup_feed_take_request(feed));
    cgroup_feed_asked(feed, false);
    assert_false(sample_unknown(feed, 7, 5 * S + 1));
    assert_true(sample_unknown(feed, 7, 6 * S));
}

/* More groups than are kept until they are sampled. */
FEED(a_walk_brings_the_group_it_was_for_however_many_there_are)
{
    static uint64_t ids[60000];
    static char paths[sizeof ids / sizeof ids[0]][3];
    const struct proc_reading reading = {.part = PROC_PART_CGROUPS,
                                         .cgroup_ids = ids,
                                         .cgroup_count = COUNT_OF(ids),
                                         .cgroup_paths = paths[0]};
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        ids[i] = 1000 + i;
        memcpy(paths[i], i == 0 ? "/w" : "/x", 3);
    }
    walk_first(feed);
    assert_true(sample_unknown(feed, ids[0], 5 * S));
    cgroup_feed_take(feed, &reading);
    assert_string_equal(path_of(feed, ids[0]), "/w");
}

/* An account has its share of the table of those that were sampled: no walk helps it. */
FEED(asks_for_no_walk_when_an_account_has_its_share)
{
    char path[4096];
    bool is_coming = true;
    uint64_t id = 2;
    walk_first(feed);
    memset(path, 'x', sizeof path - 1);
    path[0] = '/';
    path[sizeof path - 1] = '\0';
    cgroup_feed_tell(feed, id, path, 1);
    while (cgroup_feed_find(feed, id, 1000, 5 * S, &is_coming) != NULL) {
        assert_true(id < 10000);
        cgroup_feed_tell(feed, ++id, path, 1);
    }
    assert_false(is_coming);
    assert_false(cgroup_feed_take_request(feed));
}

#define OUTER "/lab.1"

/* A walk of a namespace whose root has an id of its own. */
static void walk_nested(struct cgroup_feed *feed, uint64_t id, const char *name)
{
    const uint64_t ids[] = {77, id};
    char paths[64];
    size_t root_bytes = sizeof "/";
    (void)snprintf(paths, sizeof paths, "/");
    (void)snprintf(paths + root_bytes, sizeof paths - root_bytes, "%s", name);
    const struct proc_reading reading = {.part = PROC_PART_CGROUPS,
                                         .cgroup_ids = ids,
                                         .cgroup_count = id == 0 ? 1 : 2,
                                         .cgroup_paths = paths};
    cgroup_feed_take(feed, &reading);
}

/* Records have the whole path, and the namespace shows what follows its own. */
FEED(learns_what_stands_before_the_paths_of_a_namespace)
{
    walk_nested(feed, 0, "");
    (void)cgroup_feed_take_request(feed);
    cgroup_feed_tell(feed, 7, OUTER "/a.service", 5 * S);
    assert_true(cgroup_feed_take_request(feed));
    cgroup_feed_asked(feed, true);
    walk_nested(feed, 7, "/a.service");
    assert_string_equal(path_of(feed, 7), "/a.service");
    cgroup_feed_tell(feed, 8, OUTER "/b.service", 6 * S);
    assert_string_equal(path_of(feed, 8), "/b.service");
    assert_false(cgroup_feed_take_request(feed));
    /* What is not below is not known. */
    cgroup_feed_tell(feed, 9, "/lab.12/c.service", 6 * S);
    cgroup_feed_tell(feed, 10, "/c.service", 6 * S);
    assert_true(sample_unknown(feed, 9, 8 * S));
    end_walk(feed, 1);
    (void)sample_unknown(feed, 10, 20 * S);
}

/* Groups that are gone before they are walked through cost a walk ten times a second. */
FEED(asks_for_walks_in_a_namespace_at_a_bounded_rate)
{
    size_t count = 0;
    walk_nested(feed, 0, "");
    (void)cgroup_feed_take_request(feed);
    for (uint64_t i = 0; i < 10000; i++) {
        cgroup_feed_tell(feed, 100 + i, OUTER "/gone", 5 * S + i * S / 10000);
        if (cgroup_feed_take_request(feed)) {
            count++;
            cgroup_feed_asked(feed, true);
            walk_nested(feed, 7, "/other");
        }
    }
    assert_in_range(count, 1, 10);
}

/* A group that a record and a walk call differently teaches nothing. */
FEED(learns_nothing_from_paths_that_do_not_end_alike)
{
    walk_nested(feed, 0, "");
    (void)cgroup_feed_take_request(feed);
    cgroup_feed_tell(feed, 7, OUTER "/a.service", 5 * S);
    cgroup_feed_asked(feed, cgroup_feed_take_request(feed));
    walk_nested(feed, 7, "/b.service");
    cgroup_feed_tell(feed, 8, OUTER "/c.service", 5 * S + 1);
    assert_true(sample_unknown(feed, 8, 20 * S));
}

/* A walk that began before a group was made does not show it: another one is asked for, once. */
FEED(asks_again_for_a_group_that_was_made_during_a_walk)
{
    walk_nested(feed, 0, "");
    (void)cgroup_feed_take_request(feed);
    assert_true(sample_unknown(feed, 5, 5 * S));
    cgroup_feed_tell(feed, 7, OUTER "/a.service", 5 * S + 1);
    assert_false(cgroup_feed_take_request(feed));
    walk_nested(feed, 0, "");
    assert_true(cgroup_feed_take_request(feed));
    cgroup_feed_asked(feed, true);
    walk_nested(feed, 7, "/a.service");
    assert_string_equal(path_of(feed, 7), "/a.service");
    assert_false(cgroup_feed_take_request(feed));
}
