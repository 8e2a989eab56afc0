/* SPDX-License-Identifier: Apache-2.0 */

/* What is opened and what is refused, by paths that a process which is gone had mapped. */
#include "clock.h"
#include "mapped_files.h"
#include "module_file.h"
#include "prepared_child.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/fs.h>
#include <sched.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/statvfs.h>

static bool guard(const struct module_place *place, void *userdata)
{
    const uint64_t *refused = userdata;
    return refused == NULL || *refused != place->device;
}

static bool process_guard(int32_t pid, uint64_t start_time_ns, void *userdata)
{
    (void)pid, (void)start_time_ns, (void)userdata;
    return true;
}

static const struct module_guard lets_all = {.place = guard, .process = process_guard};

static enum module_failure open_query(const struct module_query *query)
{
    struct module_file file = {.fd = -1};
    enum module_failure failure = module_file_open(query, &lets_all, &file);
    (void)close(file.fd);
    return failure;
}

static enum module_failure open_path(const char *path, uint64_t *refused_device)
{
    struct stat status = {0};
    struct module_file file = {.fd = -1};
    (void)stat(path, &status);
    struct module_query query = query_of(path);
    const struct module_guard refusing = {
        .place = guard, .process = process_guard, .userdata = refused_device};
    /* Under the root of the parent, then under those of the machine. */
    query.parent_pid = getpid();
    enum module_failure below_parent = module_file_open(&query, &refusing, &file);
    (void)close(file.fd);
    file.fd = -1;
    query.parent_pid = INT32_MAX;
    enum module_failure failure = module_file_open(&query, &refusing, &file);
    assert_int_equal(below_parent, failure);
    assert_int_equal(file.fd >= 0, failure == MODULE_FAILURE_NONE);
    if (failure == MODULE_FAILURE_NONE) {
        assert_int_equal(file.identity.inode, status.st_ino);
        assert_int_equal(file.identity.size_bytes, status.st_size);
        (void)close(file.fd);
    }
    return failure;
}

#define FIFO "/tmp/test-module-file-fifo"

TEST(opens_regular_files_by_clean_paths_only)
{
    static const struct {
        const char *path;
        enum module_failure failure;
    } cases[] = {
        {"/etc/passwd", MODULE_FAILURE_NONE},
        {"/etc", MODULE_FAILURE_NOT_FILE},
        {FIFO, MODULE_FAILURE_NOT_FILE},
        {"/dev/zero", MODULE_FAILURE_NOT_FILE},
        {"/proc/version", MODULE_FAILURE_NOT_FILE}, /* regular, but the kernel's own */
        {"/dev/zero (deleted)", MODULE_FAILURE_NOT_FILE},
        {"/SYSV00000000 (deleted)", MODULE_FAILURE_NOT_FILE},
        {"[anon]", MODULE_FAILURE_NOT_FILE},
        {"[vdso]", MODULE_FAILURE_NOT_FILE},
        {"//anon", MODULE_FAILURE_NOT_FILE},
        {"anon_inode:[perf_event]", MODULE_FAILURE_NOT_FILE},
        {"etc/passwd", MODULE_FAILURE_NOT_FILE},
        {"", MODULE_FAILURE_NOT_FILE},
        {"/missing", MODULE_FAILURE_NOT_FOUND},
        {"/etc/passwd/x", MODULE_FAILURE_NOT_FOUND},
        {"/memfd:gone (deleted)", MODULE_FAILURE_NOT_FOUND},
        {"/etc/../etc/passwd", MODULE_FAILURE_NOT_FOUND},
        {"/etc/..", MODULE_FAILURE_NOT_FOUND},
    };
    /* An open() that waited for a writer would not come back. */
    (void)unlink(FIFO);
    assert_int_equal(mkfifo(FIFO, 0600), 0);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        enum module_failure failure = open_path(cases[i].path, NULL);
        if (failure != cases[i].failure) {
            fail_msg("%s: %d", cases[i].path, (int)failure);
        }
    }
    assert_int_equal(unlink(FIFO), 0);
}

