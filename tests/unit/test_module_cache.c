/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The cache with its real worker and threads. Files are copies of the C library in a folder of the
 * test's own; a process that is gone is one that was forked and reaped.
 */
#include "module_cache.h"
#include "opener.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define WAIT_MS      20000
#define PATH_BYTES   512
#define MAPPINGS_MAX 64

struct fixture {
    struct module_cache *cache;
    char folder[PATH_BYTES];
    pid_t gone; /* a pid that nobody has */
    size_t descriptors;
};

struct target {
    struct module_query query;
    char path[PATH_BYTES];
};

static size_t count_descriptors(void)
{
    size_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder) != NULL) {
        count++;
    }
    (void)closedir(folder);
    return count;
}

static int set_up(void **state)
{
    static const struct elf_worker_config config = {.uid = 65534, .gid = 65534};
    struct fixture *fixture = calloc(1, sizeof *fixture);
    (void)snprintf(fixture->folder, sizeof fixture->folder, "/tmp/module_cache.XXXXXX");
    assert_non_null(mkdtemp(fixture->folder));
    fixture->gone = fork();
    if (fixture->gone == 0) {
        _exit(0);
    }
    (void)waitpid(fixture->gone, NULL, 0);
    assert_int_equal(module_cache_new(&config, &fixture->cache), 0);
    fixture->descriptors = count_descriptors();
    *state = fixture;
    return 0;
}

/* Nothing that a test opened stays open. */
static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    char command[PATH_BYTES + 16];
    for (int i = 0; i < 100 && count_descriptors() != fixture->descriptors; i++) {
        (void)poll(NULL, 0, 10);
    }
    size_t left = count_descriptors();
    size_t before = fixture->descriptors;
    module_cache_free(fixture->cache);
    (void)snprintf(command, sizeof command, "rm -rf '%s'", fixture->folder);
    int r = system(command);
    free(fixture);
    return r == 0 && left == before ? 0 : -1;
}

static void step(struct module_cache *cache)
{
    struct pollfd readable = {.fd = module_cache_fd(cache), .events = POLLIN};
    (void)poll(&readable, 1, 50);
    module_cache_dispatch(cache);
}

static enum module_state wait_for(struct module_cache *cache, const struct module_ticket *ticket)
{
    assert_non_null(ticket);
    for (int ms = 0; ms < WAIT_MS && module_ticket_state(ticket) == MODULE_PENDING; ms += 1) {
        step(cache);
    }
    return module_ticket_state(ticket);
}

/* Requests, waits, and expects; gives the ticket back. */
static struct module_ticket *expect(struct fixture *fixture, const struct module_query *query,
                                    enum module_failure failure)
{
    struct module_ticket *ticket =
        module_cache_request(fixture->cache, MODULE_SYMBOLS, MODULE_WANTED, query);
    enum module_state state = wait_for(fixture->cache, ticket);
    if (module_ticket_failure(ticket) != failure || state == MODULE_PENDING) {
        fail_msg("%s: state %d, failure %d", query->path, (int)state,
                 (int)module_ticket_failure(ticket));
    }
    assert_int_equal(module_ticket_module(ticket) != NULL, failure == MODULE_FAILURE_NONE);
    return ticket;
}

/* Requests, and lets the request come as far as the worker's queue. */
static struct module_ticket *expect_pending(struct fixture *fixture, enum module_urgency urgency,
                                            const struct module_query *query)
{
    struct module_ticket *ticket =
        module_cache_request(fixture->cache, MODULE_SYMBOLS, urgency, query);
    for (int i = 0; i < 4; i++) {
        step(fixture->cache);
    }
    assert_int_equal(module_ticket_state(ticket), MODULE_PENDING);
    return ticket;
}

static void expect_failure(struct fixture *fixture, const struct module_query *query,
                           enum module_failure failure)
{
    module_ticket_release(expect(fixture, query, failure));
}

