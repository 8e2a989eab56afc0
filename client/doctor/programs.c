/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Looks at the programs that run, as far as the caller may: which files they are of, and which of
 * them make code that they do not name. A child does it, since a file of a user's own filesystem
 * may never answer; the child is then given up.
 *
 * Bounded: 4,096 processes, 512 different files, and of mappings what maps_lines.h gives.
 */
#include "cleanup.h"
#include "clock.h"
#include "elf_facts.h"
#include "files.h"
#include "gather.h"
#include "own_map.h"
#include "parse.h"
#include "regular_file.h"
#include "runtimes.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define PROCESSES_MAX 4096
#define FILES_MAX     512
#define TEXTS_BYTES   ((size_t)64 << 10)
#define DEBUG_FOLDER  "/usr/lib/debug/.build-id/"

struct scan {
    const char *root;
    struct program_facts *facts;
    struct {
        dev_t device;
        ino_t inode;
    } files[FILES_MAX];
    size_t file_count;
    char *texts; /* TEXTS_BYTES */
};

/* Whether the file is one that was not met before, for which there is room. */
static bool is_new(struct scan *scan, const struct stat *status)
{
    for (size_t i = 0; i < scan->file_count; i++) {
        if (scan->files[i].device == status->st_dev && scan->files[i].inode == status->st_ino) {
            return false;
        }
    }
    if (scan->file_count == FILES_MAX) {
        scan->facts->is_cut = true;
        return false;
    }
    scan->files[scan->file_count].device = status->st_dev;
    scan->files[scan->file_count++].inode = status->st_ino;
    return true;
}

static bool has_debug_file(const char *root, const char *build_id)
{
    char path[FILES_PATH_BYTES];
    int length = snprintf(path, sizeof path, "%s" DEBUG_FOLDER "%.2s/%s.debug", root, build_id,
                          strlen(build_id) > 2 ? build_id + 2 : "");
    return length > 0 && (size_t)length < sizeof path && access(path, F_OK) == 0;
}

/* A path that is too long is left out. */
static void keep_path(char *into, size_t capacity_bytes, const char *path)
{
    size_t length = strlen(path);
    length = length < capacity_bytes ? length : 0;
    memcpy(into, path, length);
    into[length] = '\0';
}

/* `path` is what the link to the file says. */
static void judge_file(struct scan *scan, int fd, const char *path)
{
    struct program_facts *facts = scan->facts;
    struct elf_facts kind;
    elf_facts_read(fd, &kind);
    if (!kind.is_elf) {
        return;
    }
    bool has_debug =
        kind.has_debug || (kind.build_id[0] != '\0' && has_debug_file(scan->root, kind.build_id));
    facts->file_count++;
    facts->with_build_id += kind.build_id[0] != '\0';
    facts->with_symbols += kind.has_symbols;
    facts->with_debug_file += has_debug;
    if (kind.build_id[0] == '\0' && facts->nameless_count++ == 0) {
        keep_path(facts->nameless, sizeof facts->nameless, path);
    }
    if (!kind.has_symbols && !has_debug) {
        if (facts->bare_count < PACKAGES_MAX) {
            keep_path(facts->bare[facts->bare_count], sizeof facts->bare[0], path);
        }
        facts->bare_count++;
    }
}

/* Java's stacks need frame pointers, which an option asks for. */
static bool lacks_frames(const struct scan *scan, pid_t pid, const struct runtime *runtime)
{
    static const char *const places[] = {"cmdline", "environ"};
    char path[64];
    if (runtime->running == NULL) {
        return false;
    }
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        (void)snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, places[i]);
        ssize_t bytes = files_read(scan->root, path, scan->texts, TEXTS_BYTES);
        if (bytes < 0 || runtime_has_option(scan->texts, (size_t)bytes, "+PreserveFramePointer")) {
            return false;
        }
    }
    return true;
}

/* Whether the process has the caller's own uid and sees the files that the caller sees. A process
 * of another user, or one of a container, may have put anything at the path of its tools. */
