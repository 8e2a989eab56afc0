/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The daemon as a whole: the event loop and the three things that live as long as it does (the
 * module cache with its worker, the control socket, and, through that, the one session).
 */

/*
 * Sets up everything on `listen_fd` (taken), tells the service manager that it is ready, and runs
 * until SIGTERM or SIGINT. `address` is what to call the socket in the log. Returns 0 or -errno.
 */
int daemon_run(int listen_fd, const char *address);