/* The executable file mappings of a process. */
static size_t read_mappings(pid_t pid, struct target *targets)
{
    static char line[8192];
    char path[64];
    size_t count = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(path, "re");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps) != NULL && count < MAPPINGS_MAX) {
        struct target *target = &targets[count];
        memset(target, 0, sizeof *target);
        const char *name = strchr(line, '/');
        char *at = line;
        target->query.start = strtoull(at, &at, 16);
        target->query.end = strtoull(at + 1, &at, 16);
        if (name == NULL || at[3] != 'x') {
            continue;
        }
        target->query.file_offset = strtoull(at + 6, &at, 16);
        target->query.device_major = (uint32_t)strtoul(at, &at, 16);
        target->query.device_minor = (uint32_t)strtoul(at + 1, &at, 16);
        target->query.inode = strtoull(at, &at, 10);
        (void)snprintf(target->path, sizeof target->path, "%.*s", (int)strcspn(name, "\n"), name);
        target->query.path = target->path;
        target->query.pid = pid;
        count++;
    }
    (void)fclose(maps);
    return count;
}

static void find_mapping(pid_t pid, const char *name, struct target *ret)
{
    static struct target targets[MAPPINGS_MAX];
    size_t count = read_mappings(pid, targets);
    for (size_t i = 0; i < count; i++) {
        if (strstr(targets[i].path, name) != NULL) {
            *ret = targets[i];
            ret->query.path = ret->path;
            return;
        }
    }
    fail_msg("%s is not mapped", name);
}

/* A path as a process that is gone had mapped it, with the identity that it has now. */
static struct target of_gone_process(const struct fixture *fixture, const char *path)
{
    struct stat status = {0};
    struct target target = {.query = {.pid = fixture->gone, .parent_pid = getpid(), .end = 4096}};
    (void)snprintf(target.path, sizeof target.path, "%s", path);
    if (stat(path, &status) == 0) {
        target.query.device_major = major(status.st_dev);
        target.query.device_minor = minor(status.st_dev);
        target.query.inode = status.st_ino;
    }
    return target;
}

static void copy_libc(const char *path, bool rename_symbols)
{
    static struct target libc;
    find_mapping(getpid(), "/libc.so", &libc);
    int from = open(libc.path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    assert_int_equal(fstat(from, &status), 0);
    char *bytes = malloc((size_t)status.st_size);
    assert_int_equal(read(from, bytes, (size_t)status.st_size), status.st_size);
    (void)close(from);
    char *name = rename_symbols ? memmem(bytes, (size_t)status.st_size, "\0strfry\0", 8) : NULL;
    if (name != NULL) {
        name[1] = 'g';
    }
    int to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    assert_int_equal(write(to, bytes, (size_t)status.st_size), status.st_size);
    (void)close(to);
    free(bytes);
}

static bool has_symbol(const struct module *module, const char *name)
{
    for (size_t i = 0; i < module->symbols.symbol_count; i++) {
        if (strcmp(symbol_table_name(&module->symbols, i), name) == 0) {
            return true;
        }
    }
    return false;
}

static pid_t start_sleeper(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)execlp("sleep", "sleep", "60", NULL);
        _exit(1);
    }
    char path[64];
    char name[16] = "";
    (void)snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    for (int i = 0; i < 1000 && strcmp(name, "sleep\n") != 0; i++) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t got = read(fd, name, sizeof name - 1);
        (void)close(fd);
        name[got > 0 ? got : 0] = '\0';
        (void)poll(NULL, 0, 2);
    }
    /* Its libraries come after its name. */
    (void)poll(NULL, 0, 50);
    return pid;
}

