/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Tables of both kinds on their way from the worker: what is asked for at once, by whom, in which
 * order, and what a dead worker costs.
 */
#include "module_cache_fixture.h"

CACHE_TEST(loses_one_table_with_a_worker)
{
    static struct target libc;
    static struct target self;
    find_mapping(getpid(), "/libc.so", &libc);
    find_mapping(getpid(), "/test_module_tables", &self);
    pid_t pid = first_worker_pid(fixture->cache);
    assert_int_equal(kill(pid, SIGSTOP), 0);
    struct module_ticket *lost = request(fixture, &libc.query);
    for (int i = 0; i < 5; i++) {
        step(fixture->cache);
    }
    assert_int_equal(module_ticket_state(lost), MODULE_PENDING);
    struct module_ticket *waiting = request(fixture, &self.query);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(wait_for(fixture->cache, lost), MODULE_FAILED);
    assert_int_equal(module_ticket_failure(lost), MODULE_FAILURE_WORKER);
    assert_int_equal(wait_for(fixture->cache, waiting), MODULE_READY);
    assert_int_equal(module_cache_counts(fixture->cache).worker_restart_count, 1);
    assert_int_not_equal(module_cache_worker_pid(fixture->cache, 0), pid);
    module_ticket_release(lost);
    module_ticket_release(waiting);

    /* One that dies with nothing to do costs nothing. */
    assert_int_equal(kill(first_worker_pid(fixture->cache), SIGKILL), 0);
    for (int i = 0; i < 200 && module_cache_counts(fixture->cache).worker_restart_count < 2; i++) {
        step(fixture->cache);
    }
    expect_failure(fixture, &self.query, MODULE_FAILURE_NONE);
    assert_int_equal(module_cache_counts(fixture->cache).worker_restart_count, 2);
}

/* A copy of a dead worker's socket, in a process that was forked meanwhile, keeps it open. */
CACHE_TEST(sleeps_whoever_holds_the_socket_of_a_dead_worker)
{
    int held[2];
    char byte = 0;
    assert_int_equal(pipe(held), 0);
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(held[1]);
        _exit(read(held[0], &byte, 1) != 0);
    }
    assert_int_equal(kill(first_worker_pid(fixture->cache), SIGKILL), 0);
    for (int i = 0; i < 200 && module_cache_counts(fixture->cache).worker_restart_count == 0; i++) {
        step(fixture->cache);
    }
    assert_int_equal(module_cache_counts(fixture->cache).worker_restart_count, 1);
    module_cache_dispatch(fixture->cache);
    struct pollfd readable = {.fd = module_cache_fd(fixture->cache), .events = POLLIN};
    assert_int_equal(poll(&readable, 1, 0), 0);
    (void)close(held[0]);
    (void)close(held[1]);
    (void)waitpid(pid, NULL, 0);
}

/* When each file was changed last. A file system may set that of a file which was just made once
 * more; then it is another file to the cache. Returns how many differ from what was there. */
static size_t note_changes(const struct target *targets, size_t count, struct timespec *changes)
{
    size_t differing = 0;
    for (size_t i = 0; i < count; i++) {
        struct stat status = {0};
        assert_int_equal(stat(targets[i].path, &status), 0);
        differing += memcmp(&changes[i], &status.st_ctim, sizeof status.st_ctim) != 0;
        changes[i] = status.st_ctim;
    }
    return differing;
}

CACHE_TEST(bounds_what_is_asked_at_once)
{
    static struct target targets[MAPPINGS_MAX];
    enum {
        REQUESTS = 20000
    };
    static struct module_ticket *tickets[REQUESTS];
    const size_t count = REQUESTS;
    size_t mapping_count = read_mappings(getpid(), targets);
    size_t accepted = 0;
    struct timespec changes[MAPPINGS_MAX] = {0};
    (void)note_changes(targets, mapping_count, changes);
    for (size_t i = 0; i < count; i++) {
        tickets[i] = request(fixture, &targets[i % mapping_count].query);
        assert_non_null(tickets[i]);
    }
    for (size_t i = 0; i < count; i++) {
        bool is_ready = wait_for(fixture->cache, tickets[i]) == MODULE_READY;
        accepted += is_ready;
        assert_int_equal(module_ticket_failure(tickets[i]),
                         is_ready ? MODULE_FAILURE_NONE : MODULE_FAILURE_LIMIT);
        module_ticket_release(tickets[i]);
    }
    /* All have come in before the first of them is answered. */
    assert_in_range(accepted, OPENER_REQUESTS_MAX / 4, OPENER_REQUESTS_MAX / 2);
    assert_int_equal(module_cache_counts(fixture->cache).refused_count, count - accepted);
    assert_int_equal(module_cache_counts(fixture->cache).tables[MODULE_SYMBOLS].ready_count,
                     accepted);
    assert_in_range(module_cache_counts(fixture->cache).tables[MODULE_SYMBOLS].module_count, 1,
                    mapping_count + note_changes(targets, mapping_count, changes));
    expect_failure(fixture, &targets[0].query, MODULE_FAILURE_NONE);
}

