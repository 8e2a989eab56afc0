/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads /proc/PID/{stat,status,task/TID/comm,maps,cmdline,cgroup}. A process's folder is opened
 * once and all is read beneath it, so nothing of another process with the same pid can slip in; its
 * stat is read before and after, so a reading that an exec cuts in two shows. One open maps file
 * belongs to one address space and never mixes two. Reading stat and status never hangs, and shows
 * before the rest which user the process belongs to.
 *
 * A command line is memory of the process. It is read only of processes that the right of a request
 * covers: whose they are is found out before it is read and again behind it, and an exec in between
 * shows as above.
 *
 * Mappings are asked for one by one where the kernel answers that (proc_map.h), and read as text
 * where it does not. Every text has a bound; a longer one is cut at its last whole line. What was
 * read is packed into one piece of memory, the executable mappings alone, so that what waits to be
 * told is small.
 */
#include "proc_read.h"

#include "account.h"
#include "cleanup.h"
#include "clock.h"
#include "grow.h"
#include "proc_map.h"
#include "proc_parse.h"
#include "spent_memory.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define TEXT_BYTES_MIN ((size_t)4096)
#define BYTES_KEPT     ((size_t)256 << 10) /* a larger buffer does not outlive its process */
#define LINE_BYTES     ((size_t)48)        /* that a line of maps has before its path, at least */
#define VSYSCALL       UINT64_C(0xffffffffff600000)

struct text {
    char *bytes; /* size, and a NUL; owned */
    size_t size;
    size_t capacity;
    bool cut;
};

struct proc_read {
    int proc_fd;
    struct text line;
    struct text maps;
    struct text cgroups;
    char command[PROCESS_COMMAND_MAX];
    uint32_t only_uid; /* of the process at hand: command_right.h */
    struct scanned_thread *threads;
    size_t thread_capacity;
    struct mapping_description *mappings; /* their paths point into maps */
    size_t mapping_capacity;
    int32_t *pids;
    size_t pid_capacity;
    struct thread_reading *times;
    size_t time_capacity;
};

static struct spent_memory spent; /* readings that were used */

struct proc_read *proc_read_new(void)
{
    struct proc_read *scan = calloc(1, sizeof *scan);
    if (scan == NULL) {
        return NULL;
    }
    scan->proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return scan->proc_fd < 0 ? proc_read_free(scan) : scan;
}

struct proc_read *proc_read_free(struct proc_read *scan)
{
    if (scan != NULL) {
        scan->proc_fd = close_fd(scan->proc_fd);
        free(scan->line.bytes);
        free(scan->maps.bytes);
        free(scan->cgroups.bytes);
        free(scan->threads);
        free(scan->mappings);
        free(scan->pids);
        free(scan->times);
        free(scan);
        spent_memory_free(&spent);
    }
    return NULL;
}

/* Room for at least one byte more and a NUL, unless the bound is reached. */
static int grow_text(struct text *text)
{
    return text->size + 2 > PROC_READ_MAPS_BYTES_MAX
               ? -E2BIG
               : grow_from(text->bytes, text->capacity, text->size + 2, TEXT_BYTES_MIN);
}