static void stop_process(pid_t pid)
{
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

static void names_what_this_process_has_mapped(void **state)
{
    struct fixture *fixture = *state;
    static struct target targets[MAPPINGS_MAX];
    size_t count = read_mappings(getpid(), targets);
    uint64_t here = (uint64_t)(uintptr_t)&names_what_this_process_has_mapped;
    bool named = false;
    assert_true(count >= 3);
    for (size_t i = 0; i < count; i++) {
        const struct module_query *query = &targets[i].query;
        struct module_ticket *ticket = expect(fixture, query, MODULE_FAILURE_NONE);
        const struct symbol_table *symbols = &module_ticket_module(ticket)->symbols;
        uint64_t vaddr = 0;
        assert_true(symbol_table_vaddr(symbols, query->file_offset, &vaddr));
        if (here >= query->start && here < query->end) {
            assert_true(
                symbol_table_vaddr(symbols, query->file_offset + (here - query->start), &vaddr));
            ptrdiff_t index = symbol_table_find(symbols, vaddr);
            assert_true(index >= 0);
            assert_string_equal(symbol_table_name(symbols, (size_t)index), __func__);
            named = true;
        }
        module_ticket_release(ticket);
    }
    assert_true(named);
    struct module_cache_counts counts = module_cache_counts(fixture->cache);
    assert_int_equal(counts.requested_count, count);
    assert_int_equal(counts.tables[MODULE_SYMBOLS].ready_count, count);
    assert_int_equal(counts.tables[MODULE_SYMBOLS].failed_count, 0);
    assert_int_equal(counts.worker_restart_count, 0);
    assert_true(counts.tables[MODULE_SYMBOLS].module_count >= 3 &&
                counts.tables[MODULE_SYMBOLS].module_count <= count);
    assert_true(counts.tables[MODULE_SYMBOLS].table_bytes > 10000);
}

static void gives_one_module_for_one_file_of_two_processes(void **state)
{
    struct fixture *fixture = *state;
    static struct target ours;
    static struct target theirs;
    pid_t pid = start_sleeper();
    find_mapping(getpid(), "/libc.so", &ours);
    find_mapping(pid, "/libc.so", &theirs);
    /* At once, so that they meet on the way. */
    struct module_ticket *first =
        module_cache_request(fixture->cache, MODULE_SYMBOLS, MODULE_WANTED, &ours.query);
    struct module_ticket *second =
        module_cache_request(fixture->cache, MODULE_SYMBOLS, MODULE_WANTED, &theirs.query);
    assert_int_equal(wait_for(fixture->cache, first), MODULE_READY);
    assert_int_equal(wait_for(fixture->cache, second), MODULE_READY);
    struct module_ticket *third = expect(fixture, &theirs.query, MODULE_FAILURE_NONE);
    assert_ptr_equal(module_ticket_module(first), module_ticket_module(second));
    assert_ptr_equal(module_ticket_module(first), module_ticket_module(third));
    assert_int_equal(module_cache_counts(fixture->cache).tables[MODULE_SYMBOLS].module_count, 1);
    stop_process(pid);
    module_ticket_release(first);
    module_ticket_release(second);
    module_ticket_release(third);
}

static void keeps_a_copy_with_a_forged_build_id_apart(void **state)
{
    struct fixture *fixture = *state;
    static struct target libc;
    static struct target forged;
    char path[PATH_BYTES + 16];
    (void)snprintf(path, sizeof path, "%s/forged.so", fixture->folder);
    copy_libc(path, true);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    void *map = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    (void)close(fd);
    find_mapping(getpid(), "/libc.so", &libc);
    find_mapping(getpid(), "/forged.so", &forged);

    struct module_ticket *first = expect(fixture, &libc.query, MODULE_FAILURE_NONE);
    const struct module *genuine = module_ticket_module(first);
    struct module_ticket *second = expect(fixture, &forged.query, MODULE_FAILURE_NONE);
    struct module_ticket *third = expect(fixture, &libc.query, MODULE_FAILURE_NONE);
    assert_ptr_not_equal(genuine, module_ticket_module(second));
    assert_memory_equal(genuine->symbols.build_id, module_ticket_module(second)->symbols.build_id,
                        genuine->symbols.build_id_bytes);
    assert_ptr_equal(genuine, module_ticket_module(third));
    assert_true(has_symbol(genuine, "strfry"));
    assert_false(has_symbol(module_ticket_module(second), "strfry"));
    assert_true(has_symbol(module_ticket_module(second), "gtrfry"));
    (void)munmap(map, 4096);
    module_ticket_release(first);
    module_ticket_release(second);
    module_ticket_release(third);
}

static void refuses_a_file_with_another_inode(void **state)
{
    struct fixture *fixture = *state;
    static struct target libc;
    find_mapping(getpid(), "/libc.so", &libc);
    libc.query.inode++;
    expect_failure(fixture, &libc.query, MODULE_FAILURE_IDENTITY);
    libc.query.inode = 0;
    expect_failure(fixture, &libc.query, MODULE_FAILURE_IDENTITY);
}

static void knows_a_file_that_was_replaced_after_its_process_ended(void **state)
{
    struct fixture *fixture = *state;
    char path[PATH_BYTES + 16];
    char other[PATH_BYTES + 16];
    (void)snprintf(path, sizeof path, "%s/lib.so", fixture->folder);
    (void)snprintf(other, sizeof other, "%s/other.so", fixture->folder);
    copy_libc(path, false);
    struct target target = of_gone_process(fixture, path);
    target.query.path = target.path;
    struct module_ticket *ticket = expect(fixture, &target.query, MODULE_FAILURE_NONE);
    module_ticket_release(ticket);

    char command[4 * PATH_BYTES];
    (void)snprintf(command, sizeof command, "cp /bin/true '%s' && mv '%s' '%s'", other, other,
                   path);
    assert_int_equal(system(command), 0);
    expect_failure(fixture, &target.query, MODULE_FAILURE_IDENTITY);
    assert_int_equal(unlink(path), 0);
    expect_failure(fixture, &target.query, MODULE_FAILURE_NOT_FOUND);
}

static void opens_nothing_but_files(void **state)
{
    struct fixture *fixture = *state;
    char fifo[PATH_BYTES + 16];
    (void)snprintf(fifo, sizeof fifo, "%s/fifo", fixture->folder);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    const char *const paths[] = {fifo, fixture->folder, "/dev/zero", "[anon]"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct target target = of_gone_process(fixture, paths[i]);
        target.query.path = target.path;
        struct timespec begin;
        struct timespec end;
        (void)clock_gettime(CLOCK_MONOTONIC, &begin);
        expect_failure(fixture, &target.query, MODULE_FAILURE_NOT_FILE);
        (void)clock_gettime(CLOCK_MONOTONIC, &end);
        assert_true(end.tv_sec - begin.tv_sec <= 1);
    }
}

static void says_that_a_text_is_unreadable(void **state)
{
    struct fixture *fixture = *state;
    struct target target = of_gone_process(fixture, "/etc/passwd");
    target.query.path = target.path;
    expect_failure(fixture, &target.query, MODULE_FAILURE_UNREADABLE);
    expect_failure(fixture, &target.query, MODULE_FAILURE_UNREADABLE);
    assert_int_equal(module_cache_counts(fixture->cache).tables[MODULE_SYMBOLS].failed_count, 2);
}

/* Maps a file and removes its name; needs the right to follow map_files. */
static void reads_a_deleted_file_through_its_mapping(void **state)
{
    struct fixture *fixture = *state;
    static struct target target;
    char path[PATH_BYTES + 16];
    if (geteuid() != 0) {
        skip();
    }
    (void)snprintf(path, sizeof path, "%s/deleted.so", fixture->folder);
    copy_libc(path, false);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    void *map = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    (void)close(fd);
    assert_int_equal(unlink(path), 0);
    /* Another one at its place changes nothing. */
    copy_libc(path, true);
    find_mapping(getpid(), "/deleted.so (deleted)", &target);
    struct module_ticket *ticket = expect(fixture, &target.query, MODULE_FAILURE_NONE);
    assert_true(has_symbol(module_ticket_module(ticket), "strfry"));
    module_ticket_release(ticket);
    (void)munmap(map, 4096);
    expect_failure(fixture, &target.query, MODULE_FAILURE_NOT_FOUND);
}

/* An absolute link inside another root leads nowhere else. */
static void resolves_a_path_inside_the_root_of_its_process(void **state)
{
    struct fixture *fixture = *state;
    char path[PATH_BYTES + 16];
    int ready[2];
    if (geteuid() != 0) {
        skip();
    }
    (void)snprintf(path, sizeof path, "%s/inner.so", fixture->folder);
    copy_libc(path, true);
    struct target target = of_gone_process(fixture, path);
    (void)snprintf(path, sizeof path, "%s/link.so", fixture->folder);
    assert_int_equal(symlink("/inner.so", path), 0);
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (chroot(fixture->folder) == 0 && write(ready[1], "r", 1) == 1) {
            (void)pause();
        }
        _exit(0);
    }
    char byte = 0;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    (void)close(ready[0]);
    (void)close(ready[1]);
    target.query.pid = pid;
    target.query.path = "/link.so";
    struct module_ticket *ticket = expect(fixture, &target.query, MODULE_FAILURE_NONE);
    assert_true(has_symbol(module_ticket_module(ticket), "gtrfry"));
    assert_int_equal(module_ticket_module(ticket)->identity.inode, target.query.inode);
    module_ticket_release(ticket);
    stop_process(pid);
}

