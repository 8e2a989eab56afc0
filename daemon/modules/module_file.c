/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The ways to the file of a mapping, best first: /proc/PID/map_files, which leads to the inode
 * itself whatever has become of its name; the path inside the process's own root; once the process
 * is gone, the path inside its parent's root, then inside init's and ours: a service may be shown
 * less of the machine's files than there is.
 *
 * Every way ends in a descriptor that grants nothing (O_PATH). Only when that is known to be a
 * regular file is it opened for reading, through itself, so that no pipe, device or directory is
 * ever opened and nothing can be exchanged in between. Paths are resolved inside the root that they
 * belong to, whatever symbolic links say.
 *
 * Whatever the way, the file counts only if it is the inode that the query names, and was neither
 * made nor written since it was mapped. The process is held by its folder in /proc, and is the one
 * meant only if it began when that one did.
 *
 * The owner of a file is taken for its author only where the machine's own root shows the same file
 * under the same path, to a process that has that root. In a container, or on a filesystem that a
 * user has mounted, the owner is what the container's root or that user says.
 */
#include "module_search.h"

#include "cleanup.h"
#include "clock.h"
#include "extremes.h"
#include "kernel_filesystem.h"
#include "mount_table.h"
#include "proc_map.h"
#include "proc_parse.h"
#include "seals.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#define MAPS_BYTES_MAX     ((size_t)8 << 20) /* 65,530 lines of usual length */
#define INIT_PID           1
#define MEMFD_PREFIX       "/memfd:"
#define THREADS_TRIED_MAX  64
#define START_TOLERANCE_NS UINT64_C(50000000) /* a fork's record comes after the fork */
/* A file's time is that of the clock's last tick, which comes late where a machine's CPUs are taken
 * away: by 15 ms on a loaded virtual machine. */
#define FILE_TIME_LATE_NS UINT64_C(50000000)

/* Whether that step may be taken. */
bool module_search_may_touch(const struct module_place *place, void *userdata)
{
    struct module_search *search = userdata;
    const struct module_guard *guard = search->guard;
    const struct module_query *query = search->query;
    if (query != NULL && place->device == makedev(query->device_major, query->device_minor)) {
        search->met_mount_id = place->mount_id;
    }
    if (guard->is_careful && place->device != search->local_device) {
        if (!mount_table_is_local(MOUNTS_OF_INIT, place->mount_id, place->device)) {
            return false;
        }
        search->local_device = place->device;
    }
    return guard->place(place, guard->userdata);
}

static bool has_suffix(const char *text, const char *suffix)
{
    size_t text_bytes = strlen(text);
    size_t suffix_bytes = strlen(suffix);
    return text_bytes >= suffix_bytes && strcmp(text + text_bytes - suffix_bytes, suffix) == 0;
}

/* Whether the path may still lead to the file; else only the mapping does. */
static bool is_reachable(const char *path)
{
    return !has_suffix(path, " (deleted)") &&
           strncmp(path, MEMFD_PREFIX, strlen(MEMFD_PREFIX)) != 0;
}

static bool has_parent_component(const char *path)
{
    return strstr(path, "/../") != NULL || has_suffix(path, "/..");
}

/* EBUSY: the guard said no, for as long as a thread hangs there. */
enum module_failure module_search_failure_of(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM || error == EBUSY
               ? MODULE_FAILURE_LIMIT
               : MODULE_FAILURE_NOT_FOUND;
}

/* The worse news of two ways: the one that says most about what is there. */
static enum module_failure worse(enum module_failure a, enum module_failure b)
{
    if (a == MODULE_FAILURE_IDENTITY || b == MODULE_FAILURE_IDENTITY) {
        return MODULE_FAILURE_IDENTITY;
    }
    return a == MODULE_FAILURE_NOT_FOUND ? b : a;
}

/* Finds the mapping that holds `address` in the text of /proc/PID/maps (taken), for kernels that
 * cannot be asked for one mapping. A user can make lines long, by their paths: so the path is left
 * out, and at most MAPS_BYTES_MAX are read. */
