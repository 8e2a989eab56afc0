/* SPDX-License-Identifier: Apache-2.0 */

/* Of processes that are really there. */
#include "process_owner.h"
#include "unit_test.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

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
    int pipe_fds[2];
    char byte = 0;
    if (getuid() != 0) {
        skip();
    }
    assert_int_equal(pipe(pipe_fds), 0);
    pid_t child = fork();
    if (child == 0) {
        bool done = setresuid(uid, 0, 0) == 0;
        _exit(write(pipe_fds[1], done ? "y" : "n", 1) == 1 ? pause() : 1);
    }
    assert_true(child > 0);
    assert_int_equal(read(pipe_fds[0], &byte, 1), 1);
    assert_int_equal(byte, 'y');
    assert_int_equal(process_owner(child), uid);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    (void)close(pipe_fds[0]);
    (void)close(pipe_fds[1]);
}
