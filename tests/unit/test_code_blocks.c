/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A program with much code without rows, of which those from instructions are made for one block of
 * addresses at a time: what a block says of itself is what the table of all rows says, but for what
 * only a symbol proves. The tables are those of this very program.
 */
#include "built_tables.h"
#include "code_rows.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>

#define COUNT      8000
#define STEP_BYTES 80 /* so that functions reach from one block into the next */
#define HOLE_BYTES 0x40000

/* clang-format off */
__asm__(".pushsection .text\n.p2align 4\n"
        ".macro pushing\n.type pushing\\@, @function\npushing\\@:\n"
        "push %rbx\n.skip 70, 0x90\npop %rbx\nret\n.size pushing\\@, . - pushing\\@\n.p2align 4, 0xcc\n.endm\n"
        ".globl functions, behind_functions, only_symbol, hole\n"
        "functions:\n.rept 8000\npushing\n.endr\nbehind_functions:\n"
        ".type only_symbol, @function\nonly_symbol:\npush %rbx\ncall *%rax\nud2\n.size only_symbol, . - only_symbol\n"
        ".p2align 4, 0xcc\npushing\n"
        "hole:\n.skip 0x40000, 0x90\nud2\n"
        ".popsection\n");
/* clang-format on */
extern const char functions, behind_functions, only_symbol, hole, __executable_start;

static uint64_t address_of(const char *place)
{
    return (uint64_t)(place - &__executable_start);
}

static struct world {
    int fd;
    struct cfi_builder *builder;
    struct code_pointers pointers;
    struct code_blocks *blocks;
    struct made_cfi own, all;
} world;

static int set_up(void **state)
{
    struct cfi_builder *all = cfi_builder_new();
    (void)state;
    world.fd = open_self();
    assert_int_equal(code_rows_read(world.fd, CODE_ROWS_ALL, all), 0);
    world.all = finish_cfi(all);
    world.builder = cfi_builder_new();
    assert_int_equal(code_rows_read_first(world.fd, CODE_ROWS_OWN, &world.pointers, world.builder),
                     0);
    assert_int_equal(cfi_builder_finish(world.builder, &world.own.bytes, &world.own.size_bytes), 0);
    assert_int_equal(cfi_table_open(world.own.bytes, world.own.size_bytes, &world.own.table), 0);
    const struct cfi_table *table = cfi_builder_rewind(world.builder);
    assert_int_equal(code_blocks_read(world.fd, table, &world.pointers, &world.blocks), 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    code_blocks_free(world.blocks);
    code_pointers_done(&world.pointers);
    cfi_builder_free(world.builder);
    free_cfi(&world.own);
    free_cfi(&world.all);
    (void)close(world.fd);
    return 0;
}

static uint64_t block_of(uint64_t address)
{
    return address & ~(CFI_BLOCK_BYTES - 1);
}

static struct made_cfi make_block(uint64_t start)
{
    struct cfi_builder *builder = cfi_builder_new();
    assert_int_equal(code_blocks_add(world.blocks, world.fd, start, builder), 0);
    return finish_cfi(builder);
}

TEST_WITH(a_file_with_much_code_without_rows_is_in_blocks, set_up, tear_down)
{
    Dl_info libc;
    assert_int_not_equal(dladdr((void *)(uintptr_t)gnu_get_libc_version, &libc), 0);
    cleanup_(closep) int fd = open(libc.dli_fname, O_RDONLY | O_CLOEXEC);
    struct cfi_builder *builder = cfi_builder_new();
    assert_int_equal(code_rows_read(fd, CODE_ROWS_OWN, builder), 0);
    cleanup_(free_cfi) struct made_cfi other = finish_cfi(builder);
    assert_true(world.own.table.is_in_blocks);
    assert_false(world.all.table.is_in_blocks);
    assert_false(other.table.is_in_blocks);
    assert_true(code_blocks_bytes(world.blocks) > COUNT * 16);
}

TEST_WITH(a_block_says_what_the_table_of_all_rows_says, set_up, tear_down)
{
    uint64_t end = address_of(&behind_functions);
    size_t proved = 0;
    for (uint64_t start = block_of(address_of(&functions)); start < end; start += CFI_BLOCK_BYTES) {
        cleanup_(free_cfi) struct made_cfi block = make_block(start);
        assert_true(block.table.is_in_blocks);
        for (uint64_t at = start; at < start + CFI_BLOCK_BYTES && at < end; at++) {
            const struct cfi_rule *expected = cfi_table_find(&world.all.table, at);
            if (!cfi_rule_covers(cfi_table_find(&world.own.table, at))) {
                assert_memory_equal(cfi_table_find(&block.table, at), expected, sizeof *expected);
                proved += expected->kind == CFI_OFFSET && expected->cfa_offset == 16;
            }
        }
    }
    assert_int_equal(proved, COUNT * 71); /* behind each push, up to the pop and with it */
}

TEST_WITH(a_block_says_nothing_of_others, set_up, tear_down)
{
    uint64_t start = block_of(address_of(&functions) + COUNT / 2 * STEP_BYTES);
    cleanup_(free_cfi) struct made_cfi block = make_block(start);
    assert_int_equal(cfi_table_find(&block.table, start - STEP_BYTES)->kind, CFI_NONE);
    assert_int_equal(cfi_table_find(&block.table, start + CFI_BLOCK_BYTES + STEP_BYTES)->kind,
                     CFI_NONE);
}

TEST_WITH(a_symbol_alone_proves_nothing_in_a_block, set_up, tear_down)
{
    uint64_t at = address_of(&only_symbol) + 1;
    cleanup_(free_cfi) struct made_cfi block = make_block(block_of(at));
    assert_int_equal(cfi_table_find(&world.all.table, at)->kind, CFI_OFFSET);
    assert_int_equal(cfi_table_find(&block.table, at)->kind, CFI_END);
}

TEST_WITH(far_from_any_function_there_are_no_rows, set_up, tear_down)
{
    uint64_t at = address_of(&hole) + HOLE_BYTES / 2;
    cleanup_(free_cfi) struct made_cfi block = make_block(block_of(at));
    assert_int_equal(cfi_table_find(&block.table, at)->kind, CFI_NONE);
    assert_int_equal(block.table.row_count, 0);
}
