/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From an address at a time to a rule, with a module cache that answers when it is told to: what is
 * asked for, how often and how urgently, what is remembered, and that every ticket is given back
 * however files come and go.
 */
#include "built_tables.h"
#include "code_map.h"
#include "fake_module_cache.h"
#include "mapping_query.h"

#define PID   100
#define START UINT64_C(0x5000)
#define LEAF  (START + 0x14)

static struct world {
    struct module_cache cache;
    struct process_table *processes;
    struct address_cache *addresses;
    struct code_map *map;
} world;

static void on_file_free(struct mapped_file *file, void *userdata)
{
    (void)userdata;
    code_map_file_gone(file);
}

static int set_up(void **state)
{
    (void)state;
    memset(&world, 0, sizeof world);
    world.processes = process_table_new(on_file_free, NULL);
    world.addresses = address_cache_new();
    assert_non_null(world.addresses);
    world.map = code_map_new(&world.cache, world.addresses);
    return world.processes == NULL || world.map == NULL ? -1 : 0;
}

static int tear_down(void **state)
{
    (void)state;
    (void)process_table_free(world.processes);
    (void)code_map_free(world.map);
    (void)address_cache_free(world.addresses);
    assert_int_equal(world.cache.held_count, 0);
    fake_module_table_free();
    return 0;
}

/* One page of the file `inode` at `start`. */
static void map_file(int32_t pid, uint64_t start, uint64_t inode, uint64_t time_ns)
{
    char path[32];
    (void)snprintf(path, sizeof path, "/file%d", (int)inode);
    const struct mapping_description description = {
        .start = start, .end = start + 0x1000, .path = path, .device_major = 8, .inode = inode};
    process_table_mmap(world.processes, pid, &description, time_ns);
}

static enum unwind_code find_with(int32_t pid, uint64_t pc, uint64_t time_ns, bool settle)
{
    const struct cfi_rule *rule = NULL;
    struct process *process = process_table_find(world.processes, pid, time_ns);
    assert_non_null(process);
    enum unwind_code code =
        code_map_find(world.map, process, pc, &(struct code_moment){time_ns, false, settle}, &rule);
    if (code == UNWIND_CODE_RULE) {
        assert_int_equal(rule->cfa_offset, 16);
    }
    return code;
}

static enum unwind_code find(uint64_t pc, uint64_t time_ns)
{
    return find_with(PID, pc, time_ns, false);
}

struct finding {
    uint64_t pc;
    uint64_t time_ns;
    enum unwind_code code;
};

static void expect_findings(const struct finding *findings, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(find(findings[i].pc, findings[i].time_ns), findings[i].code);
    }
}

#define PENDING    UNWIND_CODE_PENDING
#define RULE       UNWIND_CODE_RULE
#define NO_RULE    UNWIND_CODE_NO_RULE
#define LATE       UNWIND_CODE_LATE
#define NONE       UNWIND_CODE_NONE
#define FINDS(...) expect_findings(ROWS_OF(struct finding, __VA_ARGS__))

TEST_WITH(a_rule_comes_with_its_table_and_is_remembered, set_up, tear_down)
{
    map_file(PID, START, 1, 10);
    FINDS({LEAF, 20, PENDING}, {LEAF, 21, PENDING});
    assert_int_equal(world.cache.request_count, 1);
    assert_int_equal(world.cache.requests[0].urgency, MODULE_WANTED);
    assert_int_equal(world.cache.requests[0].table, MODULE_CFI);
    assert_false(code_map_poll(world.map));

    fake_module_ready(&world.cache, 1, fake_module_table());
    assert_true(code_map_poll(world.map));
    assert_false(code_map_poll(world.map));
    for (uint64_t time_ns = 20; time_ns < 30; time_ns++) {
        FINDS({LEAF, time_ns, RULE});
    }
    assert_int_equal(code_map_counters(world.map)->code_lookups_kept, 9);
    FINDS({START + 0x500, 30, NO_RULE}, {START + 0x2000, 30, NONE});
    assert_int_equal(world.cache.request_count, 1);
}

/* What a trace asks for a file that is mapped at START. */
static struct module_ticket *request_names(void)
{
    struct process *process = process_table_find(world.processes, PID, 20);
    const struct mapping *mapping = process_find_mapping(process, LEAF, 20);
    assert_non_null(mapping);
    const struct module_query query = mapping_query(process, mapping);
    return mapping_request_names(&world.cache, mapping->file, &query);
}