/* What one user's file may have done to the worker must not reach another's. */
CACHE_TEST(renews_its_worker_between_the_files_of_two_users)
{
    static const uid_t owners[] = {0, 4001, 4001, 4002, 0, 0, 4001};
    static const uint64_t renewals[] = {0, 0, 0, 1, 2, 2, 2};
    char path[FILE_BYTES];
    if (geteuid() != 0) {
        skip();
    }
    for (size_t i = 0; i < COUNT_OF(owners); i++) {
        (void)snprintf(path, sizeof path, "%s/%zu.so", fixture->folder, i);
        copy_libc(path, false);
        assert_int_equal(chown(path, owners[i], 0), 0);
        struct module_query target = of_gone_process(fixture, path);
        expect_failure(fixture, &target, MODULE_FAILURE_NONE);
        assert_int_equal(module_cache_counts(fixture->cache).worker_renewal_count, renewals[i]);
    }
    assert_int_equal(module_cache_counts(fixture->cache).worker_restart_count, 0);
}

CACHE_TEST(forgives_tickets_that_nobody_waits_for)
{
    static struct target targets[MAPPINGS_MAX];
    size_t count = read_mappings(getpid(), targets);
    for (size_t i = 0; i < count; i++) {
        module_ticket_release(request(fixture, &targets[i].query));
    }
    /* Undecided ones go with the cache; decided ones too. */
    step(fixture->cache);
    fixture->descriptors = 0;
    module_cache_free(fixture->cache);
    assert_int_equal(module_cache_new(&fixture_config, &fixture->cache), 0);
    fixture->descriptors = count_descriptors();
}

CACHE_TEST(names_the_kernel_or_says_why_not)
{
    struct module_ticket *ticket = module_cache_request_kernel(fixture->cache);
    if (wait_for(fixture->cache, ticket) == MODULE_READY) {
        assert_true(module_ticket_module(ticket)->symbols.symbol_count > 1000);
        assert_int_equal(module_ticket_module(ticket)->identity.inode, 0);
    } else {
        assert_int_equal(module_ticket_failure(ticket), MODULE_FAILURE_UNREADABLE);
    }
    module_ticket_release(ticket);
}

CACHE_TEST(gives_symbols_and_call_frames_of_one_file_apart)
{
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
    /* Some of libc's assembly has no call frames: its rows are made from instructions. */
    assert_true(modules[MODULE_CODE]->cfi.stats.covered_bytes >
                modules[MODULE_CFI]->cfi.stats.covered_bytes);
    for (enum module_table table = MODULE_SYMBOLS; table < MODULE_TABLES; table++) {
        module_ticket_release(tickets[table]);
    }
}

