/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Follows each function that is called directly from its start to its returns, and only counts how
 * far rsp is from where it was at the start. A function is odd if it returns with another rsp, or
 * takes arguments off as it returns, or has taken the return address off and jumps with another rsp
 * than one word higher.
 *
 * A call within it is taken to return with the same rsp; it may not return at all, and what stands
 * behind it be another function's. So what is found without going on behind a call counts first; of
 * what is found behind one an even return counts for more than an odd one, and none counts whose
 * function's frame is still there. Only so many bytes and instructions of a function are followed;
 * a return behind them is taken for an even one.
 */
#include "code_callees.h"

#include "arch_x86_64.h"
#include "array.h"
#include "code_decoder.h"
#include "code_region.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CALLEES_MAX      ((size_t)1 << 18)
#define BYTES_MAX        ((size_t)4096) /* of one function, */
#define INSTRUCTIONS_MAX 512            /* and followed ones */
#define WAYS_MAX         64
#define OPCODE_RET_BYTES 0xc2

struct code_callees {
    uint64_t *all; /* owned; sorted once they were read, and then only the odd ones */
    size_t count;
    size_t capacity;
    bool is_cut; /* not all were followed */
};

/* What is known where the flow comes to. */
struct way {
    uint32_t at;    /* from the function's start */
    int32_t rsp;    /* from what it was there */
    int32_t rbp;    /* the same, */
    bool knows_rbp; /* if it was set from rsp */
    bool has_taken; /* the return address off the stack */
    bool is_behind_call;
};

struct found {
    bool is_even;
    bool is_odd;
};

/* One function. */
struct follow {
    const uint8_t *code;
    size_t bytes;
    uint64_t start;
    struct way ways[WAYS_MAX]; /* that are left */
    size_t way_count;
    size_t instruction_count;
    uint8_t seen[BYTES_MAX / 8]; /* a bit for each byte: one begins there that was followed */
    struct found found[2];       /* without a call before, and behind one */
};

struct code_callees *code_callees_new(void)
{
    return calloc(1, sizeof(struct code_callees));
}

struct code_callees *code_callees_free(struct code_callees *callees)
{
    if (callees != NULL) {
        free(callees->all);
        free(callees);
    }
    return NULL;
}

/* Sorts them, and leaves each once. */
static int sort_once(struct code_callees *callees)
{
    size_t count = 0;
    int r = array_sort_by_number(callees->all, callees->count, sizeof *callees->all, NULL, NULL);
    for (size_t i = 0; r == 0 && i < callees->count; i++) {
        if (i == 0 || callees->all[i] != callees->all[count - 1]) {
            callees->all[count++] = callees->all[i];
        }
    }
    callees->count = r == 0 ? count : callees->count;
    return r;
}

int code_callees_add(struct code_callees *callees, uint64_t address)
{
    if (callees->is_cut) {
        return 0;
    }
    if (callees->count == CALLEES_MAX) {
        int sorted = sort_once(callees);
        callees->is_cut = callees->count > CALLEES_MAX / 2;
        if (sorted < 0 || callees->is_cut) {
            return sorted;
        }
    }
    void *all = callees->all;
    int r = array_grow(&all, &callees->capacity, callees->count + 1, sizeof *callees->all);
    callees->all = all;
    if (r == 0) {
        callees->all[callees->count++] = address;
    }
    return r;
}

static void add_way(struct follow *follow, const struct way *way, uint64_t target)
{
    struct way added = *way;
    uint64_t at = target - follow->start;
    if (at < follow->bytes && follow->way_count < WAYS_MAX) {
        added.at = (uint32_t)at;
        follow->ways[follow->way_count++] = added;
    }
}

/* What an instruction does to rsp and rbp. False: nothing tells. */
static bool move(struct way *way, const struct code_effect *effect)
{
    bool sets_rsp = effect->to == ARCH_DWARF_SP;
    bool sets_rbp = effect->to == ARCH_DWARF_BP;
    switch ((enum code_action)effect->action) {
    case CODE_NOTHING:
    case CODE_STORE:
        break;
    case CODE_PUSH:
        way->rsp -= CODE_WORD_BYTES;
        break;
    case CODE_POP:
    case CODE_MOVE:
        way->has_taken = way->has_taken || way->rsp == 0;
        way->rsp += CODE_WORD_BYTES;
        way->knows_rbp = way->knows_rbp && !(effect->action == CODE_POP && sets_rbp);
        if (effect->action == CODE_POP && sets_rsp) {
            return false;
        }
        break;
    case CODE_LEAVE:
        if (!way->knows_rbp) {
            return false;
        }
        way->rsp = way->rbp + CODE_WORD_BYTES;
        way->knows_rbp = false;
        break;
    case CODE_COPY:
        if (sets_rsp && effect->from == ARCH_DWARF_BP && way->knows_rbp) {
            way->rsp = way->rbp + effect->offset;
        } else if (sets_rsp && effect->from == ARCH_DWARF_SP) {
            way->rsp += effect->offset;
        } else if (sets_rsp) {
            return false;
        } else if (sets_rbp) {
            way->knows_rbp = effect->from == ARCH_DWARF_SP;
            way->rbp = way->rsp + effect->offset;
        }
        break;
    case CODE_LOAD:
        if (sets_rsp) {
            return false;
        }
        way->knows_rbp = way->knows_rbp && !sets_rbp;
        break;
    }
    way->knows_rbp = way->knows_rbp && (effect->changes >> ARCH_DWARF_BP & 1) == 0;
    return (effect->changes >> ARCH_DWARF_SP & 1) == 0 && code_is_near(way->rsp) &&
           code_is_near(way->rbp);
}

