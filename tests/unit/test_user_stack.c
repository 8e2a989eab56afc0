/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a stack that was seen whole is good for: others of its thread that the copy cuts, but not
 * where it went over to another stack. And of the kernel's chain nothing passes but code.
 */
#include "user_stack.h"

#include "fake_module_cache.h"
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

static struct world {
    struct module_cache cache;
    struct address_cache *addresses;
    struct process_table *processes;
    struct user_stack stack;
} world;

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
    (void)state;
    memset(&world, 0, sizeof world);
    world.processes = process_table_new(on_file_free, NULL);
    world.addresses = address_cache_new();
    assert_non_null(world.addresses);
    world.stack = (struct user_stack){.unwind = SESSION_UNWIND_AUTO,
                                      .max_depth = DEPTH,
                                      .chain_max = CHAIN_MAX,
                                      .code = code_map_new(&world.cache, world.addresses),
                                      .stitch = stitch_new(DEPTH)};
    assert_true(world.processes != NULL && world.stack.code != NULL);
    assert_non_null(world.stack.stitch);
    process_table_mmap(world.processes, PID, &description, MAPPED_NS);
    struct process *process = process_table_find(world.processes, PID, 20);
    (void)code_map_find(world.stack.code, process, LEAF, &(struct code_moment){.time_ns = 20},
                        &rule);
    fake_module_ready(&world.cache, 1, fake_module_table());
    assert_true(code_map_poll(world.stack.code));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    (void)process_table_free(world.processes);
    (void)code_map_free(world.stack.code);
    (void)address_cache_free(world.addresses);
    (void)stitch_free(world.stack.stitch);
    fake_module_table_free();
    return 0;
}

/* What becomes of a sample's view, of a process whose code is mapped. */
static struct sample take_view(const struct perf_sample_view *view)
{
    bool unmapped = true;
    struct process *process = process_table_find(world.processes, PID, 20);
    struct sample sample = {.tid = PID, .time_ns = 20};
    assert_true(user_stack_take(&world.stack, view, process, false, &sample, &unmapped));
    assert_false(unmapped);
    return sample;
}

#define REGISTERS(abi, words)                                                                      \
    .has_user_regs = true, .user_regs_abi = (abi), .user_regs = registers,                         \
    .user_regs_count = ARCH_PERF_REGS_COUNT, .user_stack = (const uint8_t *)(words)

/* Three leaves on the stack, and what called the last of them, as far as that is copied. */
static enum stack_quality take(uint64_t caller, size_t word_count, const uint64_t *chain,
                               size_t chain_count, struct sample *ret)
{
    const uint64_t words[WORD_COUNT] = {0, LEAF, 0, LEAF, 0, caller};
    uint64_t registers[ARCH_PERF_REGS_COUNT] = {
        [ARCH_PERF_IP_WORD] = LEAF, [SP_WORD] = STACK, [BP_WORD] = OTHER};
    const struct perf_sample_view view = {
        .user_chain = chain,
        .user_count = chain_count,
        REGISTERS(REGS_ABI, words),
        .user_stack_bytes = word_count * sizeof *words,
        .user_stack_cut = true,
    };
    *ret = take_view(&view);
    return ret->quality;
}

TEST_WITH(completes_what_the_copy_cuts, set_up, tear_down)
{
    struct sample sample;
    assert_int_equal(take(ROOT, WORD_COUNT, NULL, 0, &sample), STACK_COMPLETE);
    assert_int_equal(sample.user_count, 4);
    assert_int_equal(take(0, 4, NULL, 0, &sample), STACK_STITCHED);
    assert_int_equal(sample.user_count, 4);
    assert_int_equal(sample.user_stack[3], ROOT);
}

TEST_WITH(completes_nothing_across_a_switch, set_up, tear_down)
{
    static const uint64_t chain[] = {LEAF, ROOT};
    struct sample sample;
    assert_int_equal(take(SWITCH, WORD_COUNT, chain, 2, &sample), STACK_COMPLETE);
    assert_int_equal(sample.user_count, 5);
    assert_int_equal(take(0, 4, NULL, 0, &sample), STACK_SHORT_COPY);
    assert_int_equal(sample.user_count, 3);
    assert_int_equal(take(SWITCH, WORD_COUNT, NULL, 0, &sample), STACK_SHORT_COPY);
    assert_int_equal(sample.user_count, 4);
}

