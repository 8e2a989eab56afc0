/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Starts workers from a thread that has its own table of descriptors, without foreign files. A new
 * process begins with a copy of that table and closes what is not its own before it executes; to
 * close a file of a user may block for ever.
 *
 * The first call starts the thread, which lives as long as the program. No user's file is open by
 * then. Should the thread end after all, what it was asked for fails with -EPIPE, its workers are
 * killed, and the next call starts another one. All calls come from one thread.
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

/* Takes the answers that have come, and waits up to `wait_ms` for that to `pid`. */
void elf_worker_starter_wait(const pid_t *pid, int wait_ms);

/* Drops the answer to `pid`: its process is killed as soon as it is known. */
void elf_worker_starter_forget(const pid_t *pid);
