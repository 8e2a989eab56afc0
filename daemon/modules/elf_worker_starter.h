/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Starts workers from a thread that has a table of descriptors of its own, in which there is no
 * foreign file. A new process begins with a copy of its creator's table and closes what it should
 * not have before the creator goes on; closing a file of a user can take for ever.
 *
 * The first call starts the thread, which lives as long as the program. What is open by then is no
 * user's. All calls come from one thread.
 */

#include <sys/types.h>

/* Executes this program anew as the worker, with `socket_fd` (borrowed) as its only descriptor, 3.
 * Waits for the exec. Returns 0, or -errno. */
int elf_worker_starter_spawn(int socket_fd, pid_t *ret_pid);
