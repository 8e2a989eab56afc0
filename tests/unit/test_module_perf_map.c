/* SPDX-License-Identifier: Apache-2.0 */

/* Whose perf maps are opened, and what the cache makes of them. */
#include "module_cache_fixture.h"
#include "module_file.h"
#include "perf_map.h"

#include <grp.h>

struct mapped {
    pid_t pid;
    char path[PATH_BYTES];
};

static bool guard(const struct module_place *place, void *userdata)
{
    (void)place, (void)userdata;
    return true;
}

/* Nothing here is told from what a process has mapped. */
static bool keeps_memory(int32_t pid, uint64_t start_time_ns, void *userdata)
{
    (void)pid, (void)start_time_ns, (void)userdata;
    return false;
}

static struct mapped *start_mapped(void)
{
    struct mapped *mapped = calloc(1, sizeof *mapped);
    assert_non_null(mapped);
    mapped->pid = start_sleeper();
    (void)snprintf(mapped->path, sizeof mapped->path, "/tmp/perf-%d.map", (int)mapped->pid);
    (void)unlink(mapped->path);
    return mapped;
}

static void stop_mapped(struct mapped *mapped)
{
    stop_process(mapped->pid);
    (void)unlink(mapped->path);
    free(mapped);
}

#define MAPPED(name) TEST_MADE(struct mapped *mapped, name, start_mapped(), stop_mapped)

static void append(const struct mapped *mapped, const char *text)
{
    int fd = open(mapped->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    (void)close(fd);
}

static enum module_failure open_map(const struct mapped *mapped, uint64_t start_time_ns)
{
    const struct module_query query = {
        .pid = mapped->pid, .start_time_ns = start_time_ns, .path = ""};
    struct module_file file = {.fd = -1};
    const struct module_guard guards = {.place = guard};
    enum module_failure failure = module_file_open_perf_map(&query, &guards, &file);
    assert_int_equal(file.fd >= 0, failure == MODULE_FAILURE_NONE);
    (void)close(file.fd);
    return failure;
}

static enum module_failure open_dump(int32_t pid, const char *path, uint64_t map_device)
{
    struct module_query query = query_of(path);
    query.pid = pid;
    query.map_device = map_device;
    query.mapped_ns = 1; /* it is written after that */
    struct module_file file = {.fd = -1};
    const struct module_guard guards = {
        .place = guard, .process = keeps_memory, .is_careful = root_is_local()};
    enum module_failure failure = module_file_open_jitdump(&query, &guards, &file);
    assert_int_equal(file.fd >= 0, failure == MODULE_FAILURE_NONE);
    (void)close(file.fd);
    return failure;
}

static enum module_failure open_own_map(const struct mapped *mapped)
{
    return open_map(mapped, 0);
}

static enum module_failure open_own_dump(const struct mapped *mapped)
{
    return open_dump(mapped->pid, mapped->path, 0);
}

/* What a shell does to a file, $F, and what comes of opening it then. */
struct change {
    const char *command;
    enum module_failure failure;
    bool needs_root;
};

static void expect_after(const struct mapped *mapped,
                         enum module_failure (*open_file)(const struct mapped *mapped),
                         const struct change *changes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char command[2 * PATH_BYTES];
        if (changes[i].needs_root && geteuid() != 0) {
            continue;
        }
        (void)snprintf(command, sizeof command, "umask 077; F=%s; %s", mapped->path,
                       changes[i].command);
        assert_int_equal(system(command), 0);
        enum module_failure failure = open_file(mapped);
        if (failure != changes[i].failure) {
            fail_msg("%s: %d", changes[i].command, (int)failure);
        }
    }
}

#define EXPECT_AFTER(mapped, open_file, ...)                                                       \
    expect_after(mapped, open_file, ROWS_OF(struct change, __VA_ARGS__))