static bool is_own(const struct scan *scan, pid_t pid, uid_t uid)
{
    char path[FILES_PATH_BYTES];
    char own[64];
    char its[64];
    (void)snprintf(path, sizeof path, "%s/proc/self/ns/mnt", scan->root);
    ssize_t own_bytes = readlink(path, own, sizeof own);
    (void)snprintf(path, sizeof path, "%s/proc/%d/ns/mnt", scan->root, (int)pid);
    ssize_t its_bytes = readlink(path, its, sizeof its);
    return uid == geteuid() && own_bytes > 0 && own_bytes == its_bytes &&
           memcmp(own, its, (size_t)own_bytes) == 0;
}

/* Whether no other user can put something else at a path, which is whole and has no link in it. */
static bool is_of_root_or_own(const char *path)
{
    char part[FILES_PATH_BYTES];
    for (size_t i = 0; i <= strlen(path); i++) {
        struct stat status;
        if (path[i] != '/' && path[i] != '\0') {
            continue;
        }
        (void)snprintf(part, sizeof part, "%.*s", i == 0 ? 1 : (int)i, path);
        if (lstat(part, &status) < 0 || S_ISLNK(status.st_mode) ||
            (status.st_uid != 0 && status.st_uid != geteuid()) ||
            ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (status.st_mode & S_ISVTX) == 0)) {
            return false;
        }
    }
    return true;
}

/* Whether the tool beside a program may be named in a command: where there is none it is not. */
static bool is_safe_tool(const struct scan *scan, const struct made_facts *made)
{
    char path[FILES_PATH_BYTES];
    const char *tool = runtime_get(made->runtime)->running;
    (void)snprintf(path, sizeof path, "%s%s/%s", scan->root, made->folder,
                   tool == NULL ? "" : tool);
    return tool == NULL || access(path, F_OK) < 0 || is_of_root_or_own(path);
}

/* A process whose mappings are looked through. */
struct looked_at {
    uid_t uid;
    size_t runtime;
    bool is_named; /* the code that it makes, by a map or by a jitdump */
};

