/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which filesystems are local: nothing but this machine's kernel and disks answers for them. No
 * user (FUSE) and no other machine (NFS) can keep all of it waiting; a user can hold the lock of a
 * folder, and so keep requests for names in that folder waiting. An overlay, which may
 * lie on anything, is local if the machine's init has it mounted: then root made it. No other list
 * of mounts is read: a user makes one line of it as long as he likes, folder by folder, and the
 * kernel prints all of it into its own memory on account of the reader.
 */

#include <stdbool.h>
#include <stdint.h>

#define MOUNTS_OF_INIT "/proc/1/mountinfo"

/* Whether the mount with that id (statx(): STATX_MNT_ID; 0: not known), or another one of its
 * device, is listed in the file `list_path` as one of a local filesystem. Touches no filesystem. */
bool mount_table_is_local(const char *list_path, uint64_t mount_id, uint64_t device);

/* The same of a filesystem that has told its `type` (statfs()) and device. */
bool mount_table_is_local_type(uint64_t type, uint64_t device);
