/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Asks a HotSpot virtual machine to write its perf map, as `jcmd PID Compiler.perfmap` does. Its
 * thread for that, and the socket, are there once a tool has come. The first one leaves a file
 * `.attach_pidN` in the machine's folder, and sends SIGQUIT. That ends a process that does not
 * catch it, and many a server that does takes it for the request to end. So it is sent to one that
 * has the thread with which a virtual machine takes signals, and by a descriptor that is of this
 * process alone. A machine that lets no tool attach takes the signal for a question after its
 * threads, and prints them on the program's standard output: it is looked for first, and left
 * alone.
 */
#include "naming_ask.h"

#include "cleanup.h"
#include "clock.h"
#include "naming_counters.h"
#include "naming_socket.h"
#include "own_map.h"
#include "runtimes.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define LOOK_MS         10
#define NAME_BYTES      ((size_t)64)
#define TEXTS_BYTES     ((size_t)2 << 20) /* as the kernel allows by default */
#define REPLY_BYTES     ((size_t)4096)
#define TASKS_MAX       65536
#define SIGNAL_THREAD   "Signal Dispatch" /* of "Signal Dispatcher" what the kernel keeps */
#define NO_TOOLS        "-XX:+DisableAttachMechanism"
#define CATCHES(signal) (UINT64_C(1) << ((signal)-1))

/* Version, command, and three arguments. */
static const char request[] = "1\0jcmd\0Compiler.perfmap\0\0";

/* Where the machine looks for files, and what they are called there. */
struct places {
    int tmp;                 /* owned */
    int cwd;                 /* owned; -1: it cannot be opened */
    char socket[NAME_BYTES]; /* in tmp */
    char file[NAME_BYTES];   /* in cwd or in tmp */
    uid_t uid;               /* whose files they must be, to the machine too */
};

