/* SPDX-License-Identifier: Apache-2.0 */

/* Whose perf maps are opened, and what the cache makes of them. */
#include "module_cache_fixture.h"
#include "module_file.h"
#include "perf_map.h"

#include <grp.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

struct mapped {
    pid_t pid;
    char path[PATH_BYTES];
};

static bool guard(const struct module_place *place, void *userdata)
{
    (void)place;
    (void)userdata;
    return true;
}

static struct mapped start_mapped(void)
{
    struct mapped mapped = {.pid = start_sleeper()};
    (void)snprintf(mapped.path, sizeof mapped.path, "/tmp/perf-%d.map", (int)mapped.pid);
    (void)unlink(mapped.path);
    return mapped;
}

static void stop_mapped(struct mapped *mapped)
{
    stop_process(mapped->pid);
    (void)unlink(mapped->path);
}

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

static void opens_a_regular_file_of_the_process_itself_only(void **state)
{
    (void)state;
    struct mapped mapped = start_mapped();
    char target[PATH_BYTES + 8];
    (void)snprintf(target, sizeof target, "%s.target", mapped.path);
    assert_int_equal(open_map(&mapped, 0), MODULE_FAILURE_NOT_FOUND);

    append(&mapped, "1000 10 f\n");
    assert_int_equal(open_map(&mapped, 0), MODULE_FAILURE_NONE);
    assert_int_equal(open_map(&mapped, 1), MODULE_FAILURE_NOT_FOUND); /* another began then */
    assert_int_equal(truncate(mapped.path, (off_t)PERF_MAP_BYTES_MAX + 1), 0);
    assert_int_equal(open_map(&mapped, 0), MODULE_FAILURE_LIMIT);
    assert_int_equal(truncate(mapped.path, (off_t)PERF_MAP_BYTES_MAX), 0);
    assert_int_equal(open_map(&mapped, 0), MODULE_FAILURE_NONE);

    assert_int_equal(rename(mapped.path, target), 0);
    assert_int_equal(symlink(target, mapped.path), 0);
    assert_int_equal(open_map(&mapped, 0), MODULE_FAILURE_NOT_FILE);
    (void)unlink(mapped.path);
    (void)unlink(target);
    assert_int_equal(mkfifo(mapped.path, 0600), 0);
    assert_int_equal(open_map(&mapped, 0), MODULE_FAILURE_NOT_FILE);
    (void)unlink(mapped.path);
    assert_int_equal(mkdir(mapped.path, 0700), 0);
    assert_int_equal(open_map(&mapped, 0), MODULE_FAILURE_NOT_FILE);
    (void)rmdir(mapped.path);

    append(&mapped, "1000 10 f\n");
    stop_process(mapped.pid);
    assert_int_equal(open_map(&mapped, 0), MODULE_FAILURE_NOT_FOUND);
    stop_mapped(&mapped);
}

static void opens_no_file_of_another_user(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        skip(); /* nobody else's file can be made */
    }
    struct mapped mapped = start_mapped();
    append(&mapped, "1000 10 f\n");
    assert_int_equal(open_map(&mapped, 0), MODULE_FAILURE_NONE);
    assert_int_equal(chown(mapped.path, 4711, 0), 0);
    assert_int_equal(open_map(&mapped, 0), MODULE_FAILURE_IDENTITY);
    stop_mapped(&mapped);
}

/* Any user can write into such a file, and, from a folder of its own, give it that name. */
static void opens_no_file_that_others_may_write(void **state)
{
    (void)state;
    struct mapped mapped = start_mapped();
    append(&mapped, "1000 10 f\n");
    assert_int_equal(chmod(mapped.path, 0664), 0);
    assert_int_equal(open_map(&mapped, 0), MODULE_FAILURE_NONE);
    assert_int_equal(chmod(mapped.path, 0646), 0);
    assert_int_equal(open_map(&mapped, 0), MODULE_FAILURE_IDENTITY);
    if (geteuid() == 0) {
        assert_int_equal(chmod(mapped.path, 0664), 0);
        assert_int_equal(chown(mapped.path, (uid_t)-1, 4711), 0);
        assert_int_equal(open_map(&mapped, 0), MODULE_FAILURE_IDENTITY);
        assert_int_equal(chmod(mapped.path, 0644), 0);
        assert_int_equal(open_map(&mapped, 0), MODULE_FAILURE_NONE);
    }
    stop_mapped(&mapped);
}

