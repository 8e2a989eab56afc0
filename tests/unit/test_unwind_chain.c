/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where the copied bytes end, the kernel's chain goes on: on proof, and as far as it holds. And
 * whatever is on a stack, the walk ends.
 */
#include "unwind_fp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "unwind_story.h"

#define CHECK(stories) check_stories(stories, sizeof(stories) / sizeof *(stories))

static void joins_the_chain_where_the_copy_ends(void **state)
{
    (void)state;
    static const struct story stories[] = {
        {.name = "at once",
         .ip = CODE(CODE_FRAME),
         .bp = AT(7),
         .chain = {CODE(CODE_FRAME), CODE(CODE_FRAME), CODE(CODE_JIT), CODE(CODE_ROOT)},
         .chain_count = 4,
         .callers = {CODE(CODE_FRAME), CODE(CODE_JIT), CODE(CODE_ROOT)},
         .quality = STACK_UNPROVED,
         .fp_count = 3},
        {.name = "after frames in the copy",
         .ip = CODE(CODE_FRAME),
         .bp = AT(0),
         .words = {AT(2), CODE(CODE_JIT), AT(7), CODE(CODE_FRAME)},
         .word_count = 4,
         .chain = {CODE(CODE_FRAME), CODE(CODE_JIT), CODE(CODE_FRAME), CODE(CODE_ROOT)},
         .chain_count = 4,
         .callers = {CODE(CODE_JIT), CODE(CODE_FRAME), CODE(CODE_ROOT)},
         .quality = STACK_UNPROVED,
         .cfi_count = 1,
         .fp_count = 2},
        {.name = "past a caller that the kernel cannot see",
         .ip = CODE(CODE_LEAF),
         .bp = AT(7),
         .words = {CODE(CODE_FRAME)},
         .word_count = 1,
         .chain = {CODE(CODE_LEAF), CODE(CODE_JIT), CODE(CODE_ROOT)},
         .chain_count = 3,
         .callers = {CODE(CODE_FRAME), CODE(CODE_JIT), CODE(CODE_ROOT)},
         .quality = STACK_UNPROVED,
         .cfi_count = 1,
         .fp_count = 2},
    };
    CHECK(stories);
}

static void joins_the_chain_from_frames_of_other_kinds(void **state)
{
    (void)state;
    static const struct story stories[] = {
        {.name = "from a frame whose rbp nothing tells, but for its place",
         .ip = CODE(CODE_GO),
         .bp = AT(1),
         .words = {0, AT(4), CODE(CODE_GO), 0},
         .word_count = 4,
         .chain = {CODE(CODE_GO), CODE(CODE_GO), CODE(CODE_GO), CODE(CODE_ROOT)},
         .chain_count = 4,
         .callers = {CODE(CODE_GO), CODE(CODE_GO), CODE(CODE_ROOT)},
         .quality = STACK_COMPLETE,
         .cfi_count = 1,
         .fp_count = 2},
        {.name = "from a handler's stack to the one that it interrupted",
         .ip = CODE(CODE_RESTORER),
         .bp = AT(90),
         .words = {[CODE_SIGNAL_BP / 8] = AT(90),
                   [CODE_SIGNAL_SP / 8] = AT(80),
                   [CODE_SIGNAL_IP / 8] = CODE(CODE_FRAME)},
         .word_count = 22,
         .whole = true,
         .chain = {CODE(CODE_RESTORER), CODE(CODE_JIT), CODE(CODE_ROOT)},
         .chain_count = 3,
         .callers = {EXACT(CODE(CODE_FRAME)), CODE(CODE_JIT), CODE(CODE_ROOT)},
         .quality = STACK_UNPROVED,
         .cfi_count = 1,
         .fp_count = 2},
        {.name = "with only the saved frame pointer copied",
         .ip = CODE(CODE_JIT),
         .bp = AT(0),
         .words = {AT(7)},
         .word_count = 1,
         .chain = {CODE(CODE_JIT), CODE(CODE_FRAME), CODE(CODE_ROOT)},
         .chain_count = 3,
         .callers = {CODE(CODE_FRAME), CODE(CODE_ROOT)},
         .quality = STACK_UNPROVED,
         .fp_count = 2},
    };
    CHECK(stories);
}

