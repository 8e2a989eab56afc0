/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How many lines each user may cause in the log: a bounded number in a window of time, and all
 * users together a bounded number too; beyond that each has LOG_QUOTA_LINES_ALWAYS, so that some
 * users cannot hide what another one does. What is left out is counted, and told when the window is
 * over. Pure.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define LOG_QUOTA_WINDOW_NS    UINT64_C(10000000000)
#define LOG_QUOTA_USERS        32
#define LOG_QUOTA_LINES_ALWAYS 4 /* what a session causes from its beginning to its end */

struct log_quota_user {
    uid_t uid;
    uint32_t line_count;
    uint64_t left_out_count;
};

/* All zeros at first, but for the limits. */
struct log_quota {
    uint32_t user_lines_max; /* in a window */
    uint32_t all_lines_max;
    uint64_t began_ns;
    struct log_quota_user users[LOG_QUOTA_USERS];
    size_t user_count;
    uint32_t line_count;
    uint64_t others_left_out_count; /* of users that have no place above */
};

/* Whether a line that this user causes may be written; if not, it is counted. `now_ns` never falls.
 */
bool log_quota_take(struct log_quota *quota, uid_t uid, uint64_t now_ns);

/*
 * Once the window is over: a user of whom lines were left out, and how many; (uid_t)-1 stands for
 * those that had no place. To be called until it returns false; then another window begins.
 */
bool log_quota_tell(struct log_quota *quota, uint64_t now_ns, uid_t *ret_uid,
                    uint64_t *ret_left_out_count);
