/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Asks a HotSpot virtual machine to write its perf map, as `jcmd PID Compiler.perfmap` does. Its
 * thread for that, and the socket, are there once a tool has come. The first one leaves a file
 * `.attach_pidN` in the machine's folder, and sends SIGQUIT. That ends a process that does not
 * catch it, so it is sent to one that does, and by a descriptor that is of this process alone.
 */
#include "naming_ask.h"

#include "cleanup.h"
#include "clock.h"
#include "naming_socket.h"
#include "runtimes.h"

#include <ctype.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define LISTEN_MS       1500 /* of NAMING_ANSWER_MS, so that the file is removed whatever comes */
#define LOOK_MS         10
#define NAME_BYTES      ((size_t)64)
#define TEXTS_BYTES     ((size_t)64 << 10)
#define REPLY_BYTES     ((size_t)4096)
#define CATCHES(signal) (UINT64_C(1) << ((signal)-1))

/* Version, command, and three arguments. */
static const char request[] = "1\0jcmd\0Compiler.perfmap\0\0";

static bool has_socket(const struct naming_process *process, const char *path)
{
    struct stat status;
    return fstatat(process->folder, path, &status, 0) == 0 && S_ISSOCK(status.st_mode);
}

/* Leaves the file in the process's working folder, or in its /tmp. Returns its path there; NULL:
 * neither can be. `is_own` is whether it was not there before. */
static const char *leave_file(const struct naming_process *process, char paths[2][NAME_BYTES],
                              bool *is_own)
{
    (void)snprintf(paths[0], NAME_BYTES, "cwd/.attach_pid%d", (int)process->inner);
    (void)snprintf(paths[1], NAME_BYTES, "root/tmp/.attach_pid%d", (int)process->inner);
    for (size_t i = 0; i < 2; i++) {
        cleanup_(closep) int fd =
            openat(process->folder, paths[i], O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                   S_IRUSR | S_IWUSR);
        *is_own = fd >= 0;
        if (fd >= 0 || errno == EEXIST) {
            return paths[i];
        }
    }
    return NULL;
}

/* Whether the machine was told to let no tool attach. */
static bool refuses_tools(const struct naming_process *process)
{
    char *texts = malloc(TEXTS_BYTES);
    ssize_t bytes =
        texts == NULL ? -1 : naming_process_read(process, "cmdline", texts, TEXTS_BYTES);
    bool refuses =
        bytes > 0 && runtime_has_option(texts, (size_t)bytes, "-XX:+DisableAttachMechanism");
    free(texts);
    return refuses;
}

/* Returns whether the socket is there; else the answer says why not. */
static bool have_socket(const struct naming_process *process, const char *path,
                        struct naming_answer *answer)
{
    char paths[2][NAME_BYTES];
    bool is_own = false;
    if (has_socket(process, path)) {
        return true;
    }
    if (refuses_tools(process)) {
        (void)snprintf(answer->why, sizeof answer->why,
                       "it was started with -XX:+DisableAttachMechanism");
        return false;
    }
    if ((process->caught & CATCHES(SIGQUIT)) == 0) {
        (void)snprintf(answer->why, sizeof answer->why,
                       "it does not catch SIGQUIT, which would end it");
        return false;
    }
    const char *file = leave_file(process, paths, &is_own);
    if (file == NULL) {
        (void)snprintf(answer->why, sizeof answer->why, "no file can be left for it: %s",
                       strerror(errno));
        return false;
    }
    bool is_sent = syscall(SYS_pidfd_send_signal, process->folder, SIGQUIT, NULL, 0) == 0;
    bool is_there = false;
    if (!is_sent) {
        (void)snprintf(answer->why, sizeof answer->why, "SIGQUIT cannot be sent to it: %s",
                       strerror(errno));
    }
    uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + LISTEN_MS * NS_PER_MS;
    while (is_sent && !is_there && clock_ns(CLOCK_MONOTONIC) < end_ns) {
        (void)poll(NULL, 0, LOOK_MS);
        is_there = has_socket(process, path);
    }
    if (is_own) {
        (void)unlinkat(process->folder, file, 0);
    }
    if (is_sent && !is_there) {
        (void)snprintf(answer->why, sizeof answer->why, "it opens no socket for tools");
    }
    return is_there;
}

/* A status in digits, and below it a text: "0\nCommand executed successfully\n". */
static void judge(const char *reply, size_t reply_bytes, struct naming_answer *answer)
{
    size_t status_bytes = 0;
    while (status_bytes < reply_bytes && reply[status_bytes] != '\n') {
        status_bytes++;
    }
    answer->is_done = status_bytes == 1 && reply[0] == '0' && status_bytes < reply_bytes;
    if (answer->is_done) {
        return;
    }
    if (status_bytes < reply_bytes && isdigit((unsigned char)reply[0]) != 0) {
        const char *text = reply + status_bytes + 1;
        int length = (int)strcspn(text, "\n");
        (void)snprintf(answer->why, sizeof answer->why,
                       "it has no Compiler.perfmap, which Java has from 17 on: '%.*s'",
                       length < 80 ? length : 80, text);
    } else {
        (void)snprintf(answer->why, sizeof answer->why, "its answer is no virtual machine's");
    }
}

void naming_jvm_ask(const struct naming_process *process, struct naming_answer *answer)
{
    char path[NAME_BYTES];
    char reply[REPLY_BYTES + 1];
    (void)snprintf(path, sizeof path, "root/tmp/.java_pid%d", (int)process->inner);
    if (!have_socket(process, path, answer)) {
        return;
    }
    cleanup_(closep) int fd = naming_socket_connect(process, path);
    ssize_t bytes =
        fd < 0 ? fd : naming_socket_exchange(fd, request, sizeof request, reply, REPLY_BYTES);
    if (bytes < 0) {
        (void)snprintf(answer->why, sizeof answer->why, "its socket for tools is of no use: %s",
                       strerror((int)-bytes));
        return;
    }
    reply[bytes] = '\0';
    judge(reply, (size_t)bytes, answer);
}
