/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The doctor's own child, whose functions are known: SPIN_OUTER calls SPIN_INNER, which spins, and
 * reads /dev/zero in between, so that the kernel works for it for a third of the time. The
 * functions are exported by profctl, so that their names stay when it is stripped.
 */

#include <stdint.h>
#include <sys/types.h>

#define SPIN_OUTER "profctl_doctor_outer"
#define SPIN_INNER "profctl_doctor_inner"

struct spin {
    pid_t pid; /* 0: there is none */
    int go_fd; /* owned */
};

/* Forks it; it waits. Before any connection is made, which it would share. Returns 0 or -errno. */
int spin_start(struct spin *ret);

/* Has it spin from now on. */
void spin_go(struct spin *spin);

/* Ends it, if there is one. Returns how much CPU time it had, in ns. */
uint64_t spin_end(struct spin *spin);