static void takes_no_chain_without_proof(void **state)
{
    (void)state;
    static const struct story stories[] = {
        {.name = "of another sample",
         .ip = CODE(CODE_FRAME),
         .bp = AT(7),
         .chain = {CODE(CODE_FRAME) + 1, CODE(CODE_ROOT)},
         .chain_count = 2,
         .quality = STACK_SHORT_COPY},
        {.name = "that is empty", .ip = CODE(CODE_FRAME), .bp = AT(7), .quality = STACK_SHORT_COPY},
        {.name = "that the copied bytes contradict",
         .ip = CODE(CODE_FRAME),
         .bp = AT(0),
         .words = {AT(7), CODE(CODE_FRAME)},
         .word_count = 2,
         .chain = {CODE(CODE_FRAME), CODE(CODE_FRAME) + 1, CODE(CODE_ROOT)},
         .chain_count = 3,
         .callers = {CODE(CODE_FRAME)},
         .quality = STACK_SHORT_COPY,
         .cfi_count = 1},
        {.name = "that ended before the copied bytes",
         .ip = CODE(CODE_FRAME),
         .bp = AT(0),
         .words = {AT(7), CODE(CODE_FRAME)},
         .word_count = 2,
         .chain = {CODE(CODE_FRAME)},
         .chain_count = 1,
         .callers = {CODE(CODE_FRAME)},
         .quality = STACK_SHORT_COPY,
         .cfi_count = 1},
        {.name = "of a frame whose own is elsewhere",
         .ip = CODE(CODE_GO),
         .bp = AT(7),
         .chain = {CODE(CODE_GO), CODE(CODE_ROOT)},
         .chain_count = 2,
         .quality = STACK_SHORT_COPY},
        {.name = "of a frame that rests on rsp, though rbp is the chain's",
         .ip = CODE(CODE_LEAF),
         .bp = AT(7),
         .chain = {CODE(CODE_LEAF), CODE(CODE_ROOT)},
         .chain_count = 2,
         .quality = STACK_SHORT_COPY},
    };
    CHECK(stories);
}

static void takes_no_chain_of_other_frames(void **state)
{
    (void)state;
    static const struct story stories[] = {
        {.name = "whose frame pointers go another way",
         .ip = CODE(CODE_RESTORER),
         .bp = AT(0),
         .words = {AT(22), CODE(CODE_JIT), [CODE_SIGNAL_BP / 8] = AT(90),
                   [CODE_SIGNAL_SP / 8] = AT(80), [CODE_SIGNAL_IP / 8] = CODE(CODE_FRAME)},
         .word_count = 23,
         .chain = {CODE(CODE_RESTORER), CODE(CODE_JIT), CODE(CODE_ROOT)},
         .chain_count = 3,
         .callers = {EXACT(CODE(CODE_FRAME))},
         .quality = STACK_SHORT_COPY,
         .cfi_count = 1},
        {.name = "whose frame pointers turn in a circle",
         .ip = CODE(CODE_RESTORER),
         .bp = AT(0),
         .words = {AT(0), CODE(CODE_JIT), [CODE_SIGNAL_BP / 8] = AT(90),
                   [CODE_SIGNAL_SP / 8] = AT(80), [CODE_SIGNAL_IP / 8] = CODE(CODE_FRAME)},
         .word_count = 23,
         .chain = {CODE(CODE_RESTORER), CODE(CODE_JIT), CODE(CODE_JIT), CODE(CODE_JIT)},
         .chain_count = 4,
         .callers = {EXACT(CODE(CODE_FRAME))},
         .quality = STACK_SHORT_COPY,
         .cfi_count = 1},
        {.name = "of a frame pointer below the stack, by a rule",
         .ip = CODE(CODE_FRAME),
         .bp = AT(-3),
         .chain = {CODE(CODE_FRAME), CODE(CODE_ROOT)},
         .chain_count = 2,
         .quality = STACK_BAD_MEMORY},
        {.name = "of one without a rule",
         .ip = CODE(CODE_JIT),
         .bp = AT(-3),
         .chain = {CODE(CODE_JIT), CODE(CODE_ROOT)},
         .chain_count = 2,
         .quality = STACK_BAD_MEMORY},
        {.name = "of a frame pointer that is no address of words",
         .ip = CODE(CODE_JIT),
         .bp = AT(7) + 4,
         .chain = {CODE(CODE_JIT), CODE(CODE_ROOT)},
         .chain_count = 2,
         .quality = STACK_BAD_MEMORY},
        {.name = "of a frame that was read, and leads to no code",
         .ip = CODE(CODE_FRAME),
         .bp = AT(0),
         .words = {AT(7), CODE(CODE_NOWHERE)},
         .word_count = 2,
         .chain = {CODE(CODE_FRAME), CODE(CODE_NOWHERE), CODE(CODE_ROOT)},
         .chain_count = 3,
         .quality = STACK_BAD_MEMORY},
    };
    CHECK(stories);
}