MAPPED(opens_a_regular_file_of_the_process_itself_only)
{
    EXPECT_AFTER(mapped, open_own_map, {"true", MODULE_FAILURE_NOT_FOUND, false},
                 {"echo 1000 10 f >$F", MODULE_FAILURE_NONE, false},
                 {"mv $F $F.target && ln -s $F.target $F", MODULE_FAILURE_NOT_FILE, false},
                 {"rm $F $F.target && mkfifo $F", MODULE_FAILURE_NOT_FILE, false},
                 {"rm $F && mkdir $F", MODULE_FAILURE_NOT_FILE, false},
                 {"rmdir $F && echo 1000 10 f >$F", MODULE_FAILURE_NONE, false});
    assert_int_equal(open_map(mapped, 1), MODULE_FAILURE_IDENTITY); /* another began then */
    assert_int_equal(truncate(mapped->path, (off_t)PERF_MAP_BYTES_MAX + 1), 0);
    assert_int_equal(open_map(mapped, 0), MODULE_FAILURE_UNREADABLE);
    assert_int_equal(truncate(mapped->path, (off_t)PERF_MAP_BYTES_MAX), 0);
    assert_int_equal(open_map(mapped, 0), MODULE_FAILURE_NONE);
    stop_process(mapped->pid);
    assert_int_equal(open_map(mapped, 0), MODULE_FAILURE_IDENTITY);
}

MAPPED(opens_no_file_that_others_may_have_written)
{
    EXPECT_AFTER(mapped, open_own_map, {"echo 1000 10 f >$F", MODULE_FAILURE_NONE, false},
                 {"chown 4711 $F", MODULE_FAILURE_IDENTITY, true},
                 {"chown 0 $F", MODULE_FAILURE_NONE, true},
                 /* Any user can write into such a file, and, from a folder of its own, give it that
                  * name. */
                 {"chmod 664 $F", MODULE_FAILURE_NONE, false},
                 {"chmod 646 $F", MODULE_FAILURE_IDENTITY, false},
                 {"chmod 664 $F && chgrp 4711 $F", MODULE_FAILURE_IDENTITY, true},
                 {"chmod 644 $F", MODULE_FAILURE_NONE, false},
                 /* And give a file of the process's user that name, without being able to read the
                  * file. */
                 {"ln $F $F.other", MODULE_FAILURE_IDENTITY, false},
                 {"rm $F.other", MODULE_FAILURE_NONE, false});
}

/* They stand before the process's own pid in its status. */
TEST(finds_the_map_of_a_process_with_many_groups)
{
    enum {
        GROUPS = 5000
    };
    static gid_t groups[GROUPS];
    if (geteuid() != 0) {
        skip();
    }
    for (gid_t i = 0; i < GROUPS; i++) {
        groups[i] = 4000000000U + i;
    }
    assert_int_equal(setgroups(GROUPS, groups), 0);
    struct mapped *mapped = start_mapped();
    assert_int_equal(setgroups(0, NULL), 0);
    append(mapped, "1000 10 f\n");
    assert_int_equal(open_map(mapped, 0), MODULE_FAILURE_NONE);
    stop_mapped(mapped);
}

MAPPED(opens_a_jitdump_of_the_process_itself_only)
{
    struct mapped *other = start_mapped();
    (void)snprintf(mapped->path, sizeof mapped->path, "/tmp/jit-%d.dump", (int)mapped->pid);
    EXPECT_AFTER(
        mapped, open_own_dump, {"true >$F", MODULE_FAILURE_NONE, false},
        {"ln $F $F.link", MODULE_FAILURE_IDENTITY, false},
        {"rm $F.link && chown 4711:4711 $F", MODULE_FAILURE_IDENTITY, true},
        {"rm -f $F.link $F && truncate -s 1073741825 $F", MODULE_FAILURE_UNREADABLE, false},
        {"rm $F && mkfifo $F", MODULE_FAILURE_NOT_FILE, false},
        {"rm $F && true >$F", MODULE_FAILURE_NONE, false});
    /* A child has its parent's mappings. */
    assert_int_equal(open_dump(other->pid, mapped->path, 0), MODULE_FAILURE_IDENTITY);
    stop_process(mapped->pid);
    assert_int_equal(open_dump(mapped->pid, mapped->path, 0), MODULE_FAILURE_NOT_FOUND);
    assert_int_equal(open_dump(mapped->pid, mapped->path, 1), MODULE_FAILURE_NONE);
    stop_mapped(other);
}