CACHE_TEST(gives_symbols_and_call_frames_of_one_file_by_one_opening)
{
    static struct target libc;
    find_mapping(getpid(), "/libc.so", &libc);
    struct module_ticket *names = NULL;
    struct module_ticket *frames = module_cache_request_both(fixture->cache, &libc.query, &names);
    assert_int_equal(wait_for(fixture->cache, frames), MODULE_READY);
    assert_int_equal(wait_for(fixture->cache, names), MODULE_READY);
    assert_true(module_ticket_module(frames)->cfi.row_count > 1000);
    assert_true(has_symbol(module_ticket_module(names), "strfry"));
    assert_int_equal(module_cache_counts(fixture->cache).requested_count, 1);

    /* So does a second one, whose tables are there. */
    struct module_ticket *more_names = NULL;
    struct module_ticket *more_frames =
        module_cache_request_both(fixture->cache, &libc.query, &more_names);
    assert_int_equal(wait_for(fixture->cache, more_frames), MODULE_READY);
    assert_int_equal(module_ticket_state(more_names), MODULE_READY);
    assert_ptr_equal(module_ticket_module(more_names), module_ticket_module(names));
    module_ticket_release(frames);
    module_ticket_release(names);
    module_ticket_release(more_frames);
    module_ticket_release(more_names);

    struct module_query gone = of_gone_process(fixture, "/nowhere");
    frames = module_cache_request_both(fixture->cache, &gone, &names);
    assert_int_equal(wait_for(fixture->cache, frames), MODULE_FAILED);
    assert_int_equal(module_ticket_failure(frames), MODULE_FAILURE_NOT_FOUND);
    assert_int_equal(module_ticket_failure(names), MODULE_FAILURE_NOT_FOUND);
    module_ticket_release(frames);
    module_ticket_release(names);
}

/* What a file does to a worker with its call frames says nothing of its names: they are asked for
 * again. Until then the file is kept by nothing, since a worker may hang with it. */
CACHE_TEST(lets_go_of_a_file_over_whose_call_frames_a_worker_dies)
{
    static struct target libc;
    find_mapping(getpid(), "/libc.so", &libc);
    pid_t pid = first_worker_pid(fixture->cache);
    assert_int_equal(kill(pid, SIGSTOP), 0);
    struct module_ticket *names = NULL;
    struct module_ticket *frames = module_cache_request_both(fixture->cache, &libc.query, &names);
    for (int i = 0; i < 5; i++) {
        step(fixture->cache);
    }
    assert_int_equal(module_ticket_state(frames), MODULE_PENDING);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(wait_for(fixture->cache, frames), MODULE_FAILED);
    assert_int_equal(module_ticket_failure(frames), MODULE_FAILURE_WORKER);
    assert_int_equal(module_ticket_state(names), MODULE_FAILED);
    assert_int_equal(module_ticket_failure(names), MODULE_FAILURE_LIMIT);
    module_ticket_release(frames);
    module_ticket_release(names);

    names = module_cache_request(fixture->cache, MODULE_SYMBOLS, MODULE_WANTED, &libc.query);
    assert_int_equal(wait_for(fixture->cache, names), MODULE_READY);
    assert_true(has_symbol(module_ticket_module(names), "strfry"));
    module_ticket_release(names);
}

/* The names join a file whose call frames are read, or will be, and one opening is enough. */
CACHE_TEST(names_wait_for_a_file_that_is_read_for_its_call_frames)
{
    static struct target libc;
    find_mapping(getpid(), "/libc.so", &libc);
    pid_t pid = first_worker_pid(fixture->cache);
    assert_int_equal(kill(pid, SIGSTOP), 0);
    struct module_ticket *ahead =
        module_cache_request(fixture->cache, MODULE_CFI, MODULE_PREFETCH, &libc.query);
    struct module_ticket *names = expect_pending(fixture, MODULE_WANTED, &libc.query);
    assert_int_equal(module_ticket_state(ahead), MODULE_PENDING);
    /* The second worker begins with what is queued after 300 ms: this is not. */
    for (int i = 0; i < 10; i++) {
        step(fixture->cache);
    }
    assert_int_equal(module_ticket_state(names), MODULE_PENDING);
    /* On a machine that stood still for 10 s the worker is gone, and the call frames with it. */
    bool is_there = kill(pid, SIGCONT) == 0;
    assert_int_equal(wait_for(fixture->cache, ahead), is_there ? MODULE_READY : MODULE_FAILED);
    assert_int_equal(wait_for(fixture->cache, names), MODULE_READY);
    assert_true(has_symbol(module_ticket_module(names), "strfry"));
    module_ticket_release(ahead);
    module_ticket_release(names);
}

