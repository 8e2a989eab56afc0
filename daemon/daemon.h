/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The daemon as a whole: the event loop and the three things that live as long as it does (the
 * module cache with its worker, the control socket, and, through that, the one session).
 */

#include "daemon_config.h"

#include <stdint.h>

struct daemon_params {
    int listen_fd;                      /* taken */
    const char *address;                /* what to call the socket in the log; borrowed */
    const struct daemon_config *config; /* borrowed */
    uint32_t idle_exit_s; /* ends after so long without a session and a connection; 0: never */
};

/*
 * Sets up everything, tells the service manager that it is ready, and runs until SIGTERM or SIGINT,
 * or until it has been idle for long enough. Returns 0 or -errno.
 *
 * The first signal ends sampling; what was recorded is served for up to 5 s. A second one ends at
 * once.
 */
int daemon_run(const struct daemon_params *params);
