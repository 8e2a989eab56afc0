/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a place says, and for whom: two sides write the halves of one place, one after the other and
 * for addresses that share it.
 */
#include "address_cache.h"
#include "unit_test.h"

#define ADDRESS UINT64_C(0x55550010)

#define STORY(name)                                                                                \
    TEST_MADE(struct address_cache *cache, name, address_cache_new(), address_cache_free)

STORY(begins_without_knowledge)
{
    for (uint64_t generation = 1; generation < 1000; generation++) {
        struct address_place *place = address_cache_place(cache, generation, ADDRESS);
        assert_false(address_place_is(place, generation, ADDRESS, UINT64_MAX));
    }
}

STORY(keeps_both_halves_of_one_address)
{
    struct address_place *place = address_cache_place(cache, 5, ADDRESS);
    address_place_take(place, 5, ADDRESS, 100);
    place->has_code = true;
    place->rule.cfa_offset = 16;
    address_place_take(place, 5, ADDRESS, 90);
    place->has_frame = true;
    assert_true(place->has_code && place->has_frame && place->rule.cfa_offset == 16);
    assert_ptr_equal(place, address_cache_place(cache, 5, ADDRESS));
}

/* The later of both beginnings counts: neither half says anything of samples before its own. */
STORY(says_nothing_of_older_samples)
{
    struct address_place *place = address_cache_place(cache, 5, ADDRESS);
    address_place_take(place, 5, ADDRESS, 100);
    assert_false(address_place_is(place, 5, ADDRESS, 99));
    assert_true(address_place_is(place, 5, ADDRESS, 100));
    address_place_take(place, 5, ADDRESS, 200);
    assert_false(address_place_is(place, 5, ADDRESS, 199));
    address_place_take(place, 5, ADDRESS, 150);
    assert_false(address_place_is(place, 5, ADDRESS, 199));
    assert_true(address_place_is(place, 5, ADDRESS, 200));
}

STORY(forgets_all_of_another_address_or_generation)
{
    struct address_place *place = address_cache_place(cache, 5, ADDRESS);
    for (uint64_t other = 0; other < 2; other++) {
        address_place_take(place, 5, ADDRESS, 100);
        place->has_code = place->has_frame = place->is_unknown = true;
        place->made_epoch = 3;
        address_place_take(place, 5 + other, ADDRESS + 1 - other, 10);
        assert_false(place->has_code || place->has_frame || place->is_unknown);
        assert_int_equal(place->made_epoch, 0);
        assert_int_equal(place->from_ns, 10);
        assert_false(address_place_is(place, 5, ADDRESS, 100));
    }
}

STORY(forgets_frames_and_keeps_rules)
{
    enum {
        PLACES = 3000
    };
    for (uint64_t i = 0; i < PLACES; i++) {
        struct address_place *place = address_cache_place(cache, 7, ADDRESS + i);
        address_place_take(place, 7, ADDRESS + i, 1);
        place->has_code = place->has_frame = true;
    }
    address_cache_forget_frames(cache);
    for (uint64_t i = 0; i < PLACES; i++) {
        const struct address_place *place = address_cache_place(cache, 7, ADDRESS + i);
        assert_true(place->has_code && !place->has_frame);
    }
}
