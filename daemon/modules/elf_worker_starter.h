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

#define ELF_WORKER_STARTS_MAX 32 /* asked for, and not answered yet */

/*
 * Asks for a process that executes this program anew as the worker, with `socket_fd` (borrowed) as
 * its only descriptor, 3. `*pid` is 0 until the answer is taken, then the process, or -errno where
 * there is none; it stays where it is until then. Returns 0, or -errno: -EAGAIN where
 * ELF_WORKER_STARTS_MAX are under way.
 */
int elf_worker_starter_ask(int socket_fd, pid_t *pid);

/* Takes the answers that have come, and waits for that to `pid` for at most so long: a process
 * begins when the scheduler lets it. */
void elf_worker_starter_wait(const pid_t *pid, int wait_ms);

/* The answer to `pid` has no place any more: the process is killed when it comes. */
void elf_worker_starter_forget(const pid_t *pid);
