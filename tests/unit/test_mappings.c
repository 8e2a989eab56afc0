/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The lookup of mappings against the rule, told plainly: the newest that is not later than the
 * sample among those that hold the address, and of two with the same time the later one.
 */
#include "mappings.h"
#include "unit_test.h"

#define MAPPING_COUNT 60
#define SEGMENT_COUNT UINT64_C(2)
#define PID_COUNT     UINT64_C(2)
#define PLACE_COUNT   40 /* of small address spaces, so that mappings overlap */
#define TIME_COUNT    12

struct added {
    struct mapping mapping;
    uint64_t size_bytes;
};

static uint64_t next_random(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *seed >> 33;
}

/* The number of the mapping that the rule chooses, or UINT32_MAX. */
static uint32_t choose(const struct added *added, uint32_t segment, uint64_t pid, uint64_t address,
                       uint64_t time_ns)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < MAPPING_COUNT; i++) {
        const struct mapping *mapping = &added[i].mapping;
        if (mapping->segment == segment && mapping->pid == pid && mapping->time_ns <= time_ns &&
            address >= mapping->start && address - mapping->start < added[i].size_bytes &&
            (best == UINT32_MAX || mapping->time_ns >= added[best].mapping.time_ns)) {
            best = i;
        }
    }
    return best;
}

static void check_lookup(const struct mappings *table, const struct added *added, uint32_t segment,
                         uint64_t pid, uint64_t address)
{
    for (uint64_t time_ns = 0; time_ns < TIME_COUNT; time_ns++) {
        struct mapping_validity validity = {0, UINT64_MAX};
        uint32_t expected = choose(added, segment, pid, address, time_ns);
        const struct mapping *found =
            mappings_find(table, segment, pid, address, time_ns, &validity);
        assert_int_equal(found == NULL ? UINT32_MAX : found->module, expected);
        assert_in_range(time_ns, validity.from_ns, validity.until_ns - 1);
        for (uint64_t other_ns = 0; other_ns < TIME_COUNT; other_ns++) {
            if (other_ns >= validity.from_ns && other_ns < validity.until_ns) {
                assert_int_equal(choose(added, segment, pid, address, other_ns), expected);
            }
        }
    }
}

TEST(finds_what_the_rule_says)
{
    uint64_t seed = 1;
    for (size_t round = 0; round < 30; round++) {
        struct added added[MAPPING_COUNT];
        struct mappings table = {0};
        for (uint32_t i = 0; i < MAPPING_COUNT; i++) {
            added[i] = (struct added){
                .mapping = {.segment = (uint32_t)next_random(&seed) % SEGMENT_COUNT,
                            .pid = next_random(&seed) % PID_COUNT,
                            .time_ns = next_random(&seed) % TIME_COUNT,
                            .start = next_random(&seed) % PLACE_COUNT,
                            .module = i},
                .size_bytes = next_random(&seed) % PLACE_COUNT + 1,
            };
            assert_int_equal(mappings_add(&table, &added[i].mapping, added[i].size_bytes), 0);
        }
        assert_int_equal(mappings_seal(&table), 0);
        for (uint64_t i = 0; i < (SEGMENT_COUNT + 1) * (PID_COUNT + 1); i++) {
            for (uint64_t address = 0; address < 2 * PLACE_COUNT; address++) {
                check_lookup(&table, added, (uint32_t)(i / (PID_COUNT + 1)), i % (PID_COUNT + 1),
                             address);
            }
        }
        mappings_done(&table);
    }
}

TEST(finds_nothing_in_an_empty_table)
{
    struct mappings table = {0};
    struct mapping_validity validity = {0, UINT64_MAX};
    assert_int_equal(mappings_seal(&table), 0);
    assert_null(mappings_find(&table, 0, 1, 1, 1, &validity));
    assert_false(mappings_have_process(&table, 0, 1));
    mappings_done(&table);
}