/* Whether a return takes bytes off beside its address. */
static bool takes_bytes(const uint8_t *code, const struct code_effect *effect)
{
    const uint8_t *end = code + effect->bytes;
    return effect->bytes > 2 && end[-3] == OPCODE_RET_BYTES && (end[-2] | end[-1]) != 0;
}

static void note_return(struct follow *follow, const struct way *way, bool is_odd)
{
    struct found *found = &follow->found[way->is_behind_call];
    if (way->is_behind_call && way->rsp < 0) {
        return;
    }
    found->is_odd = found->is_odd || is_odd;
    found->is_even = found->is_even || !is_odd;
}

/* Follows one way up to where it ends, or comes to what was followed. */
static void follow_way(struct follow *follow, struct way way)
{
    while (way.at < follow->bytes && follow->instruction_count < INSTRUCTIONS_MAX) {
        uint8_t bit = (uint8_t)(1U << way.at % 8);
        const uint8_t *code = follow->code + way.at;
        if ((follow->seen[way.at / 8] & bit) != 0) {
            return;
        }
        follow->seen[way.at / 8] |= bit;
        follow->instruction_count++;
        struct code_effect effect =
            code_decode(code, follow->bytes - way.at, follow->start + way.at);
        if (!move(&way, &effect)) {
            return;
        }
        switch ((enum code_flow)effect.flow) {
        case CODE_NEXT:
            break;
        case CODE_CALL:
            way.is_behind_call = true;
            break;
        case CODE_BRANCH:
            add_way(follow, &way, effect.target);
            break;
        case CODE_JUMP:
            add_way(follow, &way, effect.target);
            return;
        case CODE_RETURN:
            note_return(follow, &way, way.rsp != 0 || takes_bytes(code, &effect));
            return;
        case CODE_INDIRECT:
            if (way.has_taken) {
                note_return(follow, &way, way.rsp != CODE_WORD_BYTES);
            }
            return;
        case CODE_END:
            return;
        }
        way.at += effect.bytes;
    }
}

static bool is_odd(const struct follow *follow)
{
    const struct found *first = &follow->found[0];
    const struct found *behind = &follow->found[1];
    return first->is_odd || (!first->is_even && behind->is_odd && !behind->is_even);
}

static bool follow_function(struct follow *follow, const struct elf_file *file, uint64_t start,
                            uint8_t *buffer)
{
    const struct way first = {.at = 0};
    *follow = (struct follow){
        .code = buffer,
        .bytes = elf_file_read_mapped(file, start, buffer, BYTES_MAX),
        .start = start,
    };
    add_way(follow, &first, start);
    while (follow->way_count > 0) {
        follow_way(follow, follow->ways[--follow->way_count]);
    }
    return is_odd(follow);
}

int code_callees_read(struct code_callees *callees, const struct elf_file *file,
                      uint64_t *left_visits)
{
    uint8_t buffer[BYTES_MAX];
    struct follow follow;
    size_t odd_count = 0;
    int r = sort_once(callees);
    for (size_t i = 0; r == 0 && i < callees->count && !callees->is_cut; i++) {
        uint64_t address = callees->all[i];
        bool is_one = follow_function(&follow, file, address, buffer);
        uint64_t visits = follow.instruction_count * CODE_DECODE_VISITS;
        if (visits > *left_visits) {
            callees->is_cut = true;
        }
        *left_visits -= callees->is_cut ? *left_visits : visits;
        if (is_one) {
            callees->all[odd_count++] = address;
        }
    }
    callees->count = odd_count;
    return r;
}

bool code_callees_is_odd(const struct code_callees *callees, uint64_t address)
{
    size_t low = 0;
    size_t high = callees->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (callees->all[middle] < address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return callees->is_cut || (low < callees->count && callees->all[low] == address);
}
