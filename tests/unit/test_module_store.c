/* SPDX-License-Identifier: Apache-2.0 */

/* The store with tables that are nothing but headers, and with a clock of its own. */
#include "module_store.h"
#include "unit_test.h"

#include <errno.h>
#include <sys/mman.h>

#define STORE_BYTES_MAX ((size_t)512 << 20)

static struct file_identity identity(uint64_t number)
{
    return (struct file_identity){.device = 1, .inode = number, .size_bytes = 100};
}

/* An empty table in memory of its own, of `bytes` at least. */
static struct elf_worker_table map_table(size_t bytes)
{
    struct symbol_builder *builder = symbol_builder_new();
    struct elf_worker_table table = {.map_bytes = bytes};
    void *serialised = NULL;
    size_t serialised_bytes = 0;
    assert_int_equal(symbol_builder_finish(builder, &serialised, &serialised_bytes), 0);
    symbol_builder_free(builder);
    table.map_bytes = bytes < serialised_bytes ? serialised_bytes : bytes;
    table.map = mmap(NULL, table.map_bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(table.map, MAP_FAILED);
    memcpy(table.map, serialised, serialised_bytes);
    assert_int_equal(symbol_table_open(table.map, serialised_bytes, &table.symbols), 0);
    free(serialised);
    return table;
}

static int add_of(struct module_store *store, uint64_t number, uid_t uid, size_t bytes,
                  struct module_entry **ret)
{
    struct file_identity key = identity(number);
    struct elf_worker_table table = map_table(bytes);
    int r = module_store_add(store, &key, uid, &table, ret);
    if (r < 0) {
        (void)munmap(table.map, table.map_bytes);
    }
    return r;
}

static int add(struct module_store *store, uint64_t number, struct module_entry **ret)
{
    return add_of(store, number, 0, 0, ret);
}

static bool has(struct module_store *store, uint64_t number)
{
    struct file_identity key = identity(number);
    struct module_entry *entry = module_store_find(store, MODULE_SYMBOLS, &key);
    if (entry != NULL) {
        module_entry_release(entry);
    }
    return entry != NULL;
}

#define STORE(name)                                                                                \
    TEST_MADE(struct module_store *store, name, module_store_new(STORE_BYTES_MAX),                 \
              module_store_free)

STORE(finds_by_every_part_of_the_identity)
{
    struct module_entry *entry = NULL;
    struct file_identity others[7];
    assert_int_equal(add(store, 7, &entry), 0);
    assert_int_equal(entry->module.identity.inode, 7);
    assert_true(has(store, 7));
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        others[i] = identity(7);
    }
    others[0].device++;
    others[1].inode++;
    others[2].size_bytes++;
    others[3].changed_s++;
    others[4].changed_ns++;
    others[5].generation++;
    others[6].account = 4711;
    assert_null(module_store_find(store, MODULE_CFI, &entry->module.identity));
    assert_int_equal(module_store_failure(store, MODULE_CFI, &entry->module.identity, 0),
                     MODULE_FAILURE_NONE);
    for (size_t i = 0; i < 7; i++) {
        assert_null(module_store_find(store, MODULE_SYMBOLS, &others[i]));
    }
}

STORE(trims_what_was_idle_for_a_minute_and_nothing_else)
{
    struct module_entry *idle = NULL;
    struct module_entry *used = NULL;
    assert_int_equal(add(store, 1, &idle), 0);
    assert_int_equal(add(store, 2, &used), 0);
    module_entry_use(used);
    module_store_trim(store, 1000);
    module_store_trim(store, 1000 + MODULE_IDLE_NS - 1);
    assert_int_equal(module_store_count(store, MODULE_SYMBOLS), 2);
    module_store_trim(store, 1000 + MODULE_IDLE_NS);
    assert_int_equal(module_store_count(store, MODULE_SYMBOLS), 1);
    assert_false(has(store, 1));
    module_store_trim(store, 1000 + 10 * MODULE_IDLE_NS);
    assert_true(has(store, 2));

    module_entry_release(used);
    module_store_trim(store, 1000 + 20 * MODULE_IDLE_NS);
    assert_int_equal(module_store_count(store, MODULE_SYMBOLS), 1);
    module_store_trim(store, 1000 + 21 * MODULE_IDLE_NS);
    assert_int_equal(module_store_count(store, MODULE_SYMBOLS), 0);
    assert_int_equal(module_store_bytes(store, MODULE_SYMBOLS), 0);
}

