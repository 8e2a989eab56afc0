/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads /proc/PID/{stat,task/TID/comm,maps,status,cgroup} into the process table. A process's
 * folder is opened once and all is read beneath it, so nothing of another process with the same pid
 * can slip in; its stat is read before and after, so a reading that an exec cuts in two shows. One
 * open maps file belongs to one address space and never mixes two.
 *
 * Every text has a bound; a longer one is cut at its last whole line. What the table makes of a
 * scan that records contradict is the table's affair.
 */
#include "proc_scan.h"

#include "cleanup.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define TEXT_BYTES_MIN ((size_t)4096)
#define TEXT_BYTES_MAX ((size_t)16 << 20)
#define BYTES_KEPT     ((size_t)256 << 10) /* a larger buffer does not outlive its process */
#define NS_PER_SECOND  UINT64_C(1000000000)
#define PF_KTHREAD     0x00200000
#define DELETED_SUFFIX " (deleted)"

struct text {
    char *bytes; /* size, and a NUL; owned */
    size_t size;
    size_t capacity;
};

struct proc_scan {
    int proc_fd;
    const struct filter *filter; /* borrowed; NULL: nobody's uid or cgroup matters */
    DIR *walk;                   /* NULL between walks */
    uint64_t walk_begin_ns;
    uint64_t tick_ns;
    struct text line;
    struct text maps;
    struct scanned_thread *threads;
    size_t thread_capacity;
    struct mapping_description *mappings; /* their paths point into maps */
    size_t mapping_capacity;
};

static bool parse_hex(char **cursor, uint64_t *ret)
{
    uint64_t value = 0;
    size_t digit_count = 0;
    for (char *at = *cursor;; at++, digit_count++) {
        unsigned digit;
        if (*at >= '0' && *at <= '9') {
            digit = (unsigned)(*at - '0');
        } else if (*at >= 'a' && *at <= 'f') {
            digit = (unsigned)(*at - 'a') + 10;
        } else {
            *cursor = at;
            break;
        }
        value = value << 4 | digit;
    }
    *ret = value;
    return digit_count > 0 && digit_count <= 16;
}

static bool parse_decimal(const char **cursor, uint64_t *ret)
{
    uint64_t value = 0;
    const char *at = *cursor;
    for (; *at >= '0' && *at <= '9'; at++) {
        if (__builtin_mul_overflow(value, UINT64_C(10), &value) ||
            __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value)) {
            return false;
        }
    }
    bool any = at != *cursor;
    *cursor = at;
    *ret = value;
    return any;
}

static bool skip(char **cursor, char expected)
{
    bool found = **cursor == expected;
    *cursor += found ? 1 : 0;
    return found;
}

/* "START-END PERM OFFSET MAJOR:MINOR INODE"; a missing flag is '-'. */
static bool parse_maps_fields(char **cursor, struct mapping_description *description,
                              bool *ret_executable)
{
    uint64_t major = 0;
    uint64_t minor = 0;
    if (!parse_hex(cursor, &description->start) || !skip(cursor, '-') ||
        !parse_hex(cursor, &description->end) || !skip(cursor, ' ') ||
        strspn(*cursor, "rwxps-") != 4) {
        return false;
    }
    *ret_executable = (*cursor)[2] == 'x';
    *cursor += 4;
    if (!skip(cursor, ' ') || !parse_hex(cursor, &description->file_offset) || !skip(cursor, ' ') ||
        !parse_hex(cursor, &major) || !skip(cursor, ':') || !parse_hex(cursor, &minor) ||
        !skip(cursor, ' ')) {
        return false;
    }
    const char *inode = *cursor;
    if (!parse_decimal(&inode, &description->inode)) {
        return false;
    }
    *cursor += inode - *cursor;
    description->device_major = (uint32_t)major;
    description->device_minor = (uint32_t)minor;
    return major <= UINT32_MAX && minor <= UINT32_MAX && (**cursor == ' ' || **cursor == '\0') &&
           description->start < description->end;
}

/* The kernel writes a newline in a path as \012, and escapes nothing else. */
static void undo_escapes(char *path)
{
    char *to = path;
    for (const char *from = path; *from != '\0'; to++) {
        bool newline = strncmp(from, "\\012", 4) == 0;
        *to = newline ? '\n' : *from;
        from += newline ? 4 : 1;
    }
    *to = '\0';
}