TEST_WITH(names_come_by_the_opening_for_the_call_frames, set_up, tear_down)
{
    map_file(PID, START, 1, 10);
    FINDS({LEAF, 20, PENDING});
    assert_int_equal(world.cache.names_count, 1);
    struct module_ticket *names = request_names();
    assert_ptr_equal(names, world.cache.names[0].ticket);
    assert_int_equal(world.cache.request_count, 1);
    /* Once: the next request opens the file again. */
    struct module_ticket *again = request_names();
    assert_int_equal(world.cache.request_count, 2);
    assert_int_equal(world.cache.requests[1].table, MODULE_SYMBOLS);
    module_ticket_release(names);
    module_ticket_release(again);
}

TEST_WITH(names_are_asked_for_again_where_that_opening_did_not_do, set_up, tear_down)
{
    static const struct {
        enum module_failure failure;
        size_t request_count;
    } cases[] = {{MODULE_FAILURE_NONE, 1}, {MODULE_FAILURE_IDENTITY, 1}, {MODULE_FAILURE_LIMIT, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        world.cache.request_count = 0;
        map_file(PID, START, i + 1, 10 + i);
        FINDS({LEAF, 20, PENDING});
        fake_names_answer(&world.cache, cases[i].failure);
        module_ticket_release(request_names());
        assert_int_equal(world.cache.request_count, cases[i].request_count);
    }
}

/* A table that was asked for ahead of time has no names with it; one that is asked for again has
 * them already. */
TEST_WITH(names_are_asked_for_by_the_first_frame, set_up, tear_down)
{
    map_file(PID, START, 1, 10);
    code_map_prefetch(world.map, world.processes);
    assert_int_equal(world.cache.names_count, 0);
    FINDS({LEAF, 20, PENDING});
    assert_int_equal(world.cache.names_count, 1);
    fake_module_failed(&world.cache, 1, MODULE_FAILURE_LIMIT);
    assert_true(code_map_poll(world.map));
    FINDS({LEAF, UINT64_C(2200000000), PENDING});
    assert_int_equal(world.cache.request_count, 3);
    assert_int_equal(world.cache.names_count, 1);
}

TEST_WITH(an_answer_names_the_file_that_is_waited_for, set_up, tear_down)
{
    map_file(PID, START, 1, 10);
    map_file(PID, START + 0x2000, 2, 10);
    FINDS({LEAF, 20, PENDING});
    const uint64_t first = code_map_awaited(world.map);
    FINDS({LEAF + 0x2000, 20, PENDING});
    const uint64_t second = code_map_awaited(world.map);
    assert_true(first != 0 && second != 0 && first != second);
    fake_module_ready(&world.cache, 2, fake_module_table());
    assert_int_equal(code_map_poll(world.map), second);
    fake_module_ready(&world.cache, 1, fake_module_table());
    assert_int_equal(code_map_poll(world.map), first);
}

TEST_WITH(what_was_refused_is_asked_for_again_a_second_later, set_up, tear_down)
{
    map_file(PID, START, 1, 10);
    world.cache.refuses = true;
    FINDS({LEAF, 20, LATE}, {LEAF, UINT64_C(900000000), LATE});
    assert_int_equal(world.cache.request_count, 1);
    assert_int_equal(code_map_unready_count(world.map), 2);

    world.cache.refuses = false;
    FINDS({LEAF, UINT64_C(1100000000), PENDING});
    assert_int_equal(world.cache.request_count, 2);
    fake_module_failed(&world.cache, 1, MODULE_FAILURE_LIMIT);
    assert_true(code_map_poll(world.map));
    assert_false(code_map_poll(world.map));
    FINDS({LEAF, UINT64_C(1100000000), LATE});

    FINDS({LEAF, UINT64_C(2200000000), PENDING});
    fake_module_ready(&world.cache, 1, fake_module_table());
    FINDS({LEAF, UINT64_C(2200000000), RULE});
}

TEST_WITH(prefetch_asks_once_for_each_file_the_most_shared_first, set_up, tear_down)
{
    for (int32_t pid = PID; pid < PID + 5; pid++) {
        map_file(pid, START, 1 + (pid == PID), 10);
        map_file(pid, START + 0x10000, 3, 10);
        map_file(pid, START + 0x20000, 3, 10);
    }
    code_map_prefetch(world.map, world.processes);
    assert_int_equal(world.cache.request_count, 3);
    static const uint64_t order[] = {3, 1, 2};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(world.cache.requests[i].inode, order[i]);
        assert_int_equal(world.cache.requests[i].urgency, MODULE_PREFETCH);
    }
    code_map_prefetch(world.map, world.processes);
    /* Each file has many users; whose was not asked for may be, but never the same one twice. */
    size_t before = world.cache.request_count;
    FINDS({LEAF, 20, PENDING}, {LEAF, 20, PENDING});
    assert_int_equal(world.cache.request_count, before + 1);
    assert_int_equal(world.cache.requests[before].inode, 2);
    assert_int_equal(world.cache.requests[before].urgency, MODULE_WANTED);
}

