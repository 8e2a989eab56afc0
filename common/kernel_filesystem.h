/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Filesystems that the kernel makes up (/proc, /sys, tracefs). Their files count as regular, but to
 * open or read one may reset it, consume what it holds, or wait. No program and no library lies
 * there.
 */

#include <stdbool.h>
#include <stdint.h>

/* Whether this is the type (statfs()) of one of them. */
bool kernel_filesystem_is(uint64_t type);