static bool find_maps_line(int maps_fd, uint64_t address, struct mapping_description *ret)
{
    FILE *maps = fdopen(maps_fd, "re");
    if (maps == NULL) {
        close_fd(maps_fd);
        return false;
    }
    char text[512];
    size_t read_bytes = 0;
    bool begins = true; /* a line */
    bool found = false;
    while (!found && read_bytes < MAPS_BYTES_MAX && fgets(text, sizeof text, maps) != NULL) {
        struct mapping_description line;
        size_t bytes = strcspn(text, "\n");
        bool is_line = begins;
        begins = text[bytes] == '\n';
        read_bytes += bytes + 1;
        text[bytes] = '\0';
        if (!is_line) {
            continue;
        }
        if (proc_parse_maps_line(text, &line) < 0 || line.start > address) {
            break;
        }
        if (address < line.end) {
            *ret = line;
            ret->path = NULL;
            found = true;
        }
    }
    (void)fclose(maps);
    return found;
}

/* The mapping that holds `address` now, but for its path. */
static bool find_mapping(int process_fd, uint64_t address, struct mapping_description *ret)
{
    cleanup_(closep) int maps_fd = openat(process_fd, "maps", O_RDONLY | O_CLOEXEC);
    int r = maps_fd < 0 ? maps_fd : proc_map_at(maps_fd, address, ret);
    if (maps_fd >= 0 && r == -ENOTTY) {
        return find_maps_line(take_fd(maps_fd), address, ret);
    }
    return r == 0;
}

static bool is_line_of(const struct mapping_description *line, const struct module_query *query)
{
    return line->device_major == query->device_major && line->device_minor == query->device_minor &&
           line->inode == query->inode && query->inode != 0;
}

static int open_map_file(int process_fd, uint64_t start, uint64_t end)
{
    char path[64];
    (void)snprintf(path, sizeof path, "map_files/%" PRIx64 "-%" PRIx64, start, end);
    return openat(process_fd, path, O_PATH | O_CLOEXEC);
}

/* The inode of the mapping itself, or -1. */
static int open_mapping(const struct module_search *search)
{
    struct mapping_description line;
    return find_mapping(search->process_fd, search->query->start, &line) &&
                   is_line_of(&line, search->query)
               ? open_map_file(search->process_fd, line.start, line.end)
               : -1;
}

static int open_process(int32_t pid)
{
    char path[32];
    (void)snprintf(path, sizeof path, "/proc/%" PRId32, pid);
    return pid > 0 ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
}

/* Whether the kernel shows a mapping of this file on that device. stat() tells another one of each
 * subvolume of a btrfs, so the file is mapped here, and never touched. Other filesystems are not
 * asked: to map a file of theirs may wait for a user, with the lock that all our memory needs. */
static bool is_mapped_on(uint64_t device, int fd, const struct statfs *filesystem)
{
    struct mapping_description line;
    cleanup_(closep) int process_fd = open_process(getpid());
    size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    if (filesystem->f_type != BTRFS_SUPER_MAGIC || process_fd < 0) {
        return false;
    }
    void *mapping = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (mapping == MAP_FAILED) {
        return false;
    }
    bool found = find_mapping(process_fd, (uint64_t)(uintptr_t)mapping, &line);
    (void)munmap(mapping, bytes);
    return found && makedev(line.device_major, line.device_minor) == device;
}

/* Whether a folder on the way to the file showed the query's device, on the same mount: those of an
 * overlay do, whatever its files show. */
static bool was_device_met(const struct module_search *search, int fd)
{
    struct module_place place;
    mode_t mode = 0;
    return search->met_mount_id != 0 && module_path_place(fd, &place, &mode) == 0 &&
           place.mount_id == search->met_mount_id;
}

