/* SPDX-License-Identifier: Apache-2.0 */

/* Of processes that are really there. */
#include "process_owner.h"

#include "prepared_child.h"

TEST(knows_whose_a_process_is)
{
    assert_int_equal(process_owner(getpid()), getuid());
    assert_int_equal(process_owner(INT32_MAX), PROCESS_OWNER_UNKNOWN);
    assert_int_equal(process_owner(0), PROCESS_OWNER_UNKNOWN);
    assert_int_equal(process_owner(-1), PROCESS_OWNER_UNKNOWN);
}

TEST(who_runs_a_program_as_root_is_its_owner_all_the_same)
{
    const uid_t uid = 12345;
    if (getuid() != 0) {
        skip();
    }
    pid_t child = start_prepared_child(run_as_root_for, &uid);
    assert_int_equal(process_owner(child), uid);
    end_child(child);
}

static bool run_as_second_for_first(const void *userdata)
{
    const uid_t *uids = userdata;
    return setresuid(uids[0], uids[1], uids[1]) == 0 && prctl(PR_GET_DUMPABLE) != 1;
}

/* It is not dumpable, so the files in its folder of /proc are root's. */
TEST(a_program_of_another_user_is_that_users)
{
    const uid_t uids[] = {12345, 54321};
    if (getuid() != 0) {
        skip();
    }
    pid_t child = start_prepared_child(run_as_second_for_first, uids);
    assert_int_equal(process_owner(child), uids[1]);
    end_child(child);
}
