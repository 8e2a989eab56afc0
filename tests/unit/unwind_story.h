/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Stacks built by hand, and what the unwinder has to say of each: rows of a story in a line or two,
 *     {"name", FROM(C(LEAF), .bp = AT(1)), WORDS(...), CHAIN(...), CALLERS(...), ENDS(...)}
 */

#include "unit_test.h"

#include "unwind_code.h"

#include <string.h>

#define STACK_START UINT64_C(0x7ffff000)
#define AT(word)    (STACK_START + 8 * (uint64_t)(word))
#define C(function) CODE(CODE_##function)
/* Its first instruction. */
#define START_OF(function) ((uint64_t)CODE_##function << CODE_PAGE_BITS)
/* Behind its last one, where a call that ends it returns to. */
#define END_OF(function) ((uint64_t)(CODE_##function + 1) << CODE_PAGE_BITS)
/* What is written of an address that is no return address. */
#define EXACT(pc)  ((pc) + 1)
#define WORDS_MAX  ((size_t)40)
#define FRAMES_MAX ((size_t)12)

#define COUNTED(member, ...)                                                                       \
    .member##s = {__VA_ARGS__}, .member##_count = COUNT_OF(((const uint64_t[]){__VA_ARGS__}))
/* Where the sample is, and anything else that is not 0. */
#define FROM(...)    .ip = __VA_ARGS__
#define WORDS(...)   COUNTED(word, __VA_ARGS__)
#define CHAIN(...)   COUNTED(link, __VA_ARGS__)
#define CALLERS(...) COUNTED(caller, __VA_ARGS__)
/* How it ends, and how many frames rules and frame pointers found. */
#define ENDS(how, by_rule, by_fp)                                                                  \
    .quality = STACK_##how, .cfi_count = (by_rule), .fp_count = (by_fp)
/* The words of a signal frame: where its handler's caller is at word `at`. */
#define SIGNAL(at, register) [(at) + CODE_SIGNAL_##register / 8]

/* One stack. What is not said of it is 0. */
struct story {
    const char *name;
    uint64_t ip, ax, bp, bx, cx, r10;
    uint64_t sp; /* 0: STACK_START */
    uint64_t words[WORDS_MAX];
    size_t word_count; /* the copied ones */
    size_t max_depth;  /* 0: enough */
    uint64_t links[FRAMES_MAX];
    size_t link_count;
    uint64_t callers[FRAMES_MAX]; /* what comes out above ip */
    size_t caller_count;
    enum stack_quality quality;
    enum unwind_mode mode;
    uint16_t cfi_count;
    uint16_t fp_count;
    bool whole; /* else there may be more words above */
    bool chain_cut;
    bool in_kernel;
    bool pending;
    bool crossed;
    unwind_lookup_fn lookup; /* of a 32-bit task; NULL: code_lookup(), and words of 8 bytes */
};

/* The copy is on the heap, just so long and not aligned: reading outside of it is seen. */
static inline void unwind_story(const struct story *story, uint64_t *frames,
                                struct unwind_result *ret)
{
    size_t word_bytes = story->lookup == NULL ? 8 : 4;
    size_t stack_bytes = story->word_count * word_bytes;
    uint8_t *stack = malloc(stack_bytes + 1);
    assert_non_null(stack);
    for (size_t i = 0; i < story->word_count; i++) {
        memcpy(stack + 1 + i * word_bytes, &story->words[i], word_bytes);
    }
    struct unwind_input input = {
        .mode = story->mode,
        .max_depth = story->max_depth == 0 ? FRAMES_MAX : story->max_depth,
        .lookup = story->lookup == NULL ? code_lookup : story->lookup,
        .ip = story->ip,
        .stack = stack + 1,
        .stack_bytes = stack_bytes,
        .stack_cut = !story->whole,
        .chain = story->links,
        .chain_count = story->link_count,
        .chain_cut = story->chain_cut,
        .in_kernel = story->in_kernel,
        .is_32bit = story->lookup != NULL,
    };
    input.registers[ARCH_DWARF_SP] = story->sp == 0 ? STACK_START : story->sp;
    input.registers[ARCH_DWARF_AX] = story->ax;
    input.registers[ARCH_DWARF_BP] = story->bp;
    input.registers[ARCH_DWARF_BX] = story->bx;
    input.registers[CODE_DWARF_CX] = story->cx;
    input.registers[CODE_DWARF_R10] = story->r10;
    uint64_t places[FRAMES_MAX];
    unwind_stack(&input, frames, places, ret);
    free(stack);
}

static inline void check_stories(const struct story *stories, size_t count)
{
    for (const struct story *story = stories; story < stories + count; story++) {
        uint64_t frames[FRAMES_MAX] = {0};
        struct unwind_result result;
        unwind_story(story, frames, &result);
        print_message("  %s\n", story->name);
        assert_int_equal(result.pending, story->pending);
        if (story->pending) {
            continue;
        }
        assert_int_equal(result.crossed, story->crossed);
        assert_int_equal(result.frame_count, 1 + story->caller_count);
        assert_int_equal(frames[0], story->ip);
        assert_memory_equal(frames + 1, story->callers, story->caller_count * sizeof *frames);
        assert_int_equal(result.quality, story->quality);
        assert_int_equal(result.cfi_frame_count, story->cfi_count);
        assert_int_equal(result.fp_frame_count, story->fp_count);
    }
}

#define CHECK(...) check_stories(ROWS_OF(struct story, __VA_ARGS__))