static void loses_one_table_with_a_worker(void **state)
{
    struct fixture *fixture = *state;
    static struct target libc;
    static struct target self;
    find_mapping(getpid(), "/libc.so", &libc);
    find_mapping(getpid(), "/test_module_cache", &self);
    pid_t pid = module_cache_worker_pid(fixture->cache);
    assert_int_equal(kill(pid, SIGSTOP), 0);
    struct module_ticket *lost =
        module_cache_request(fixture->cache, MODULE_SYMBOLS, MODULE_WANTED, &libc.query);
    for (int i = 0; i < 5; i++) {
        step(fixture->cache);
    }
    assert_int_equal(module_ticket_state(lost), MODULE_PENDING);
    struct module_ticket *waiting =
        module_cache_request(fixture->cache, MODULE_SYMBOLS, MODULE_WANTED, &self.query);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(wait_for(fixture->cache, lost), MODULE_FAILED);
    assert_int_equal(module_ticket_failure(lost), MODULE_FAILURE_WORKER);
    assert_int_equal(wait_for(fixture->cache, waiting), MODULE_READY);
    assert_int_equal(module_cache_counts(fixture->cache).worker_restart_count, 1);
    assert_int_not_equal(module_cache_worker_pid(fixture->cache), pid);
    module_ticket_release(lost);
    module_ticket_release(waiting);

    /* One that dies with nothing to do costs nothing. */
    assert_int_equal(kill(module_cache_worker_pid(fixture->cache), SIGKILL), 0);
    for (int i = 0; i < 200 && module_cache_counts(fixture->cache).worker_restart_count < 2; i++) {
        step(fixture->cache);
    }
    expect_failure(fixture, &self.query, MODULE_FAILURE_NONE);
    assert_int_equal(module_cache_counts(fixture->cache).worker_restart_count, 2);
}

