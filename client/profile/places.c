/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Walks a sample's frames and addresses side by side. A frame that was not inlined ends the frames
 * of an address (resolve.c makes them so), and addresses come in the order of the kernel's stack,
 * the user's and its rest. Where one frame stands for several addresses of a kernel without names,
 * the first of them is its own, and the walk passes over the others. Frames that are left when the
 * addresses are over are markers.
 */
#include "places.h"

#include "place_mapping.h"
#include "tables.h"

#define PART_COUNT 3

void place_walk_begin(struct place_walk *walk, const struct profile *profile,
                      const struct profile_sample *sample)
{
    *walk = (struct place_walk){.profile = profile, .sample = sample};
    walk->frames = profile_chain(profile, sample->chain, &walk->frame_count);
}

/* Goes on to the next part of the stack that is not empty, if this one is over. */
static void find_part(struct place_walk *walk)
{
    const struct profile_sample *sample = walk->sample;
    const uint32_t parts[PART_COUNT] = {sample->kernel_stack, sample->user_stack,
                                        sample->rest_stack};
    while (walk->stack_count == 0 && walk->part < PART_COUNT) {
        size_t stack_bytes = 0;
        walk->stack = intern_bytes(&walk->profile->stacks, parts[walk->part], &stack_bytes);
        walk->stack_count = stack_bytes / sizeof *walk->stack;
        walk->is_kernel = walk->part == 0;
        walk->is_caller = walk->part == PART_COUNT - 1;
        walk->part++;
    }
}

/* Whether the next address, which nothing names, has become the frame before. */
static bool is_folded(const struct place_walk *walk, const struct profile_frame *frame)
{
    const struct profile *profile = walk->profile;
    const struct stack_place place = {
        .address = walk->stack[0], .has_address = true, .is_kernel = true, .is_caller = true};
    const struct mapping *mapping = place_mapping(profile, walk->sample, &place);
    return mapping != NULL && mapping->module == frame->module &&
           symbols_find(&profile->tables->symbols, mapping->symbols,
                        place_instruction(&place) - mapping->start + mapping->vaddr) == NULL;
}

/* Goes on behind the addresses of the kernel that `frame` stands for too. */
static void skip_folded(struct place_walk *walk, const struct profile_frame *frame)
{
    const struct profile *profile = walk->profile;
    if (frame->module == INTERN_NONE || frame->name != profile->modules[frame->module].basename) {
        return;
    }
    if (walk->frame_count == 0 || profile_frame(profile, walk->frames[0])->is_kernel == 0) {
        walk->stack_count = 0;
    }
    while (walk->stack_count > 0 && is_folded(walk, frame)) {
        walk->stack++;
        walk->stack_count--;
    }
}

bool place_walk_next(struct place_walk *walk, struct stack_place *ret)
{
    size_t count = 0;
    if (walk->frame_count == 0) {
        return false;
    }
    while (count + 1 < walk->frame_count &&
           profile_frame(walk->profile, walk->frames[count])->is_inlined != 0) {
        count++;
    }
    count++;
    find_part(walk);
    *ret = (struct stack_place){.frames = walk->frames, .frame_count = count};
    walk->frames += count;
    walk->frame_count -= count;
    if (walk->stack_count > 0) {
        ret->address = walk->stack[0];
        ret->has_address = true;
        ret->is_kernel = walk->is_kernel;
        ret->is_caller = walk->is_caller;
        walk->is_caller = true;
        walk->stack++;
        walk->stack_count--;
        if (walk->is_kernel) {
            skip_folded(walk, profile_frame(walk->profile, ret->frames[count - 1]));
        }
    }
    return true;
}

uint64_t place_instruction(const struct stack_place *place)
{
    return place->address - (place->is_caller && place->address > 0 ? 1 : 0);
}

/* What is mapped where a stack's addresses are. */
static struct mapping_process *find_process(const struct profile *profile,
                                            const struct profile_sample *sample, bool is_kernel)
{
    const struct profile_task *task = profile_task(profile, sample->task);
    return mappings_process(&profile->tables->mappings, task->segment,
                            is_kernel ? PROFILE_PID_OUTSIDE : task->pid);
}

const struct mapping *place_mapping(const struct profile *profile,
                                    const struct profile_sample *sample,
                                    const struct stack_place *place)
{
    struct mapping_validity validity = {0, UINT64_MAX};
    const struct mapping *mapping =
        !place->has_address ? NULL
                            : mappings_find(find_process(profile, sample, place->is_kernel),
                                            place_instruction(place), sample->time_ns, &validity);
    return mapping == NULL || mapping->module == INTERN_NONE ||
                   profile->modules[mapping->module].is_unknown
               ? NULL
               : mapping;
}

bool place_find_module(const struct profile *profile, const struct profile_sample *sample,
                       const struct stack_place *place, struct module_address *ret)
{
    const struct mapping *mapping = place_mapping(profile, sample, place);
    if (mapping == NULL) {
        return false;
    }
    *ret = (struct module_address){mapping->module,
                                   place_instruction(place) - mapping->start + mapping->vaddr};
    return true;
}

/* Narrows `validity` to when none of a stack's addresses changes its mapping. `place` says what the
 * first one is. */
static void narrow_stack(const struct profile *profile, const struct profile_sample *sample,
                         uint32_t stack_item, struct stack_place place,
                         struct mapping_validity *validity)
{
    size_t stack_bytes = 0;
    const uint64_t *stack = intern_bytes(&profile->stacks, stack_item, &stack_bytes);
    struct mapping_process *process = find_process(profile, sample, place.is_kernel);
    for (size_t i = 0; i < stack_bytes / sizeof *stack; i++) {
        place.address = stack[i];
        (void)mappings_find(process, place_instruction(&place), sample->time_ns, validity);
        place.is_caller = true;
    }
}

struct place_span place_find_span(const struct profile *profile,
                                  const struct profile_sample *sample)
{
    struct mapping_validity validity = {0, UINT64_MAX};
    narrow_stack(profile, sample, sample->kernel_stack, (struct stack_place){.is_kernel = true},
                 &validity);
    narrow_stack(profile, sample, sample->user_stack, (struct stack_place){0}, &validity);
    narrow_stack(profile, sample, sample->rest_stack, (struct stack_place){.is_caller = true},
                 &validity);
    return (struct place_span){validity.from_ns, validity.until_ns};
}