static bool has_socket(const struct places *places)
{
    struct stat status;
    return fstatat(places->tmp, places->socket, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISSOCK(status.st_mode) && status.st_uid == places->uid;
}

/* Whether the file is there, and of the machine's user: else the machine does not go by it. */
static bool has_file(const struct places *places, int folder)
{
    struct stat status;
    return fstatat(folder, places->file, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISREG(status.st_mode) && status.st_uid == places->uid;
}

/* Leaves the file in the process's working folder, or in its /tmp. Returns that folder (borrowed),
 * or -1 with the errno of the last: neither can be. `is_own` is whether it was not there before. */
static int leave_file(const struct places *places, bool *is_own)
{
    const int folders[] = {places->cwd, places->tmp};
    int error = 0;
    for (size_t i = 0; i < 2; i++) {
        cleanup_(closep) int fd =
            openat(folders[i], places->file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                   S_IRUSR | S_IWUSR);
        error = errno;
        *is_own = fd >= 0;
        if (fd >= 0 || has_file(places, folders[i])) {
            return folders[i];
        }
    }
    errno = error;
    return -1;
}

/* Whether a file of NUL-separated texts has the option in one that begins so. */
static bool has_option(const struct naming_process *process, const char *file, const char *begin)
{
    cleanup_(freep) char *texts = malloc(TEXTS_BYTES);
    ssize_t bytes = texts == NULL ? -1 : naming_process_read(process, file, texts, TEXTS_BYTES);
    for (ssize_t at = 0; at < bytes; at += (ssize_t)strlen(texts + at) + 1) {
        const char *text = texts + at;
        if (strncmp(text, begin, strlen(begin)) == 0 &&
            runtime_has_option(text, strlen(text), NO_TOOLS)) {
            return true;
        }
    }
    return false;
}

/* Whether the machine lets no tool attach. The signal would have such a one print its threads. */
static bool refuses_tools(const struct naming_process *process)
{
    static const char *const variables[] = {
        "JDK_JAVA_OPTIONS=", "JAVA_TOOL_OPTIONS=", "_JAVA_OPTIONS="};
    enum naming_tools tools = naming_counters_tools(process);
    bool refuses = tools == NAMING_TOOLS_REFUSED;
    if (tools == NAMING_TOOLS_UNKNOWN) {
        refuses = has_option(process, "cmdline", "");
        for (size_t i = 0; i < sizeof variables / sizeof variables[0] && !refuses; i++) {
            refuses = has_option(process, "environ", variables[i]);
        }
    }
    return refuses;
}

/* Whether it has the thread that takes SIGQUIT for the machine; none with -Xrs. */
static bool has_signal_thread(const struct naming_process *process)
{
    bool is_found = false;
    const struct dirent *entry = NULL;
    int fd = openat(process->folder, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *tasks = fd < 0 ? NULL : fdopendir(fd);
    if (tasks == NULL) {
        close_fd(fd);
        return false;
    }
    for (size_t i = 0; i < TASKS_MAX && !is_found && (entry = readdir(tasks)) != NULL; i++) {
        char name[sizeof entry->d_name + 16];
        char comm[32];
        (void)snprintf(name, sizeof name, "task/%s/comm", entry->d_name);
        is_found = naming_process_read(process, name, comm, sizeof comm) > 0 &&
                   strcmp(comm, SIGNAL_THREAD "\n") == 0;
    }
    (void)closedir(tasks);
    return is_found;
}

/* Has the machine listen: by the file, and the signal. Returns whether the socket is there; else
 * the answer says why not. */
static bool attach(const struct naming_process *process, const struct places *places,
                   uint64_t listen_ms, struct naming_answer *answer)
{
    struct naming_process now;
    bool is_own = false;
    bool is_sent = false;
    bool is_there = false;
    /* The folders are open: a user that comes now does not move them any more. */
    if (!naming_process_confirm(process, &now)) {
        (void)snprintf(answer->why, sizeof answer->why, "it has ended or has another user");
        return false;
    }
    if ((now.caught & CATCHES(SIGQUIT)) == 0) {
        (void)snprintf(answer->why, sizeof answer->why,
                       "it does not catch SIGQUIT, which would end it");
        return false;
    }
    if (!has_signal_thread(process)) {
        (void)snprintf(answer->why, sizeof answer->why,
                       "it has no thread '" SIGNAL_THREAD "', so SIGQUIT is not sent (-Xrs?)");
        return false;
    }
    int folder = leave_file(places, &is_own);
    if (folder < 0) {
        (void)snprintf(answer->why, sizeof answer->why, "no file can be left for it: %s",
                       strerror(errno));
        return false;
    }
    is_sent = syscall(SYS_pidfd_send_signal, process->folder, SIGQUIT, NULL, 0) == 0;
    if (!is_sent) {
        (void)snprintf(answer->why, sizeof answer->why, "SIGQUIT cannot be sent to it: %s",
                       strerror(errno));
    }
    uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + listen_ms * NS_PER_MS;
    while (is_sent && !is_there && clock_ns(CLOCK_MONOTONIC) < end_ns) {
        (void)poll(NULL, 0, LOOK_MS);
        is_there = has_socket(places);
    }
    if (is_own) {
        (void)unlinkat(folder, places->file, 0);
    }
    if (is_sent && !is_there) {
        (void)snprintf(answer->why, sizeof answer->why, "it opens no socket for tools");
    }
    return is_there;
}

/* Returns whether the socket is there; else the answer says why not. */
static bool have_socket(const struct naming_process *process, const struct places *places,
                        uint64_t listen_ms, struct naming_answer *answer)
{
    if (has_socket(places)) {
        return true;
    }
    if (refuses_tools(process)) {
        (void)snprintf(answer->why, sizeof answer->why, "it was started with " NO_TOOLS);
        return false;
    }
    return attach(process, places, listen_ms, answer);
}

/* A status in digits, and below it a text: "0\nCommand executed successfully\n". */
void naming_jvm_judge(const char *reply, size_t reply_bytes, struct naming_answer *answer)
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

static void ask_at(const struct naming_process *process, const struct places *places,
                   uint64_t listen_ms, struct naming_answer *answer)
{
    char reply[REPLY_BYTES + 1];
    if (!have_socket(process, places, listen_ms, answer)) {
        return;
    }
    cleanup_(closep) int fd = naming_socket_connect(process, places->tmp, places->socket);
    ssize_t bytes =
        fd < 0 ? fd : naming_socket_exchange(fd, request, sizeof request, reply, REPLY_BYTES);
    if (bytes < 0) {
        (void)snprintf(answer->why, sizeof answer->why, "its socket for tools is of no use: %s",
                       strerror((int)-bytes));
        return;
    }
    reply[bytes] = '\0';
    naming_jvm_judge(reply, (size_t)bytes, answer);
}

void naming_jvm_ask(const struct naming_process *process, uint64_t listen_ms,
                    struct naming_answer *answer)
{
    struct places places = {.cwd = naming_process_open_cwd(process), .uid = process->uid};
    places.tmp = own_map_open_tmp(process->folder);
    int open_errno = errno;
    (void)snprintf(places.socket, NAME_BYTES, ".java_pid%d", (int)process->inner);
    (void)snprintf(places.file, NAME_BYTES, ".attach_pid%d", (int)process->inner);
    if (places.tmp < 0) {
        (void)snprintf(answer->why, sizeof answer->why, "its /tmp cannot be opened: %s",
                       strerror(open_errno));
    } else {
        ask_at(process, &places, listen_ms, answer);
    }
    (void)close_fd(places.tmp);
    (void)close_fd(places.cwd);
}
