/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Looks mounts up in mountinfo, in one pass for each question: the list changes at any time, and
 * the id of a mount that is gone is used again. What is not in the first MOUNTS_BYTES_MAX is not
 * listed. A line is ID PARENT MAJOR:MINOR ROOT MOUNT-POINT OPTIONS [TAG]... - TYPE SOURCE OPTIONS
 * and no field has a space in it.
 */
#include "mount_table.h"

#include "cleanup.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

/* A tenth of a second's reading. Hosts of many containers have less. */
#define MOUNTS_BYTES_MAX ((size_t)8 << 20)
#define LINE_BYTES       16384 /* has room for two paths of 4 KB */
#define OVERLAY          "overlay"

/* Each by what mountinfo and what statfs() says. */
static const struct {
    const char *name;
    uint64_t type;
} local_filesystems[] = {
    {"ext4", EXT4_SUPER_MAGIC},     {"ext3", EXT3_SUPER_MAGIC},   {"ext2", EXT2_SUPER_MAGIC},
    {"xfs", XFS_SUPER_MAGIC},       {"btrfs", BTRFS_SUPER_MAGIC}, {"tmpfs", TMPFS_MAGIC},
    {"f2fs", F2FS_SUPER_MAGIC},     {"squashfs", SQUASHFS_MAGIC}, {"erofs", EROFS_SUPER_MAGIC_V1},
    {"iso9660", ISOFS_SUPER_MAGIC}, {"vfat", MSDOS_SUPER_MAGIC},  {"exfat", EXFAT_SUPER_MAGIC},
    {"ramfs", RAMFS_MAGIC},
};

struct line {
    uint64_t mount_id;
    uint64_t device;
    const char *type; /* ends with a space */
};

/* Takes one number and the character after it off `*text`. */
static bool take_number(const char **text, char after, uint64_t *ret)
{
    char *end = NULL;
    errno = 0;
    *ret = strtoull(*text, &end, 10);
    if (end == *text || errno != 0 || *end != after) {
        return false;
    }
    *text = end + 1;
    return true;
}

static bool parse_line(const char *text, struct line *ret)
{
    uint64_t parent = 0;
    uint64_t device_major = 0;
    uint64_t device_minor = 0;
    if (!take_number(&text, ' ', &ret->mount_id) || !take_number(&text, ' ', &parent) ||
        !take_number(&text, ':', &device_major) || !take_number(&text, ' ', &device_minor)) {
        return false;
    }
    const char *end = strstr(text, " - ");
    ret->device = makedev((unsigned)device_major, (unsigned)device_minor);
    ret->type = end == NULL ? "" : end + strlen(" - ");
    return true;
}

static bool is_type(const struct line *line, const char *name)
{
    size_t bytes = strlen(name);
    return strncmp(line->type, name, bytes) == 0 && line->type[bytes] == ' ';
}

static bool is_local(const struct line *line)
{
    for (size_t i = 0; i < sizeof local_filesystems / sizeof *local_filesystems; i++) {
        if (is_type(line, local_filesystems[i].name)) {
            return true;
        }
    }
    return is_type(line, OVERLAY);
}

/* Takes the rest of a line, up to a bound; returns how much that was. */
static size_t skip_line(FILE *mounts, size_t bytes_max)
{
    size_t bytes = 0;
    for (int c = 0; c != '\n' && c != EOF && bytes < bytes_max; bytes++) {
        c = getc_unlocked(mounts);
    }
    return bytes;
}

bool mount_table_is_local(const char *list_path, uint64_t mount_id, uint64_t device)
{
    FILE *mounts = fopen(list_path, "re");
    if (mounts == NULL) {
        return false;
    }
    char text[LINE_BYTES];
    size_t read_bytes = 0;
    bool found = false;
    while (!found && read_bytes < MOUNTS_BYTES_MAX && fgets(text, LINE_BYTES, mounts) != NULL) {
        struct line line;
        size_t bytes = strlen(text);
        read_bytes += bytes;
        if (text[bytes - 1] == '\n') {
            found = parse_line(text, &line) && is_local(&line) &&
                    (line.device == device || (mount_id != 0 && line.mount_id == mount_id));
        } else {
            read_bytes += skip_line(mounts, MOUNTS_BYTES_MAX);
        }
    }
    (void)fclose(mounts);
    return found;
}

bool mount_table_is_local_type(uint64_t type, uint64_t device)
{
    for (size_t i = 0; i < sizeof local_filesystems / sizeof *local_filesystems; i++) {
        if (type == local_filesystems[i].type) {
            return true;
        }
    }
    return type == OVERLAYFS_SUPER_MAGIC && mount_table_is_local(MOUNTS_OF_INIT, 0, device);
}
