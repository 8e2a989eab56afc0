/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Numbers locations and stacks. Samples that share the numbers of their stacks, their process and
 * their frames have the same locations, so each such stack is walked once.
 */
#include "locations.h"

#include "extremes.h"
#include "grow.h"
#include "places.h"

#include <string.h>

#define PAGE_BYTES UINT64_C(4096)

struct building {
    struct location location;
    uint32_t hash;
};

void locations_done(struct locations *table)
{
    intern_done(&table->runs);
    intern_done(&table->items);
    intern_done(&table->stacks);
    chain_keys_done(&table->stack_keys);
    free(table->stack_of);
    free(table->run_of_frame);
    free(table->building);
    free(table->numbers);
    *table = (struct locations){0};
}

/* The number of an array of frames: of one frame alone, which most are, without a hash. */
static int find_run(struct locations *table, const uint32_t *frames, size_t frame_count,
                    uint32_t *ret_run)
{
    size_t known_count = table->run_of_frame_count;
    bool is_single = frame_count == 1 && frames[0] < LOCATION_LOST;
    if (is_single && frames[0] >= known_count) {
        if (grow(table->run_of_frame, table->run_of_frame_capacity, (size_t)frames[0] + 1) < 0) {
            return -ENOMEM;
        }
        table->run_of_frame_count = table->run_of_frame_capacity;
        memset(table->run_of_frame + known_count, 0,
               (table->run_of_frame_count - known_count) * sizeof *table->run_of_frame);
    }
    if (is_single && table->run_of_frame[frames[0]] > 0) {
        *ret_run = table->run_of_frame[frames[0]] - 1;
        return 0;
    }
    int r = intern_add(&table->runs, frames, frame_count * sizeof *frames, ret_run);
    if (r == 0 && is_single) {
        table->run_of_frame[frames[0]] = *ret_run + 1;
    }
    return r;
}

/* Appends a location to the stack at hand. Its number is found later. */
static int add_to_stack(struct locations *table, const struct location *location)
{
    int r = grow(table->building, table->building_capacity, table->building_count + 1);
    if (r == 0) {
        struct building *building = &table->building[table->building_count++];
        building->location = *location;
        building->hash = intern_hash(location, sizeof *location);
        intern_fetch_slot(&table->items, building->hash);
    }
    return r;
}

int locations_add_marker(struct locations *table, uint32_t frame, uint32_t *ret_location)
{
    struct location location = {.module = INTERN_NONE};
    int r = find_run(table, &frame, 1, &location.frames);
    return r < 0 ? r : intern_add(&table->items, &location, sizeof location, ret_location);
}

static int add_place(struct locations *table, const struct profile *profile,
                     const struct profile_sample *sample, const struct stack_place *place)
{
    struct module_address found = {.module = INTERN_NONE, .address = place->address};
    (void)place_find_module(profile, sample, place, &found);
    struct location location = {.address = found.address, .module = found.module};
    int r = find_run(table, place->frames, place->frame_count, &location.frames);
    return r < 0 ? r : add_to_stack(table, &location);
}

static int add_truncated(struct locations *table)
{
    const uint32_t frame = LOCATION_TRUNCATED;
    struct location location = {.module = INTERN_NONE};
    int r = find_run(table, &frame, 1, &location.frames);
    return r < 0 ? r : add_to_stack(table, &location);
}

/* Gives the locations of the stack at hand their numbers. Each step fetches for all of them what
 * the next one looks at. */
static int number_locations(struct locations *table)
{
    size_t count = table->building_count;
    int r = grow(table->numbers, table->numbers_capacity, count);
    for (size_t i = 0; i < count && r == 0; i++) {
        intern_fetch_item(&table->items, table->building[i].hash, sizeof(struct location));
    }
    for (size_t i = 0; i < count && r == 0; i++) {
        const struct building *building = &table->building[i];
        r = intern_add_hashed(&table->items, building->hash, &building->location,
                              sizeof building->location, &table->numbers[i]);
    }
    return r;
}

const uint32_t *locations_list(struct locations *table, const struct profile *profile,
                               const struct profile_sample *sample, size_t *ret_count)
{
    struct place_walk walk;
    struct stack_place place;
    int r = 0;
    table->building_count = 0;
    place_walk_begin(&walk, profile, sample);
    while (r == 0 && place_walk_next(&walk, &place)) {
        r = add_place(table, profile, sample, &place);
    }
    if (r == 0 && profile_rooted(sample) == PROFILE_STACK_TRUNCATED) {
        r = add_truncated(table);
    }
    if (r < 0 || number_locations(table) < 0) {
        return NULL;
    }
    *ret_count = table->building_count;
    return table->numbers;
}

int locations_make_stack(struct locations *table, const struct profile *profile,
                         const struct profile_sample *sample, uint32_t *ret_stack)
{
    size_t count = 0;
    const uint32_t *numbers = locations_list(table, profile, sample, &count);
    return numbers == NULL
               ? -ENOMEM
               : intern_add(&table->stacks, numbers, count * sizeof *numbers, ret_stack);
}

int locations_add_stack(struct locations *table, const struct profile *profile,
                        const struct profile_sample *sample, uint32_t *ret_stack)
{
    const struct stack_key key = stack_key(profile, sample);
    uint32_t item = 0;
    size_t known_count = table->stack_keys.count;
    if (chain_keys_add(&table->stack_keys, profile, sample, &key, sizeof key, &item) < 0 ||
        grow(table->stack_of, table->stack_of_capacity, (size_t)item + 1) < 0) {
        return -ENOMEM;
    }
    int r = 0;
    if (item == known_count) {
        r = locations_make_stack(table, profile, sample, &table->stack_of[item]);
    }
    *ret_stack = table->stack_of[item];
    return r;
}

void locations_forget_samples(struct locations *table)
{
    chain_keys_done(&table->stack_keys);
    free(table->stack_of);
    table->stack_of = NULL;
    table->stack_of_capacity = 0;
}

const struct location *locations_at(const struct locations *table, uint32_t location)
{
    size_t size_bytes = 0;
    return intern_bytes(&table->items, location, &size_bytes);
}

const uint32_t *locations_stack(const struct locations *table, uint32_t stack, size_t *ret_count)
{
    size_t size_bytes = 0;
    const uint32_t *stack_locations = intern_bytes(&table->stacks, stack, &size_bytes);
    *ret_count = size_bytes / sizeof *stack_locations;
    return stack_locations;
}

const uint32_t *locations_frames(const struct locations *table, const struct location *location,
                                 size_t *ret_count)
{
    size_t size_bytes = 0;
    const uint32_t *frames = intern_bytes(&table->runs, location->frames, &size_bytes);
    *ret_count = size_bytes / sizeof *frames;
    return frames;
}

uint64_t *locations_find_limits(const struct locations *table, const struct profile *profile)
{
    uint64_t *limits = calloc(profile->module_count + 1, sizeof *limits);
    for (size_t i = 0; limits != NULL && i < table->items.item_count; i++) {
        const struct location *location = locations_at(table, (uint32_t)i);
        if (location->module != INTERN_NONE) {
            uint64_t page = location->address & ~(PAGE_BYTES - 1);
            uint64_t behind = page > UINT64_MAX - PAGE_BYTES ? UINT64_MAX : page + PAGE_BYTES;
            uint64_t *limit = &limits[location->module];
            *limit = max_u64(*limit, behind);
        }
    }
    return limits;
}
