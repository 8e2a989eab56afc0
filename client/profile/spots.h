/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Addresses of stacks, as numbers. A spot is an address of a module: what a process has somewhere
 * depends on its mapping there, and on nothing else of the process, so all processes that have the
 * module share its spots, and the frames of a spot are found once for all of them.
 */

#include "grow.h"
#include "mappings.h"
#include "profile.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Spots that are no address of a known module, in every table. */
enum {
    SPOT_UNKNOWN,
    SPOT_UNKNOWN_KERNEL,
    SPOT_IN_KERNEL, /* instead of a stack, as the next */
    SPOT_KERNEL_THREAD,
    SPOT_NO_STACK, /* of a wait: it began where none was taken */
    SPOTS_NAMED,
};

struct spot {
    uint64_t vaddr;  /* the module's own, of the instruction */
    uint32_t module; /* of the profile */
    uint32_t owner;  /* the module's number among the symbols, and how the address is meant */
};

/* Frames of the profile, as they are put together. All zero is empty. */
struct frame_list {
    uint32_t *frames; /* owned */
    size_t capacity;
    size_t count;
};

static inline int frame_list_append(struct frame_list *list, const uint32_t *frames, size_t count)
{
    int r = grow(list->frames, list->capacity, list->count + count);
    if (r == 0) {
        memcpy(list->frames + list->count, frames, count * sizeof *frames);
        list->count += count;
    }
    return r;
}

struct spot_slot {
    uint64_t vaddr;
    uint32_t owner;
    uint32_t spot; /* 0, which is none of an address: the slot is free */
};
_Static_assert(sizeof(struct spot_slot) == 16, "four are a line of the CPU's cache");

struct spots {
    struct spot *spots; /* owned; by number */
    size_t capacity;
    size_t count;
    struct spot_slot *slots; /* owned */
    size_t slot_count;
    uint32_t *answers; /* owned; by spot, as far as there are any: its frame or frames, or 0 */
    size_t answer_capacity;
    size_t answer_count;
    uint32_t *of_symbols;  /* owned; answers by symbol, for spots of programs, or 0; or NULL */
    struct intern runs;    /* arrays of frames: of spots where functions were inlined */
    struct frame_list run; /* of the spot at hand */
    uint32_t *unnamed;     /* owned; spots that were answered without knowing their function */
    size_t unnamed_capacity;
    size_t unnamed_count;
};

/* An address on its way to its spot. */
struct asked_spot {
    struct spot spot;
    uint64_t hash;
    uint32_t number; /* of one that is named, or SPOTS_NAMED: it is an address of a module */
};

/* Returns 0, or -ENOMEM. Either way spots_done() releases it. */
int spots_init(struct spots *spots);
void spots_done(struct spots *spots);

/* What is remembered, in bytes, but for runs. */
uint64_t spots_size_bytes(const struct spots *spots);

/* An address as a stack has it, and when. */
struct stack_address {
    struct mapping_process *mappings; /* of its process; NULL: it has none */
    uint64_t address;
    uint64_t time_ns;
    bool is_caller; /* it is behind a call */
    bool is_kernel;
};

/* Begins to ask for the spot of an address, and fetches what is looked at next. Narrows `validity`
 * to the times for which the answer holds. */
void spots_ask(const struct spots *spots, const struct profile *profile,
               const struct stack_address *address, struct mapping_validity *validity,
               struct asked_spot *ret);

/* The spot that was asked for, made where there is none. Returns 0, or -ENOMEM. */
int spots_find(struct spots *spots, const struct asked_spot *asked, uint32_t *ret_spot);

/* Forgets the frames of spots of which more may be known by now. */
void spots_forget_frames(struct spots *spots, const struct profile *profile);

/* Whether the frames of a spot are known. */
static inline bool spots_know(const struct spots *spots, uint32_t spot)
{
    return spot < spots->answer_count && spots->answers[spot] != 0;
}

/* Appends the frames of a spot, the innermost first. Returns 0, or -ENOMEM. */
int spots_append_frames(struct spots *spots, struct profile *profile, uint32_t spot,
                        struct frame_list *list);