CACHE_TEST(knows_the_code_that_the_kernel_maps)
{
    struct module_ticket *symbols =
        module_cache_request_vdso(fixture->cache, MODULE_SYMBOLS, false);
    struct module_ticket *cfi = module_cache_request_vdso(fixture->cache, MODULE_CFI, false);
    assert_int_equal(wait_for(fixture->cache, symbols), MODULE_READY);
    assert_int_equal(wait_for(fixture->cache, cfi), MODULE_READY);
    assert_true(has_symbol(module_ticket_module(symbols), "__vdso_clock_gettime"));
    assert_true(module_ticket_module(cfi)->cfi.row_count > 10);
    struct module_ticket *again = module_cache_request_vdso(fixture->cache, MODULE_CFI, false);
    assert_int_equal(wait_for(fixture->cache, again), MODULE_READY);
    assert_ptr_equal(module_ticket_module(again), module_ticket_module(cfi));
    module_ticket_release(symbols);
    module_ticket_release(cfi);
    module_ticket_release(again);
}

CACHE_TEST(knows_the_code_that_the_kernel_maps_for_32_bits)
{
    struct module_ticket *symbols = module_cache_request_vdso(fixture->cache, MODULE_SYMBOLS, true);
    struct module_ticket *cfi = module_cache_request_vdso(fixture->cache, MODULE_CFI, true);
    if (wait_for(fixture->cache, symbols) == MODULE_FAILED) {
        assert_int_equal(module_ticket_failure(symbols), MODULE_FAILURE_NOT_FOUND);
        module_ticket_release(symbols);
        module_ticket_release(cfi);
        skip(); /* a kernel that does not give it */
    }
    assert_int_equal(wait_for(fixture->cache, cfi), MODULE_READY);
    assert_true(has_symbol(module_ticket_module(symbols), "__kernel_vsyscall"));
    assert_true(module_ticket_module(cfi)->cfi.is_32bit);
    assert_true(module_ticket_module(cfi)->cfi.row_count > 5);
    module_ticket_release(symbols);
    module_ticket_release(cfi);
    /* This process has its own vdso as before. */
    struct timespec now;
    assert_int_equal(clock_gettime(CLOCK_BOOTTIME, &now), 0);
}

/* A library with as many zeros behind it that it takes long to read, as far as the size tells. */
CACHE_TEST(reads_a_large_file_when_a_sample_needs_it)
{
    char path[FILE_BYTES];
    copy_libc(in_folder(fixture, "large.so", path), false);
    assert_int_equal(truncate(path, (off_t)17 << 20), 0);
    struct module_query target = of_gone_process(fixture, path);
    struct module_ticket *ahead =
        module_cache_request(fixture->cache, MODULE_SYMBOLS, MODULE_PREFETCH, &target);
    assert_int_equal(wait_for(fixture->cache, ahead), MODULE_FAILED);
    assert_int_equal(module_ticket_failure(ahead), MODULE_FAILURE_LIMIT);
    module_ticket_release(ahead);
    module_ticket_release(expect(fixture, &target, MODULE_FAILURE_NONE));
}

/* A sample that comes to wait for a file which is asked for already: while the first worker is at
 * another file, the second reads this one, and not what was only likely to be needed. */
CACHE_TEST(moves_up_what_becomes_wanted)
{
    static struct target libc;
    static struct target self;
    static struct target cmocka;
    find_mapping(getpid(), "/libc.so", &libc);
    find_mapping(getpid(), "/test_module_tables", &self);
    find_mapping(getpid(), "/libcmocka", &cmocka);
    pid_t pid = first_worker_pid(fixture->cache);
    assert_int_equal(kill(pid, SIGSTOP), 0);
    struct module_ticket *busy = expect_pending(fixture, MODULE_WANTED, &cmocka.query);
    struct module_ticket *first = expect_pending(fixture, MODULE_PREFETCH, &self.query);
    struct module_ticket *second = expect_pending(fixture, MODULE_PREFETCH, &libc.query);
    struct module_ticket *wanted = request(fixture, &libc.query);
    assert_int_equal(wait_for(fixture->cache, wanted), MODULE_READY);
    assert_int_equal(module_ticket_state(second), MODULE_READY);
    assert_int_equal(module_ticket_state(first), MODULE_PENDING);
    /* On a machine that stood still for 10 s the first worker is gone, and its file with it. */
    bool is_there = kill(pid, SIGCONT) == 0;
    assert_int_equal(wait_for(fixture->cache, first), MODULE_READY);
    assert_int_equal(wait_for(fixture->cache, busy), is_there ? MODULE_READY : MODULE_FAILED);
    module_ticket_release(busy);
    module_ticket_release(first);
    module_ticket_release(second);
    module_ticket_release(wanted);
}