/* What a process that is gone has left is read if it is the file that was its own. */
MAPPED(opens_what_is_left_of_a_process_that_is_gone)
{
    const struct module_guard guards = {.place = guard};
    struct module_query query = {.pid = mapped->pid, .path = ""};
    struct module_file file = {.fd = -1};
    append(mapped, "1000 10 f\n");
    assert_int_equal(module_file_open_perf_map(&query, &guards, &file), MODULE_FAILURE_NONE);
    (void)close(file.fd);
    stop_process(mapped->pid);
    append(mapped, "2000 10 g\n");
    assert_int_equal(module_file_open_perf_map(&query, &guards, &file), MODULE_FAILURE_IDENTITY);
    query.map_device = file.identity.device;
    query.inode = file.identity.inode;
    query.inode_generation = file.identity.generation;
    assert_int_equal(module_file_open_perf_map(&query, &guards, &file), MODULE_FAILURE_NONE);
    (void)close(file.fd);

    query.inode++;
    assert_int_equal(module_file_open_perf_map(&query, &guards, &file), MODULE_FAILURE_IDENTITY);
    query.inode--;
    query.map_device++;
    assert_int_equal(module_file_open_perf_map(&query, &guards, &file), MODULE_FAILURE_IDENTITY);
    query.map_device--;
    (void)unlink(mapped->path);
    assert_int_equal(module_file_open_perf_map(&query, &guards, &file), MODULE_FAILURE_NOT_FOUND);
}

/* Its table, or NULL; the ticket is to be given back. */
static const struct module *read_map(struct fixture *fixture, const struct mapped *mapped,
                                     struct module_ticket **ret_ticket)
{
    const struct module_query query = {.pid = mapped->pid, .path = ""};
    *ret_ticket = module_cache_request_perf_map(fixture->cache, &query, 0);
    (void)wait_for(fixture->cache, *ret_ticket);
    return module_ticket_module(*ret_ticket);
}

/* Once a map is no longer young, one reading of it is every other's. */
CACHE_TEST(reads_an_old_map_once)
{
    struct mapped *mapped = start_mapped();
    struct module_ticket *ticket = NULL;
    struct module_ticket *next = NULL;
    append(mapped, "1000 10 first\n");
    const struct module *module = read_map(fixture, mapped, &ticket);
    bool is_known = false;
    for (int i = 0; i < 100 && !is_known; i++) {
        (void)poll(NULL, 0, 100);
        is_known = read_map(fixture, mapped, &next) == module;
        module = module_ticket_module(next);
        module_ticket_release(ticket);
        ticket = next;
    }
    assert_true(is_known);
    module_ticket_release(ticket);
    stop_mapped(mapped);
}

CACHE_TEST(reads_what_has_been_added_since)
{
    struct mapped *mapped = start_mapped();
    struct module_ticket *tickets[3];
    append(mapped, "1000 10 first\n");
    const struct module *first = read_map(fixture, mapped, &tickets[0]);
    assert_non_null(first);
    assert_int_equal(symbol_table_find(&first->symbols, 0x1008), 0);
    /* It may have been changed again between two ticks. */
    assert_ptr_not_equal(read_map(fixture, mapped, &tickets[1]), first);
    assert_int_equal(symbol_table_find(&first->symbols, 0x1008), 0);

    append(mapped, "2000 10 second\n3000");
    const struct module *second = read_map(fixture, mapped, &tickets[2]);
    assert_non_null(second);
    assert_int_equal(second->symbols.symbol_count, 2);
    assert_true(has_symbol(second, "second"));
    for (size_t i = 0; i < 3; i++) {
        module_ticket_release(tickets[i]);
    }
    stop_mapped(mapped);
}

/* A file that is both: what is made of it as one is not taken for the other. */
CACHE_TEST(takes_no_library_for_a_map_of_the_same_file)
{
    struct mapped *mapped = start_mapped();
    struct module_ticket *ticket = NULL;
    copy_libc(mapped->path, false);
    struct module_query library = of_gone_process(fixture, mapped->path);
    struct module_ticket *other = expect(fixture, &library, MODULE_FAILURE_NONE);
    const struct module *map = read_map(fixture, mapped, &ticket);
    assert_non_null(map);
    assert_int_equal(map->symbols.symbol_count, 0);
    assert_true(module_ticket_module(other)->symbols.symbol_count > 1000);
    module_ticket_release(ticket);
    module_ticket_release(other);
    stop_mapped(mapped);
}
