/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The cache with its real worker and threads, for tests. Files are copies of the C library in a
 * folder of the test's own; a process that is gone is one that was forked and reaped.
 */

#include "clock.h"
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

static inline size_t count_descriptors(void)
{
    size_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder) != NULL) {
        count++;
    }
    (void)closedir(folder);
    return count;
}

static const struct module_cache_config fixture_config = {
    .worker = {.uid = 65534, .gid = 65534},
    .second_memory_bytes = UINT64_C(128) << 20,
};

static inline int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    (void)snprintf(fixture->folder, sizeof fixture->folder, "/tmp/module_cache.XXXXXX");
    assert_non_null(mkdtemp(fixture->folder));
    fixture->gone = fork();
    if (fixture->gone == 0) {
        _exit(0);
    }
    (void)waitpid(fixture->gone, NULL, 0);
    assert_int_equal(module_cache_new(&fixture_config, &fixture->cache), 0);
    fixture->descriptors = count_descriptors();
    *state = fixture;
    return 0;
}

/* Nothing that a test opened stays open. */
/* As many as at first, and the socket of the second worker, which stays for a while. */
static inline size_t expected_descriptors(const struct fixture *fixture)
{
    return fixture->descriptors + (module_cache_worker_pid(fixture->cache, 1) != 0);
}

static inline int tear_down(void **state)
{
    struct fixture *fixture = *state;
    char command[PATH_BYTES + 16];
    const uint64_t limit_ns = clock_ns(CLOCK_MONOTONIC) + WAIT_MS * NS_PER_MS;
    while (count_descriptors() != expected_descriptors(fixture) &&
           clock_ns(CLOCK_MONOTONIC) < limit_ns) {
        (void)poll(NULL, 0, 10);
    }
    size_t left = count_descriptors();
    size_t before = expected_descriptors(fixture);
    module_cache_free(fixture->cache);
    (void)snprintf(command, sizeof command, "rm -rf '%s'", fixture->folder);
    int r = system(command);
    free(fixture);
    return r == 0 && left == before ? 0 : -1;
}

static inline void step(struct module_cache *cache)
{
    struct pollfd readable = {.fd = module_cache_fd(cache), .events = POLLIN};
    (void)poll(&readable, 1, 50);
    module_cache_dispatch(cache);
}

static inline enum module_state wait_for(struct module_cache *cache,
                                         const struct module_ticket *ticket)
{
    assert_non_null(ticket);
    const uint64_t limit_ns = clock_ns(CLOCK_MONOTONIC) + WAIT_MS * NS_PER_MS;
    while (module_ticket_state(ticket) == MODULE_PENDING && clock_ns(CLOCK_MONOTONIC) < limit_ns) {
        step(cache);
    }
    return module_ticket_state(ticket);
}

/* Requests, waits, and expects; gives the ticket back. */
static inline struct module_ticket *
expect(struct fixture *fixture, const struct module_query *query, enum module_failure failure)
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
static inline struct module_ticket *expect_pending(struct fixture *fixture,
                                                   enum module_urgency urgency,
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

static inline void expect_failure(struct fixture *fixture, const struct module_query *query,
                                  enum module_failure failure)
{
    module_ticket_release(expect(fixture, query, failure));
}

/* The executable file mappings of a process. */
static inline size_t read_mappings(pid_t pid, struct target *targets)
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

static inline void find_mapping(pid_t pid, const char *name, struct target *ret)
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
static inline struct target of_gone_process(const struct fixture *fixture, const char *path)
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

static inline void copy_libc(const char *path, bool rename_symbols)
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

static inline bool has_symbol(const struct module *module, const char *name)
{
    for (size_t i = 0; i < module->symbols.symbol_count; i++) {
        if (strcmp(symbol_table_name(&module->symbols, i), name) == 0) {
            return true;
        }
    }
    return false;
}

static inline pid_t start_sleeper(void)
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

static inline void stop_process(pid_t pid)
{
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

#define CACHE_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