STORE(removes_the_longest_unused_when_full_and_never_a_used_one)
{
    struct module_entry *entry = NULL;
    struct module_entry *oldest = NULL;
    const uint64_t share = MODULE_STORE_ENTRIES_MAX / 2;
    for (uint64_t i = 0; i < share; i++) {
        assert_int_equal(add(store, i, &entry), 0);
        module_entry_use(entry);
        oldest = i == 100 ? entry : oldest;
    }
    assert_int_equal(add(store, share, &entry), -ENOSPC);

    module_entry_release(oldest);
    module_store_trim(store, 1);
    module_entry_release(entry);
    module_store_trim(store, 2);
    assert_int_equal(add(store, share, &entry), 0);
    assert_int_equal(module_store_count(store, MODULE_SYMBOLS), share);
    assert_false(has(store, 100));
    assert_true(has(store, share - 1));
}

/* Whatever some users hold, the next one finds as much room as the last one took. */
STORE(leaves_room_for_one_more_uid)
{
    struct module_entry *entry = NULL;
    const size_t table_bytes = (size_t)16 << 20;
    uint64_t number = 0;
    size_t room = STORE_BYTES_MAX;
    for (uid_t uid = 1000; room / 2 >= table_bytes; uid++) {
        room /= 2;
        for (size_t i = 0; i < room / table_bytes; i++) {
            assert_int_equal(add_of(store, number++, uid, table_bytes, &entry), 0);
            module_entry_use(entry);
        }
        assert_int_equal(add_of(store, number, uid, table_bytes, &entry), -ENOSPC);
    }
    assert_int_equal(module_store_bytes(store, MODULE_SYMBOLS), STORE_BYTES_MAX - table_bytes);
}

STORE(takes_room_from_the_same_uid_first)
{
    struct module_entry *entry = NULL;
    const size_t quarter = STORE_BYTES_MAX / 4;
    assert_int_equal(add_of(store, 1, 1, quarter, &entry), 0);
    module_store_trim(store, 1);
    assert_int_equal(add_of(store, 2, 2, quarter, &entry), 0);
    module_store_trim(store, 2);
    assert_int_equal(add_of(store, 3, 2, quarter, &entry), 0);
    assert_true(has(store, 1));
    assert_false(has(store, 2));
    assert_true(has(store, 3));
}

STORE(forgets_failures_after_a_while)
{
    struct file_identity one = identity(1);
    struct file_identity two = identity(2);
    module_store_fail(store, MODULE_SYMBOLS, &one, MODULE_FAILURE_UNREADABLE, 50);
    assert_int_equal(module_store_failure(store, MODULE_SYMBOLS, &one, 50 + MODULE_FAILURE_NS - 1),
                     MODULE_FAILURE_UNREADABLE);
    assert_int_equal(module_store_failure(store, MODULE_SYMBOLS, &one, 50 + MODULE_FAILURE_NS),
                     MODULE_FAILURE_NONE);
    assert_int_equal(module_store_failure(store, MODULE_SYMBOLS, &two, 50), MODULE_FAILURE_NONE);
}

STORE(never_finds_the_kernel_again)
{
    const struct file_identity none = {0};
    struct module_entry *entry = NULL;
    struct elf_worker_table table = map_table(0);
    assert_int_equal(module_store_add(store, NULL, 0, &table, &entry), 0);
    assert_null(module_store_find(store, MODULE_SYMBOLS, &none));
}
