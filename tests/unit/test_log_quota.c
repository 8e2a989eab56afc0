/* SPDX-License-Identifier: Apache-2.0 */

/* How much a user may have written into the log. */
#include "log_quota.h"
#include "unit_test.h"

#define SECOND_NS  UINT64_C(1000000000)
#define USER_LINES 20
#define ALL_LINES  100
#define START_NS   (1000 * SECOND_NS)

static const struct log_quota new_quota = {.user_lines_max = USER_LINES,
                                           .all_lines_max = ALL_LINES};

/* How many of `count` lines are written. */
static unsigned take(struct log_quota *quota, uid_t uid, unsigned count, uint64_t now_ns)
{
    unsigned taken = 0;
    for (unsigned i = 0; i < count; i++) {
        taken += log_quota_take(quota, uid, now_ns);
    }
    return taken;
}

static void assert_tells(struct log_quota *quota, uint64_t now_ns, uid_t uid, uint64_t count)
{
    uid_t told_uid = 0;
    uint64_t told_count = 0;
    assert_true(log_quota_tell(quota, now_ns, &told_uid, &told_count));
    assert_int_equal(told_uid, uid);
    assert_int_equal(told_count, count);
}

static void assert_tells_nothing(struct log_quota *quota, uint64_t now_ns)
{
    uid_t uid = 0;
    uint64_t count = 0;
    assert_false(log_quota_tell(quota, now_ns, &uid, &count));
}

TEST(bounds_the_lines_of_each_user)
{
    struct log_quota quota = new_quota;
    assert_int_equal(take(&quota, 1000, 500, START_NS), USER_LINES);
    assert_int_equal(take(&quota, 0, 1, START_NS), 1);
    assert_int_equal(take(&quota, 1001, 5, START_NS + 9 * SECOND_NS), 5);
}

TEST(bounds_the_lines_of_all_users)
{
    struct log_quota quota = new_quota;
    unsigned taken = 0;
    for (uid_t uid = 0; uid < 5000; uid++) {
        taken += take(&quota, uid, 7, START_NS);
    }
    assert_in_range(taken, ALL_LINES, ALL_LINES + LOG_QUOTA_USERS * LOG_QUOTA_LINES_ALWAYS);
}

TEST(leaves_a_few_lines_to_each_user)
{
    struct log_quota quota = new_quota;
    unsigned taken = 0;
    uid_t uid = 0;
    while (taken < ALL_LINES) {
        taken += take(&quota, uid++, USER_LINES, START_NS);
    }
    assert_true(uid < LOG_QUOTA_USERS);
    assert_int_equal(take(&quota, uid, USER_LINES, START_NS), LOG_QUOTA_LINES_ALWAYS);
}

TEST(tells_what_it_left_out_when_the_window_is_over)
{
    struct log_quota quota = new_quota;
    (void)take(&quota, 7, USER_LINES + 3, START_NS);
    (void)take(&quota, 8, USER_LINES, START_NS);
    (void)take(&quota, 9, USER_LINES + 1, START_NS);
    assert_tells_nothing(&quota, START_NS + LOG_QUOTA_WINDOW_NS - 1);
    assert_tells(&quota, START_NS + LOG_QUOTA_WINDOW_NS, 7, 3);
    assert_tells(&quota, START_NS + LOG_QUOTA_WINDOW_NS, 9, 1);
    assert_tells_nothing(&quota, START_NS + LOG_QUOTA_WINDOW_NS);
    assert_int_equal(take(&quota, 7, 1, START_NS + LOG_QUOTA_WINDOW_NS), 1);
}

TEST(leaves_nothing_out_untold)
{
    struct log_quota quota = new_quota;
    uint64_t late_ns = START_NS + 100 * SECOND_NS;
    (void)take(&quota, 7, USER_LINES + 3, START_NS);
    /* No message came since, so the old window goes on. */
    assert_int_equal(take(&quota, 7, 2, late_ns), 0);
    assert_tells(&quota, late_ns, 7, 5);
    assert_int_equal(take(&quota, 7, 2, late_ns), 2);
}

TEST(counts_users_without_a_place_together)
{
    struct log_quota quota = new_quota;
    for (uid_t uid = 1; uid <= LOG_QUOTA_USERS + 6; uid++) {
        assert_int_equal(take(&quota, uid, 1, START_NS), uid <= LOG_QUOTA_USERS);
    }
    assert_tells(&quota, START_NS + LOG_QUOTA_WINDOW_NS, (uid_t)-1, 6);
    assert_tells_nothing(&quota, START_NS + LOG_QUOTA_WINDOW_NS);
}

/* A window that ends without anything left out has no line, and another one begins. */
TEST(begins_anew_after_a_quiet_window)
{
    struct log_quota quota = new_quota;
    for (unsigned i = 0; i < 50; i++) {
        assert_int_equal(take(&quota, 7, USER_LINES, START_NS + i * LOG_QUOTA_WINDOW_NS),
                         USER_LINES);
    }
}
