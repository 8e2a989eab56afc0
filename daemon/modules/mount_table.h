/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What /proc/PID/mountinfo says of a mount, without touching the filesystem that is mounted. A
 * filesystem is local if nothing but this machine's kernel and disks answers for it: no user (FUSE)
 * and no other machine (NFS) can keep a request for it waiting. An overlay, which may lie on
 * anything, is local if the machine's init has it mounted: then root made it.
 */

#include <stdbool.h>
#include <stdint.h>

/* The device of the mount with that id (statx(): STATX_MNT_ID) in the list of the process whose
 * folder in /proc is `process_fd` (borrowed); 0: it is not listed. */
uint64_t mount_table_device(int process_fd, uint64_t mount_id);

/* Whether that mount is of a local filesystem; what is not listed is not. */
bool mount_table_is_local(int process_fd, uint64_t mount_id);

/* The same of a filesystem that has told its `type` (statfs()) and device. */
bool mount_table_is_local_type(uint64_t type, uint64_t device);