/* Reads a whole file; what is beyond the bound is cut away, with the line that it cuts in two. */
static int read_text(int folder_fd, const char *name, struct text *text)
{
    text->size = 0;
    text->cut = false;
    cleanup_(closep) int fd = openat(folder_fd, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    for (;;) {
        int r = grow_text(text);
        if (r == -E2BIG) {
            text->cut = true;
            while (text->size > 0 && text->bytes[text->size - 1] != '\n') {
                text->size--;
            }
        } else if (r < 0) {
            return r;
        }
        ssize_t size =
            r < 0 ? 0 : read(fd, text->bytes + text->size, text->capacity - text->size - 1);
        if (size < 0 && errno != EINTR) {
            return -errno;
        }
        if (size == 0) {
            text->bytes[text->size] = '\0';
            return 0;
        }
        text->size += size > 0 ? (size_t)size : 0;
    }
}

/* Whether what hangs on the pid is gone for the rest of the world. */
static bool is_dead(const struct proc_stat *stat)
{
    return stat->state == 'X' || stat->state == 'x' ||
           (stat->state == 'Z' && stat->thread_count <= 1);
}

static int read_stat(struct proc_read *scan, int pid_fd, struct proc_stat *ret)
{
    int r = read_text(pid_fd, "stat", &scan->line);
    if (r < 0) {
        return r;
    }
    return scan->line.size == 0 ? -ESRCH : proc_parse_stat(scan->line.bytes, ret);
}

static bool is_gone(int error)
{
    return error == -ENOENT || error == -ESRCH;
}

static int add_thread(struct proc_read *scan, int pid_fd, int32_t tid, struct process_scan *reading)
{
    char name[32];
    (void)snprintf(name, sizeof name, "task/%" PRId32 "/comm", tid);
    int r = read_text(pid_fd, name, &scan->line);
    if (r < 0) { /* it has exited meanwhile, or there is one more than is read */
        reading->threads_cut = reading->threads_cut || !is_gone(r);
        return 0;
    }
    if (grow(scan->threads, scan->thread_capacity, reading->thread_count + 1) < 0) {
        return -ENOMEM;
    }
    struct scanned_thread *thread = &scan->threads[reading->thread_count];
    *thread = (struct scanned_thread){.tid = tid};
    size_t size = scan->line.size;
    size -= size > 0 && scan->line.bytes[size - 1] == '\n' ? 1 : 0;
    memcpy(thread->comm, scan->line.bytes, size < COMM_BYTES ? size : COMM_BYTES - 1);
    reading->thread_count++;
    return 0;
}

/* NULL with errno when it cannot be listed; released with closedir(). */
static DIR *open_folder(int parent_fd, const char *name)
{
    int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    if (folder == NULL) {
        (void)close_fd(fd);
    }
    return folder;
}

/* The next number among the names of a folder of /proc. False: there is none, or the folder could
 * not be read on, and `ret_error` is -errno. */
static bool next_id(DIR *folder, int32_t *ret, int *ret_error)
{
    const struct dirent *entry;
    while (errno = 0, (entry = readdir(folder)) != NULL) {
        *ret = proc_parse_id(entry->d_name);
        if (*ret > 0) {
            return true;
        }
    }
    if (errno != 0) {
        *ret_error = -errno;
    }
    return false;
}

/* Reads the names of all threads; of a leader that is a zombie only the others live. */
static int read_threads(struct proc_read *scan, int pid_fd, const struct proc_stat *stat,
                        struct process_scan *reading)
{
    DIR *folder = open_folder(pid_fd, "task");
    if (folder == NULL) {
        return -errno;
    }
    int32_t tid = 0;
    int r = 0;
    while (r == 0 && next_id(folder, &tid, &r)) {
        if (stat->state == 'Z' && tid == reading->pid) {
            continue;
        }
        if (reading->thread_count >= PROC_READ_THREADS_MAX) {
            reading->threads_cut = true;
            break;
        }
        r = add_thread(scan, pid_fd, tid, reading);
    }
    (void)closedir(folder);
    reading->threads = scan->threads;
    return r;
}

static int parse_maps(struct proc_read *scan, struct process_scan *reading)
{
    char *line = scan->maps.bytes;
    while (*line != '\0') {
        char *line_end = strchrnul(line, '\n');
        char *next = *line_end == '\0' ? line_end : line_end + 1;
        *line_end = '\0';
        int r = grow(scan->mappings, scan->mapping_capacity, reading->mapping_count + 1);
        if (r == 0) {
            r = proc_parse_maps_line(line, &scan->mappings[reading->mapping_count]);
        }
        if (r < 0) {
            return r;
        }
        reading->mapping_count += (size_t)r;
        line = next;
    }
    reading->mappings = scan->mappings;
    return 0;
}

/* Adds a mapping, whose path goes behind those of the others. False: there is no room for it. */
static int add_mapping(struct proc_read *scan, const struct mapping_description *mapping,
                       struct process_scan *reading)
{
    struct text *paths = &scan->maps;
    size_t path_bytes = strlen(mapping->path) + 1;
    size_t used_bytes = paths->size + path_bytes + reading->mapping_count * LINE_BYTES;
    if (used_bytes > PROC_READ_MAPS_BYTES_MAX) {
        paths->cut = true;
        return -E2BIG;
    }
    if (grow(scan->mappings, scan->mapping_capacity, reading->mapping_count + 1) < 0 ||
        grow_from(paths->bytes, paths->capacity, paths->size + path_bytes, TEXT_BYTES_MIN) < 0) {
        return -ENOMEM;
    }
    memcpy(paths->bytes + paths->size, mapping->path, path_bytes);
    paths->size += path_bytes;
    scan->mappings[reading->mapping_count++] = *mapping;
    return 0;
}

/* The paths lie one behind the other; where, is known when the last one is there. */
static void set_paths(struct proc_read *scan, struct process_scan *reading)
{
    const char *path = scan->maps.bytes;
    for (size_t i = 0; i < reading->mapping_count; i++) {
        scan->mappings[i].path = path;
        path += strlen(path) + 1;
    }
    reading->mappings = scan->mappings;
}

/* Returns 0; -ENOTTY: the kernel answers no queries; or another -errno. */
static int query_maps(struct proc_read *scan, int maps_fd, struct process_scan *reading)
{
    /* It belongs to no memory, but to all processes of 64 bits, and maps has it. */
    static const struct mapping_description vsyscall = {
        .start = VSYSCALL, .end = VSYSCALL + 4096, .path = "[vsyscall]"};
    char path[PROC_MAP_PATH_BYTES];
    struct mapping_description mapping = {.end = 0};
    int r = 0;
    scan->maps.size = 0;
    scan->maps.cut = false;
    while (r == 0) {
        r = proc_map_query(maps_fd, mapping.end, path, &mapping);
        r = r == 0 ? add_mapping(scan, &mapping, reading) : r;
    }
    if (r == -ENOENT) {
        r = add_mapping(scan, &vsyscall, reading);
    } else if (r != -E2BIG) {
        reading->mapping_count = 0;
    }
    set_paths(scan, reading);
    return r == -E2BIG ? 0 : r;
}

/* Asks for the mappings one by one, or reads them as text from a kernel that answers no queries. */
static int read_maps_file(struct proc_read *scan, int pid_fd, const char *name,
                          struct process_scan *reading)
{
    cleanup_(closep) int maps_fd = openat(pid_fd, name, O_RDONLY | O_CLOEXEC);
    int r = maps_fd < 0 ? -errno : query_maps(scan, maps_fd, reading);
    if (r == -ENOTTY) {
        r = read_text(pid_fd, name, &scan->maps);
        r = r < 0 ? r : parse_maps(scan, reading);
    }
    return r;
}

/* Reads the mappings. A zombie leader has no memory of its own left; the other threads still show
 * it. What cannot be read is missing, which is not the same as a process without mappings. */
static int read_maps(struct proc_read *scan, int pid_fd, const struct proc_stat *stat,
                     struct proc_reading *reading)
{
    struct process_scan *process = &reading->scan;
    char name[32] = "maps";
    if (stat->state == 'Z' && process->thread_count > 0) {
        (void)snprintf(name, sizeof name, "task/%" PRId32 "/maps", process->threads[0].tid);
    }
    int r = read_maps_file(scan, pid_fd, name, process);
    if (r == -ENOMEM || r == 0) {
        return r;
    }
    /* What is going has no memory any more; of a zombie leader it may be that thread alone. */
    process->mapping_count = 0;
    process->mappings_missing = !is_gone(r) || stat->state == 'Z';
    reading->has_failed = !is_gone(r) && r != -EACCES && r != -EPERM;
    return 0;
}

/* Reads the uid, and the account that the process is charged to: a program with the set-user-id bit
 * of root is charged to the user that started it. */
static void read_uid(struct proc_read *scan, int pid_fd, struct proc_reading *reading)
{
    struct process_scan *process = &reading->scan;
    uint32_t uid = UINT32_MAX;
    int r = read_text(pid_fd, "status", &scan->line);
    if (r == 0) {
        r = scan->line.size == 0 ? -ESRCH : proc_parse_uid(scan->line.bytes, &uid);
    }
    reading->uid = uid;
    process->identity_read = r == 0;
    if (r < 0 || proc_parse_only_uid(scan->line.bytes, &scan->only_uid) < 0) {
        scan->only_uid = COMMAND_UID_NONE;
    }
    if (r == 0 && uid == 0) {
        r = proc_parse_real_uid(scan->line.bytes, &uid);
    }
    process->account_known = r == 0;
    process->account = r == 0 ? account_of(uid) : PROCESS_ACCOUNT_UNKNOWN;
}

/* Without its control groups the process's identity counts as not read. */
static void read_cgroups(struct proc_read *scan, int pid_fd, struct proc_reading *reading)
{
    if (read_text(pid_fd, "cgroup", &scan->cgroups) < 0) {
        scan->cgroups.size = 0;
        reading->scan.identity_read = false;
    }
}

/* The only user of the process: the kernel gives its files to root unless it is dumpable. */
static uint32_t only_owner(const struct proc_read *scan, const struct stat *file)
{
    return file->st_uid == scan->only_uid ? scan->only_uid : COMMAND_UID_NONE;
}

/* Reads the command line if the right covers it. */
static void read_command(struct proc_read *scan, int pid_fd, const struct command_right *right,
                         struct process_scan *process)
{
    struct stat before;
    struct stat after;
    if (!right->is_given) {
        return;
    }
    cleanup_(closep) int fd = openat(pid_fd, "cmdline", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &before) < 0 ||
        !command_right_covers(right, only_owner(scan, &before))) {
        return;
    }
    ssize_t size = read(fd, scan->command, sizeof scan->command);
    if (size <= 0 || fstatat(pid_fd, "cmdline", &after, 0) < 0 ||
        only_owner(scan, &after) != only_owner(scan, &before)) {
        return;
    }
    while (size > 0 && scan->command[size - 1] == '\0') {
        size--;
    }
    process->command = scan->command;
    process->command_bytes = (size_t)size;
    process->command_uid = only_owner(scan, &after);
}

