/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How the worker gives up its rights, for good. elf_worker_child() calls the first function, which
 * calls the second last; apart from that only tests call them.
 */

#include <stdint.h>
#include <sys/types.h>

/* Of a file in memory: the one in which the worker leaves a table, and those that it makes itself.
 * No other flags pass its filter. */
#define ELF_WORKER_MEMFD_FLAGS (MFD_CLOEXEC | MFD_ALLOW_SEALING)

/*
 * Goes into an empty root and takes uid and gid (where root and allowed; (uid_t)-1 keeps them),
 * drops all capabilities and the right to regain any, limits memory (to `memory_bytes` of
 * addresses; 0: to ELF_WORKER_MEMORY_MAX) and files, dies with its parent, and loads the filter.
 * Returns 0, or -errno with the process half confined: it must not go on. -EOPNOTSUPP: the kernel
 * takes no filter.
 */
int elf_worker_confine(uid_t uid, gid_t gid, uint64_t memory_bytes);

/* Loads the seccomp filter alone: whatever it does not list kills the process. Returns 0,
 * -EOPNOTSUPP when the kernel does not take it, or another -errno. */
int elf_worker_filter(void);