static void follows_the_chain_as_far_as_it_holds(void **state)
{
    (void)state;
    static const struct story stories[] = {
        {.name = "to an entry that keeps no frame pointer",
         .ip = CODE(CODE_FRAME),
         .bp = AT(7),
         .chain = {CODE(CODE_FRAME), CODE(CODE_WIDE), CODE(CODE_ROOT)},
         .chain_count = 3,
         .callers = {CODE(CODE_WIDE)},
         .quality = STACK_SHORT_COPY,
         .fp_count = 1},
        {.name = "to such an entry, on a stack that is copied whole",
         .ip = CODE(CODE_FRAME),
         .bp = AT(7),
         .words = {0},
         .word_count = 1,
         .whole = true,
         .chain = {CODE(CODE_FRAME), CODE(CODE_WIDE), CODE(CODE_ROOT)},
         .chain_count = 3,
         .callers = {CODE(CODE_WIDE)},
         .quality = STACK_BAD_MEMORY,
         .fp_count = 1},
        {.name = "to an entry that is no code",
         .ip = CODE(CODE_FRAME),
         .bp = AT(7),
         .chain = {CODE(CODE_FRAME), CODE(CODE_FRAME), CODE(CODE_NOWHERE), CODE(CODE_ROOT)},
         .chain_count = 4,
         .callers = {CODE(CODE_FRAME)},
         .quality = STACK_BAD_MEMORY,
         .fp_count = 1},
        {.name = "to an entry of 0",
         .ip = CODE(CODE_JIT),
         .bp = AT(7),
         .chain = {CODE(CODE_JIT), CODE(CODE_JIT), 0},
         .chain_count = 3,
         .callers = {CODE(CODE_JIT)},
         .quality = STACK_NO_RULE,
         .fp_count = 1},
        {.name = "to an entry without a rule, with rules only",
         .ip = CODE(CODE_FRAME),
         .bp = AT(7),
         .mode = UNWIND_CFI,
         .chain = {CODE(CODE_FRAME), CODE(CODE_FRAME), CODE(CODE_JIT), CODE(CODE_ROOT)},
         .chain_count = 4,
         .callers = {CODE(CODE_FRAME), CODE(CODE_JIT)},
         .quality = STACK_NO_RULE,
         .fp_count = 2},
        {.name = "past a call that ends its function",
         .ip = CODE(CODE_FRAME),
         .bp = AT(7),
         .chain = {CODE(CODE_FRAME), (uint64_t)(CODE_FRAME + 1) << CODE_PAGE_BITS, CODE(CODE_ROOT)},
         .chain_count = 3,
         .callers = {(uint64_t)(CODE_FRAME + 1) << CODE_PAGE_BITS, CODE(CODE_ROOT)},
         .quality = STACK_COMPLETE,
         .fp_count = 2},
    };
    CHECK(stories);
}

static void says_how_the_chain_ended(void **state)
{
    (void)state;
    static const struct story stories[] = {
        {.name = "to its end",
         .ip = CODE(CODE_FRAME),
         .bp = AT(7),
         .chain = {CODE(CODE_FRAME), CODE(CODE_FRAME)},
         .chain_count = 2,
         .callers = {CODE(CODE_FRAME)},
         .quality = STACK_SHORT_COPY,
         .fp_count = 1},
        {.name = "to where the kernel had to stop",
         .ip = CODE(CODE_FRAME),
         .bp = AT(7),
         .chain = {CODE(CODE_FRAME), CODE(CODE_FRAME)},
         .chain_count = 2,
         .chain_cut = true,
         .callers = {CODE(CODE_FRAME)},
         .quality = STACK_DEPTH,
         .fp_count = 1},
        {.name = "to its end, which is here",
         .ip = CODE(CODE_FRAME),
         .bp = AT(7),
         .chain = {CODE(CODE_FRAME)},
         .chain_count = 1,
         .chain_cut = true,
         .quality = STACK_DEPTH},
        {.name = "to the depth",
         .ip = CODE(CODE_FRAME),
         .bp = AT(7),
         .max_depth = 2,
         .chain = {CODE(CODE_FRAME), CODE(CODE_FRAME), CODE(CODE_ROOT)},
         .chain_count = 3,
         .callers = {CODE(CODE_FRAME)},
         .quality = STACK_DEPTH,
         .fp_count = 1},
    };
    CHECK(stories);
}

