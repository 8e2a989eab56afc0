/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Asks a .NET runtime, 8 or later, to write its perf map and jitdump from now on, with what it has
 * made before. Each listens on a socket `dotnet-diagnostic-PID-STAMP-socket` in /tmp, unless it was
 * told to let no tool in (DOTNET_EnableDiagnostics=0), or has another TMPDIR.
 *
 * A message has a header of 20 bytes, little-endian: a magic text, the size of the whole, a set of
 * commands, a command in it, and two bytes that are reserved.
 */
#include "naming_ask.h"

#include "cleanup.h"
#include "naming_socket.h"
#include "own_map.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define HEADER_BYTES     20
#define MAGIC_BYTES      14
#define SET_OFFSET       16
#define COMMAND_OFFSET   17
#define FOLDER_NAMES_MAX 65536
#define SET_SERVER       0xff
#define SERVER_OK        0x00

/* "Process, enable the perf map: all kinds". */
static const unsigned char request[] = {
    'D', 'O', 'T',  'N',  'E', 'T', '_', 'I', 'P', 'C', '_', 'V', '1', 0, /* magic */
    24,  0,   0x04, 0x05, 0,   0,                                         /* size, command */
    1,   0,   0,    0,
};

static bool is_socket_name(const char *name, const char *prefix)
{
    size_t length = strlen(name);
    return strncmp(name, prefix, strlen(prefix)) == 0 && length > strlen("-socket") &&
           strcmp(name + length - strlen("-socket"), "-socket") == 0;
}

/* Connects to the first socket of such a name on which the process listens: others may have made
 * some, or an earlier process of that pid. Returns a descriptor: close(); or -errno, -ENOENT where
 * no socket has such a name. */
static int connect_to_any(const struct naming_process *process, int tmp)
{
    char prefix[48];
    const struct dirent *entry = NULL;
    int result = -ENOENT;
    int fd = openat(tmp, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    if (folder == NULL) {
        close_fd(fd);
        return result;
    }
    (void)snprintf(prefix, sizeof prefix, "dotnet-diagnostic-%d-", (int)process->inner);
    for (size_t i = 0; i < FOLDER_NAMES_MAX && result < 0 && (entry = readdir(folder)) != NULL;
         i++) {
        if (is_socket_name(entry->d_name, prefix)) {
            result = naming_socket_connect(process, tmp, entry->d_name);
        }
    }
    (void)closedir(folder);
    return result;
}

void naming_dotnet_judge(const char *reply, size_t reply_bytes, struct naming_answer *answer)
{
    if (reply_bytes < HEADER_BYTES || memcmp(reply, request, MAGIC_BYTES) != 0 ||
        (unsigned char)reply[SET_OFFSET] != SET_SERVER) {
        (void)snprintf(answer->why, sizeof answer->why, "its answer is no runtime's");
    } else if (reply[COMMAND_OFFSET] != SERVER_OK) {
        (void)snprintf(answer->why, sizeof answer->why,
                       "it refuses, as each .NET before 8 does; start it with "
                       "DOTNET_PerfMapEnabled=1");
    } else {
        answer->is_done = true;
    }
}

void naming_dotnet_ask(const struct naming_process *process, uint64_t listen_ms,
                       struct naming_answer *answer)
{
    (void)listen_ms; /* the socket is there from the start on */
    char reply[HEADER_BYTES + 1];
    cleanup_(closep) int tmp = own_map_open_tmp(process->folder);
    cleanup_(closep) int fd = connect_to_any(process, tmp);
    if (fd == -ENOENT) {
        (void)snprintf(answer->why, sizeof answer->why, "it has no socket for tools in /tmp");
        return;
    }
    ssize_t bytes =
        fd < 0 ? fd : naming_socket_exchange(fd, request, sizeof request, reply, HEADER_BYTES);
    if (bytes < 0) {
        (void)snprintf(answer->why, sizeof answer->why, "its socket for tools is of no use: %s",
                       strerror((int)-bytes));
    } else {
        reply[bytes] = '\0';
        naming_dotnet_judge(reply, (size_t)bytes, answer);
    }
}
