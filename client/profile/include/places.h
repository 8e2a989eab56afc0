/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The addresses of a sample's stack together with the frames that each of them became. A chain has
 * only frames: an address is one frame, or several where functions were inlined there, of which the
 * last is the function itself.
 */

#include "profile.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stack_place {
    const uint32_t *frames; /* borrowed; items of the profile's `frames`, never empty */
    size_t frame_count;
    uint64_t address; /* 0 where the frame stands for no address, as a marker does */
    bool has_address;
    bool is_kernel;
    bool is_caller; /* the address is behind the call; one byte lower is the instruction's */
};

/* Where a walk is. */
struct place_walk {
    const struct profile *profile;       /* borrowed */
    const struct profile_sample *sample; /* borrowed */
    const uint32_t *frames;              /* those that are left */
    size_t frame_count;
    const uint64_t *stack; /* the part of the stack at hand: what is left of it */
    size_t stack_count;
    unsigned part; /* the next one: kernel, user, rest */
    bool is_kernel;
    bool is_caller;
};

/* Begins at the leaf. Both stay until the walk is over. */
void place_walk_begin(struct place_walk *walk, const struct profile *profile,
                      const struct profile_sample *sample);
/* False: there is no more. */
bool place_walk_next(struct place_walk *walk, struct stack_place *ret);

struct module_address {
    uint32_t module;  /* of the profile */
    uint64_t address; /* the module's own; of a caller one of the call's instruction */
};

/* The module that the process had at a place's address when the sample was taken. False, and
 * nothing is written: none is known. */
bool place_find_module(const struct profile *profile, const struct profile_sample *sample,
                       const struct stack_place *place, struct module_address *ret);

/* From when until when, the latter not included, all addresses of a sample's stack mean what they
 * mean at its own time. */
struct place_span {
    uint64_t from_ns;
    uint64_t until_ns; /* UINT64_MAX: for ever */
};

struct place_span place_find_span(const struct profile *profile,
                                  const struct profile_sample *sample);
