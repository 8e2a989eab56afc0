/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where the copied bytes end, the kernel's chain goes on: on proof, and as far as it holds. And
 * whatever is on a stack, the walk ends.
 */
#include "unwind_fp.h"

#include "unwind_story.h"

TEST(joins_the_chain_where_the_copy_ends)
{
    CHECK({"at once", FROM(C(FRAME), .bp = AT(7)), CHAIN(C(FRAME), C(FRAME), C(JIT), C(ROOT)),
           CALLERS(C(FRAME), C(JIT), C(ROOT)), ENDS(UNPROVED, 0, 3)},
          {"after frames in the copy", FROM(C(FRAME), .bp = AT(0)),
           WORDS(AT(2), C(JIT), AT(7), C(FRAME)), CHAIN(C(FRAME), C(JIT), C(FRAME), C(ROOT)),
           CALLERS(C(JIT), C(FRAME), C(ROOT)), ENDS(UNPROVED, 1, 2)},
          {"past a caller that the kernel cannot see", FROM(C(LEAF), .bp = AT(7)), WORDS(C(FRAME)),
           CHAIN(C(LEAF), C(JIT), C(ROOT)), CALLERS(C(FRAME), C(JIT), C(ROOT)),
           ENDS(UNPROVED, 1, 2)});
}

TEST(joins_the_chain_from_frames_of_other_kinds)
{
    CHECK({"from a frame whose rbp nothing tells, but for its place", FROM(C(GO), .bp = AT(1)),
           WORDS(0, AT(4), C(GO), 0), CHAIN(C(GO), C(GO), C(GO), C(ROOT)),
           CALLERS(C(GO), C(GO), C(ROOT)), ENDS(COMPLETE, 1, 2)},
          {"from a handler's stack to the one that it interrupted",
           FROM(C(RESTORER), .bp = AT(90), .whole = true),
           WORDS(SIGNAL(0, BP) = AT(90), SIGNAL(0, SP) = AT(80), SIGNAL(0, IP) = C(FRAME)),
           CHAIN(C(RESTORER), C(JIT), C(ROOT)), CALLERS(EXACT(C(FRAME)), C(JIT), C(ROOT)),
           ENDS(UNPROVED, 1, 2)},
          {"with only the saved frame pointer copied", FROM(C(JIT), .bp = AT(0)), WORDS(AT(7)),
           CHAIN(C(JIT), C(FRAME), C(ROOT)), CALLERS(C(FRAME), C(ROOT)), ENDS(UNPROVED, 0, 2)});
}

TEST(takes_no_chain_without_proof)
{
    CHECK({"of another sample", FROM(C(FRAME), .bp = AT(7)), CHAIN(C(FRAME) + 1, C(ROOT)),
           ENDS(SHORT_COPY, 0, 0)},
          {"that is empty", FROM(C(FRAME), .bp = AT(7)), ENDS(SHORT_COPY, 0, 0)},
          {"that the copied bytes contradict", FROM(C(FRAME), .bp = AT(0)), WORDS(AT(7), C(FRAME)),
           CHAIN(C(FRAME), C(FRAME) + 1, C(ROOT)), CALLERS(C(FRAME)), ENDS(SHORT_COPY, 1, 0)},
          {"that ended before the copied bytes", FROM(C(FRAME), .bp = AT(0)),
           WORDS(AT(7), C(FRAME)), CHAIN(C(FRAME)), CALLERS(C(FRAME)), ENDS(SHORT_COPY, 1, 0)},
          {"of a frame whose own is elsewhere", FROM(C(GO), .bp = AT(7)), CHAIN(C(GO), C(ROOT)),
           ENDS(SHORT_COPY, 0, 0)},
          {"of a frame that rests on rsp, though rbp is the chain's", FROM(C(LEAF), .bp = AT(7)),
           CHAIN(C(LEAF), C(ROOT)), ENDS(SHORT_COPY, 0, 0)});
}

