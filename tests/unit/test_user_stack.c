/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a stack that was seen whole is good for: others of its thread that the copy cuts, but not
 * where it went over to another stack.
 */
#include "user_stack.h"

#include "fake_module_cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PID        100
#define START      UINT64_C(0x5000)
#define LEAF       (START + 0x14)
#define ROOT       (START + 0x104)
#define SWITCH     (START + 0x204)
#define STACK      UINT64_C(0x7ffff000)
#define OTHER      UINT64_C(0x10002000)
#define REGS_ABI   2
#define SP_WORD    7
#define BP_WORD    6
#define WORD_COUNT ((size_t)6)

struct world {
    struct module_cache cache;
    struct process_table *processes;
    struct user_stack stack;
};

static void on_file_free(struct mapped_file *file, void *userdata)
{
    (void)userdata;
    code_map_file_gone(file);
}

/* The table is there. */
static int set_up(void **state)
{
    const struct mapping_description description = {
        .start = START, .end = START + 0x1000, .path = "/file", .device_major = 8, .inode = 1};
    const struct cfi_rule *rule = NULL;
    struct world *world = calloc(1, sizeof *world);
    assert_non_null(world);
    world->processes = process_table_new(on_file_free, NULL);
    world->stack = (struct user_stack){.unwind = SESSION_UNWIND_AUTO,
                                       .max_depth = 20,
                                       .chain_max = 127,
                                       .code = code_map_new(&world->cache),
                                       .stitch = stitch_new(20)};
    assert_true(world->processes != NULL && world->stack.code != NULL);
    assert_non_null(world->stack.stitch);
    process_table_mmap(world->processes, PID, &description, 10);
    struct process *process = process_table_find(world->processes, PID, 20);
    (void)code_map_find(world->stack.code, process, LEAF, 20, false, &rule);
    fake_module_ready(&world->cache, 1, fake_module_table());
    assert_true(code_map_poll(world->stack.code));
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    (void)process_table_free(world->processes);
    (void)code_map_free(world->stack.code);
    (void)stitch_free(world->stack.stitch);
    fake_module_table_free();
    free(world);
    return 0;
}

/* Three leaves on the stack, and what called the last of them, as far as that is copied. */
static enum stack_quality take(struct world *world, uint64_t caller, size_t word_count,
                               const uint64_t *chain, size_t chain_count, struct sample *ret)
{
    const uint64_t words[WORD_COUNT] = {0, LEAF, 0, LEAF, 0, caller};
    uint64_t registers[ARCH_PERF_REGS_COUNT] = {
        [ARCH_PERF_IP_WORD] = LEAF, [SP_WORD] = STACK, [BP_WORD] = OTHER};
    const struct perf_sample_view view = {
        .user_chain = chain,
        .user_count = chain_count,
        .has_user_regs = true,
        .user_regs_abi = REGS_ABI,
        .user_regs = registers,
        .user_regs_count = ARCH_PERF_REGS_COUNT,
        .user_stack = (const uint8_t *)words,
        .user_stack_bytes = word_count * sizeof *words,
        .user_stack_cut = true,
    };
    bool unmapped = true;
    struct process *process = process_table_find(world->processes, PID, 20);
    *ret = (struct sample){.tid = PID, .time_ns = 20};
    assert_true(user_stack_take(&world->stack, &view, process, false, ret, &unmapped));
    assert_false(unmapped);
    return ret->quality;
}

static void completes_what_the_copy_cuts(void **state)
{
    struct world *world = *state;
    struct sample sample;
    assert_int_equal(take(world, ROOT, WORD_COUNT, NULL, 0, &sample), STACK_COMPLETE);
    assert_int_equal(sample.user_count, 4);
    assert_int_equal(take(world, 0, 4, NULL, 0, &sample), STACK_STITCHED);
    assert_int_equal(sample.user_count, 4);
    assert_int_equal(sample.user_stack[3], ROOT);
}

static void completes_nothing_across_a_switch(void **state)
{
    static const uint64_t chain[] = {LEAF, ROOT};
    struct world *world = *state;
    struct sample sample;
    assert_int_equal(take(world, SWITCH, WORD_COUNT, chain, 2, &sample), STACK_COMPLETE);
    assert_int_equal(sample.user_count, 5);
    assert_int_equal(take(world, 0, 4, NULL, 0, &sample), STACK_SHORT_COPY);
    assert_int_equal(sample.user_count, 3);
    assert_int_equal(take(world, SWITCH, WORD_COUNT, NULL, 0, &sample), STACK_SHORT_COPY);
    assert_int_equal(sample.user_count, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(completes_what_the_copy_cuts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(completes_nothing_across_a_switch, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