TEST_WITH(a_refused_prefetch_is_asked_for_by_the_first_frame, set_up, tear_down)
{
    map_file(PID, START, 1, 10);
    world.cache.refuses = true;
    code_map_prefetch(world.map, world.processes);
    assert_int_equal(world.cache.request_count, 1);
    world.cache.refuses = false;
    FINDS({LEAF, 20, PENDING});
    fake_module_ready(&world.cache, 1, fake_module_table());
    FINDS({LEAF, 20, RULE});
}

TEST_WITH(each_sample_sees_what_was_mapped_at_its_time, set_up, tear_down)
{
    map_file(PID, START, 1, 10);
    FINDS({LEAF, 20, PENDING});
    fake_module_ready(&world.cache, 1, fake_module_table());
    FINDS({LEAF, 20, RULE});

    /* dlclose(), dlopen(): another file at the same address, all within one drain. */
    map_file(PID, START, 2, 100);
    FINDS({LEAF, 150, PENDING});
    fake_module_failed(&world.cache, 2, MODULE_FAILURE_UNREADABLE);
    for (int round = 0; round < 3; round++) {
        FINDS({LEAF, 150, NO_RULE}, {LEAF, 99, RULE}, {LEAF, 9, NONE});
    }
    process_table_prune(world.processes, 200);
    (void)code_map_poll(world.map);
    assert_int_equal(world.cache.held_count, 2); /* with its names */
    FINDS({LEAF, 250, NO_RULE});
}

TEST_WITH(a_file_that_goes_while_it_is_waited_for_leaves_nothing, set_up, tear_down)
{
    map_file(PID, START, 1, 10);
    FINDS({LEAF, 20, PENDING});
    process_table_exit(world.processes, PID, PID, 30);
    process_table_prune(world.processes, 40);
    fake_module_ready(&world.cache, 1, fake_module_table());
    (void)code_map_poll(world.map);
    assert_int_equal(world.cache.held_count, 0);

    /* And one that is still waited for at the end is released there: see tear_down(). */
    map_file(PID, START, 2, 50);
    FINDS({LEAF, 60, PENDING});
    assert_int_equal(world.cache.held_count, 2); /* with its names */
}

/* Twice the same library, written over in between, with a table that may be of either. */
TEST_WITH(an_unclear_table_waits_for_the_records_and_is_not_that_of_what_was_replaced, set_up,
          tear_down)
{
    map_file(PID, START, 1, 10);
    map_file(PID, START + 0x2000, 2, 10);
    FINDS({LEAF, 20, PENDING}, {LEAF + 0x2000, 20, PENDING});
    world.cache.shown_ns = 40;
    fake_module_ready(&world.cache, 1, fake_module_table());
    fake_module_ready(&world.cache, 2, fake_module_table());
    process_table_reach(world.processes, 39);
    assert_false(code_map_poll(world.map));
    FINDS({LEAF, 20, PENDING});
    map_file(PID, START, 3, 40);
    process_table_reach(world.processes, 40);
    assert_true(code_map_poll(world.map));
    FINDS({LEAF, 20, NO_RULE}, {LEAF + 0x2000, 20, RULE});
    assert_int_equal(world.cache.request_count, 2);
}

TEST_WITH(names_of_the_kernel_are_never_asked_for, set_up, tear_down)
{
    static const char *const paths[] = {"", "[heap]", "//anon", "[vsyscall]"};
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        const struct mapping_description description = {
            .start = START, .end = START + 0x1000, .path = paths[i]};
        process_table_mmap(world.processes, PID, &description, 10 + i);
        FINDS({LEAF, 10 + i, NO_RULE});
    }
    code_map_prefetch(world.map, world.processes);
    assert_int_equal(world.cache.request_count, 0);
}

/* Another table of the same file, as it is with the rows from instructions: one more function at
 * 0x500. */
static struct made_cfi make_all(void)
{
    static const struct symbol_segment segment = {.size_bytes = 0x1000};
    static const struct cfi_rule rule = {.kind = CFI_OFFSET,
                                         .cfa_register = ARCH_DWARF_SP,
                                         .cfa_offset = 16,
                                         .ra_saved = CFI_AT_CFA,
                                         .ra_offset = -8};
    struct cfi_builder *builder = cfi_builder_new();
    assert_int_equal(cfi_builder_segment(builder, &segment), 0);
    assert_int_equal(cfi_builder_add(builder, 0x500, 0x510, &rule), 0);
    return finish_cfi(builder);
}

