/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A child that has prepared itself, and then does nothing until end_child() of waiting_child.h. */
#include "waiting_child.h"

#include <sys/prctl.h>

static inline pid_t start_prepared_child(bool (*prepare)(const void *userdata),
                                         const void *userdata)
{
    int ready[2];
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        /* A change of user has taken away the signal at the parent's death. */
        bool done = prepare(userdata) && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0;
        if (write(ready[1], done ? "y" : "n", 1) == 1) {
            (void)pause();
        }
        _exit(1);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 'y');
    (void)close(ready[0]);
    (void)close(ready[1]);
    return child;
}

/* As a program of root's with the set-user-id bit, which the user `userdata` has started. */
static inline bool run_as_root_for(const void *userdata)
{
    const uid_t *uid = userdata;
    return setresuid(*uid, 0, 0) == 0;
}
