/* SPDX-License-Identifier: Apache-2.0 */

/* Whom a log of 1 MiB takes how much of. */
#include "definition_log.h"
#include "unit_test.h"

#define LOG_BYTES ((size_t)1 << 20)

struct world {
    struct trace_buffer *buffer;
    struct definition_log *log;
};

static int set_up(void **state)
{
    static struct world world;
    world.buffer = trace_buffer_new(1, LOG_BYTES, 4096);
    world.log = definition_log_new(world.buffer);
    *state = &world;
    return world.log == NULL ? -1 : 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    world->log = definition_log_free(world->log);
    world->buffer = trace_buffer_free(world->buffer);
    return 0;
}

/* Puts groups until one is refused. Returns their bytes. */
static size_t fill(struct world *world, uint32_t owner, enum definition_log_kind kind)
{
    static const uint64_t group[31];
    size_t bytes = 0;
    while (definition_log_put(world->log, owner, kind, group, sizeof group)) {
        bytes += TRACE_GROUP_HEADER_BYTES + sizeof group;
        assert_true(bytes < LOG_BYTES);
    }
    return bytes;
}

#define STORY(name) TEST_OF(struct world *world, name, set_up, tear_down)

STORY(nobody_fills_it_alone)
{
    const size_t useful = LOG_BYTES / 4 * 3;
    assert_in_range(fill(world, 1000, DEFINITION_NAME), useful / 2 - 256, useful / 2);
    /* The next one has half of what is left, and so on. */
    assert_in_range(fill(world, 0, DEFINITION_NAME), useful / 4 - 256, useful / 4);
    assert_in_range(fill(world, 1001, DEFINITION_MAPPING), useful / 8 - 256, useful / 8);
    assert_int_equal(fill(world, 1000, DEFINITION_MAPPING), 0);
    assert_int_equal(definition_log_refused_count(world->log, DEFINITION_NAME), 2);
    assert_int_equal(definition_log_refused_count(world->log, DEFINITION_MAPPING), 2);
    assert_int_equal(definition_log_refused_count(world->log, DEFINITION_TASK), 0);
}

STORY(what_a_sample_cannot_do_without_has_room_of_its_own)
{
    for (uint32_t owner = 0; owner < 20; owner++) {
        (void)fill(world, owner, DEFINITION_NAME);
    }
    assert_true(fill(world, 1000, DEFINITION_TASK) > LOG_BYTES / 32);
    assert_true(fill(world, 0, DEFINITION_TASK) > 0);
    assert_int_equal(definition_log_refused_count(world->log, DEFINITION_TASK), 2);
}

STORY(what_is_of_no_owner_is_put_when_all_are_refused)
{
    static const uint64_t group[512];
    for (uint32_t owner = 0; owner < 40; owner++) {
        (void)fill(world, owner, DEFINITION_TASK);
    }
    assert_false(definition_log_put(world->log, 50, DEFINITION_TASK, group, sizeof group));
    for (size_t bytes = 0; bytes < LOG_BYTES / 64; bytes += sizeof group) {
        assert_true(definition_log_put_paid(world->log, group, sizeof group));
    }
}

STORY(what_was_paid_for_counts)
{
    size_t bytes = 0;
    for (; definition_log_pay(world->log, 1000, DEFINITION_NAME, 1000); bytes += 1000) {
        assert_true(bytes < LOG_BYTES);
    }
    assert_in_range(bytes, LOG_BYTES / 8 * 3 - 1000, LOG_BYTES / 8 * 3);
    assert_true(trace_buffer_has_room(world->buffer, TRACE_LANE_DEFINITIONS, LOG_BYTES - 8));
}

STORY(says_that_somebody_is_short_before_he_is_refused)
{
    assert_true(definition_log_pay(world->log, 1000, DEFINITION_NAME, LOG_BYTES / 4));
    assert_false(definition_log_is_short(world->log));
    assert_true(definition_log_pay(world->log, 1000, DEFINITION_NAME, LOG_BYTES / 8 - 8));
    assert_true(definition_log_is_short(world->log));
    assert_int_equal(definition_log_refused_count(world->log, DEFINITION_NAME), 0);
}

STORY(another_log_has_room_for_all)
{
    size_t bytes = fill(world, 1000, DEFINITION_NAME);
    trace_buffer_next_log(world->buffer);
    definition_log_begin(world->log);
    assert_false(definition_log_is_short(world->log));
    assert_int_equal(fill(world, 1000, DEFINITION_NAME), bytes);
    assert_int_equal(definition_log_refused_count(world->log, DEFINITION_NAME), 2);
}
