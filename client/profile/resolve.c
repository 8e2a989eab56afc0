/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Gives samples their chains of frames. Where their stacks lie is found out once; what the spots
 * there are called may change when more is known, and then chains are made anew. A stack's chain is
 * made once for all of its samples, and looked up among the chains while others are made, since
 * that waits for memory.
 */
#include "profile.h"

#include "cleanup.h"
#include "grow.h"
#include "located_stacks.h"
#include "quota.h"

#include <string.h>

#define LEFT_OUT "[left out]" /* what stands for a stack for which there is no room */

#define MADE_PARTS 2 /* a process may make this part of what others leave */

/* So many samples are in the CPU's cache while their stacks are looked up. */
#define SAMPLES_AT_ONCE ((size_t)2048)

/* So many chains are made before the first of them is looked up. */
#define CHAINS_AT_ONCE ((size_t)16)

/* What a stack has instead of a chain's number. */
#define CHAIN_UNKNOWN INTERN_NONE       /* it was not asked for yet */
#define CHAIN_KEPT    (INTERN_NONE - 1) /* no room: its samples keep what they have */

struct new_chain {
    uint32_t stack;
    uint32_t hash;
    struct frame_list list; /* owned */
};

struct resolver {
    struct profile *profile;
    struct new_chain new_chains[CHAINS_AT_ONCE];
    size_t new_count;
    struct quota made;    /* bytes, by process: frames, chains and their names, */
    struct quota located; /* and where stacks lie, which comes first and must leave room for them */
    uint32_t left_out;    /* the chain that is LEFT_OUT */
};

static void resolver_done(struct resolver *resolver)
{
    for (size_t i = 0; i < CHAINS_AT_ONCE; i++) {
        free(resolver->new_chains[i].list.frames);
    }
}

static uint64_t made_bytes(const struct resolver *resolver)
{
    return profile_made_bytes(resolver->profile) +
           intern_size_bytes(&resolver->profile->located->spots.runs);
}

/* Appends the frames of a located stack. */
static int append_stack(struct resolver *resolver, uint32_t stack, struct frame_list *list)
{
    struct located_stacks *located = resolver->profile->located;
    size_t count = 0;
    const uint32_t *spots = located_stacks_get(located, stack, &count);
    int r = 0;
    for (size_t i = 0; i < count && r == 0; i++) {
        r = spots_append_frames(&located->spots, resolver->profile, spots[i], list);
    }
    return r;
}

/* Leaves one of several frames in a row of a kernel without names. */
static void fold_unnamed(const struct profile *profile, struct frame_list *list)
{
    size_t kept_count = 0;
    for (size_t i = 0; i < list->count; i++) {
        bool is_repeated = kept_count > 0 && list->frames[i] == list->frames[kept_count - 1];
        const struct profile_frame *frame =
            is_repeated ? profile_frame(profile, list->frames[i]) : NULL;
        if (frame == NULL || frame->is_kernel == 0 || frame->module == INTERN_NONE ||
            frame->name != profile->modules[frame->module].basename) {
            list->frames[kept_count++] = list->frames[i];
        }
    }
    list->count = kept_count;
}

static int build_chain(struct resolver *resolver, uint32_t stack, struct frame_list *list)
{
    uint32_t rest = resolver->profile->located->stacks[stack].rest;
    list->count = 0;
    int r = append_stack(resolver, stack, list);
    if (r == 0) {
        fold_unnamed(resolver->profile, list);
    }
    return r < 0 || rest == LOCATED_NONE ? r : append_stack(resolver, rest, list);
}

/* Looks up the chains that are made, and gives them to their stacks. One that there is already
 * counts as well: it takes no memory, but the time to make it. */
static int settle(struct resolver *resolver)
{
    struct profile *profile = resolver->profile;
    int r = 0;
    for (size_t i = 0; i < resolver->new_count; i++) {
        const struct new_chain *made = &resolver->new_chains[i];
        intern_fetch_item(&profile->chains, made->hash,
                          made->list.count * sizeof *made->list.frames);
    }
    for (size_t i = 0; i < resolver->new_count && r == 0; i++) {
        const struct new_chain *made = &resolver->new_chains[i];
        size_t list_bytes = made->list.count * sizeof *made->list.frames;
        uint64_t before_bytes = made_bytes(resolver);
        r = intern_add_hashed(&profile->chains, made->hash, made->list.frames, list_bytes,
                              &profile->located->chains[made->stack]);
        uint64_t more_bytes = made_bytes(resolver) - before_bytes;
        quota_charge(&resolver->made, profile->located->stacks[made->stack].pid,
                     more_bytes > list_bytes ? more_bytes : list_bytes);
    }
    resolver->new_count = 0;
    return r;
}

/* Makes the chain of a stack, if there is room for it. */
static int make_chain(struct resolver *resolver, uint32_t stack)
{
    struct located_stacks *located = resolver->profile->located;
    uint32_t process = located->stacks[stack].pid;
    located->chains[stack] = CHAIN_KEPT;
    if (!quota_take(&resolver->made, process, 1)) {
        return 0;
    }
    int r = resolver->new_count == CHAINS_AT_ONCE ? settle(resolver) : 0;
    uint64_t before_bytes = made_bytes(resolver);
    struct new_chain *made = &resolver->new_chains[resolver->new_count];
    r = r < 0 ? r : build_chain(resolver, stack, &made->list);
    if (r == 0) {
        size_t list_bytes = made->list.count * sizeof *made->list.frames;
        made->stack = stack;
        made->hash = intern_hash(made->list.frames, list_bytes);
        resolver->new_count++;
        intern_fetch_slot(&resolver->profile->chains, made->hash);
        quota_charge(&resolver->made, process, made_bytes(resolver) - before_bytes);
    }
    return r;
}