/* They stand before the process's own pid in its status. */
static void finds_the_map_of_a_process_with_many_groups(void **state)
{
    (void)state;
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
    struct mapped mapped = start_mapped();
    assert_int_equal(setgroups(0, NULL), 0);
    append(&mapped, "1000 10 f\n");
    assert_int_equal(open_map(&mapped, 0), MODULE_FAILURE_NONE);
    stop_mapped(&mapped);
}

/* Any user can give a file of the process's user that name, without being able to read the file. */
static void opens_no_file_with_a_second_name(void **state)
{
    (void)state;
    struct mapped mapped = start_mapped();
    char other[PATH_BYTES + 8];
    (void)snprintf(other, sizeof other, "%s.other", mapped.path);
    append(&mapped, "1000 10 f\n");
    assert_int_equal(link(mapped.path, other), 0);
    assert_int_equal(open_map(&mapped, 0), MODULE_FAILURE_IDENTITY);
    assert_int_equal(unlink(other), 0);
    assert_int_equal(open_map(&mapped, 0), MODULE_FAILURE_NONE);
    stop_mapped(&mapped);
}

static enum module_failure open_dump(int32_t pid, const char *path, uint64_t map_device)
{
    struct stat status = {0};
    (void)stat(path, &status);
    const struct module_query query = {.pid = pid,
                                       .path = path,
                                       .device_major = major(status.st_dev),
                                       .device_minor = minor(status.st_dev),
                                       .inode = status.st_ino,
                                       .map_device = map_device};
    struct module_file file = {.fd = -1};
    const struct module_guard guards = {.place = guard, .is_careful = true};
    enum module_failure failure = module_file_open_jitdump(&query, &guards, &file);
    assert_int_equal(file.fd >= 0, failure == MODULE_FAILURE_NONE);
    (void)close(file.fd);
    return failure;
}

static void opens_a_jitdump_of_the_process_itself_only(void **state)
{
    (void)state;
    struct mapped mapped = start_mapped();
    struct mapped other = start_mapped();
    char link_path[PATH_BYTES + 8];
    (void)snprintf(mapped.path, sizeof mapped.path, "/tmp/jit-%d.dump", (int)mapped.pid);
    (void)snprintf(link_path, sizeof link_path, "%s.link", mapped.path);
    append(&mapped, "");
    assert_int_equal(open_dump(mapped.pid, mapped.path, 0), MODULE_FAILURE_NONE);
    /* A child has its parent's mappings. */
    assert_int_equal(open_dump(other.pid, mapped.path, 0), MODULE_FAILURE_IDENTITY);

    assert_int_equal(link(mapped.path, link_path), 0);
    assert_int_equal(open_dump(mapped.pid, mapped.path, 0), MODULE_FAILURE_IDENTITY);
    (void)unlink(link_path);
    if (geteuid() == 0) {
        assert_int_equal(chown(mapped.path, 4711, 4711), 0);
        assert_int_equal(open_dump(mapped.pid, mapped.path, 0), MODULE_FAILURE_IDENTITY);
        assert_int_equal(chown(mapped.path, 0, 0), 0);
    }
    assert_int_equal(truncate(mapped.path, ((off_t)1 << 30) + 1), 0);
    assert_int_equal(open_dump(mapped.pid, mapped.path, 0), MODULE_FAILURE_LIMIT);
    (void)unlink(mapped.path);
    assert_int_equal(mkfifo(mapped.path, 0600), 0);
    assert_int_equal(open_dump(mapped.pid, mapped.path, 0), MODULE_FAILURE_NOT_FILE);
    (void)unlink(mapped.path);

    append(&mapped, "");
    stop_process(mapped.pid);
    assert_int_equal(open_dump(mapped.pid, mapped.path, 0), MODULE_FAILURE_NOT_FOUND);
    assert_int_equal(open_dump(mapped.pid, mapped.path, 1), MODULE_FAILURE_NONE);
    (void)unlink(mapped.path);
    stop_mapped(&other);
}

