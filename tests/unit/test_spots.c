/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Spots by themselves: which addresses share one, that growing loses none, and whose frames are
 * forgotten.
 */
#include "made_recording.h"
#include "spots.h"
#include "tables.h"

#define ADDRESSES_MANY 5000

/* Two processes have a file in different places; one of them has another file as well. */
#define RECORDING                                                                                  \
    "module 7 1 /bin/app 0xab; mmap 0 7 1 0x10000 0x100000 0x1000;"                                \
    "module 8 1 /bin/app 0xab; mmap 0 8 1 0x5000000 0x100000 0x1000;"                              \
    "module 8 2 /bin/other 0xcd; mmap 50 8 2 0x10000 0x100000 0x1000;"                             \
    "symbol ab /bin/app 0x1000 main 0x100"

struct world {
    struct profile *profile;
    struct spots spots;
};

static struct world begin(void)
{
    struct world world = {.profile = load_recording(recording_of(RECORDING))};
    assert_int_equal(spots_init(&world.spots), 0);
    return world;
}

static void end(struct world *world)
{
    spots_done(&world->spots);
    world->profile = profile_free(world->profile);
}

/* The spot of an address that a process had at time 100. */
static uint32_t find(struct world *world, uint64_t pid, uint64_t address, bool is_caller)
{
    const struct stack_address asking = {
        .mappings = mappings_process(&world->profile->tables->mappings, 1, pid),
        .address = address,
        .time_ns = 100,
        .is_caller = is_caller,
    };
    struct mapping_validity validity = {0, UINT64_MAX};
    struct asked_spot asked;
    uint32_t spot = 0;
    spots_ask(&world->spots, world->profile, &asking, &validity, &asked);
    assert_int_equal(spots_find(&world->spots, &asked, &spot), 0);
    assert_true(validity.from_ns <= 100 && validity.until_ns > 100);
    return spot;
}

/* The only frame of a spot. */
static uint32_t frame_of(struct world *world, uint32_t spot)
{
    struct frame_list list = {0};
    assert_int_equal(spots_append_frames(&world->spots, world->profile, spot, &list), 0);
    assert_int_equal(list.count, 1);
    uint32_t frame = list.frames[0];
    free(list.frames);
    return frame;
}

static const char *name_of(struct world *world, uint32_t spot)
{
    return profile_text(world->profile, profile_frame(world->profile, frame_of(world, spot))->name);
}

TEST(processes_share_the_spots_of_a_file)
{
    struct world world = begin();
    uint32_t spot = find(&world, 7, 0x10010, false);
    assert_int_equal(find(&world, 8, 0x5000010, false), spot);
    assert_int_not_equal(find(&world, 8, 0x10010, false), spot);
    assert_int_not_equal(find(&world, 7, 0x10011, false), spot);
    /* The instruction is the same, what a stack has of it is not. */
    assert_int_not_equal(find(&world, 7, 0x10011, true), spot);
    assert_int_equal(find(&world, 8, 0x5000011, true), find(&world, 7, 0x10011, true));
    assert_int_equal(find(&world, 7, 0x900000, false), SPOT_UNKNOWN);
    assert_int_equal(find(&world, 9, 0x10010, false), SPOT_UNKNOWN);
    end(&world);
}

TEST(growing_loses_none)
{
    struct world world = begin();
    uint32_t spots[ADDRESSES_MANY];
    for (uint32_t i = 0; i < ADDRESSES_MANY; i++) {
        spots[i] = find(&world, 7, 0x10000 + i, false);
    }
    assert_int_equal(world.spots.count, SPOTS_NAMED + ADDRESSES_MANY);
    for (uint32_t i = 0; i < ADDRESSES_MANY; i++) {
        assert_int_equal(find(&world, 8, 0x5000000 + i, false), spots[i]);
    }
    assert_int_equal(world.spots.count, SPOTS_NAMED + ADDRESSES_MANY);
    end(&world);
}

/* What the recording names stays, unless debugging information may say more of it. */
TEST(forgets_what_may_be_called_otherwise)
{
    struct world world = begin();
    uint32_t named = find(&world, 7, 0x10010, false);
    uint32_t unnamed = find(&world, 7, 0x10200, false);
    assert_false(spots_know(&world.spots, named));
    assert_string_equal(name_of(&world, named), "main");
    assert_string_equal(name_of(&world, unnamed), "app+0x1200");
    assert_int_equal(frame_of(&world, find(&world, 7, 0x10011, true)), frame_of(&world, named));

    struct unnamed *table = &world.profile->unnamed;
    assert_int_equal(table->addresses.item_count, 1);
    table->functions[0] = (struct unnamed_function){0x11f0, 0x1210};
    assert_string_equal(name_of(&world, unnamed), "app+0x1200");
    spots_forget_frames(&world.spots, world.profile);
    assert_true(spots_know(&world.spots, named));
    assert_false(spots_know(&world.spots, unnamed));
    assert_string_equal(name_of(&world, unnamed), "app+0x11f0");

    world.profile->inlines.is_wanted = true;
    spots_forget_frames(&world.spots, world.profile);
    assert_false(spots_know(&world.spots, named));
    assert_string_equal(name_of(&world, named), "main");
    assert_int_equal(world.profile->inlines.addresses.item_count, 1);
    end(&world);
}