TEST(takes_no_chain_of_other_frames)
{
    CHECK({"whose frame pointers go another way", FROM(C(RESTORER), .bp = AT(0)),
           WORDS(AT(22), C(JIT), SIGNAL(0, BP) = AT(90), SIGNAL(0, SP) = AT(80),
                 SIGNAL(0, IP) = C(FRAME), [22] = 0),
           CHAIN(C(RESTORER), C(JIT), C(ROOT)), CALLERS(EXACT(C(FRAME))), ENDS(SHORT_COPY, 1, 0)},
          {"whose frame pointers turn in a circle", FROM(C(RESTORER), .bp = AT(0)),
           WORDS(AT(0), C(JIT), SIGNAL(0, BP) = AT(90), SIGNAL(0, SP) = AT(80),
                 SIGNAL(0, IP) = C(FRAME), [22] = 0),
           CHAIN(C(RESTORER), C(JIT), C(JIT), C(JIT)), CALLERS(EXACT(C(FRAME))),
           ENDS(SHORT_COPY, 1, 0)},
          {"of a frame pointer below the stack, by a rule", FROM(C(FRAME), .bp = AT(-3)),
           CHAIN(C(FRAME), C(ROOT)), ENDS(BAD_MEMORY, 0, 0)},
          {"of one without a rule", FROM(C(JIT), .bp = AT(-3)), CHAIN(C(JIT), C(ROOT)),
           ENDS(BAD_MEMORY, 0, 0)},
          {"of a frame pointer that is no address of words", FROM(C(JIT), .bp = AT(7) + 4),
           CHAIN(C(JIT), C(ROOT)), ENDS(BAD_MEMORY, 0, 0)},
          {"of a frame that was read, and leads to no code", FROM(C(FRAME), .bp = AT(0)),
           WORDS(AT(7), C(NOWHERE)), CHAIN(C(FRAME), C(NOWHERE), C(ROOT)), ENDS(BAD_MEMORY, 0, 0)});
}

TEST(follows_the_chain_as_far_as_it_holds)
{
    CHECK({"to an entry that keeps no frame pointer", FROM(C(FRAME), .bp = AT(7)),
           CHAIN(C(FRAME), C(WIDE), C(ROOT)), CALLERS(C(WIDE)), ENDS(SHORT_COPY, 0, 1)},
          {"to such an entry, on a stack that is copied whole",
           FROM(C(FRAME), .bp = AT(7), .whole = true), WORDS(0), CHAIN(C(FRAME), C(WIDE), C(ROOT)),
           CALLERS(C(WIDE)), ENDS(BAD_MEMORY, 0, 1)},
          {"to an entry that is no code", FROM(C(FRAME), .bp = AT(7)),
           CHAIN(C(FRAME), C(FRAME), C(NOWHERE), C(ROOT)), CALLERS(C(FRAME)),
           ENDS(BAD_MEMORY, 0, 1)},
          {"to an entry of 0", FROM(C(JIT), .bp = AT(7)), CHAIN(C(JIT), C(JIT), 0), CALLERS(C(JIT)),
           ENDS(NO_RULE, 0, 1)},
          {"to an entry without a rule, with rules only",
           FROM(C(FRAME), .bp = AT(7), .mode = UNWIND_CFI),
           CHAIN(C(FRAME), C(FRAME), C(JIT), C(ROOT)), CALLERS(C(FRAME), C(JIT)),
           ENDS(NO_RULE, 0, 2)},
          {"past a call that ends its function", FROM(C(FRAME), .bp = AT(7)),
           CHAIN(C(FRAME), END_OF(FRAME), C(ROOT)), CALLERS(END_OF(FRAME), C(ROOT)),
           ENDS(COMPLETE, 0, 2)});
}

TEST(says_how_the_chain_ended)
{
    CHECK({"to its end", FROM(C(FRAME), .bp = AT(7)), CHAIN(C(FRAME), C(FRAME)), CALLERS(C(FRAME)),
           ENDS(SHORT_COPY, 0, 1)},
          {"to where the kernel had to stop", FROM(C(FRAME), .bp = AT(7), .chain_cut = true),
           CHAIN(C(FRAME), C(FRAME)), CALLERS(C(FRAME)), ENDS(DEPTH, 0, 1)},
          {"to its end, which is here", FROM(C(FRAME), .bp = AT(7), .chain_cut = true),
           CHAIN(C(FRAME)), ENDS(DEPTH, 0, 0)},
          {"to the depth", FROM(C(FRAME), .bp = AT(7), .max_depth = 2),
           CHAIN(C(FRAME), C(FRAME), C(ROOT)), CALLERS(C(FRAME)), ENDS(DEPTH, 0, 1)});
}

TEST(knows_a_frame_pointer_by_all_of_its_rule)
{
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
    for (size_t i = 0; i < COUNT_OF(others); i++) {
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
    case 3 ... 7:
        return AT((word & 31) - 4) + (next_random(seed) & 1) * (word & 7);
    case 8 ... 11:
        return CODE(CODE_LEAF);
    default:
        return CODE(CODE_NOWHERE + word % (CODE_END - CODE_NOWHERE + 1)) + (word >> 8 & 15);
    }
}

TEST(ends_on_any_stack)
{
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
                              .link_count = next_random(&seed) % FRAMES_MAX,
                              .chain_cut = (next_random(&seed) & 1) != 0};
        for (size_t i = 0; i < story.word_count; i++) {
            story.words[i] = random_word(&seed);
        }
        for (size_t i = 0; i < story.link_count; i++) {
            story.links[i] = i == 0 ? story.ip : random_word(&seed);
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
