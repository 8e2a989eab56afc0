/* SPDX-License-Identifier: Apache-2.0 */

/* A list, since nothing that statfs() tells sets them apart. */
#include "kernel_filesystem.h"

#include <linux/magic.h>
#include <stddef.h>

/* Not in <linux/magic.h> of older headers. */
#define CONFIGFS_MAGIC 0x62656570
#define FUSECTL_MAGIC  0x65735543
#define MQUEUE_MAGIC   0x19800202

bool kernel_filesystem_is(uint64_t type)
{
    static const uint32_t kernel[] = {
        PROC_SUPER_MAGIC, SYSFS_MAGIC,    DEBUGFS_MAGIC,      TRACEFS_MAGIC,   SECURITYFS_MAGIC,
        SELINUX_MAGIC,    SMACK_MAGIC,    CGROUP_SUPER_MAGIC, BPF_FS_MAGIC,    CGROUP2_SUPER_MAGIC,
        PSTOREFS_MAGIC,   EFIVARFS_MAGIC, NSFS_MAGIC,         BINFMTFS_MAGIC,  DEVPTS_SUPER_MAGIC,
        CONFIGFS_MAGIC,   FUSECTL_MAGIC,  MQUEUE_MAGIC,       HUGETLBFS_MAGIC,
    };
    for (size_t i = 0; i < sizeof kernel / sizeof *kernel; i++) {
        if ((uint32_t)type == kernel[i]) {
            return true;
        }
    }
    return false;
}
