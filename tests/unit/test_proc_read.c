/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Readings of this very process and of its children. The linker has this file's ioctl(), openat()
 * and readdir() called in place of the C library's (--wrap).
 */
#include "clock.h"
#include "prepared_child.h"
#include "proc_read.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>

static uint32_t account_charged;

static bool allow(int32_t pid, uint64_t start_time_ns, uint32_t account, void *userdata)
{
    size_t *asked_count = userdata;
    assert_true(pid > 0);
    assert_true(start_time_ns > 0);
    account_charged = account;
    *asked_count += 1;
    return true;
}

static bool forbid(int32_t pid, uint64_t start_time_ns, uint32_t account, void *userdata)
{
    (void)allow(pid, start_time_ns, account, userdata);
    return false;
}

/* Reads a part of a process. Returned: free(). */
static struct proc_reading *read_part(enum proc_part part, int32_t pid, proc_read_guard_fn guard)
{
    const struct proc_request request = {.part = part, .pid = pid, .urgency = 7, .cgroups = true};
    struct proc_read *scan = proc_read_new();
    size_t asked_count = 0;
    assert_non_null(scan);
    const uint64_t before_ns = clock_ns(CLOCK_BOOTTIME);
    struct proc_reading *reading = proc_read_read(scan, &request, guard, &asked_count);
    assert_null(proc_read_free(scan));
    assert_non_null(reading);
    assert_int_equal(reading->part, part);
    assert_int_equal(reading->urgency, 7);
    assert_int_equal(reading->scan.pid, pid);
    assert_in_range(reading->scan.begin_ns, before_ns, reading->scan.end_ns);
    bool maps = part == PROC_PART_ALL || part == PROC_PART_MAPPINGS;
    assert_int_equal(asked_count, reading->error == 0 && maps);
    return reading;
}

/* One that came. Returned: free(). */
static struct proc_reading *read_whole(enum proc_part part, int32_t pid)
{
    struct proc_reading *reading = read_part(part, pid, allow);
    assert_int_equal(reading->error, 0);
    return reading;
}

static struct process_table *table_of(const struct proc_reading *reading)
{
    struct process_table *table = process_table_new(NULL, NULL);
    assert_non_null(table);
    assert_int_equal(reading->error, 0);
    process_table_scan(table, &reading->scan);
    return table;
}

static void free_all(struct process_table *table, struct proc_reading *reading)
{
    assert_null(process_table_free(table));
    free(reading);
}

static void *wait_with_a_name(void *argument)
{
    pthread_barrier_t *barrier = argument;
    (void)prctl(PR_SET_NAME, "odd (na)me\n");
    (void)pthread_barrier_wait(barrier); /* named */
    (void)pthread_barrier_wait(barrier); /* scanned */
    return NULL;
}

static const char *name_in(struct process *process, const char *wanted)
{
    for (size_t i = 0; i < process->thread_count; i++) {
        if (strcmp(process->threads[i]->names[0].text, wanted) == 0) {
            return process->threads[i]->names[0].text;
        }
    }
    return "missing";
}

static void check_this_process(struct process_table *table, uint64_t begin_ns)
{
    struct process *self = process_table_find(table, getpid(), begin_ns);
    assert_non_null(self);
    assert_true(self->scanned);
    assert_false(self->kernel_thread);
    assert_int_equal(self->parent_pid, getppid());
    assert_true(self->start_time_ns <= begin_ns);
    assert_string_equal(name_in(self, "odd (na)me\n"), "odd (na)me\n");
    assert_string_equal(name_in(self, "test_proc_read"), "test_proc_read");

    char path[4096] = {0};
    assert_true(readlink("/proc/self/exe", path, sizeof path - 1) > 0);
    uint64_t pc = (uint64_t)(uintptr_t)check_this_process;
    const struct mapping *mapping = process_find_mapping(self, pc, begin_ns);
    assert_non_null(mapping);
    assert_string_equal(mapping->file->path, path);
    assert_int_not_equal(mapping->file->inode, 0);
    assert_true(mapping->scanned);
    assert_null(process_find_mapping(self, (uint64_t)(uintptr_t)&pc, begin_ns));
}

TEST(finds_its_own_code_and_threads)
{
    pthread_barrier_t barrier;
    pthread_t thread;
    assert_int_equal(pthread_barrier_init(&barrier, NULL, 2), 0);
    assert_int_equal(pthread_create(&thread, NULL, wait_with_a_name, &barrier), 0);
    (void)pthread_barrier_wait(&barrier);

    uint64_t begin_ns = clock_ns(CLOCK_BOOTTIME);
    struct proc_reading *reading = read_part(PROC_PART_ALL, getpid(), allow);
    struct process_table *table = table_of(reading);
    assert_false(reading->cut);
    check_this_process(table, begin_ns);
    uint64_t generation = process_table_find(table, getpid(), begin_ns)->generation;
    process_table_scan(table, &reading->scan);
    assert_int_equal(process_table_find(table, getpid(), begin_ns)->generation, generation);

    (void)pthread_barrier_wait(&barrier);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(pthread_barrier_destroy(&barrier), 0);
    free_all(table, reading);
}

