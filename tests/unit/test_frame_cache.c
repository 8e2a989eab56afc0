/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The cache of addresses by itself: what it keeps, whose it is, and that growing loses nothing.
 */

#include "frame_cache.h"
#include "unit_test.h"

#define OWNERS    3
#define ADDRESSES 5000

static struct frame_cache_entry *find(struct frame_cache *cache, uint32_t owner, uint64_t address)
{
    struct frame_cache_entry *entry = NULL;
    assert_int_equal(frame_cache_find(cache, owner, address, &entry), 0);
    assert_int_equal(entry->owner, owner);
    assert_int_equal(entry->address, address);
    return entry;
}

TEST(begins_with_an_answer_for_no_time)
{
    struct frame_cache cache = {0};
    const struct frame_cache_entry *entry = find(&cache, 1, 0);
    assert_int_equal(entry->validity.from_ns, 0);
    assert_int_equal(entry->validity.until_ns, 0);
    frame_cache_done(&cache);
}

TEST(keeps_what_each_owner_has_at_an_address)
{
    struct frame_cache cache = {0};
    for (uint32_t owner = 0; owner < OWNERS; owner++) {
        for (uint32_t i = 0; i < ADDRESSES; i++) {
            find(&cache, owner, UINT64_C(0x1000) * i)->answer = owner * ADDRESSES + i;
        }
    }
    assert_int_equal(cache.count, OWNERS * ADDRESSES);
    for (uint32_t owner = 0; owner < OWNERS; owner++) {
        for (uint32_t i = 0; i < ADDRESSES; i++) {
            assert_int_equal(find(&cache, owner, UINT64_C(0x1000) * i)->answer,
                             owner * ADDRESSES + i);
        }
    }
    assert_int_equal(cache.count, OWNERS * ADDRESSES);
    frame_cache_done(&cache);
}