/* What a process that is gone has left is read if it is the file that was its own. */
static void opens_what_is_left_of_a_process_that_is_gone(void **state)
{
    (void)state;
    struct mapped mapped = start_mapped();
    const struct module_guard guards = {.place = guard};
    struct module_query query = {.pid = mapped.pid, .path = ""};
    struct module_file file = {.fd = -1};
    append(&mapped, "1000 10 f\n");
    assert_int_equal(module_file_open_perf_map(&query, &guards, &file), MODULE_FAILURE_NONE);
    (void)close(file.fd);
    stop_process(mapped.pid);
    append(&mapped, "2000 10 g\n");
    assert_int_equal(module_file_open_perf_map(&query, &guards, &file), MODULE_FAILURE_NOT_FOUND);
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
    (void)unlink(mapped.path);
    assert_int_equal(module_file_open_perf_map(&query, &guards, &file), MODULE_FAILURE_NOT_FOUND);
    stop_mapped(&mapped);
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
static void reads_an_old_map_once(void **state)
{
    struct fixture *fixture = *state;
    struct mapped mapped = start_mapped();
    struct module_ticket *ticket = NULL;
    struct module_ticket *next = NULL;
    append(&mapped, "1000 10 first\n");
    const struct module *module = read_map(fixture, &mapped, &ticket);
    bool is_known = false;
    for (int i = 0; i < 100 && !is_known; i++) {
        (void)poll(NULL, 0, 100);
        is_known = read_map(fixture, &mapped, &next) == module;
        module = module_ticket_module(next);
        module_ticket_release(ticket);
        ticket = next;
    }
    assert_true(is_known);
    module_ticket_release(ticket);
    stop_mapped(&mapped);
}

static void reads_what_has_been_added_since(void **state)
{
    struct fixture *fixture = *state;
    struct mapped mapped = start_mapped();
    struct module_ticket *tickets[3];
    append(&mapped, "1000 10 first\n");
    const struct module *first = read_map(fixture, &mapped, &tickets[0]);
    assert_non_null(first);
    assert_int_equal(symbol_table_find(&first->symbols, 0x1008), 0);
    /* It may have been changed again between two ticks. */
    assert_ptr_not_equal(read_map(fixture, &mapped, &tickets[1]), first);
    assert_int_equal(symbol_table_find(&first->symbols, 0x1008), 0);

    append(&mapped, "2000 10 second\n3000");
    const struct module *second = read_map(fixture, &mapped, &tickets[2]);
    assert_non_null(second);
    assert_int_equal(second->symbols.symbol_count, 2);
    assert_true(has_symbol(second, "second"));
    for (size_t i = 0; i < 3; i++) {
        module_ticket_release(tickets[i]);
    }
    stop_mapped(&mapped);
}

/* A file that is both: what is made of it as one is not taken for the other. */
static void takes_no_library_for_a_map_of_the_same_file(void **state)
{
    struct fixture *fixture = *state;
    struct mapped mapped = start_mapped();
    struct module_ticket *ticket = NULL;
    copy_libc(mapped.path, false);
    struct target library = of_gone_process(fixture, mapped.path);
    library.query.path = library.path;
    struct module_ticket *other = expect(fixture, &library.query, MODULE_FAILURE_NONE);
    const struct module *map = read_map(fixture, &mapped, &ticket);
    assert_non_null(map);
    assert_int_equal(map->symbols.symbol_count, 0);
    assert_true(module_ticket_module(other)->symbols.symbol_count > 1000);
    module_ticket_release(ticket);
    module_ticket_release(other);
    stop_mapped(&mapped);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], ELF_WORKER_ARGUMENT) == 0) {
        elf_worker_child(3);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opens_a_regular_file_of_the_process_itself_only),
        cmocka_unit_test(opens_no_file_of_another_user),
        cmocka_unit_test(opens_no_file_that_others_may_write),
        cmocka_unit_test(finds_the_map_of_a_process_with_many_groups),
        cmocka_unit_test(opens_no_file_with_a_second_name),
        cmocka_unit_test(opens_a_jitdump_of_the_process_itself_only),
        cmocka_unit_test(opens_what_is_left_of_a_process_that_is_gone),
        CACHE_TEST(reads_what_has_been_added_since),
        CACHE_TEST(reads_an_old_map_once),
        CACHE_TEST(takes_no_library_for_a_map_of_the_same_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