TEST(reads_the_part_that_is_asked_for)
{
    struct proc_reading *reading = read_whole(PROC_PART_MAPPINGS, getpid());
    assert_true(reading->scan.mapping_count > 0);
    assert_int_equal(reading->scan.thread_count, 0);
    assert_string_equal(reading->cgroups, "");
    free(reading);
    reading = read_whole(PROC_PART_IDENTITY, getpid());
    assert_int_equal(reading->scan.mapping_count, 0);
    assert_int_equal(reading->scan.thread_count, 0);
    assert_true(reading->scan.identity_read);
    assert_int_equal(reading->uid, geteuid());
    assert_true(reading->scan.account_known);
    assert_int_equal(reading->scan.account, geteuid() == 0 ? getuid() : geteuid());
    free(reading);
}

/* As a program of root's with the set-user-id bit, which any user can start. */
TEST(charges_a_program_of_root_to_who_started_it)
{
    const uid_t uid = 4711;
    if (geteuid() != 0) {
        skip();
    }
    pid_t child = start_prepared_child(run_as_root_for, &uid);
    struct proc_reading *reading = read_whole(PROC_PART_MAPPINGS, child);
    assert_int_equal(reading->uid, 0);
    assert_int_equal(account_charged, uid);
    free(reading);
    end_child(child);
}

TEST(leaves_out_mappings_that_it_may_not_read)
{
    struct proc_reading *reading = read_part(PROC_PART_ALL, getpid(), forbid);
    struct process_table *table = table_of(reading);
    assert_true(reading->scan.mappings_missing);
    assert_int_equal(reading->scan.mapping_count, 0);
    const struct process *self = process_table_find(table, getpid(), clock_ns(CLOCK_BOOTTIME));
    assert_int_equal(self->thread_count, 1);
    assert_false(self->scanned);
    assert_int_equal(self->scan_ns, 0);
    free_all(table, reading);
}

TEST(reads_every_cgroup)
{
    char text[16384] = "";
    FILE *file = fopen("/proc/self/cgroup", "re");
    assert_non_null(file);
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    assert_int_equal(fclose(file), 0);
    struct proc_reading *reading = read_part(PROC_PART_ALL, getpid(), allow);
    assert_string_equal(reading->cgroups, text);
    free(reading);
}

static bool is_listed(const struct proc_reading *reading, int32_t pid)
{
    bool found = false;
    for (size_t i = 0; i < reading->pid_count; i++) {
        found = found || reading->pids[i] == pid;
    }
    return found;
}

TEST(lists_all_processes)
{
    struct proc_reading *reading = read_whole(PROC_PART_PIDS, 0);
    assert_false(reading->cut);
    assert_true(is_listed(reading, 1));
    assert_true(is_listed(reading, getpid()));
    assert_false(is_listed(reading, 0));
    free(reading);
}

/* To the tick, whatever this machine's clock and the uptime are. */
TEST(says_when_a_process_began)
{
    const uint64_t tick_ns = UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK);
    const uint64_t before_ns = clock_ns(CLOCK_BOOTTIME);
    const pid_t child = start_child();
    const uint64_t after_ns = clock_ns(CLOCK_BOOTTIME);
    struct proc_reading *reading = read_whole(PROC_PART_IDENTITY, child);
    assert_in_range(reading->scan.start_time_ns, before_ns / tick_ns * tick_ns, after_ns);
    free(reading);
    end_child(child);
}

static void expect_error(int32_t pid, int error)
{
    struct proc_reading *reading = read_part(PROC_PART_ALL, pid, allow);
    assert_int_equal(reading->error, error);
    free(reading);
}

TEST(says_that_a_process_is_gone_or_a_zombie)
{
    const pid_t child = start_child();
    expect_error(child, 0);
    assert_int_equal(kill(child, SIGKILL), 0);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    expect_error(child, -ESRCH); /* a zombie */
    assert_int_equal(waitpid(child, NULL, 0), child);
    expect_error(child, -ESRCH);
    expect_error(0, -ESRCH);
}

