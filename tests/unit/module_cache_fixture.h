/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The cache with its real worker and threads, for tests. Files are copies of the C library in a
 * folder of the test's own; a process that is gone is one that was forked and reaped.
 */

#include "clock.h"
#include "mapped_files.h"
#include "module_cache.h"
#include "open_descriptors.h"
#include "opener.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#define WAIT_MS 20000

#define FILE_BYTES (PATH_BYTES + 16)

struct fixture {
    struct module_cache *cache;
    char folder[PATH_BYTES];
    pid_t gone; /* a pid that no process has */
    size_t descriptors;
};

static const struct module_cache_config fixture_config = {
    .worker = {.uid = 65534, .gid = 65534},
    .second_memory_bytes = UINT64_C(128) << 20,
    .table_bytes_max = UINT64_C(512) << 20,
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

/* As many as at first, and the socket of the second worker, which stays for a while. */
static inline size_t expected_descriptors(const struct fixture *fixture)
{
    return fixture->descriptors + (module_cache_worker_pid(fixture->cache, 1) != 0);
}

/* Nothing that a test opened stays open. */
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

/* The pid of the first worker, once its process is there: until then it is 0, and a signal to that
 * would be one to this test's own group, the others that run beside it included. */
static inline pid_t first_worker_pid(struct module_cache *cache)
{
    const uint64_t limit_ns = clock_ns(CLOCK_MONOTONIC) + WAIT_MS * NS_PER_MS;
    pid_t pid = module_cache_worker_pid(cache, 0);
    while (pid == 0 && clock_ns(CLOCK_MONOTONIC) < limit_ns) {
        step(cache);
        pid = module_cache_worker_pid(cache, 0);
    }
    assert_true(pid > 0);
    return pid;
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

/* What a sample waits for. */
static inline struct module_ticket *request(struct fixture *fixture,
                                            const struct module_query *query)
{
    return module_cache_request(fixture->cache, MODULE_SYMBOLS, MODULE_WANTED, query);
}

/* Requests, waits, and expects; gives the ticket back. */
static inline struct module_ticket *
expect(struct fixture *fixture, const struct module_query *query, enum module_failure failure)
{
    struct module_ticket *ticket = request(fixture, query);
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

/* The path, written to `path` and returned, of what is called so in the test's folder. */
static inline const char *in_folder(const struct fixture *fixture, const char *name,
                                    char path[FILE_BYTES])
{
    (void)snprintf(path, FILE_BYTES, "%s/%s", fixture->folder, name);
    return path;
}

/* A path, borrowed, as a process that is gone had mapped it. */
static inline struct module_query of_gone_process(const struct fixture *fixture, const char *path)
{
    struct module_query query = query_of(path);
    query.pid = fixture->gone;
    query.parent_pid = getpid();
    query.end = 4096;
    return query;
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

static inline void *map_code(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    void *map = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    assert_ptr_not_equal(map, MAP_FAILED);
    (void)close(fd);
    return map;
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

/* Whether the program's code of libc is mapped, which is the last that its loader maps. */
static inline bool has_libc(pid_t pid)
{
    char line[4096 + 128];
    bool has = false;
    (void)snprintf(line, sizeof line, "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(line, "re");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        has = has || (strstr(line, " r-xp ") != NULL && strstr(line, "/libc.so") != NULL);
    }
    if (maps != NULL) {
        (void)fclose(maps);
    }
    return has;
}

static inline bool has_name(pid_t pid, const char *wanted)
{
    char path[64];
    char name[16] = "";
    (void)snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = read(fd, name, sizeof name - 1);
    (void)close(fd);
    name[got > 0 ? got : 0] = '\0';
    return strcmp(name, wanted) == 0;
}

static inline pid_t start_sleeper(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)execlp("sleep", "sleep", "60", NULL);
        _exit(1);
    }
    for (int i = 0; i < 5000 && !(has_name(pid, "sleep\n") && has_libc(pid)); i++) {
        (void)poll(NULL, 0, 2);
    }
    return pid;
}

static inline void stop_process(pid_t pid)
{
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

#define CACHE_TEST(name) TEST_OF(struct fixture *fixture, name, set_up, tear_down)

/* Each program is its own worker, too. */
int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], ELF_WORKER_ARGUMENT) == 0) {
        elf_worker_child(3);
    }
    return unit_test_run();
}
