/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Counts log lines by user, in one window of time for all users. A window begins with the first
 * line after the last window's counts were taken, so each line that is left out is counted.
 */
#include "log_quota.h"

static bool is_over(const struct log_quota *quota, uint64_t now_ns)
{
    return now_ns - quota->began_ns >= LOG_QUOTA_WINDOW_NS;
}

static bool has_left_out(const struct log_quota *quota)
{
    bool any = quota->others_left_out_count > 0;
    for (size_t i = 0; i < quota->user_count; i++) {
        any = any || quota->users[i].left_out_count > 0;
    }
    return any;
}

/* The user's place, or NULL when there is none left. */
static struct log_quota_user *find_user(struct log_quota *quota, uid_t uid)
{
    for (size_t i = 0; i < quota->user_count; i++) {
        if (quota->users[i].uid == uid) {
            return &quota->users[i];
        }
    }
    if (quota->user_count == LOG_QUOTA_USERS) {
        return NULL;
    }
    quota->users[quota->user_count] = (struct log_quota_user){.uid = uid};
    return &quota->users[quota->user_count++];
}

bool log_quota_take(struct log_quota *quota, uid_t uid, uint64_t now_ns)
{
    if (is_over(quota, now_ns) && !has_left_out(quota)) {
        *quota = (struct log_quota){.user_lines_max = quota->user_lines_max,
                                    .all_lines_max = quota->all_lines_max,
                                    .began_ns = now_ns};
    }
    struct log_quota_user *user = find_user(quota, uid);
    if (user == NULL) {
        quota->others_left_out_count++;
        return false;
    }
    bool is_full =
        quota->line_count >= quota->all_lines_max && user->line_count >= LOG_QUOTA_LINES_ALWAYS;
    if (user->line_count == quota->user_lines_max || is_full) {
        user->left_out_count++;
        return false;
    }
    user->line_count++;
    quota->line_count++;
    return true;
}

bool log_quota_tell(struct log_quota *quota, uint64_t now_ns, uid_t *ret_uid,
                    uint64_t *ret_left_out_count)
{
    if (!is_over(quota, now_ns)) {
        return false;
    }
    for (size_t i = 0; i < quota->user_count; i++) {
        struct log_quota_user *user = &quota->users[i];
        if (user->left_out_count > 0) {
            *ret_uid = user->uid;
            *ret_left_out_count = user->left_out_count;
            user->left_out_count = 0;
            return true;
        }
    }
    if (quota->others_left_out_count > 0) {
        *ret_uid = (uid_t)-1;
        *ret_left_out_count = quota->others_left_out_count;
        quota->others_left_out_count = 0;
        return true;
    }
    return false;
}