/* Whether what has been opened is the inode that was mapped. */
static bool is_mapped_inode(const struct module_search *search, int fd,
                            const struct module_file *file, const struct statfs *filesystem)
{
    const struct module_query *query = search->query;
    uint64_t device = makedev(query->device_major, query->device_minor);
    if (file->identity.inode != query->inode ||
        (query->inode_generation != 0 && file->identity.generation != 0 &&
         (uint32_t)query->inode_generation != file->identity.generation)) {
        return false;
    }
    /* An overlay's mappings are, in some kernels, those of the file beneath: its inode number, but
     * the other filesystem's device. A number alone is soon found again, so another process than
     * the one that mapped the file is not believed, unless the overlay is the machine's own. */
    bool is_overlay = filesystem->f_type == OVERLAYFS_SUPER_MAGIC;
    return file->identity.device == device || is_mapped_on(device, fd, filesystem) ||
           (is_overlay && (search->is_own || file->is_local || was_device_met(search, fd)));
}

static uint64_t stamp_ns(const struct statx_timestamp *stamp)
{
    uint64_t ns = 0;
    bool fits = stamp->tv_sec >= 0 &&
                !__builtin_mul_overflow((uint64_t)stamp->tv_sec, NS_PER_S, &ns) &&
                !__builtin_add_overflow(ns, stamp->tv_nsec, &ns);
    return fits ? ns : UINT64_MAX;
}

enum file_age {
    FILE_AGE_OLDER,   /* than the mapping, or nothing is known */
    FILE_AGE_YOUNGER, /* made or written after it was mapped */
    FILE_AGE_UNCLEAR, /* so short before by its time that it can have been written after */
};

/*
 * What was made or written after it was mapped had another content then, or is another file under
 * the inode's number. The times of a local filesystem and of an overlay are the machine's own. A
 * time in the future tells nothing: the clock was set since, or a program chose it. The time of a
 * write can be set back, as copying programs do, and then only the time of change tells; that is
 * also of a new name, or other rights, which seldom come in the moment from the mapping until here.
 * But for a removed name it tells nothing: a file that has none any more was removed since, unless
 * it never had one.
 */
static enum file_age find_age(const struct module_query *query, int fd,
                              const struct module_file *file, const struct statfs *filesystem)
{
    struct statx known;
    uint64_t boot_ns = clock_ns(CLOCK_BOOTTIME);
    uint64_t real_ns = clock_ns(CLOCK_REALTIME);
    bool has_times = file->is_local || filesystem->f_type == OVERLAYFS_SUPER_MAGIC;
    if (!has_times || query->mapped_ns == 0 || query->mapped_ns > boot_ns ||
        statx(fd, "", AT_EMPTY_PATH, STATX_MTIME | STATX_CTIME | STATX_NLINK | STATX_BTIME,
              &known) < 0) {
        return FILE_AGE_OLDER;
    }
    bool had_name = strncmp(query->path, MEMFD_PREFIX, strlen(MEMFD_PREFIX)) != 0;
    bool is_removed = known.stx_nlink == 0 && had_name;
    uint64_t mapped_ns = real_ns - min_u64(real_ns, boot_ns - query->mapped_ns);
    uint64_t written_ns = stamp_ns(is_removed ? &known.stx_mtime : &known.stx_ctime);
    uint64_t made_ns = (known.stx_mask & STATX_BTIME) != 0 ? stamp_ns(&known.stx_btime) : 0;
    if ((written_ns > mapped_ns && written_ns <= real_ns) ||
        (made_ns > mapped_ns && made_ns <= real_ns)) {
        return FILE_AGE_YOUNGER;
    }
    return written_ns <= mapped_ns && mapped_ns - written_ns < FILE_TIME_LATE_NS ? FILE_AGE_UNCLEAR
                                                                                 : FILE_AGE_OLDER;
}

/* Init's folder, where we may look at its root, else our own: a service may be shown less of the
 * machine's files than there is, and all of it as mounted without set-user-id. */
