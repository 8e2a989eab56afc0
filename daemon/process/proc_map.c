/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The kernel's structure is written down here, since headers of older kernels lack it
 * (include/uapi/linux/fs.h). A query gives what a line of maps has, but the path is as it is,
 * without escapes. A path without room costs a second query, without it.
 */
#include "proc_map.h"

#include "proc_parse.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

struct query {
    uint64_t size;
    uint64_t flags;
    uint64_t address;
    uint64_t start;
    uint64_t end;
    uint64_t vma_flags;
    uint64_t page_size;
    uint64_t offset;
    uint64_t inode;
    uint32_t device_major;
    uint32_t device_minor;
    uint32_t name_size;
    uint32_t build_id_size;
    uint64_t name_address;
    uint64_t build_id_address;
};

_Static_assert(sizeof(struct query) == 104, "as the kernel has it");

#define QUERY                  _IOWR('f', 17, struct query)
#define QUERY_EXECUTABLE       0x04
#define QUERY_COVERING_OR_NEXT 0x10
#define TOO_LONG               "//toolong"

static int ask(int maps_fd, uint64_t flags, uint64_t address, char *path, struct query *query)
{
    *query = (struct query){
        .size = sizeof *query,
        .flags = flags,
        .address = address,
        .name_size = path == NULL ? 0 : (uint32_t)PROC_MAP_PATH_BYTES - 1,
        .name_address = (uint64_t)(uintptr_t)path,
    };
    return ioctl(maps_fd, QUERY, query) < 0 ? -errno : 0;
}

static int answer_query(const struct query *query, const char *path,
                        struct mapping_description *ret)
{
    *ret = (struct mapping_description){
        .start = query->start,
        .end = query->end,
        .file_offset = query->offset,
        .path = path,
        .device_major = query->device_major,
        .device_minor = query->device_minor,
        .inode = query->inode,
    };
    return query->start < query->end ? 0 : -EBADMSG;
}

int proc_map_query(int maps_fd, uint64_t from, char path[PROC_MAP_PATH_BYTES],
                   struct mapping_description *ret)
{
    struct query query;
    /* So that it ends somewhere, whatever the kernel leaves out; and valgrind knows no queries. */
    memset(path, 0, PROC_MAP_PATH_BYTES);
    const uint64_t flags = QUERY_EXECUTABLE | QUERY_COVERING_OR_NEXT;
    int r = ask(maps_fd, flags, from, path, &query);
    if (r == -ENAMETOOLONG) {
        r = ask(maps_fd, flags, from, NULL, &query);
        memcpy(path, TOO_LONG, sizeof TOO_LONG);
    }
    if (r < 0) {
        return r;
    }
    proc_parse_undo_deleted(path);
    return answer_query(&query, path, ret);
}

int proc_map_at(int maps_fd, uint64_t address, struct mapping_description *ret)
{
    struct query query;
    int r = ask(maps_fd, 0, address, NULL, &query);
    return r < 0 ? r : answer_query(&query, NULL, ret);
}