static void bounds_what_is_asked_at_once(void **state)
{
    struct fixture *fixture = *state;
    static struct target targets[MAPPINGS_MAX];
    enum {
        REQUESTS = 20000
    };
    static struct module_ticket *tickets[REQUESTS];
    const size_t count = REQUESTS;
    size_t mapping_count = read_mappings(getpid(), targets);
    size_t accepted = 0;
    for (size_t i = 0; i < count; i++) {
        tickets[i] = module_cache_request(fixture->cache, MODULE_SYMBOLS, MODULE_WANTED,
                                          &targets[i % mapping_count].query);
        accepted += tickets[i] != NULL;
    }
    assert_in_range(accepted, OPENER_REQUESTS_MAX / 4, OPENER_REQUESTS_MAX / 2);
    assert_int_equal(module_cache_counts(fixture->cache).refused_count, count - accepted);
    for (size_t i = 0; i < count; i++) {
        if (tickets[i] != NULL) {
            assert_int_equal(wait_for(fixture->cache, tickets[i]), MODULE_READY);
            module_ticket_release(tickets[i]);
        }
    }
    assert_int_equal(module_cache_counts(fixture->cache).tables[MODULE_SYMBOLS].ready_count,
                     accepted);
    assert_true(module_cache_counts(fixture->cache).tables[MODULE_SYMBOLS].module_count <=
                mapping_count);
    expect_failure(fixture, &targets[0].query, MODULE_FAILURE_NONE);
}