TEST(touches_no_device_that_its_guard_refuses)
{
    struct stat status;
    assert_int_equal(stat("/etc/passwd", &status), 0);
    uint64_t device = status.st_dev;
    assert_int_equal(open_path("/etc/passwd", &device), MODULE_FAILURE_LIMIT);
    device++;
    assert_int_equal(open_path("/etc/passwd", &device), MODULE_FAILURE_NONE);
}

/* How often the file behind an inotify descriptor has been opened since the last call. */
static size_t count_opens(int inotify_fd)
{
    struct inotify_event events[16];
    ssize_t bytes = read(inotify_fd, events, sizeof events);
    return bytes < 0 ? 0 : (size_t)bytes / sizeof *events;
}

/* A user may put a link to any file in the place of one that is mapped. */
TEST(opens_no_file_but_the_one_that_was_mapped)
{
    char folder[] = "/tmp/module_file.XXXXXX";
    char mapped[64];
    char other[64];
    assert_non_null(mkdtemp(folder));
    (void)snprintf(mapped, sizeof mapped, "%s/mapped", folder);
    (void)snprintf(other, sizeof other, "%s/other", folder);
    (void)close(open(mapped, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    (void)close(open(other, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    const struct module_query query = query_of(mapped);
    assert_int_equal(unlink(mapped), 0);
    assert_int_equal(symlink(other, mapped), 0);
    int inotify_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    assert_true(inotify_add_watch(inotify_fd, other, IN_OPEN) >= 0);

    assert_int_equal(open_query(&query), MODULE_FAILURE_IDENTITY);
    assert_int_equal(count_opens(inotify_fd), 0);
    const struct module_query of_other = query_of(mapped);
    assert_int_equal(open_query(&of_other), MODULE_FAILURE_NONE);
    assert_int_equal(count_opens(inotify_fd), 1);

    (void)close(inotify_fd);
    assert_int_equal(unlink(mapped), 0);
    assert_int_equal(unlink(other), 0);
    assert_int_equal(rmdir(folder), 0);
}

/* When this process began, as /proc says it. */
static uint64_t own_start_ns(void)
{
    char text[1024] = "";
    FILE *stat = fopen("/proc/self/stat", "re");
    assert_non_null(fgets(text, sizeof text, stat));
    (void)fclose(stat);
    char *at = strrchr(text, ')');
    for (int i = 0; i < 20; i++) {
        at = strchr(at + 1, ' ');
    }
    return strtoull(at, NULL, 10) * (1000000000 / (uint64_t)sysconf(_SC_CLK_TCK));
}

TEST(takes_no_process_for_an_older_one_with_its_pid)
{
    static const struct {
        int64_t after_ns;
        bool same;
    } cases[] = {
        {0, true},          {9999999, true},      {20000000, true}, /* the record came late */
        {-10000000, false}, {-1000000000, false}, {1000000000, false},
    };
    struct target target;
    find_mapping(getpid(), "/libc.so", &target);
    struct module_query query = target.query;
    /* The folder in /proc is the only way to it. */
    query.path = "/missing";
    if (open_query(&query) != MODULE_FAILURE_NONE) {
        skip(); /* for want of the right to follow map_files */
    }
    uint64_t start_ns = own_start_ns();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        query.start_time_ns = start_ns + (uint64_t)cases[i].after_ns;
        enum module_failure failure = open_query(&query);
        if ((failure == MODULE_FAILURE_NONE) != cases[i].same) {
            fail_msg("%" PRId64 " ns after: %d", cases[i].after_ns, (int)failure);
        }
    }
    query.start_time_ns = UINT64_MAX;
    assert_int_equal(open_query(&query), MODULE_FAILURE_NONE);
}

TEST(takes_no_file_for_an_older_one_with_its_inode)
{
    char path[] = "/tmp/module_file.XXXXXX";
    int generation = 0;
    int fd = mkstemp(path);
    (void)ioctl(fd, FS_IOC_GETVERSION, &generation);
    struct module_query query = query_of(path);
    query.inode_generation = (uint32_t)generation;
    (void)close(fd);
    enum module_failure same = open_query(&query);
    query.inode_generation++;
    enum module_failure other = open_query(&query);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(same, MODULE_FAILURE_NONE);
    if (generation == 0) {
        skip(); /* this filesystem has none */
    }
    assert_int_equal(other, MODULE_FAILURE_IDENTITY);
}

#define HOUR_S 3600

static void set_written(const char *path, time_t written_s)
{
    const struct timespec times[] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = written_s}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static enum module_failure open_mapped_at(struct module_query *query, uint64_t mapped_ns)
{
    query->mapped_ns = mapped_ns;
    return open_query(query);
}

/* A file's time is up to 50 ms late. */
static void pass_file_time(void)
{
    const struct timespec time = {.tv_nsec = 60000000};
    (void)nanosleep(&time, NULL);
}

TEST(takes_no_file_for_what_was_mapped_before_it_was_written)
{
    char path[] = "/tmp/module_file.XXXXXX";
    struct module_file file = {.fd = -1};
    (void)close(mkstemp(path));
    struct module_query query = query_of(path);
    assert_int_equal(module_file_open(&query, &lets_all, &file), MODULE_FAILURE_NONE);
    (void)close(file.fd);
    uint64_t now_ns = clock_ns(CLOCK_BOOTTIME);
    enum module_failure unknown = open_mapped_at(&query, 0);
    enum module_failure before = open_mapped_at(&query, 1);
    enum module_failure never = open_mapped_at(&query, now_ns + HOUR_S * NS_PER_S);
    pass_file_time();
    enum module_failure behind = open_mapped_at(&query, clock_ns(CLOCK_BOOTTIME));
    set_written(path, HOUR_S);
    enum module_failure set_back = open_mapped_at(&query, now_ns);
    pass_file_time();
    enum module_failure behind_that = open_mapped_at(&query, clock_ns(CLOCK_BOOTTIME));
    assert_int_equal(unlink(path), 0);
    if (!file.is_local) {
        skip(); /* its times may be another machine's */
    }
    assert_int_equal(unknown, MODULE_FAILURE_NONE);
    assert_int_equal(before, MODULE_FAILURE_IDENTITY);
    assert_int_equal(never, MODULE_FAILURE_NONE);
    assert_int_equal(behind, MODULE_FAILURE_NONE);
    assert_int_equal(set_back, MODULE_FAILURE_IDENTITY);
    assert_int_equal(behind_that, MODULE_FAILURE_NONE);
}

static bool refuses_processes(int32_t pid, uint64_t start_time_ns, void *userdata)
{
    return !process_guard(pid, start_time_ns, userdata);
}

/* When the file had been written for 20 ms, by CLOCK_BOOTTIME, however long ago that is by now. */
static uint64_t soon_after_ns(const struct stat *status)
{
    uint64_t written_ns =
        (uint64_t)status->st_ctim.tv_sec * NS_PER_S + (uint64_t)status->st_ctim.tv_nsec;
    return clock_ns(CLOCK_BOOTTIME) - (clock_ns(CLOCK_REALTIME) - written_ns) + 20 * NS_PER_MS;
}

/* Its time may be from before the mapping, although it was written after. */
TEST(takes_a_file_that_was_just_written_from_a_process_that_maps_it_or_has_ended)
{
    const struct module_guard asks_none = {.place = guard, .process = refuses_processes};
    char path[] = "/tmp/module_file.XXXXXX";
    struct module_file files[4] = {{.fd = -1}, {.fd = -1}, {.fd = -1}, {.fd = -1}};
    struct stat status = {0};
    int fd = mkstemp(path);
    assert_int_equal(ftruncate(fd, 4096), 0);
    assert_int_equal(fstat(fd, &status), 0);
    void *mapping = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    (void)close(fd);
    assert_true(mapping != MAP_FAILED);
    struct module_query query = query_of(path);
    query.pid = getpid();
    query.start = (uint64_t)(uintptr_t)mapping;
    pass_file_time();
    query.mapped_ns = soon_after_ns(&status);
    enum module_failure shown = module_file_open(&query, &lets_all, &files[0]);
    uint64_t after_ns = clock_ns(CLOCK_BOOTTIME);
    enum module_failure unasked = module_file_open(&query, &asks_none, &files[1]);
    (void)munmap(mapping, 4096);
    enum module_failure unmapped = module_file_open(&query, &lets_all, &files[2]);
    query.pid = INT32_MAX;
    query.parent_pid = getpid();
    enum module_failure ended = module_file_open(&query, &lets_all, &files[3]);
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        (void)close(files[i].fd);
    }
    assert_int_equal(unlink(path), 0);
    if (!files[0].is_local) {
        skip();
    }
    assert_int_equal(shown, MODULE_FAILURE_NONE);
    assert_in_range(files[0].shown_ns, query.mapped_ns, after_ns);
    assert_int_equal(unasked, MODULE_FAILURE_IDENTITY);
    assert_int_equal(unmapped, MODULE_FAILURE_IDENTITY);
    /* Programs are run as soon as they are linked. */
    assert_int_equal(ended, MODULE_FAILURE_NONE);
    assert_int_equal(files[3].shown_ns, 0);
}

/* A relative that has put other memory there must not decide what the frames of all are called. */
TEST(opens_nothing_but_what_was_mapped)
{
    struct target target;
    find_mapping(getpid(), "/libc.so", &target);
    struct module_query query = target.query;
    query.inode++;
    assert_int_equal(open_query(&query), MODULE_FAILURE_IDENTITY);
    query.inode--;
    query.device_minor++;
    assert_int_equal(open_query(&query), MODULE_FAILURE_IDENTITY);
    query.device_minor = query.device_major = 0;
    query.inode = 0;
    assert_int_equal(open_query(&query), MODULE_FAILURE_IDENTITY);
}

static bool own_mounts(void)
{
    return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

/* As a service of systemd: the machine's files, as mounted without set-user-id. */
static bool enter_service(const void *userdata)
{
    (void)userdata;
    return own_mounts() && mount("/", "/", NULL, MS_BIND | MS_REC, NULL) == 0 && chroot("/") == 0 &&
           mount(NULL, "/", NULL, MS_BIND | MS_REMOUNT | MS_NOSUID, NULL) == 0;
}

/* Root made a filesystem, and the file is of an image's root. */
static bool enter_mount(const void *userdata)
{
    const char *folder = userdata;
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/file", folder);
    int fd = -1;
    bool done = own_mounts() && mount("none", folder, "tmpfs", 0, NULL) == 0 &&
                (fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755)) >= 0;
    (void)close(fd);
    return done;
}

/* As any user can, above a filesystem that answers what he likes. */
static bool enter_overlay(const void *userdata)
{
    const char *folder = userdata;
    char path[PATH_MAX];
    char options[3 * PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/shown", folder);
    (void)snprintf(options, sizeof options, "lowerdir=%s/a:%s/b", folder, folder);
    return enter_mount(folder) && mkdirat(AT_FDCWD, path, 0755) == 0 && chdir(folder) == 0 &&
           mkdir("a", 0755) == 0 && mkdir("b", 0755) == 0 && rename("file", "a/file") == 0 &&
           mount("none", path, "overlay", MS_RDONLY, options) == 0 &&
           symlink("shown/file", "file") == 0;
}

static bool enter_root(const void *userdata)
{
    return chroot(userdata) == 0 && chdir("/") == 0;
}

static bool stay(const void *userdata)
{
    (void)userdata;
    return true;
}

/* What is opened as FOLDER/file of a process with the root and the mounts that `enter` gives it. */
static struct module_file open_for(bool (*enter)(const void *folder), const char *folder)
{
    char seen[PATH_MAX];
    char path[PATH_MAX];
    struct module_file file = {.fd = -1, .author = 12345};
    pid_t pid = start_prepared_child(enter, folder);
    (void)snprintf(path, sizeof path, "%s/file", folder);
    (void)snprintf(seen, sizeof seen, "/proc/%d/root%.3000s", (int)pid, path);
    struct module_query query = query_of(seen);
    query.pid = pid;
    query.path = path;
    assert_int_equal(module_file_open(&query, &lets_all, &file), MODULE_FAILURE_NONE);
    (void)close(file.fd);
    end_child(pid);
    return file;
}

TEST(knows_where_a_user_makes_identities_up)
{
    char folder[] = "/tmp/test-module-file-XXXXXX";
    if (geteuid() != 0) {
        skip();
    }
    assert_non_null(mkdtemp(folder));
    assert_false(open_for(enter_mount, folder).is_forgeable);
    assert_true(open_for(enter_overlay, folder).is_forgeable);
    assert_int_equal(rmdir(folder), 0);
}

/* Only what the machine's own root shows was written by the uid that owns it. */
TEST(knows_the_author_of_the_machines_own_files_only)
{
    char folder[] = "/tmp/module_author.XXXXXX";
    char command[512];
    char path[64];
    struct statvfs filesystem;
    assert_int_equal(statvfs("/tmp", &filesystem), 0);
    if (geteuid() != 0 || (filesystem.f_flag & ST_NOSUID) != 0) {
        skip();
    }
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/file", folder);
    /* In the folder as a root, the same path leads to the same file. */
    (void)snprintf(command, sizeof command,
                   "cd %s && echo x >file && chmod 755 file && mkdir -p ./%s && ln file ./%s/file",
                   folder, folder, folder);
    assert_int_equal(system(command), 0);
    static const struct {
        bool (*enter)(const void *folder);
        mode_t mode;
        uid_t owner;
        uid_t author;
    } cases[] = {
        {stay, 0755, 0, 0},
        {stay, 0755, 4001, 4001},
        {stay, 0775, 0, MODULE_AUTHOR_UNKNOWN},
        {stay, 0757, 4001, MODULE_AUTHOR_UNKNOWN},
        {enter_service, 0755, 0, 0},
        {enter_service, 0755, 4001, 4001},
        {enter_root, 0755, 0, MODULE_AUTHOR_UNKNOWN},
        {enter_root, 0755, 4001, MODULE_AUTHOR_UNKNOWN},
        {enter_mount, 0755, 0, MODULE_AUTHOR_UNKNOWN},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(chown(path, cases[i].owner, 0), 0);
        assert_int_equal(chmod(path, cases[i].mode), 0);
        uid_t author = open_for(cases[i].enter, folder).author;
        if (author != cases[i].author) {
            fail_msg("case %zu: the author is %d", i, (int)author);
        }
    }
    (void)snprintf(command, sizeof command, "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
}

struct guarded {
    uint64_t device;
    unsigned count;
};

static bool count_device(const struct module_place *place, void *userdata)
{
    struct guarded *guarded = userdata;
    guarded->count += place->device == guarded->device;
    return true;
}

TEST(walks_a_path_inside_its_root)
{
    char folder[] = "/tmp/module_path.XXXXXX";
    char command[512];
    struct stat wanted;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(
        command, sizeof command,
        "cd %s && mkdir -p a/b && echo x >a/b/file && ln -s /a a/root && ln -s .. a/b/up &&"
        "ln -s ../../../../a/b/file a/b/out && ln -s loop loop && ln -s file a/b/link",
        folder);
    assert_int_equal(system(command), 0);
    int root = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(fstatat(root, "a/b/file", &wanted, 0), 0);
    static const struct {
        const char *path;
        int error;
    } cases[] = {
        {"/a/b/file", 0},          {"//a/./b//file", 0},    {"/a/b/link", 0},
        {"/a/root/b/file", 0},     {"/a/b/up/b/file", 0},   {"/a/b/out", 0},
        {"/../../a/b/file", 0},    {"/a/b/up/up", -ENOENT}, {"/loop", -ELOOP},
        {"/a/b/file/x", -ENOTDIR},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct guarded guarded = {.device = wanted.st_dev};
        struct stat found = {0};
        int fd = module_path_open(root, cases[i].path, count_device, &guarded);
        if (fd < 0
                ? fd != cases[i].error
                : cases[i].error != 0 || fstat(fd, &found) < 0 || found.st_ino != wanted.st_ino) {
            fail_msg("%s: %d", cases[i].path, fd);
        }
        assert_true(guarded.count > 0);
        (void)close(fd);
    }
    uint64_t refused = wanted.st_dev;
    assert_int_equal(module_path_open(root, "/a/b/file", guard, &refused), -EBUSY);
    (void)close(root);
    (void)snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}