static int open_process(const struct proc_read *scan, int32_t pid)
{
    char name[16];
    (void)snprintf(name, sizeof name, "%" PRId32, pid);
    int fd = openat(scan->proc_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* What is asked before the mappings are read. */
struct guard {
    proc_read_guard_fn lets;
    void *userdata;
};

/* What does not hang first. */
static int read_parts(struct proc_read *scan, int pid_fd, const struct proc_request *request,
                      const struct proc_stat *stat, const struct guard *guard,
                      struct proc_reading *reading)
{
    struct process_scan *process = &reading->scan;
    int r = proc_parse_start_time(stat, &process->start_time_ns);
    if (r < 0) {
        return r;
    }
    read_uid(scan, pid_fd, reading);
    if (request->part == PROC_PART_ALL || stat->state == 'Z') {
        r = read_threads(scan, pid_fd, stat, process);
    }
    if (request->part != PROC_PART_MAPPINGS && request->part != PROC_PART_COMMAND &&
        request->cgroups) {
        read_cgroups(scan, pid_fd, reading);
    }
    if (r < 0 || request->part == PROC_PART_IDENTITY || stat->kernel_thread) {
        return r;
    }
    if (!guard->lets(request->pid, process->start_time_ns, process->account, guard->userdata)) {
        process->mappings_missing = reading->has_failed = true;
        return 0;
    }
    if (request->part != PROC_PART_COMMAND) {
        r = read_maps(scan, pid_fd, stat, reading);
    }
    if (r == 0 && request->part != PROC_PART_MAPPINGS) {
        read_command(scan, pid_fd, &request->commands, process);
    }
    return r;
}

/* Everything between the two readings of stat. */
static int read_process(struct proc_read *scan, const struct proc_request *request,
                        const struct guard *guard, struct proc_reading *reading)
{
    struct proc_stat before = {0};
    struct proc_stat after = {0};
    cleanup_(closep) int pid_fd = open_process(scan, request->pid);
    int r = pid_fd < 0 ? pid_fd : read_stat(scan, pid_fd, &before);
    if (r < 0 || is_dead(&before)) {
        return r == 0 || r == -ENOENT ? -ESRCH : r;
    }
    r = read_parts(scan, pid_fd, request, &before, guard, reading);
    if (r == 0) {
        r = read_stat(scan, pid_fd, &after);
    }
    if (r < 0) {
        return r == -ENOENT ? -ESRCH : r;
    }
    if (is_dead(&after) || after.start_time_ticks != before.start_time_ticks) {
        return -ESRCH;
    }
    reading->cut = reading->scan.threads_cut || scan->maps.cut;
    reading->scan.parent_pid = after.parent_pid;
    reading->scan.kernel_thread = after.kernel_thread;
    return after.stack_start == before.stack_start ? 0 : -EAGAIN;
}

static int add_pid(struct proc_read *scan, struct proc_reading *reading, int32_t pid)
{
    int r = grow(scan->pids, scan->pid_capacity, reading->pid_count + 1);
    if (r == 0) {
        scan->pids[reading->pid_count++] = pid;
    }
    return r;
}

static int read_pids(struct proc_read *scan, struct proc_reading *reading)
{
    DIR *folder = open_folder(scan->proc_fd, ".");
    if (folder == NULL) {
        return -errno;
    }
    int32_t pid = 0;
    int r = 0;
    while (r == 0 && !reading->cut && next_id(folder, &pid, &r)) {
        reading->cut = reading->pid_count >= PROC_READ_PIDS_MAX;
        if (!reading->cut) {
            r = add_pid(scan, reading, pid);
        }
    }
    (void)closedir(folder);
    return r;
}

static int keep_times(struct proc_read *scan, const struct thread_reading *times,
                      struct proc_reading *reading)
{
    if (grow(scan->times, scan->time_capacity, reading->time_count + 1) < 0) {
        return -ENOMEM;
    }
    scan->times[reading->time_count++] = *times;
    return 0;
}

/* Reads the times of a thread, by its folder below `task_fd`. */
static int add_times(struct proc_read *scan, int task_fd, int32_t tid, struct proc_reading *reading)
{
    char name[32];
    char text[96];
    (void)snprintf(name, sizeof name, "%" PRId32 "/schedstat", tid);
    cleanup_(closep) int fd = openat(task_fd, name, O_RDONLY | O_CLOEXEC);
    struct thread_reading times = {.tid = tid, .at_ns = clock_ns(CLOCK_BOOTTIME)};
    ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (size <= 0) { /* it has exited meanwhile, or this kernel counts nothing */
        reading->has_failed = reading->has_failed || (size < 0 && !is_gone(-errno));
        return 0;
    }
    text[size] = '\0';
    return proc_parse_times(text, &times) < 0 ? 0 : keep_times(scan, &times, reading);
}

/* Says that a process has more threads than are read. */
static int add_rest(struct proc_read *scan, struct proc_reading *reading)
{
    const struct thread_reading rest = {.tid = 0, .at_ns = clock_ns(CLOCK_BOOTTIME)};
    reading->cut = true;
    return keep_times(scan, &rest, reading);
}

/* Reads the times of a process's threads; a leader that is a zombie is none. */
static int read_process_times(struct proc_read *scan, int32_t pid, struct proc_reading *reading)
{
    struct proc_stat stat = {0};
    const size_t before = reading->time_count;
    cleanup_(closep) int pid_fd = open_process(scan, pid);
    int error = pid_fd < 0 ? pid_fd : read_stat(scan, pid_fd, &stat);
    DIR *folder = error < 0 ? NULL : open_folder(pid_fd, "task");
    if (folder == NULL) {
        reading->has_failed = reading->has_failed || !is_gone(error < 0 ? error : -errno);
        return 0;
    }
    int32_t tid = 0;
    int r = 0;
    while (r == 0 && next_id(folder, &tid, &error)) {
        if (tid == pid && (stat.state == 'Z' || stat.state == 'X')) {
            continue;
        }
        if (reading->time_count - before >= PROC_READ_THREADS_MAX) {
            r = add_rest(scan, reading);
            break;
        }
        r = add_times(scan, dirfd(folder), tid, reading);
    }
    (void)closedir(folder);
    reading->has_failed = reading->has_failed || (error < 0 && !is_gone(error));
    for (size_t i = before; i < reading->time_count; i++) {
        scan->times[i].pid = pid;
    }
    return r;
}

/* The kernel lists pids in their order. */
static int read_times(struct proc_read *scan, int32_t from_pid, struct proc_reading *reading)
{
    DIR *folder = open_folder(scan->proc_fd, ".");
    if (folder == NULL) {
        return -errno;
    }
    int32_t pid = 0;
    int r = 0;
    while (r == 0 && reading->next_pid == 0 && next_id(folder, &pid, &r)) {
        if (pid < from_pid) {
            continue;
        }
        if (reading->time_count >= PROC_READ_TIMES_FEW) {
            reading->next_pid = pid;
        } else {
            r = read_process_times(scan, pid, reading);
        }
    }
    (void)closedir(folder);
    return r;
}

/* One huge process must not leave its buffers behind. */
static void trim(struct proc_read *scan)
{
    if (scan->maps.capacity > BYTES_KEPT) {
        free(scan->maps.bytes);
        scan->maps = (struct text){0};
    }
    if (scan->mapping_capacity * sizeof *scan->mappings > BYTES_KEPT) {
        free(take_ptr(scan->mappings));
        scan->mapping_capacity = 0;
    }
    if (scan->thread_capacity * sizeof *scan->threads > BYTES_KEPT) {
        free(take_ptr(scan->threads));
        scan->thread_capacity = 0;
    }
    if (scan->time_capacity * sizeof *scan->times > BYTES_KEPT) {
        free(take_ptr(scan->times));
        scan->time_capacity = 0;
    }
    if (scan->pid_capacity * sizeof *scan->pids > BYTES_KEPT) {
        free(take_ptr(scan->pids));
        scan->pid_capacity = 0;
    }
}

static void *put(uint8_t **to, const void *bytes, size_t size_bytes)
{
    void *start = *to;
    if (size_bytes > 0) {
        memcpy(start, bytes, size_bytes);
    }
    *to += size_bytes;
    return start;
}

/* The whole of a reading that succeeded; arrays first, as they must be aligned, then texts. */
static struct proc_reading *pack(const struct proc_read *scan, const struct proc_reading *reading)
{
    const struct process_scan *process = &reading->scan;
    const size_t mapping_bytes = process->mapping_count * sizeof *process->mappings;
    const size_t thread_bytes = process->thread_count * sizeof *process->threads;
    const size_t pid_bytes = reading->pid_count * sizeof *reading->pids;
    const size_t time_bytes = reading->time_count * sizeof *reading->times;
    size_t bytes = sizeof *reading + mapping_bytes + thread_bytes + pid_bytes + time_bytes;
    bytes += scan->cgroups.size + 1 + process->command_bytes;
    for (size_t i = 0; i < process->mapping_count; i++) {
        bytes += strlen(scan->mappings[i].path) + 1;
    }
    struct proc_reading *packed = malloc(bytes);
    if (packed == NULL) {
        return NULL;
    }
    uint8_t *to = (uint8_t *)(packed + 1);
    *packed = *reading;
    packed->bytes = bytes;
    struct mapping_description *mappings = put(&to, scan->mappings, mapping_bytes);
    packed->scan.mappings = mappings;
    packed->times = put(&to, scan->times, time_bytes);
    packed->scan.threads = put(&to, scan->threads, thread_bytes);
    packed->pids = put(&to, scan->pids, pid_bytes);
    packed->cgroups = put(&to, scan->cgroups.bytes, scan->cgroups.size);
    *to++ = '\0';
    packed->scan.command = put(&to, process->command, process->command_bytes);
    for (size_t i = 0; i < process->mapping_count; i++) {
        mappings[i].path = put(&to, mappings[i].path, strlen(mappings[i].path) + 1);
    }
    return packed;
}

struct proc_reading *proc_read_read(struct proc_read *scan, const struct proc_request *request,
                                    proc_read_guard_fn guard, void *userdata)
{
    struct proc_reading reading = {
        .part = request->part,
        .urgency = request->urgency,
        .scan = {.pid = request->pid, .begin_ns = clock_ns(CLOCK_BOOTTIME)},
    };
    spent_memory_free(&spent);
    scan->maps.cut = false;
    scan->cgroups.size = 0;
    int r = -ESRCH;
    if (request->part == PROC_PART_TIMES) {
        r = read_times(scan, request->pid, &reading);
    } else if (request->part == PROC_PART_PIDS) {
        r = read_pids(scan, &reading);
    } else if (request->pid > 0) {
        r = read_process(scan, request, &(struct guard){guard, userdata}, &reading);
    }
    reading.scan.end_ns = clock_ns(CLOCK_BOOTTIME);
    struct proc_reading *packed = NULL;
    if (r == 0) {
        packed = pack(scan, &reading);
    } else {
        packed = proc_reading_failed(request->part, request->pid, request->urgency);
    }
    if (packed != NULL) {
        packed->error = r;
        packed->scan.begin_ns = reading.scan.begin_ns;
    }
    trim(scan);
    return packed;
}

struct proc_reading *proc_reading_failed(enum proc_part part, int32_t pid, int urgency)
{
    struct proc_reading *reading = malloc(sizeof *reading);
    const uint64_t time_ns = clock_ns(CLOCK_BOOTTIME);
    if (reading != NULL) {
        *reading = (struct proc_reading){
            .bytes = sizeof *reading,
            .part = part,
            .urgency = urgency,
            .error = -ENOMEM,
            .cgroups = "",
            .scan = {.pid = pid, .begin_ns = time_ns, .end_ns = time_ns},
        };
    }
    return reading;
}

void proc_reading_free(struct proc_reading *reading)
{
    spent_memory_add(&spent, reading);
}