int module_search_machine_root(int *ret_process_fd)
{
    cleanup_(closep) int init_fd = open_process(INIT_PID);
    int fd = init_fd < 0 ? -1 : openat(init_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
    *ret_process_fd = fd < 0 ? open_process(getpid()) : take_fd(init_fd);
    return fd < 0 ? open("/", O_PATH | O_DIRECTORY | O_CLOEXEC) : fd;
}

/* The file's owner, if no other user can have written it. Unknown where others may write, and on a
 * filesystem that a user may have brought along: it is mounted without set-user-id for the same
 * reason. */
static uid_t author_of(const struct stat *status, const struct statfs *filesystem)
{
    bool shared = (status->st_mode & (S_IWGRP | S_IWOTH)) != 0;
    bool foreign = (filesystem->f_flags & ST_NOSUID) != 0;
    return shared || foreign ? MODULE_AUTHOR_UNKNOWN : status->st_uid;
}

/* By what the kernel knows without asking a filesystem: any of the two may hang. */
static bool is_same_inode(int a_fd, int b_fd)
{
    struct module_place a;
    struct module_place b;
    mode_t mode = 0;
    return module_path_place(a_fd, &a, &mode) == 0 && module_path_place(b_fd, &b, &mode) == 0 &&
           a.device == b.device && a.inode == b.inode && a.inode != 0;
}

/* A way through other filesystems is at its end: what follows is a step on that of `fd` (borrowed)
 * again, and what hangs then hangs there. */
static void return_to(struct module_search *search, int fd)
{
    struct module_place place;
    mode_t mode = 0;
    if (module_path_place(fd, &place, &mode) == 0) {
        (void)module_search_may_touch(&place, search);
    }
}

/*
 * The author of the file that `fd` (borrowed) stands for, and that a process with the root of
 * `search->process_fd` calls `path`. The flags of mounts are those in the machine's root: a service
 * has mounts of its own. The two roots are compared too, since a container can make a path of its
 * own that equals one of the machine's.
 */
static uid_t find_author(const struct module_search *search, int fd, const char *path)
{
    struct statfs filesystem;
    struct stat status;
    cleanup_(closep) int root_fd =
        openat(search->process_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
    cleanup_(closep) int process_fd = -1;
    cleanup_(closep) int machine_fd = module_search_machine_root(&process_fd);
    struct module_search machine = {.guard = search->guard, .process_fd = process_fd};
    if (root_fd < 0 || machine_fd < 0 || !is_same_inode(root_fd, machine_fd)) {
        return MODULE_AUTHOR_UNKNOWN;
    }
    cleanup_(closep) int shown_fd =
        module_path_open(machine_fd, path, module_search_may_touch, &machine);
    return shown_fd >= 0 && is_same_inode(shown_fd, fd) && fstat(shown_fd, &status) == 0 &&
                   fstatfs(shown_fd, &filesystem) == 0
               ? author_of(&status, &filesystem)
               : MODULE_AUTHOR_UNKNOWN;
}

uid_t module_search_author(struct module_search *search, int fd, const char *path)
{
    uid_t author = find_author(search, fd, path);
    return_to(search, fd);
    return author;
}

/* The kernel's number for the disk that a filesystem is on. A loop device has another one for each
 * image, and a port for each stick, though their device numbers are the same. */
static uint64_t disk_sequence(uint64_t device)
{
    static const char *const folders[] = {"", "/.."}; /* a disk's, and that above a partition's */
    uint64_t sequence = 0;
    for (size_t i = 0; sequence == 0 && major(device) != 0 && i < 2; i++) {
        char path[64];
        char text[24];
        (void)snprintf(path, sizeof path, "/sys/dev/block/%u:%u%s/diskseq", major(device),
                       minor(device), folders[i]);
        cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t bytes = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
        text[bytes > 0 ? bytes : 0] = '\0';
        sequence = strtoull(text, NULL, 10);
    }
    return sequence;
}

/* Whether a user may choose all that a file is known by: as the server of FUSE, which an overlay
 * may hide, or as the author of an image, which is mounted without set-user-id for that. In memory,
 * a file's time of change is the kernel's. */
static bool is_forgeable(const struct module_file *file, const struct statfs *filesystem)
{
    bool is_image = (filesystem->f_flags & ST_NOSUID) != 0 &&
                    (major(file->identity.device) != 0 || filesystem->f_type == BTRFS_SUPER_MAGIC);
    bool is_served = !file->is_local && (filesystem->f_type == FUSE_SUPER_MAGIC ||
                                         filesystem->f_type == OVERLAYFS_SUPER_MAGIC);
    return is_image || is_served;
}

/* Whether a place can be that of the mapping; is_mapped_inode() says whether it is. */
static bool may_be_mapped(const struct module_query *query, const struct module_place *place,
                          const struct statfs *filesystem)
{
    return (place->inode == query->inode || place->inode == 0) &&
           (place->device == makedev(query->device_major, query->device_minor) ||
            filesystem->f_type == OVERLAYFS_SUPER_MAGIC || filesystem->f_type == BTRFS_SUPER_MAGIC);
}

enum module_failure module_search_open_regular(struct module_search *search, int path_fd,
                                               const struct module_query *mapped,
                                               struct module_file *ret,
                                               struct statfs *ret_filesystem)
{
    struct module_place place;
    mode_t mode = 0;
    int r = module_path_place(path_fd, &place, &mode);
    if (r < 0) {
        return module_search_failure_of(-r);
    }
    if (!S_ISREG(mode)) {
        return MODULE_FAILURE_NOT_FILE;
    }
    if (!module_search_may_touch(&place, search)) {
        return MODULE_FAILURE_LIMIT;
    }
    if (fstatfs(path_fd, ret_filesystem) < 0) {
        return module_search_failure_of(errno);
    }
    if (kernel_filesystem_is((uint64_t)ret_filesystem->f_type)) {
        return MODULE_FAILURE_NOT_FILE;
    }
    if (mapped != NULL && !may_be_mapped(mapped, &place, ret_filesystem)) {
        return MODULE_FAILURE_IDENTITY;
    }

    char path[64];
    struct stat status;
    int generation = 0;
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", path_fd);
    cleanup_(closep) int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (fd < 0 || fstat(fd, &status) < 0) {
        return module_search_failure_of(errno);
    }
    (void)ioctl(fd, FS_IOC_GETVERSION, &generation);
    *ret = (struct module_file){
        .fd = take_fd(fd),
        .identity = {.device = status.st_dev,
                     .inode = status.st_ino,
                     .size_bytes = (uint64_t)status.st_size,
                     .changed_s = status.st_ctim.tv_sec,
                     .changed_ns = status.st_ctim.tv_nsec,
                     .disk_sequence = disk_sequence(status.st_dev),
                     .generation = (uint32_t)generation},
        .owner = status.st_uid,
        .group = status.st_gid,
        .mode = status.st_mode,
        .link_count = status.st_nlink,
        .is_local = mount_table_is_local_type((uint64_t)ret_filesystem->f_type, status.st_dev),
        .author = author_of(&status, ret_filesystem),
    };
    ret->is_forgeable = is_forgeable(ret, ret_filesystem);
    return MODULE_FAILURE_NONE;
}

static bool read_stat(int process_fd, struct proc_stat *ret)
{
    char text[1024];
    cleanup_(closep) int fd = openat(process_fd, "stat", O_RDONLY | O_CLOEXEC);
    ssize_t bytes = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    text[bytes > 0 ? bytes : 0] = '\0';
    return proc_parse_stat(text, ret) == 0;
}

/* When the process began, in ns after boot to the precision of /proc; 0: it is gone. */
static uint64_t start_time_ns(int process_fd)
{
    struct proc_stat stat;
    uint64_t start_ns = 0;
    bool known = read_stat(process_fd, &stat) && proc_parse_start_time(&stat, &start_ns) == 0;
    return known ? start_ns : 0;
}

/* Whether the process may be waited for: looking at its mappings takes a lock that it can hold. */
static bool may_look_at_memory(const struct module_search *search)
{
    const struct module_guard *guard = search->guard;
    return search->process_fd >= 0 && !guard->is_careful &&
           guard->process(search->query->pid, start_time_ns(search->process_fd), guard->userdata);
}

/* A moment just past at which the process had a mapping of the file there; 0: it has none, or must
 * not be asked. */
static uint64_t find_shown_ns(const struct module_search *search)
{
    struct mapping_description line;
    bool is_there = may_look_at_memory(search) &&
                    find_mapping(search->process_fd, search->query->start, &line) &&
                    is_line_of(&line, search->query);
    return is_there ? clock_ns(CLOCK_BOOTTIME) : 0;
}

/* Whether the file has the content that was mapped. While the process is there, one of unclear age
 * has it only if the mapping is there still: that of a program that was just linked is, and that of
 * a library which was unloaded and written over is not. It may be another mapping of the same file,
 * which records tell the requester. A process that has ended says nothing. */
static bool is_mapped_content(const struct module_search *search, const struct statfs *filesystem,
                              struct module_file *file)
{
    enum file_age age = find_age(search->query, file->fd, file, filesystem);
    if (age != FILE_AGE_UNCLEAR || !search->is_own) {
        return age != FILE_AGE_YOUNGER;
    }
    file->shown_ns = find_shown_ns(search);
    return file->shown_ns != 0;
}

/* The same, if it is the inode that was mapped. */
static enum module_failure open_for_reading(struct module_search *search, int path_fd,
                                            struct module_file *ret)
{
    struct statfs filesystem = {0};
    struct module_file file = {.fd = -1};
    enum module_failure failure =
        module_search_open_regular(search, path_fd, search->query, &file, &filesystem);
    cleanup_(closep) int fd = file.fd;
    if (failure != MODULE_FAILURE_NONE) {
        return failure;
    }
    if (!is_mapped_inode(search, fd, &file, &filesystem) ||
        !is_mapped_content(search, &filesystem, &file)) {
        return MODULE_FAILURE_IDENTITY;
    }
    *ret = file;
    ret->author = is_reachable(search->query->path)
                      ? module_search_author(search, fd, search->query->path)
                      : MODULE_AUTHOR_UNKNOWN;
    ret->fd = take_fd(fd);
    return MODULE_FAILURE_NONE;
}

/* Goes by the path inside the root of the process whose folder is `process_fd`. */
static enum module_failure open_by_path(struct module_search *search, int process_fd,
                                        struct module_file *ret)
{
    const struct module_query *query = search->query;
    if (process_fd < 0 || !is_reachable(query->path)) {
        return MODULE_FAILURE_NOT_FOUND;
    }
    cleanup_(closep) int root_fd = openat(process_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root_fd < 0) {
        return module_search_failure_of(errno);
    }
    search->process_fd = process_fd;
    search->met_mount_id = 0;
    cleanup_(closep) int path_fd =
        module_path_open(root_fd, query->path, module_search_may_touch, search);
    if (path_fd < 0) {
        return module_search_failure_of(-path_fd);
    }
    return open_for_reading(search, path_fd, ret);
}

/* A process whose leader has ended shows its memory and its root by its other threads only: the
 * folder of one of them, or -1. */
static int open_other_thread(int process_fd)
{
    int fd = openat(process_fd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *threads = fd < 0 ? NULL : fdopendir(fd);
    if (threads == NULL) {
        close_fd(fd);
        return -1;
    }
    int found = -1;
    const struct dirent *entry;
    for (size_t i = 0; found < 0 && i < THREADS_TRIED_MAX && (entry = readdir(threads)) != NULL;
         i++) {
        struct proc_stat stat;
        cleanup_(closep) int thread_fd = open_process(proc_parse_id(entry->d_name));
        if (thread_fd >= 0 && read_stat(thread_fd, &stat) && stat.state != 'Z') {
            found = take_fd(thread_fd);
        }
    }
    (void)closedir(threads);
    return found;
}

/* The folder of the process that is meant, and not of one that has its pid since; or -1. */
int module_search_process(const struct module_query *query)
{
    cleanup_(closep) int fd = open_process(query->pid);
    struct proc_stat stat;
    uint64_t began_ns = 0;
    if (fd < 0 || !read_stat(fd, &stat) || proc_parse_start_time(&stat, &began_ns) < 0) {
        return -1;
    }
    bool known = query->start_time_ns != 0 && query->start_time_ns != UINT64_MAX;
    uint64_t tick_ns = NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);
    if (known && (began_ns > query->start_time_ns ||
                  query->start_time_ns - began_ns >= tick_ns + START_TOLERANCE_NS)) {
        return -1;
    }
    return stat.state == 'Z' ? open_other_thread(fd) : take_fd(fd);
}

/* While the process lives; `*ret_gone` when there is nothing left of it to go by. */
static enum module_failure open_of_process(struct module_search *search, struct module_file *ret,
                                           bool *ret_gone)
{
    cleanup_(closep) int process_fd = module_search_process(search->query);
    search->process_fd = process_fd;
    search->is_own = true;
    cleanup_(closep) int mapping_fd = may_look_at_memory(search) ? open_mapping(search) : -1;
    if (mapping_fd >= 0) {
        enum module_failure failure = open_for_reading(search, mapping_fd, ret);
        if (failure != MODULE_FAILURE_IDENTITY) {
            return failure;
        }
    }
    cleanup_(closep) int root_fd =
        process_fd < 0 ? -1 : openat(process_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
    *ret_gone = root_fd < 0;
    return open_by_path(search, process_fd, ret);
}

enum module_failure module_file_open(const struct module_query *query,
                                     const struct module_guard *guard, struct module_file *ret)
{
    struct module_search search = {.query = query, .guard = guard};
    bool gone = false;
    if (!proc_parse_is_file(query->path)) {
        return MODULE_FAILURE_NOT_FILE;
    }
    if (has_parent_component(query->path) || strlen(query->path) >= PATH_MAX) {
        return MODULE_FAILURE_NOT_FOUND;
    }
    enum module_failure failure = open_of_process(&search, ret, &gone);
    if (!gone) {
        return failure;
    }

    search.is_own = false;
    const int32_t others[] = {query->parent_pid, INIT_PID, getpid()};
    failure = MODULE_FAILURE_NOT_FOUND;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        cleanup_(closep) int process_fd = open_process(others[i]);
        enum module_failure next = open_by_path(&search, process_fd, ret);
        if (next == MODULE_FAILURE_NONE) {
            return next;
        }
        failure = worse(failure, next);
    }
    return failure;
}

enum module_failure module_file_open_own(const char *path, const struct module_guard *guard,
                                         struct module_file *ret)
{
    cleanup_(closep) int process_fd = -1;
    cleanup_(closep) int root_fd = module_search_machine_root(&process_fd);
    struct module_search search = {.guard = guard, .process_fd = process_fd};
    struct module_file file = {.fd = -1};
    struct statfs filesystem;
    cleanup_(closep) int path_fd =
        root_fd < 0 ? -1 : module_path_open(root_fd, path, module_search_may_touch, &search);
    if (path_fd < 0) {
        return MODULE_FAILURE_NOT_FOUND;
    }
    enum module_failure failure =
        module_search_open_regular(&search, path_fd, NULL, &file, &filesystem);
    cleanup_(closep) int fd = file.fd;
    if (failure != MODULE_FAILURE_NONE) {
        return failure;
    }
    if (file.author != 0) {
        return MODULE_FAILURE_IDENTITY;
    }
    *ret = file;
    ret->fd = take_fd(fd);
    return MODULE_FAILURE_NONE;
}

enum module_failure module_file_open_kernel(struct module_file *ret)
{
    int fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return module_search_failure_of(errno);
    }
    *ret = (struct module_file){.fd = fd, .is_local = true};
    return MODULE_FAILURE_NONE;
}

enum module_failure module_file_open_vdso(struct module_file *ret)
{
    unsigned long address = getauxval(AT_SYSINFO_EHDR);
    cleanup_(closep) int process_fd = open_process(getpid());
    struct mapping_description line;
    if (address == 0 || process_fd < 0 || !find_mapping(process_fd, address, &line) ||
        line.start != address) {
        return MODULE_FAILURE_NOT_FOUND;
    }
    size_t bytes = line.end - line.start;
    cleanup_(closep) int fd = memfd_create("vdso", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || write(fd, (const void *)(uintptr_t)address, bytes) != (ssize_t)bytes ||
        seals_add(fd) < 0) {
        return MODULE_FAILURE_LIMIT;
    }
    *ret = (struct module_file){
        .fd = take_fd(fd),
        .identity = {.device = MODULE_VDSO_DEVICE, .inode = MODULE_VDSO_INODE, .size_bytes = bytes},
        .is_local = true,
    };
    return MODULE_FAILURE_NONE;
}