int proc_scan_parse_maps_line(char *line, struct mapping_description *ret)
{
    struct mapping_description description = {0};
    char *cursor = line;
    bool executable = false;
    if (!parse_maps_fields(&cursor, &description, &executable)) {
        return -EBADMSG;
    }
    if (!executable) {
        return 0;
    }
    cursor += strspn(cursor, " ");
    const size_t suffix_bytes = sizeof DELETED_SUFFIX - 1;
    size_t path_bytes = strlen(cursor);
    if (path_bytes >= suffix_bytes &&
        strcmp(cursor + path_bytes - suffix_bytes, DELETED_SUFFIX) == 0) {
        cursor[path_bytes - suffix_bytes] = '\0';
    }
    undo_escapes(cursor);
    description.path = cursor;
    *ret = description;
    return 1;
}

int proc_scan_parse_stat(const char *text, struct proc_stat *ret)
{
    enum {
        STATE = 3,
        PARENT = 4,
        FLAGS = 9,
        THREADS = 20,
        START_TIME = 22,
        STACK = 28
    };
    /* Nothing after the comm holds a parenthesis. */
    const char *cursor = strrchr(text, ')');
    if (cursor == NULL || cursor[1] != ' ' || cursor[2] <= ' ') {
        return -EBADMSG;
    }
    uint64_t fields[STACK + 1] = {0};
    const char state = cursor[2];
    cursor += 3;
    for (size_t i = STATE + 1; i <= STACK; i++) {
        if (*cursor != ' ') {
            return -EBADMSG;
        }
        cursor += cursor[1] == '-' ? 2 : 1; /* none of those that we take is negative */
        if (!parse_decimal(&cursor, &fields[i])) {
            return -EBADMSG;
        }
    }
    if (fields[PARENT] > INT32_MAX) {
        return -EBADMSG;
    }
    *ret = (struct proc_stat){
        .state = state,
        .parent_pid = (int32_t)fields[PARENT],
        .kernel_thread = (fields[FLAGS] & PF_KTHREAD) != 0,
        .thread_count = fields[THREADS],
        .start_time_ticks = fields[START_TIME],
        .stack_start = fields[STACK],
    };
    return 0;
}

int proc_scan_parse_uid(const char *text, uint32_t *ret)
{
    /* Newlines in the name, which is the first line, are escaped. */
    const char *cursor = strstr(text, "\nUid:\t");
    uint64_t real = 0;
    uint64_t effective = 0;
    if (cursor == NULL) {
        return -EBADMSG;
    }
    cursor += strlen("\nUid:\t");
    if (!parse_decimal(&cursor, &real) || *cursor++ != '\t' ||
        !parse_decimal(&cursor, &effective) || *cursor != '\t' || effective > UINT32_MAX) {
        return -EBADMSG;
    }
    *ret = (uint32_t)effective;
    return 0;
}