/* Returns whether a runtime is in it. */
static bool look_for_runtime(const struct scan *scan, pid_t pid, const char *base_name,
                             struct looked_at *ret)
{
    char path[FILES_PATH_BYTES];
    char status[4096];
    struct runtime_mappings mappings;
    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    if (files_read(scan->root, path, status, sizeof status) < 0 || !parse_uid(status, &ret->uid)) {
        return false; /* it has ended */
    }
    pid_t named = parse_inner_pid(status);
    pid_t inner = named > 0 ? named : pid;
    (void)snprintf(path, sizeof path, "%s/proc/%d", scan->root, (int)pid);
    cleanup_(closep) int folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    cleanup_(closep) int maps =
        folder < 0 ? -1 : openat(folder, "maps", O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (maps < 0 || runtime_mappings_read(maps, inner, &mappings) < 0) {
        mappings = (struct runtime_mappings){0};
    }
    ret->runtime = runtime_of_process(base_name, &mappings);
    ret->is_named = ret->runtime != RUNTIME_NONE &&
                    (mappings.has_dump || own_map_is_there(folder, inner, ret->uid));
    return ret->runtime != RUNTIME_NONE;
}

static void judge_process(struct scan *scan, pid_t pid, const char *program)
{
    struct program_facts *facts = scan->facts;
    struct looked_at looked_at;
    const char *slash = strrchr(program, '/');
    const char *base = slash == NULL ? program : slash + 1;
    if (!look_for_runtime(scan, pid, base, &looked_at)) {
        return;
    }
    struct made_facts made = {
        .pid = pid,
        .runtime = looked_at.runtime,
        .is_named = looked_at.is_named,
        .lacks_frames = lacks_frames(scan, pid, runtime_get(looked_at.runtime)),
    };
    facts->runtime_count++;
    if (made.is_named && !made.lacks_frames) {
        return;
    }
    made.is_own = is_own(scan, pid, looked_at.uid);
    keep_path(made.command, sizeof made.command, base);
    (void)snprintf(made.folder, sizeof made.folder, "%.*s",
                   (int)(slash == NULL || (size_t)(slash - program) >= sizeof made.folder
                             ? 0
                             : slash - program),
                   program);
    made.is_own = made.is_own && is_safe_tool(scan, &made);
    if (facts->unmapped_count < MADE_MAX) {
        facts->made[facts->unmapped_count] = made;
    }
    facts->unmapped_count++;
}

static void scan_process(struct scan *scan, pid_t pid)
{
    char path[FILES_PATH_BYTES];
    char program[FILES_PATH_BYTES];
    struct stat status;
    (void)snprintf(path, sizeof path, "%s/proc/%d/exe", scan->root, (int)pid);
    ssize_t length = readlink(path, program, sizeof program - 1);
    if (length < 0) {
        /* A thread of the kernel has no file; one that has ended has nothing. */
        scan->facts->hidden_count += errno == EACCES || errno == EPERM;
        return;
    }
    program[length] = '\0';
    if (stat(path, &status) < 0) {
        return;
    }
    scan->facts->process_count++;
    if (is_new(scan, &status)) {
        cleanup_(closep) int fd = regular_file_open(path);
        if (fd >= 0) {
            judge_file(scan, fd, program);
        }
    }
    judge_process(scan, pid, program);
}

void gather_scan(const char *root, struct program_facts *ret)
{
    char path[FILES_PATH_BYTES];
    struct scan scan = {.root = root, .facts = ret};
    cleanup_(freep) char *texts = malloc(TEXTS_BYTES);
    const struct dirent *entry = NULL;
    size_t count = 0;
    *ret = (struct program_facts){0};
    (void)snprintf(path, sizeof path, "%s/proc", root);
    DIR *folder = opendir(path);
    if (folder == NULL || texts == NULL) {
        (void)snprintf(ret->why, sizeof ret->why, "/proc cannot be listed: %s", strerror(errno));
        if (folder != NULL) {
            (void)closedir(folder);
        }
        return;
    }
    scan.texts = texts;
    while ((entry = readdir(folder)) != NULL) {
        long pid =
            isdigit((unsigned char)entry->d_name[0]) != 0 ? strtol(entry->d_name, NULL, 10) : 0;
        if (pid > 0 && pid <= INT32_MAX && count == PROCESSES_MAX) {
            ret->is_cut = true;
            break;
        }
        if (pid > 0 && pid <= INT32_MAX) {
            scan_process(&scan, (pid_t)pid);
            count++;
        }
    }
    (void)closedir(folder);
}

/* The child: writes the facts, in one piece or several. */
static void run_child(const char *root, int fd)
{
    struct program_facts facts;
    size_t written_bytes = 0;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    gather_scan(root, &facts);
    while (written_bytes < sizeof facts) {
        ssize_t wrote =
            write(fd, (const char *)&facts + written_bytes, sizeof facts - written_bytes);
        if (wrote <= 0) {
            _exit(EXIT_FAILURE);
        }
        written_bytes += (size_t)wrote;
    }
    _exit(EXIT_SUCCESS);
}

/* Reads the facts until the time is over. Returns whether all of them came. */
static bool read_facts(int fd, struct program_facts *ret)
{
    uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + GATHER_PROGRAMS_MS * NS_PER_MS;
    size_t read_bytes = 0;
    while (read_bytes < sizeof *ret) {
        uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
        struct pollfd waited = {.fd = fd, .events = POLLIN};
        if (now_ns >= end_ns || poll(&waited, 1, (int)((end_ns - now_ns) / NS_PER_MS) + 1) <= 0) {
            return false;
        }
        ssize_t got = read(fd, (char *)ret + read_bytes, sizeof *ret - read_bytes);
        if (got <= 0) {
            return false;
        }
        read_bytes += (size_t)got;
    }
    return true;
}

void gather_programs(const char *root, struct program_facts *ret)
{
    int ends[2];
    *ret = (struct program_facts){0};
    if (pipe2(ends, O_CLOEXEC) < 0) {
        (void)snprintf(ret->why, sizeof ret->why, "no pipe can be made: %s", strerror(errno));
        return;
    }
    cleanup_(closep) int read_fd = ends[0];
    pid_t pid = fork();
    if (pid == 0) {
        run_child(root, ends[1]);
    }
    (void)close(ends[1]);
    if (pid < 0 || !read_facts(read_fd, ret)) {
        *ret = (struct program_facts){0};
        (void)snprintf(ret->why, sizeof ret->why, "the files of running programs do not answer");
    }
    if (pid > 0) {
        /* A child that hangs in the kernel ends when it can; it is not waited for. */
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, WNOHANG);
    }
}