/* Makes room for a chain of each located stack; those that are new have none. */
static int grow_chains(struct located_stacks *located)
{
    if (grow(located->chains, located->chain_capacity, located->count) < 0) {
        return -ENOMEM;
    }
    while (located->chain_count < located->count) {
        located->chains[located->chain_count++] = CHAIN_UNKNOWN;
    }
    return 0;
}

static void give_chain(const struct resolver *resolver, struct profile_sample *sample)
{
    struct profile *profile = resolver->profile;
    uint32_t chain = profile->located->chains[sample->located];
    if (chain != CHAIN_KEPT) {
        sample->chain = chain;
    } else if (!profile->is_resolved) {
        sample->chain = resolver->left_out;
    } else {
        profile->plain_count += sample->chain != resolver->left_out;
    }
    profile->left_out_count += sample->chain == resolver->left_out;
}

/* Gives some samples that are located their chains. */
static int resolve_samples(struct resolver *resolver, size_t first, size_t end)
{
    struct profile_sample *samples = resolver->profile->samples;
    struct located_stacks *located = resolver->profile->located;
    int r = grow_chains(located);
    for (size_t i = first; i < end && r == 0; i++) {
        if (located->chains[samples[i].located] == CHAIN_UNKNOWN) {
            r = make_chain(resolver, samples[i].located);
        }
    }
    r = r < 0 ? r : settle(resolver);
    for (size_t i = first; i < end && r == 0; i++) {
        give_chain(resolver, &samples[i]);
    }
    return r;
}

/* Whether the frames of all of a stack's spots are known. */
static bool knows_stack(const struct located_stacks *located, uint32_t stack)
{
    size_t count = 0;
    const uint32_t *spots = located_stacks_get(located, stack, &count);
    bool is_known = true;
    for (size_t i = 0; i < count && is_known; i++) {
        is_known = spots_know(&located->spots, spots[i]);
    }
    return is_known;
}

/* Forgets the chains of stacks that may have others by now, or had no room. */
static void forget_chains(struct located_stacks *located, const struct profile *profile)
{
    spots_forget_frames(&located->spots, profile);
    for (size_t i = 0; i < located->chain_count; i++) {
        if (located->chains[i] == CHAIN_KEPT || !knows_stack(located, (uint32_t)i) ||
            !knows_stack(located, located->stacks[i].rest)) {
            located->chains[i] = CHAIN_UNKNOWN;
        }
    }
}

/* Makes the chain of LOCATED_NONE. */
static int add_left_out(struct resolver *resolver)
{
    struct profile *profile = resolver->profile;
    struct profile_frame frame = {.module = INTERN_NONE, .file = INTERN_NONE};
    uint32_t number = 0;
    int r = intern_add(&profile->texts, LEFT_OUT, strlen(LEFT_OUT), &frame.name);
    r = r < 0 ? r : intern_add(&profile->frames, &frame, sizeof frame, &number);
    r = r < 0 ? r : intern_add(&profile->chains, &number, sizeof number, &resolver->left_out);
    r = r < 0 ? r : grow_chains(profile->located);
    if (r == 0) {
        profile->located->chains[LOCATED_NONE] = resolver->left_out;
    }
    return r;
}

/* What loading has made is nobody's share. What an earlier call has made, and debugging
 * information, which has a bound of its own, do not count: else there would be no room for what is
 * made again. Where stacks lie may take half as much again. */
static int begin(struct resolver *resolver, struct locator **ret_locator)
{
    struct profile *profile = resolver->profile;
    resolver->made.max = profile_made_bytes_max(profile);
    resolver->made.parts = MADE_PARTS;
    resolver->made.taken = profile->loaded_bytes;
    resolver->located.max = profile_made_bytes_max(profile) / 2;
    resolver->located.parts = MADE_PARTS;
    if (profile->located != NULL) {
        forget_chains(profile->located, profile);
        return add_left_out(resolver);
    }
    profile->located = located_stacks_new();
    if (profile->located != NULL) {
        *ret_locator = locator_new(profile, profile->located, &resolver->located);
    }
    return *ret_locator == NULL ? -ENOMEM : add_left_out(resolver);
}

int profile_resolve(struct profile *profile)
{
    cleanup_(resolver_done) struct resolver resolver = {.profile = profile};
    cleanup_(locator_freep) struct locator *locator = NULL; /* NULL: samples are located */
    profile->left_out_count = 0;
    profile->plain_count = 0;
    int r = begin(&resolver, &locator);
    for (size_t first = 0; first < profile->sample_count && r == 0; first += SAMPLES_AT_ONCE) {
        size_t left = profile->sample_count - first;
        size_t end = first + (left < SAMPLES_AT_ONCE ? left : SAMPLES_AT_ONCE);
        r = locator == NULL ? 0 : locator_go(locator, end);
        r = r < 0 ? r : resolve_samples(&resolver, first, end);
    }
    profile->is_resolved = true;
    return r;
}
