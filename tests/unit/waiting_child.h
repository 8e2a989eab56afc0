/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A process that does nothing until it is ended. */
#include "unit_test.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static inline pid_t start_child(void)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)pause();
        _exit(0);
    }
    return child;
}

static inline void end_child(pid_t child)
{
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
}
