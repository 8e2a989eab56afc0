/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a stack that was seen whole is good for: others of its thread that the copy cuts, but not
 * where it went over to another stack. And of the kernel's chain nothing passes but code.
 */
#include "user_stack.h"

#include "fake_module_cache.h"

#include <stdlib.h>
#include <string.h>

#include "unit_test.h"

#define PID         100
#define START       UINT64_C(0x5000)
#define LEAF        (START + 0x14)
#define ROOT        (START + 0x104)
#define SWITCH      (START + 0x204)
#define STACK       UINT64_C(0x7ffff000)
#define OTHER       UINT64_C(0x10002000)
#define REGS_ABI    2
#define SP_WORD     7
#define BP_WORD     6
#define WORD_COUNT  ((size_t)6)
#define REGS_ABI_32 1
#define DATA        UINT64_C(0x5ec2e70000c0ffee)
#define MAPPED_NS   10
#define EXEC_NS     50 /* the program after it has no memory */
#define DEPTH       20
#define CHAIN_MAX   127

struct world {
    struct module_cache cache;
    struct address_cache *addresses;
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
    world->addresses = address_cache_new();
    assert_non_null(world->addresses);
    world->stack = (struct user_stack){.unwind = SESSION_UNWIND_AUTO,
                                       .max_depth = DEPTH,
                                       .chain_max = CHAIN_MAX,
                                       .code = code_map_new(&world->cache, world->addresses),
                                       .stitch = stitch_new(DEPTH)};
    assert_true(world->processes != NULL && world->stack.code != NULL);
    assert_non_null(world->stack.stitch);
    process_table_mmap(world->processes, PID, &description, MAPPED_NS);
    struct process *process = process_table_find(world->processes, PID, 20);
    (void)code_map_find(world->stack.code, process, LEAF, &(struct code_moment){.time_ns = 20},
                        &rule);
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
    (void)address_cache_free(world->addresses);
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

TEST_WITH(completes_what_the_copy_cuts, set_up, tear_down)
{
    struct world *world = *state;
    struct sample sample;
    assert_int_equal(take(world, ROOT, WORD_COUNT, NULL, 0, &sample), STACK_COMPLETE);
    assert_int_equal(sample.user_count, 4);
    assert_int_equal(take(world, 0, 4, NULL, 0, &sample), STACK_STITCHED);
    assert_int_equal(sample.user_count, 4);
    assert_int_equal(sample.user_stack[3], ROOT);
}

TEST_WITH(completes_nothing_across_a_switch, set_up, tear_down)
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

/* The table here is of 64-bit code: a 32-bit task that executes it has no rule, and only the
 * stack's halves of words. What is remembered of the one stack does not complete the other. */
TEST_WITH(a_task_of_32_bits_has_words_and_rules_of_its_own, set_up, tear_down)
{
    const uint32_t words[] = {
        (uint32_t)OTHER, (uint32_t)STACK + 16, (uint32_t)ROOT, 0, 0, (uint32_t)LEAF, 0, 0};
    struct world *world = *state;
    struct sample sample;
    assert_int_equal(take(world, ROOT, WORD_COUNT, NULL, 0, &sample), STACK_COMPLETE);
    /* Upper halves of registers are no part of a 32-bit task's. */
    uint64_t registers[ARCH_PERF_REGS_COUNT] = {[ARCH_PERF_IP_WORD] = DATA << 32 | LEAF,
                                                [SP_WORD] = DATA << 32 | STACK,
                                                [BP_WORD] = DATA << 32 | (STACK + 4)};
    const struct perf_sample_view view = {
        .has_user_regs = true,
        .user_regs_abi = REGS_ABI_32,
        .user_regs = registers,
        .user_regs_count = ARCH_PERF_REGS_COUNT,
        .user_stack = (const uint8_t *)words,
        .user_stack_bytes = sizeof words,
        .user_stack_cut = true,
    };
    bool unmapped = true;
    struct process *process = process_table_find(world->processes, PID, 20);
    sample = (struct sample){.tid = PID, .time_ns = 20};
    assert_true(user_stack_take(&world->stack, &view, process, false, &sample, &unmapped));
    assert_false(unmapped);
    /* By frame pointers, each a word of 4 bytes; a root of 64-bit code is none here. */
    assert_int_equal(sample.user_count, 3);
    assert_int_equal(sample.user_stack[0], LEAF);
    assert_int_equal(sample.user_stack[1], ROOT);
    assert_int_equal(sample.user_stack[2], LEAF);
    assert_int_equal(sample.fp_frame_count, 2);
    assert_int_equal(sample.cfi_frame_count, 0);
    assert_int_equal(sample.quality, STACK_NO_RULE);
}

/* The ways of a chain that the unwinder does not have. */
enum chain_way {
    WAY_FP,
    WAY_FP_32_BITS,
    WAY_NO_REGISTERS,
    WAY_DEFERRED,
    WAY_COUNT
};

struct chain_case {
    uint64_t entries[DEPTH + 5];
    size_t count;
    uint64_t time_ns;
    size_t kept;
    enum stack_quality quality;
    bool unmapped;
};

static void take_chain(struct world *world, enum chain_way way, struct process *process,
                       const struct chain_case *chain, struct sample *ret, bool *ret_unmapped)
{
    uint64_t registers[ARCH_PERF_REGS_COUNT] = {[ARCH_PERF_IP_WORD] = LEAF};
    const uint64_t words[WORD_COUNT] = {0, DATA, DATA};
    struct perf_sample_view view = {
        .user_chain = chain->entries,
        .user_count = chain->count,
    };
    *ret = (struct sample){.tid = PID, .time_ns = chain->time_ns};
    if (way == WAY_DEFERRED) {
        *ret_unmapped =
            user_stack_take_deferred(&world->stack, chain->entries, chain->count, process, ret);
        return;
    }
    if (way != WAY_NO_REGISTERS) {
        view.has_user_regs = true;
        view.user_regs_abi = way == WAY_FP ? REGS_ABI : REGS_ABI_32;
        view.user_regs = registers;
        view.user_regs_count = ARCH_PERF_REGS_COUNT;
        view.user_stack = (const uint8_t *)words;
        view.user_stack_bytes = sizeof words;
    }
    world->stack.unwind =
        way == WAY_FP || way == WAY_FP_32_BITS ? SESSION_UNWIND_FP : SESSION_UNWIND_AUTO;
    *ret_unmapped = false;
    assert_true(user_stack_take(&world->stack, &view, process, false, ret, ret_unmapped));
}

TEST_WITH(a_chain_ends_before_what_is_no_code, set_up, tear_down)
{
    static const struct chain_case cases[] = {
        {{LEAF, ROOT}, 2, 20, 2, STACK_NO_RULE, false},
        {{LEAF, DATA}, 2, 20, 1, STACK_BAD_MEMORY, true},
        {{LEAF, ROOT, DATA, ROOT}, 4, 20, 2, STACK_BAD_MEMORY, true},
        {{LEAF, ROOT, 0, ROOT}, 4, 20, 2, STACK_NO_RULE, false},
        /* The program counter is what it is. */
        {{DATA, ROOT}, 2, 20, 2, STACK_NO_RULE, false},
        {{DATA}, 1, 20, 1, STACK_NO_RULE, false},
        {{0}, 0, 20, 0, STACK_NONE, false},
        /* A call is before its return address. */
        {{LEAF, START + 0x1000}, 2, 20, 2, STACK_NO_RULE, false},
        {{LEAF, START + 0x1001}, 2, 20, 1, STACK_BAD_MEMORY, true},
        {{LEAF, START}, 2, 20, 1, STACK_BAD_MEMORY, true},
        /* Mappings are those of the sample's time. */
        {{LEAF, ROOT}, 2, MAPPED_NS - 1, 1, STACK_BAD_MEMORY, true},
        {{LEAF, ROOT}, 2, EXEC_NS - 1, 2, STACK_NO_RULE, false},
        {{LEAF, ROOT}, 2, EXEC_NS, 1, STACK_BAD_MEMORY, true},
    };
    struct world *world = *state;
    struct process *process = process_table_find(world->processes, PID, 20);
    process_table_comm(world->processes, PID, PID, "next", true, EXEC_NS);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        for (enum chain_way way = 0; way < WAY_COUNT; way++) {
            struct sample sample;
            bool unmapped = false;
            take_chain(world, way, process, &cases[i], &sample, &unmapped);
            assert_int_equal(sample.user_count, cases[i].kept);
            assert_int_equal(sample.fp_frame_count, cases[i].kept);
            assert_int_equal(sample.quality, cases[i].quality);
            assert_int_equal(unmapped, cases[i].unmapped);
            assert_memory_equal(sample.user_stack, cases[i].entries,
                                cases[i].kept * sizeof cases[i].entries[0]);
        }
    }
}

