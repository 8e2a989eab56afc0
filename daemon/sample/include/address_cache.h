/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Remembers what is known of the addresses in stacks: the call-frame rule, by which the unwinder
 * goes on from there, and that the trace has a definition of the frame. Both are looked up for each
 * frame of each sample, so they share a place in one cache line. A process gets a new generation
 * whenever its mappings change, so what is known of an address in a generation holds for every
 * sample since `from_ns`. A place that is overwritten costs another look, never a wrong answer.
 * Belongs to the collector thread.
 */

#include "capacity.h"
#include "cfi_table.h"
#include "seeded_hash.h"

#define ADDRESS_CACHE_PLACES CAPACITY((size_t)65536) /* a power of two */

struct address_place {
    _Alignas(64) uint64_t generation; /* of the process; 0: a free place */
    uint64_t address;
    uint64_t from_ns;     /* what is known does not hold for older samples */
    struct cfi_rule rule; /* of `code`, if that has one */
    uint32_t made_epoch;  /* of the frame: code that was made holds in this epoch; 0: it is none */
    uint8_t code;         /* code_map.c's: enum unwind_code */
    bool has_code : 1;    /* `code` and `rule` are known, */
    bool is_32bit : 1;    /* for tasks of this word size */
    bool has_frame : 1;   /* trace.c's: the frame is defined, or unknown */
    bool is_unknown : 1;  /* the address is in no mapping that is known */
};

struct address_cache;

/* Returned; NULL when there is no memory, of which it takes what it uses, in huge pages if it can.
 */
struct address_cache *address_cache_new(void);
struct address_cache *address_cache_free(struct address_cache *cache);

/* The one place (borrowed) in which the address can be, whatever is in it now. */
struct address_place *address_cache_place(struct address_cache *cache, uint64_t generation,
                                          uint64_t address);

/* True when the place says something of the address that holds for a sample of this time. */
static inline bool address_place_is(const struct address_place *place, uint64_t generation,
                                    uint64_t address, uint64_t time_ns)
{
    return place->generation == generation && place->address == address &&
           place->from_ns <= time_ns;
}

/* Gives the place to the address, from `from_ns` on. What is known of it already stays. */
void address_place_take(struct address_place *place, uint64_t generation, uint64_t address,
                        uint64_t from_ns);

/* Forgets all frames, for a trace that has to define them anew. */
void address_cache_forget_frames(struct address_cache *cache);