static void knows_a_frame_pointer_by_all_of_its_rule(void **state)
{
    (void)state;
    const struct unwind_memory memory = {.start = 0};
    struct cfi_rule rule = code_rules[CODE_FRAME];
    assert_true(unwind_fp_is_rule(&memory, &rule));
    rule.bx_saved = CFI_LOST;
    assert_true(unwind_fp_is_rule(&memory, &rule));
    static const struct cfi_rule others[] = {
        {CFA_AT(SP, 16), AT_CFA(ra, -8), AT_CFA(bp, -16)},
        {CFA_AT(BP, 24), AT_CFA(ra, -8), AT_CFA(bp, -16)},
        {CFA_AT(BP, 16), AT_CFA(ra, -16), AT_CFA(bp, -16)},
        {CFA_AT(BP, 16), AT_CFA(ra, -8), AT_CFA(bp, -24)},
        {CFA_AT(BP, 16), AT_SP(ra, -8), AT_CFA(bp, -16)},
        {CFA_AT(BP, 16), AT_CFA(ra, -8), AT_SP(bp, -16)},
        {CFA_AT(BP, 16), AT_CFA(ra, -8)},
        {CFA_AT(BP, 16), AT_CFA(ra, -8), AT_CFA(bp, -16), .signal_frame = 1},
        {.kind = CFI_DEREF,
         .cfa_register = ARCH_DWARF_BP,
         .cfa_offset = 16,
         AT_CFA(ra, -8),
         AT_CFA(bp, -16)},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_false(unwind_fp_is_rule(&memory, &others[i]));
    }
}

#define RANDOM_ROUNDS 100000
#define RANDOM_WORDS  ((size_t)24)

static uint64_t next_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

/* Mostly what leads on: code, and addresses on the stack; else anything. */
static uint64_t random_word(uint64_t *seed)
{
    uint64_t word = next_random(seed);
    switch (word >> 60) {
    case 0:
        return next_random(seed);
    case 1:
        return UINT64_MAX - (next_random(seed) & 31);
    case 2:
        return next_random(seed) & 31;
    case 3:
    case 4:
    case 5:
    case 6:
    case 7:
        return AT((word & 31) - 4) + (next_random(seed) & 1) * (word & 7);
    case 8:
    case 9:
    case 10:
    case 11:
        return CODE(CODE_LEAF);
    default:
        return CODE(CODE_NOWHERE + word % (CODE_END - CODE_NOWHERE + 1)) + (word >> 8 & 15);
    }
}

static void ends_on_any_stack(void **state)
{
    (void)state;
    uint64_t seed = UINT64_C(0x9e3779b97f4a7c15);
    size_t deep_count = 0;
    size_t complete_count = 0;
    for (size_t round = 0; round < RANDOM_ROUNDS; round++) {
        struct story story = {.ip = random_word(&seed),
                              .sp = (round & 3) == 0 ? random_word(&seed) : STACK_START,
                              .bp = random_word(&seed),
                              .bx = random_word(&seed),
                              .r10 = random_word(&seed),
                              .word_count = next_random(&seed) % RANDOM_WORDS,
                              .whole = (next_random(&seed) & 1) != 0,
                              .mode = (round & 15) == 0 ? UNWIND_CFI : UNWIND_AUTO,
                              .max_depth = 1 + next_random(&seed) % FRAMES_MAX,
                              .chain_count = next_random(&seed) % FRAMES_MAX,
                              .chain_cut = (next_random(&seed) & 1) != 0};
        for (size_t i = 0; i < story.word_count; i++) {
            story.words[i] = random_word(&seed);
        }
        for (size_t i = 0; i < story.chain_count; i++) {
            story.chain[i] = i == 0 ? story.ip : random_word(&seed);
        }
        uint64_t frames[FRAMES_MAX + 1];
        struct unwind_result result;
        frames[story.max_depth] = seed;
        unwind_story(&story, frames, &result);
        assert_int_equal(frames[story.max_depth], seed);
        if (result.pending) {
            continue;
        }
        assert_in_range(result.frame_count, 1, story.max_depth);
        assert_in_range(result.quality, STACK_COMPLETE, STACK_UNPROVED);
        assert_int_equal(frames[0], story.ip);
        assert_int_equal(result.cfi_frame_count + result.fp_frame_count, result.frame_count - 1);
        deep_count += result.frame_count > 3;
        complete_count += result.quality == STACK_COMPLETE || result.quality == STACK_UNPROVED;
    }
    assert_in_range(deep_count, RANDOM_ROUNDS / 200, RANDOM_ROUNDS);
    assert_in_range(complete_count, RANDOM_ROUNDS / 100, RANDOM_ROUNDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joins_the_chain_where_the_copy_ends),
        cmocka_unit_test(joins_the_chain_from_frames_of_other_kinds),
        cmocka_unit_test(takes_no_chain_without_proof),
        cmocka_unit_test(takes_no_chain_of_other_frames),
        cmocka_unit_test(follows_the_chain_as_far_as_it_holds),
        cmocka_unit_test(says_how_the_chain_ended),
        cmocka_unit_test(knows_a_frame_pointer_by_all_of_its_rule),
        cmocka_unit_test(ends_on_any_stack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
