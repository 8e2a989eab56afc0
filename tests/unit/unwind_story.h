/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Stacks built by hand, and what the unwinder has to say of each. Include it after <cmocka.h>. */

#include "unwind_code.h"

#include <stdlib.h>
#include <string.h>

#define STACK_START UINT64_C(0x7ffff000)
#define AT(word)    (STACK_START + 8 * (uint64_t)(word))
/* What is written of an address that is no return address. */
#define EXACT(pc)  ((pc) + 1)
#define WORDS_MAX  ((size_t)40)
#define FRAMES_MAX ((size_t)12)

/* One stack. What is not said of it is 0. */
struct story {
    const char *name;
    uint64_t ip, ax, bp, bx, r10;
    uint64_t sp; /* 0: STACK_START */
    uint64_t words[WORDS_MAX];
    size_t word_count; /* the copied ones */
    size_t max_depth;  /* 0: enough */
    uint64_t chain[FRAMES_MAX];
    size_t chain_count;
    uint64_t callers[FRAMES_MAX]; /* what comes out above ip, ended by 0 */
    enum stack_quality quality;
    enum unwind_mode mode;
    uint16_t cfi_count;
    uint16_t fp_count;
    bool whole; /* else there may be more words above */
    bool chain_cut;
    bool in_kernel;
    bool pending;
    bool crossed;
};

/* The copy is on the heap, just so long and not aligned: reading outside of it is seen. */
static inline void unwind_story(const struct story *story, uint64_t *frames,
                                struct unwind_result *ret)
{
    size_t stack_bytes = story->word_count * sizeof *story->words;
    uint8_t *stack = malloc(stack_bytes + 1);
    assert_non_null(stack);
    memcpy(stack + 1, story->words, stack_bytes);
    struct unwind_input input = {
        .mode = story->mode,
        .max_depth = story->max_depth == 0 ? FRAMES_MAX : story->max_depth,
        .lookup = code_lookup,
        .ip = story->ip,
        .stack = stack + 1,
        .stack_bytes = stack_bytes,
        .stack_cut = !story->whole,
        .chain = story->chain,
        .chain_count = story->chain_count,
        .chain_cut = story->chain_cut,
        .in_kernel = story->in_kernel,
    };
    input.registers[ARCH_DWARF_SP] = story->sp == 0 ? STACK_START : story->sp;
    input.registers[ARCH_DWARF_AX] = story->ax;
    input.registers[ARCH_DWARF_BP] = story->bp;
    input.registers[ARCH_DWARF_BX] = story->bx;
    input.registers[CODE_DWARF_R10] = story->r10;
    uint64_t places[FRAMES_MAX];
    unwind_stack(&input, frames, places, ret);
    free(stack);
}

static inline void check_stories(const struct story *stories, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct story *story = &stories[i];
        uint64_t frames[FRAMES_MAX] = {0};
        struct unwind_result result;
        unwind_story(story, frames, &result);
        size_t frame_count = 1;
        while (story->callers[frame_count - 1] != 0) {
            frame_count++;
        }
        print_message("  %s\n", story->name);
        assert_int_equal(result.pending, story->pending);
        if (story->pending) {
            continue;
        }
        assert_int_equal(result.crossed, story->crossed);
        assert_int_equal(result.frame_count, frame_count);
        assert_int_equal(frames[0], story->ip);
        assert_memory_equal(frames + 1, story->callers, (frame_count - 1) * sizeof *frames);
        assert_int_equal(result.quality, story->quality);
        assert_int_equal(result.cfi_frame_count, story->cfi_count);
        assert_int_equal(result.fp_frame_count, story->fp_count);
    }
}