TEST_WITH(a_chain_beyond_the_depth_is_cut, set_up, tear_down)
{
    struct world *world = *state;
    struct process *process = process_table_find(world->processes, PID, 20);
    struct chain_case chain = {.count = DEPTH + 5, .time_ns = 20};
    for (size_t i = 0; i < chain.count; i++) {
        chain.entries[i] = i < DEPTH ? ROOT : DATA;
    }
    for (enum chain_way way = 0; way < WAY_COUNT; way++) {
        struct sample sample;
        bool unmapped = false;
        take_chain(world, way, process, &chain, &sample, &unmapped);
        assert_int_equal(sample.user_count, DEPTH);
        assert_int_equal(sample.quality, STACK_DEPTH);
        assert_false(unmapped);
    }
}

TEST_WITH(of_an_unknown_process_only_the_program_counter_stays, set_up, tear_down)
{
    static const struct chain_case chain = {{LEAF, ROOT, DATA}, 3, 20, 1, STACK_NO_RULE, false};
    for (enum chain_way way = 0; way < WAY_COUNT; way++) {
        struct sample sample;
        bool unmapped = false;
        take_chain(*state, way, NULL, &chain, &sample, &unmapped);
        assert_int_equal(sample.user_count, 1);
        assert_int_equal(sample.user_stack[0], LEAF);
        assert_int_equal(sample.quality, STACK_NO_RULE);
        assert_false(unmapped);
    }
}