static uint64_t now_ns(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

struct proc_scan *proc_scan_new(void)
{
    struct proc_scan *scan = calloc(1, sizeof *scan);
    if (scan == NULL) {
        return NULL;
    }
    long ticks_per_second = sysconf(_SC_CLK_TCK);
    scan->proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (scan->proc_fd < 0 || ticks_per_second <= 0) {
        return proc_scan_free(scan);
    }
    scan->tick_ns = NS_PER_SECOND / (uint64_t)ticks_per_second;
    return scan;
}

static void end_walk(struct proc_scan *scan)
{
    if (scan->walk != NULL) {
        (void)closedir(take_ptr(scan->walk));
    }
}

struct proc_scan *proc_scan_free(struct proc_scan *scan)
{
    if (scan != NULL) {
        end_walk(scan);
        scan->proc_fd = close_fd(scan->proc_fd);
        free(scan->line.bytes);
        free(scan->maps.bytes);
        free(scan->threads);
        free(scan->mappings);
        free(scan);
    }
    return NULL;
}

/* Room for at least one byte more and a NUL, unless the bound is reached. */
static int grow_text(struct text *text)
{
    if (text->size + 1 < text->capacity) {
        return 0;
    }
    size_t capacity = text->capacity == 0 ? TEXT_BYTES_MIN : text->capacity * 2;
    if (capacity > TEXT_BYTES_MAX) {
        return -E2BIG;
    }
    char *bytes = realloc(text->bytes, capacity);
    if (bytes == NULL) {
        return -ENOMEM;
    }
    text->bytes = bytes;
    text->capacity = capacity;
    return 0;
}

/* Reads a whole file; what is beyond the bound is cut away, with the line that it cuts in two. */
static int read_text(int folder_fd, const char *name, struct text *text)
{
    text->size = 0;
    cleanup_(closep) int fd = openat(folder_fd, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    for (;;) {
        int r = grow_text(text);
        if (r == -E2BIG) {
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

/* The array with room for one more item, which may have moved; NULL, and the old one stays, when
 * there is no memory. */
static void *with_room(void *array, size_t count, size_t *capacity, size_t item_bytes)
{
    if (count < *capacity) {
        return array;
    }
    size_t grown_capacity = *capacity == 0 ? 64 : *capacity * 2;
    void *grown = reallocarray(array, grown_capacity, item_bytes);
    if (grown != NULL) {
        *capacity = grown_capacity;
    }
    return grown;
}

/* Whether what hangs on the pid is gone for the rest of the world. */
static bool is_dead(const struct proc_stat *stat)
{
    return stat->state == 'X' || stat->state == 'x' ||
           (stat->state == 'Z' && stat->thread_count <= 1);
}

static int read_stat(struct proc_scan *scan, int pid_fd, struct proc_stat *ret)
{
    int r = read_text(pid_fd, "stat", &scan->line);
    if (r < 0) {
        return r;
    }
    return scan->line.size == 0 ? -ESRCH : proc_scan_parse_stat(scan->line.bytes, ret);
}

static int32_t parse_id(const char *name)
{
    uint64_t id = 0;
    bool whole = parse_decimal(&name, &id) && *name == '\0';
    return whole && id > 0 && id <= INT32_MAX ? (int32_t)id : -1;
}

static int add_thread(struct proc_scan *scan, int pid_fd, int32_t tid, struct process_scan *reading)
{
    char name[32];
    (void)snprintf(name, sizeof name, "task/%" PRId32 "/comm", tid);
    if (read_text(pid_fd, name, &scan->line) < 0) {
        return 0; /* it has exited meanwhile */
    }
    struct scanned_thread *threads = with_room(scan->threads, reading->thread_count,
                                               &scan->thread_capacity, sizeof *scan->threads);
    if (threads == NULL) {
        return -ENOMEM;
    }
    scan->threads = threads;
    struct scanned_thread *thread = &threads[reading->thread_count];
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

/* Reads the names of all threads; of a leader that is a zombie only the others live. */
static int read_threads(struct proc_scan *scan, int pid_fd, const struct proc_stat *stat,
                        struct process_scan *reading)
{
    DIR *folder = open_folder(pid_fd, "task");
    if (folder == NULL) {
        return -errno;
    }
    int r = 0;
    const struct dirent *entry;
    while (r == 0 && reading->thread_count < PROCESS_TABLE_THREADS_MAX &&
           (entry = readdir(folder)) != NULL) {
        int32_t tid = parse_id(entry->d_name);
        if (tid > 0 && !(stat->state == 'Z' && tid == reading->pid)) {
            r = add_thread(scan, pid_fd, tid, reading);
        }
    }
    (void)closedir(folder);
    reading->threads = scan->threads;
    return r;
}

static int parse_maps(struct proc_scan *scan, struct process_scan *reading)
{
    char *line = scan->maps.bytes;
    while (*line != '\0') {
        char *line_end = strchrnul(line, '\n');
        char *next = *line_end == '\0' ? line_end : line_end + 1;
        *line_end = '\0';
        struct mapping_description *mappings =
            with_room(scan->mappings, reading->mapping_count, &scan->mapping_capacity,
                      sizeof *scan->mappings);
        if (mappings == NULL) {
            return -ENOMEM;
        }
        scan->mappings = mappings;
        int r = proc_scan_parse_maps_line(line, &mappings[reading->mapping_count]);
        if (r < 0) {
            return r;
        }
        reading->mapping_count += (size_t)r;
        line = next;
    }
    reading->mappings = scan->mappings;
    return 0;
}

/* A zombie leader has no memory of its own left; the other threads still show it. */
static int read_maps(struct proc_scan *scan, int pid_fd, const struct proc_stat *stat,
                     struct process_scan *reading)
{
    char name[32] = "maps";
    if (stat->state == 'Z' && reading->thread_count > 0) {
        (void)snprintf(name, sizeof name, "task/%" PRId32 "/maps", reading->threads[0].tid);
    }
    int r = read_text(pid_fd, name, &scan->maps);
    if (r == -ENOMEM) {
        return r;
    }
    /* Otherwise we may not read it, or it has no memory: a kernel thread, or one that is going. */
    return r < 0 ? 0 : parse_maps(scan, reading);
}

/* Whether the uid or a cgroup is a target's. Without the text of one it is not by that one. */
static int read_identity(struct proc_scan *scan, int pid_fd, bool *ret_matches)
{
    uint32_t uid = 0;
    int r = read_text(pid_fd, "status", &scan->line);
    if (r == 0) {
        r = scan->line.size == 0 ? -ESRCH : proc_scan_parse_uid(scan->line.bytes, &uid);
    }
    if (r < 0) {
        return r;
    }
    bool has_cgroups = read_text(pid_fd, "cgroup", &scan->line) == 0;
    *ret_matches = filter_matches_identity(scan->filter, uid, has_cgroups ? scan->line.bytes : "");
    return 0;
}

void proc_scan_judge_by(struct proc_scan *scan, const struct filter *filter)
{
    scan->filter = filter_wants_identity(filter) ? filter : NULL;
}

static int open_process(const struct proc_scan *scan, int32_t pid)
{
    char name[16];
    (void)snprintf(name, sizeof name, "%" PRId32, pid);
    int fd = openat(scan->proc_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

void proc_scan_identity(struct proc_scan *scan, struct process *process, uint64_t time_ns)
{
    cleanup_(closep) int pid_fd = scan->filter == NULL ? -1 : open_process(scan, process->pid);
    if (pid_fd >= 0) {
        (void)read_identity(scan, pid_fd, &process->identity_matches);
    }
    process->identity_ns = time_ns;
}

/* Everything between the two readings of stat. */
static int read_process(struct proc_scan *scan, int pid_fd, struct process_scan *reading)
{
    struct proc_stat before = {0};
    struct proc_stat after = {0};
    int r = read_stat(scan, pid_fd, &before);
    if (r < 0 || is_dead(&before)) {
        return r < 0 ? r : -ESRCH;
    }
    r = read_threads(scan, pid_fd, &before, reading);
    if (r == 0 && !before.kernel_thread) {
        r = read_maps(scan, pid_fd, &before, reading);
    }
    if (r == 0 && scan->filter != NULL) {
        reading->identity_read = read_identity(scan, pid_fd, &reading->identity_matches) == 0;
    }
    if (r == 0) {
        r = read_stat(scan, pid_fd, &after);
    }
    if (r < 0) {
        return r;
    }
    if (is_dead(&after) || after.start_time_ticks != before.start_time_ticks) {
        return -ESRCH;
    }
    reading->parent_pid = after.parent_pid;
    reading->kernel_thread = after.kernel_thread;
    if (__builtin_mul_overflow(after.start_time_ticks, scan->tick_ns, &reading->start_time_ns)) {
        return -EBADMSG;
    }
    return after.stack_start == before.stack_start ? 0 : -EAGAIN;
}

/* One huge process must not leave its buffers behind. */
static void trim(struct proc_scan *scan)
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
}

int proc_scan_read(struct proc_scan *scan, int32_t pid, struct process_scan *ret)
{
    trim(scan);
    if (pid <= 0) {
        return -ESRCH;
    }
    struct process_scan reading = {.pid = pid, .begin_ns = now_ns()};
    cleanup_(closep) int pid_fd = open_process(scan, pid);
    int r = pid_fd < 0 ? pid_fd : read_process(scan, pid_fd, &reading);
    if (r == 0) {
        reading.end_ns = now_ns();
        *ret = reading;
    }
    return r == -ENOENT ? -ESRCH : r;
}

int proc_scan_process(struct proc_scan *scan, struct process_table *table, int32_t pid)
{
    struct process_scan reading;
    int r = proc_scan_read(scan, pid, &reading);
    if (r == -ESRCH) {
        process_table_gone(table, pid, now_ns());
    } else if (r == 0) {
        process_table_scan(table, &reading);
    }
    trim(scan);
    return r;
}

int proc_scan_walk(struct proc_scan *scan, struct process_table *table, uint64_t budget_ns)
{
    const uint64_t begin_ns = now_ns();
    if (scan->walk == NULL) {
        scan->walk = open_folder(scan->proc_fd, ".");
        if (scan->walk == NULL) {
            return -errno;
        }
        scan->walk_begin_ns = begin_ns;
        process_table_walk_begin(table);
    }
    int r = 0;
    while (r == 0) {
        errno = 0;
        const struct dirent *entry = readdir(scan->walk);
        if (entry == NULL) {
            r = -errno;
            if (r == 0) {
                process_table_walk_end(table, scan->walk_begin_ns, now_ns());
            }
            end_walk(scan);
            break;
        }
        int32_t pid = parse_id(entry->d_name);
        process_table_walk_meet(table, pid);
        if (pid > 0 && proc_scan_process(scan, table, pid) == -ENOMEM) {
            r = -ENOMEM;
        } else if (pid > 0 && now_ns() - begin_ns >= budget_ns) {
            r = 1;
        }
    }
    return r;
}