/* What one user's file may have done to the worker must not reach another's. */
static void renews_its_worker_between_the_files_of_two_users(void **state)
{
    struct fixture *fixture = *state;
    static const uid_t owners[] = {0, 4001, 4001, 4002, 0, 0, 4001};
    static const uint64_t renewals[] = {0, 0, 0, 1, 2, 2, 2};
    char path[PATH_BYTES + 16];
    if (geteuid() != 0) {
        skip();
    }
    for (size_t i = 0; i < sizeof owners / sizeof *owners; i++) {
        (void)snprintf(path, sizeof path, "%s/%zu.so", fixture->folder, i);
        copy_libc(path, false);
        assert_int_equal(chown(path, owners[i], 0), 0);
        struct target target = of_gone_process(fixture, path);
        target.query.path = target.path;
        expect_failure(fixture, &target.query, MODULE_FAILURE_NONE);
        assert_int_equal(module_cache_counts(fixture->cache).worker_renewal_count, renewals[i]);
    }
    assert_int_equal(module_cache_counts(fixture->cache).worker_restart_count, 0);
}

static void forgives_tickets_that_nobody_waits_for(void **state)
{
    struct fixture *fixture = *state;
    static struct target targets[MAPPINGS_MAX];
    size_t count = read_mappings(getpid(), targets);
    for (size_t i = 0; i < count; i++) {
        module_ticket_release(
            module_cache_request(fixture->cache, MODULE_SYMBOLS, MODULE_WANTED, &targets[i].query));
    }
    /* Undecided ones go with the cache; decided ones too. */
    step(fixture->cache);
    fixture->descriptors = 0;
    module_cache_free(fixture->cache);
    static const struct elf_worker_config config = {.uid = 65534, .gid = 65534};
    assert_int_equal(module_cache_new(&config, &fixture->cache), 0);
    fixture->descriptors = count_descriptors();
}

static void names_the_kernel_or_says_why_not(void **state)
{
    struct fixture *fixture = *state;
    struct module_ticket *ticket = module_cache_request_kernel(fixture->cache);
    if (wait_for(fixture->cache, ticket) == MODULE_READY) {
        assert_true(module_ticket_module(ticket)->symbols.symbol_count > 1000);
        assert_int_equal(module_ticket_module(ticket)->identity.inode, 0);
    } else {
        assert_int_equal(module_ticket_failure(ticket), MODULE_FAILURE_UNREADABLE);
    }
    module_ticket_release(ticket);
}

static void gives_symbols_and_call_frames_of_one_file_apart(void **state)
{
    struct fixture *fixture = *state;
    static struct target libc;
    find_mapping(getpid(), "/libc.so", &libc);
    struct module_ticket *tickets[MODULE_TABLES];
    for (enum module_table table = MODULE_SYMBOLS; table < MODULE_TABLES; table++) {
        tickets[table] = module_cache_request(fixture->cache, table, MODULE_PREFETCH, &libc.query);
    }
    const struct module *modules[MODULE_TABLES];
    for (enum module_table table = MODULE_SYMBOLS; table < MODULE_TABLES; table++) {
        assert_int_equal(wait_for(fixture->cache, tickets[table]), MODULE_READY);
        modules[table] = module_ticket_module(tickets[table]);
        assert_int_equal(modules[table]->table, table);
        struct module_table_counts counts = module_cache_counts(fixture->cache).tables[table];
        assert_int_equal(counts.ready_count, 1);
        assert_int_equal(counts.module_count, 1);
        assert_true(counts.table_bytes > 10000);
    }
    assert_true(has_symbol(modules[MODULE_SYMBOLS], "strfry"));
    /* Where a function begins, its caller is one word up. */
    uint64_t vaddr = 0;
    uint64_t offset = (uint64_t)(uintptr_t)&strfry - libc.query.start + libc.query.file_offset;
    assert_true(cfi_table_vaddr(&modules[MODULE_CFI]->cfi, offset, &vaddr));
    const struct cfi_rule *rule = cfi_table_find(&modules[MODULE_CFI]->cfi, vaddr);
    assert_int_equal(rule->kind, CFI_OFFSET);
    assert_int_equal(rule->cfa_offset, 8);
    for (enum module_table table = MODULE_SYMBOLS; table < MODULE_TABLES; table++) {
        module_ticket_release(tickets[table]);
    }
}