/* The own table is there, and the other one was asked for. */
static void ask_for_all(void)
{
    world.cache.has_code = true;
    map_file(PID, START, 1, 10);
    FINDS({LEAF, 20, PENDING});
    fake_module_ready(&world.cache, 1, fake_module_table());
    assert_true(code_map_poll(world.map));
    /* Nothing is asked for where a small stretch has no rows. */
    FINDS({START + 0x20, 20, NO_RULE}, {START + 0xff, 20, NO_RULE});
    assert_int_equal(world.cache.request_count, 1);
    FINDS({START + 0x500, 20, PENDING}, {START + 0x500, 20, PENDING});
    assert_int_equal(world.cache.request_count, 2);
    assert_int_equal(world.cache.requests[1].table, MODULE_CODE);
    assert_int_equal(world.cache.requests[1].urgency, MODULE_WANTED);
}

TEST_WITH(the_rows_from_instructions_are_asked_for_where_no_own_one_covers, set_up, tear_down)
{
    cleanup_(free_cfi) struct made_cfi all = make_all();
    ask_for_all();
    /* What the file says itself waits for nothing. */
    FINDS({LEAF, 20, RULE});
    assert_false(code_map_poll(world.map));
    assert_int_equal(find_with(PID, START + 0x500, 20, true), UNWIND_CODE_LATE);
    assert_int_equal(code_map_unready_count(world.map), 1);

    fake_module_ready(&world.cache, 1, &all.table);
    assert_true(code_map_poll(world.map));
    FINDS({START + 0x500, 20, RULE}, {START + 0x600, 20, NO_RULE}, {LEAF + 1, 20, RULE});
    assert_int_equal(world.cache.request_count, 2);
}

TEST_WITH(frames_that_wait_for_the_own_rows_do_not_wait_for_the_others, set_up, tear_down)
{
    world.cache.has_code = true;
    map_file(PID, START, 1, 10);
    FINDS({LEAF, 20, PENDING});
    fake_module_ready(&world.cache, 1, fake_module_table());
    FINDS({START + 0x500, 20, PENDING});
    assert_int_equal(code_map_poll(world.map), code_map_awaited(world.map));
    assert_int_equal(code_map_poll(world.map), 0);
}

TEST_WITH(a_file_without_rows_from_instructions_keeps_its_own, set_up, tear_down)
{
    ask_for_all();
    fake_module_failed(&world.cache, 1, MODULE_FAILURE_WORKER);
    assert_true(code_map_poll(world.map));
    FINDS({START + 0x500, 20, NO_RULE}, {LEAF, 20, RULE});
    assert_int_equal(world.cache.request_count, 2);
}

TEST_WITH(refused_rows_from_instructions_are_asked_for_again, set_up, tear_down)
{
    ask_for_all();
    fake_module_failed(&world.cache, 1, MODULE_FAILURE_LIMIT);
    assert_true(code_map_poll(world.map));
    FINDS({START + 0x500, 20, LATE}, {START + 0x500, UINT64_C(1100000000), PENDING});
    assert_int_equal(world.cache.request_count, 3);
    assert_int_equal(world.cache.requests[2].table, MODULE_CODE);
}

TEST_WITH(nothing_more_is_asked_for_of_a_file_that_failed_or_has_other_code, set_up, tear_down)
{
    world.cache.has_code = true;
    map_file(PID, START, 1, 10);
    FINDS({START + 0x500, 20, PENDING});
    fake_module_failed(&world.cache, 1, MODULE_FAILURE_WORKER);
    FINDS({START + 0x500, 20, NO_RULE}, {LEAF, UINT64_C(9000000000), NO_RULE});
    assert_int_equal(world.cache.request_count, 1);

    map_file(PID, START, 2, 30);
    FINDS({START + 0x500, 40, PENDING});
    fake_module_ready(&world.cache, 2, fake_module_table());
    struct process *process = process_table_find(world.processes, PID, 40);
    const struct code_moment in_32bit = {.time_ns = 40, .is_32bit = true};
    const struct cfi_rule *rule = NULL;
    assert_int_equal(code_map_find(world.map, process, START + 0x500, &in_32bit, &rule),
                     UNWIND_CODE_NO_RULE);
    assert_int_equal(world.cache.request_count, 2);
}

/* A stack may have each frame in a file of its own; and each request costs a look into /proc. */
TEST_WITH(asks_for_a_few_files_in_a_round_and_for_the_others_later, set_up, tear_down)
{
    for (uint64_t i = 0; i < 200; i++) {
        map_file(PID, 0x10000 * i, 1 + i, 10);
    }
    for (size_t asked = 128; asked <= 256; asked += 128) {
        for (uint64_t i = 0; i < 200; i++) {
            enum unwind_code code = find(0x10000 * i, 20);
            bool is_asked_for = i < asked;
            assert_int_equal(code, is_asked_for ? UNWIND_CODE_PENDING : UNWIND_CODE_LATE);
        }
        assert_int_equal(world.cache.request_count, asked < 200 ? asked : 200);
        assert_false(code_map_poll(world.map));
    }
}