TEST(reads_a_process_with_very_many_mappings)
{
    enum {
        PAGES = 8000,
        PAGE_BYTES = 4096
    };
    char *pages = mmap(NULL, (size_t)PAGES * PAGE_BYTES, PROT_READ | PROT_EXEC,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(pages, MAP_FAILED);
    for (size_t i = 0; i < PAGES; i += 2) {
        assert_int_equal(mprotect(pages + i * PAGE_BYTES, PAGE_BYTES, PROT_READ), 0);
    }
    struct proc_reading *reading = read_part(PROC_PART_ALL, getpid(), allow);
    struct process_table *table = table_of(reading);
    const uint64_t now_ns = clock_ns(CLOCK_BOOTTIME);
    struct process *self = process_table_find(table, getpid(), now_ns);
    for (size_t i = 0; i < PAGES; i++) {
        uint64_t pc = (uint64_t)(uintptr_t)pages + i * PAGE_BYTES;
        const struct mapping *mapping = process_find_mapping(self, pc, now_ns);
        assert_int_equal(mapping != NULL, i % 2);
    }
    free_all(table, reading);
    assert_int_equal(munmap(pages, (size_t)PAGES * PAGE_BYTES), 0);
}

/* A file that cannot be opened, by the end of its path, and why. */
static const char *closed_file = "";
static int closed_errno;
int __real_openat(int fd, const char *path, int flags, ...);
int __wrap_openat(int fd, const char *path, int flags, ...);
int __wrap_openat(int fd, const char *path, int flags, ...)
{
    const size_t bytes = strlen(closed_file);
    if (bytes > 0 && strlen(path) >= bytes &&
        strcmp(path + strlen(path) - bytes, closed_file) == 0) {
        errno = closed_errno;
        return -1;
    }
    return __real_openat(fd, path, flags);
}

/* Reads a part of this process while one of its files cannot be opened. Returned: free(). */
static struct proc_reading *read_without(enum proc_part part, const char *file, int error)
{
    closed_file = file;
    closed_errno = error;
    struct proc_reading *reading = read_whole(part, getpid());
    closed_file = "";
    return reading;
}

/* A process without mappings would end those that the kernel has told of. */
TEST(tells_mappings_that_it_cannot_read_from_none)
{
    static const struct {
        int error;
        bool is_missing;
        bool has_failed;
    } rows[] = {
        {EMFILE, true, true},  {ENFILE, true, true}, {EIO, true, true},
        {EACCES, true, false}, {EPERM, true, false}, /* no right */
        {ESRCH, false, false},                       /* it is ending */
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct proc_reading *reading = read_without(PROC_PART_ALL, "maps", rows[i].error);
        assert_int_equal(reading->scan.mappings_missing, rows[i].is_missing);
        assert_int_equal(reading->has_failed, rows[i].has_failed);
        assert_int_equal(reading->scan.mapping_count, 0);
        assert_int_equal(reading->scan.thread_count, 1);
        free(reading);
    }
}

TEST(does_not_know_whose_a_process_is_without_its_cgroups)
{
    struct proc_reading *reading = read_without(PROC_PART_IDENTITY, "cgroup", EMFILE);
    assert_false(reading->scan.identity_read);
    assert_string_equal(reading->cgroups, "");
    free(reading);
}

TEST(does_not_know_all_threads_without_the_name_of_one)
{
    struct proc_reading *reading = read_without(PROC_PART_ALL, "comm", EMFILE);
    assert_int_equal(reading->scan.thread_count, 0);
    assert_true(reading->scan.threads_cut);
    assert_true(reading->cut);
    free(reading);
    reading = read_without(PROC_PART_ALL, "comm", ESRCH); /* it has exited */
    assert_false(reading->scan.threads_cut);
    free(reading);
}

/* With which the reading of a folder ends too soon; 0: it does not. */
static int folder_errno;
struct dirent *__real_readdir(DIR *folder);
struct dirent *__wrap_readdir(DIR *folder);
struct dirent *__wrap_readdir(DIR *folder)
{
    struct dirent *entry = __real_readdir(folder);
    if (folder_errno != 0) {
        errno = folder_errno;
        return NULL;
    }
    return entry;
}

TEST(says_that_a_folder_was_not_read_to_its_end)
{
    static const enum proc_part parts[] = {PROC_PART_ALL, PROC_PART_PIDS, PROC_PART_TIMES};
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        const int32_t pid = parts[i] == PROC_PART_ALL ? getpid() : 0;
        folder_errno = EIO;
        struct proc_reading *reading = read_part(parts[i], pid, allow);
        folder_errno = 0;
        assert_int_equal(reading->error, -EIO);
        free(reading);
    }
}

/* Kernels before 6.11 answer no question for a mapping: there the text is read. */
static bool is_old_kernel;
int __real_ioctl(int fd, unsigned long request, void *argument);
int __wrap_ioctl(int fd, unsigned long request, void *argument);
int __wrap_ioctl(int fd, unsigned long request, void *argument)
{
    if (is_old_kernel) {
        errno = ENOTTY;
        return -1;
    }
    return __real_ioctl(fd, request, argument);
}

int main(void)
{
    int failed_count = unit_test_run();
    is_old_kernel = true;
    return failed_count + unit_test_run();
}