/* The table here is of 64-bit code: a 32-bit task that executes it has no rule, and only the
 * stack's halves of words. What is remembered of the one stack does not complete the other. */
TEST_WITH(a_task_of_32_bits_has_words_and_rules_of_its_own, set_up, tear_down)
{
    const uint32_t words[] = {
        (uint32_t)OTHER, (uint32_t)STACK + 16, (uint32_t)ROOT, 0, 0, (uint32_t)LEAF, 0, 0};
    struct sample sample;
    assert_int_equal(take(ROOT, WORD_COUNT, NULL, 0, &sample), STACK_COMPLETE);
    /* Upper halves of registers are no part of a 32-bit task's. */
    uint64_t registers[ARCH_PERF_REGS_COUNT] = {[ARCH_PERF_IP_WORD] = DATA << 32 | LEAF,
                                                [SP_WORD] = DATA << 32 | STACK,
                                                [BP_WORD] = DATA << 32 | (STACK + 4)};
    const struct perf_sample_view view = {
        REGISTERS(REGS_ABI_32, words),
        .user_stack_bytes = sizeof words,
        .user_stack_cut = true,
    };
    sample = take_view(&view);
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

/* Each way gives what the row says. */
static void expect_chain(struct process *process, const struct chain_case *chain)
{
    uint64_t registers[ARCH_PERF_REGS_COUNT] = {[ARCH_PERF_IP_WORD] = LEAF};
    const uint64_t words[WORD_COUNT] = {0, DATA, DATA};
    for (enum chain_way way = 0; way < WAY_COUNT; way++) {
        struct sample sample = {.tid = PID, .time_ns = chain->time_ns};
        struct perf_sample_view view = {.user_chain = chain->entries, .user_count = chain->count};
        bool is_fp = way == WAY_FP || way == WAY_FP_32_BITS;
        bool unmapped = false;
        if (is_fp) {
            view =
                (struct perf_sample_view){.user_chain = chain->entries,
                                          .user_count = chain->count,
                                          REGISTERS(way == WAY_FP ? REGS_ABI : REGS_ABI_32, words),
                                          .user_stack_bytes = sizeof words};
        }
        world.stack.unwind = is_fp ? SESSION_UNWIND_FP : SESSION_UNWIND_AUTO;
        if (way == WAY_DEFERRED) {
            unmapped = user_stack_take_deferred(&world.stack, chain->entries, chain->count, process,
                                                &sample);
        } else {
            assert_true(user_stack_take(&world.stack, &view, process, false, &sample, &unmapped));
        }
        assert_int_equal(sample.user_count, chain->kept);
        assert_int_equal(sample.fp_frame_count, chain->kept);
        assert_int_equal(sample.quality, chain->quality);
        assert_int_equal(unmapped, chain->unmapped);
        assert_memory_equal(sample.user_stack, chain->entries,
                            chain->kept * sizeof chain->entries[0]);
    }
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
    struct process *process = process_table_find(world.processes, PID, 20);
    process_table_comm(world.processes, PID, PID, "next", true, EXEC_NS);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        expect_chain(process, &cases[i]);
    }
}

TEST_WITH(a_chain_beyond_the_depth_is_cut, set_up, tear_down)
{
    struct chain_case chain = {
        .count = DEPTH + 5, .time_ns = 20, .kept = DEPTH, .quality = STACK_DEPTH};
    for (size_t i = 0; i < chain.count; i++) {
        chain.entries[i] = i < DEPTH ? ROOT : DATA;
    }
    expect_chain(process_table_find(world.processes, PID, 20), &chain);
}

TEST_WITH(of_an_unknown_process_only_the_program_counter_stays, set_up, tear_down)
{
    static const struct chain_case chain = {{LEAF, ROOT, DATA}, 3, 20, 1, STACK_NO_RULE, false};
    expect_chain(NULL, &chain);
}
