/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which file a mapping is: the cache answers with that file's table or with why there is none, and
 * never with another file's.
 */
#include "module_cache_fixture.h"
#include "prepared_child.h"

CACHE_TEST(names_what_this_process_has_mapped)
{
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
            assert_string_equal(symbol_table_name(symbols, (size_t)index),
                                "names_what_this_process_has_mapped");
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

CACHE_TEST(gives_one_module_for_one_file_of_two_processes)
{
    static struct target ours;
    static struct target theirs;
    pid_t pid = start_sleeper();
    find_mapping(getpid(), "/libc.so", &ours);
    find_mapping(pid, "/libc.so", &theirs);
    /* At once, so that they meet on the way. */
    struct module_ticket *first = request(fixture, &ours.query);
    struct module_ticket *second = request(fixture, &theirs.query);
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

CACHE_TEST(keeps_a_copy_with_a_forged_build_id_apart)
{
    static struct target libc;
    static struct target forged;
    char path[FILE_BYTES];
    copy_libc(in_folder(fixture, "forged.so", path), true);
    void *map = map_code(path);
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

CACHE_TEST(knows_a_file_that_was_replaced_after_its_process_ended)
{
    char path[FILE_BYTES];
    char command[4 * PATH_BYTES];
    copy_libc(in_folder(fixture, "lib.so", path), false);
    struct module_query target = of_gone_process(fixture, path);
    expect_failure(fixture, &target, MODULE_FAILURE_NONE);
    (void)snprintf(command, sizeof command,
                   "cd '%s' && cp /bin/true other.so && mv other.so lib.so", fixture->folder);
    assert_int_equal(system(command), 0);
    expect_failure(fixture, &target, MODULE_FAILURE_IDENTITY);
    assert_int_equal(unlink(path), 0);
    expect_failure(fixture, &target, MODULE_FAILURE_NOT_FOUND);
}

CACHE_TEST(says_that_a_text_is_unreadable)
{
    struct module_query target = of_gone_process(fixture, "/etc/passwd");
    expect_failure(fixture, &target, MODULE_FAILURE_UNREADABLE);
    expect_failure(fixture, &target, MODULE_FAILURE_UNREADABLE);
    assert_int_equal(module_cache_counts(fixture->cache).tables[MODULE_SYMBOLS].failed_count, 2);
}

/* Maps a file and removes its name; needs the right to follow map_files. */
CACHE_TEST(reads_a_deleted_file_through_its_mapping)
{
    static struct target target;
    char path[FILE_BYTES];
    if (geteuid() != 0) {
        skip();
    }
    copy_libc(in_folder(fixture, "deleted.so", path), false);
    void *map = map_code(path);
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

static bool enter_folder(const void *folder)
{
    return chroot(folder) == 0;
}

/* An absolute link inside another root leads nowhere else. */
CACHE_TEST(resolves_a_path_inside_the_root_of_its_process)
{
    char path[FILE_BYTES];
    char link[FILE_BYTES];
    if (geteuid() != 0) {
        skip();
    }
    copy_libc(in_folder(fixture, "inner.so", path), true);
    struct module_query target = of_gone_process(fixture, path);
    assert_int_equal(symlink("/inner.so", in_folder(fixture, "link.so", link)), 0);
    target.pid = start_prepared_child(enter_folder, fixture->folder);
    target.path = "/link.so";
    struct module_ticket *ticket = expect(fixture, &target, MODULE_FAILURE_NONE);
    assert_true(has_symbol(module_ticket_module(ticket), "gtrfry"));
    assert_int_equal(module_ticket_module(ticket)->identity.inode, target.inode);
    module_ticket_release(ticket);
    end_child(target.pid);
}