static void knows_the_code_that_the_kernel_maps(void **state)
{
    struct fixture *fixture = *state;
    struct module_ticket *symbols = module_cache_request_vdso(fixture->cache, MODULE_SYMBOLS);
    struct module_ticket *cfi = module_cache_request_vdso(fixture->cache, MODULE_CFI);
    assert_int_equal(wait_for(fixture->cache, symbols), MODULE_READY);
    assert_int_equal(wait_for(fixture->cache, cfi), MODULE_READY);
    assert_true(has_symbol(module_ticket_module(symbols), "__vdso_clock_gettime"));
    assert_true(module_ticket_module(cfi)->cfi.row_count > 10);
    struct module_ticket *again = module_cache_request_vdso(fixture->cache, MODULE_CFI);
    assert_int_equal(wait_for(fixture->cache, again), MODULE_READY);
    assert_ptr_equal(module_ticket_module(again), module_ticket_module(cfi));
    module_ticket_release(symbols);
    module_ticket_release(cfi);
    module_ticket_release(again);
}

/* A sample that comes to wait for a file which is asked for already. */
static void moves_up_what_becomes_wanted(void **state)
{
    struct fixture *fixture = *state;
    static struct target libc;
    static struct target self;
    static struct target cmocka;
    find_mapping(getpid(), "/libc.so", &libc);
    find_mapping(getpid(), "/test_module_cache", &self);
    find_mapping(getpid(), "/libcmocka", &cmocka);
    pid_t pid = module_cache_worker_pid(fixture->cache);
    assert_int_equal(kill(pid, SIGSTOP), 0);
    struct module_ticket *busy = expect_pending(fixture, MODULE_WANTED, &cmocka.query);
    struct module_ticket *first = expect_pending(fixture, MODULE_PREFETCH, &self.query);
    struct module_ticket *second = expect_pending(fixture, MODULE_PREFETCH, &libc.query);
    struct module_ticket *wanted = expect_pending(fixture, MODULE_WANTED, &libc.query);
    assert_int_equal(kill(pid, SIGCONT), 0);
    assert_int_equal(wait_for(fixture->cache, wanted), MODULE_READY);
    assert_int_equal(module_ticket_state(second), MODULE_READY);
    assert_int_equal(module_ticket_state(first), MODULE_PENDING);
    assert_int_equal(wait_for(fixture->cache, first), MODULE_READY);
    module_ticket_release(busy);
    module_ticket_release(first);
    module_ticket_release(second);
    module_ticket_release(wanted);
}

#define CACHE_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], ELF_WORKER_ARGUMENT) == 0) {
        elf_worker_child(3);
    }
    const struct CMUnitTest tests[] = {
        CACHE_TEST(names_what_this_process_has_mapped),
        CACHE_TEST(gives_one_module_for_one_file_of_two_processes),
        CACHE_TEST(keeps_a_copy_with_a_forged_build_id_apart),
        CACHE_TEST(refuses_a_file_with_another_inode),
        CACHE_TEST(knows_a_file_that_was_replaced_after_its_process_ended),
        CACHE_TEST(opens_nothing_but_files),
        CACHE_TEST(says_that_a_text_is_unreadable),
        CACHE_TEST(reads_a_deleted_file_through_its_mapping),
        CACHE_TEST(resolves_a_path_inside_the_root_of_its_process),
        CACHE_TEST(loses_one_table_with_a_worker),
        CACHE_TEST(bounds_what_is_asked_at_once),
        CACHE_TEST(renews_its_worker_between_the_files_of_two_users),
        CACHE_TEST(forgives_tickets_that_nobody_waits_for),
        CACHE_TEST(gives_symbols_and_call_frames_of_one_file_apart),
        CACHE_TEST(knows_the_code_that_the_kernel_maps),
        CACHE_TEST(moves_up_what_becomes_wanted),
        CACHE_TEST(names_the_kernel_or_says_why_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
