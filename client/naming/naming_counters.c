/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The counters of HotSpot (`jvmstat`), of which one is looked for: sun.rt.jvmCapabilities, a text
 * whose first character is '1' where tools may attach. The file changes while it is read, and may
 * be anything: every offset in it is checked.
 *
 * The process's mappings have the name of the file, and its folder that of a user whom the caller's
 * machine may not know. A tool maps the counters of another machine, so the file must be called by
 * the process's own pid.
 *
 * Bounded: FILE_BYTES_MAX of the file are read, which is 32 KiB long by default.
 */
#include "naming_counters.h"

#include "cleanup.h"
#include "maps_lines.h"
#include "own_map.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define FILE_BYTES_MAX ((size_t)1 << 20)
#define NAME_BYTES     ((size_t)128)
#define FOLDER         "hsperfdata_"
#define COUNTER        "sun.rt.jvmCapabilities"

/* At the begin of the file, in the byte order of the machine. */
struct prologue {
    uint8_t magic[4];
    uint8_t is_little_endian;
    uint8_t major;
    uint8_t minor;
    uint8_t is_accessible; /* not before all of it is there */
    uint32_t used_bytes;
    uint32_t overflow_bytes;
    uint32_t changed_ns[2];
    uint32_t first_entry; /* offset */
    uint32_t entry_count;
};

/* Offsets are from the entry's own begin. */
struct entry {
    uint32_t entry_bytes;
    uint32_t name;
    uint32_t element_count;
    uint8_t type;
    uint8_t flags;
    uint8_t unit;
    uint8_t variability;
    uint32_t value;
};

static enum naming_tools judge_value(char value)
{
    return value == '1'   ? NAMING_TOOLS_ALLOWED
           : value == '0' ? NAMING_TOOLS_REFUSED
                          : NAMING_TOOLS_UNKNOWN;
}

enum naming_tools naming_counters_judge(const void *file, size_t file_bytes)
{
    static const uint8_t magic[] = {0xca, 0xfe, 0xc0, 0xc0};
    struct prologue prologue;
    struct entry entry;
    if (file_bytes < sizeof prologue) {
        return NAMING_TOOLS_UNKNOWN;
    }
    memcpy(&prologue, file, sizeof prologue);
    if (memcmp(prologue.magic, magic, sizeof magic) != 0 || prologue.is_accessible != 1) {
        return NAMING_TOOLS_UNKNOWN;
    }
    size_t at = prologue.first_entry;
    for (uint32_t i = 0; i < prologue.entry_count; i++) {
        if (at > file_bytes || file_bytes - at < sizeof entry) {
            break;
        }
        const char *bytes = (const char *)file + at;
        memcpy(&entry, bytes, sizeof entry);
        if (entry.entry_bytes < sizeof entry || entry.entry_bytes > file_bytes - at) {
            break;
        }
        if (entry.name < entry.entry_bytes && entry.value < entry.entry_bytes &&
            entry.entry_bytes - entry.name >= sizeof COUNTER &&
            memcmp(bytes + entry.name, COUNTER, sizeof COUNTER) == 0) {
            return judge_value(bytes[entry.value]);
        }
        at += entry.entry_bytes;
    }
    return NAMING_TOOLS_UNKNOWN;
}

struct search {
    char end[16];          /* that the name must have: "/PID" */
    char name[NAME_BYTES]; /* "hsperfdata_USER/PID"; "": not found yet */
};

static void find_name(const char *lines, void *userdata)
{
    struct search *search = userdata;
    size_t end_length = strlen(search->end);
    const char *found = lines;
    while (search->name[0] == '\0' && (found = strstr(found, "/" FOLDER)) != NULL) {
        size_t length = strcspn(++found, "\n");
        if (length < NAME_BYTES && length > end_length &&
            memcmp(found + length - end_length, search->end, end_length) == 0) {
            (void)snprintf(search->name, NAME_BYTES, "%.*s", (int)length, found);
        }
    }
}

/* Opens the file that the process has mapped. Returns a descriptor, or -1. */
static int open_counters(const struct naming_process *process)
{
    struct open_how how = {
        .flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
    };
    struct search search = {.name = ""};
    struct stat status;
    bool is_cut = false;
    cleanup_(closep) int maps = openat(process->folder, "maps", O_RDONLY | O_CLOEXEC);
    (void)snprintf(search.end, sizeof search.end, "/%d", (int)process->inner);
    if (maps < 0 || maps_lines_read(maps, find_name, &search, &is_cut) < 0 ||
        search.name[0] == '\0') {
        return -1;
    }
    cleanup_(closep) int tmp = own_map_open_tmp(process->folder);
    cleanup_(closep) int fd =
        tmp < 0 ? -1 : (int)syscall(SYS_openat2, tmp, search.name, &how, sizeof how);
    return fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
                   status.st_uid == process->uid
               ? take_fd(fd)
               : -1;
}

enum naming_tools naming_counters_tools(const struct naming_process *process)
{
    cleanup_(freep) char *file = malloc(FILE_BYTES_MAX);
    cleanup_(closep) int fd = open_counters(process);
    ssize_t bytes = file == NULL || fd < 0 ? -1 : pread(fd, file, FILE_BYTES_MAX, 0);
    return bytes < 0 ? NAMING_TOOLS_UNKNOWN : naming_counters_judge(file, (size_t)bytes);
}
