/* SPDX-License-Identifier: Apache-2.0 */

/* What profctl top says of an event that has no sample. */
#include "top_nothing.h"
#include "unit_test.h"

#define OFF_CPU 2

struct world {
    struct top_events events;
    struct top_model *model;
};

static struct world *world_new(void)
{
    struct world *world = calloc(1, sizeof *world);
    assert_non_null(world);
    world->model = top_model_new(UINT64_C(10000000000));
    assert_non_null(world->model);
    assert_int_equal(top_events_init(&world->events), 0);
    assert_int_equal(top_events_read(&world->events,
                                     "{\"session\":\"a\",\"events\":[{\"event\":\"cpu-clock\"},"
                                     "{\"event\":\"page-faults\",\"unit\":\"faults\"},"
                                     "{\"event\":\"off-cpu\",\"unit\":\"ns\"}]}"),
                     0);
    return world;
}

static struct world *world_free(struct world *world)
{
    top_events_done(&world->events);
    (void)top_model_free(world->model);
    free(world);
    return NULL;
}

static void add(struct world *world, uint32_t event)
{
    uint32_t function = 0;
    struct top_sample sample = {
        .time_ns = 1, .functions = &function, .function_count = 1, .value = 5, .event = event};
    assert_int_equal(top_model_function(world->model, "main", "/bin/a", &function), 0);
    assert_int_equal(top_model_process(world->model, 7, "a", "", &sample.process), 0);
    assert_int_equal(top_model_add(world->model, &sample), 0);
}

static const char *said_of(const struct world *world, uint32_t event, bool has_screen)
{
    static char text[TOP_NOTHING_BYTES];
    return top_nothing_text(world->model, &world->events, event, has_screen, text);
}

TEST_MADE(struct world *world, says_when_waits_have_samples, world_new(), world_free)
{
    assert_string_equal(said_of(world, TOP_CLOCK, true), "no samples yet");
    assert_string_equal(said_of(world, OFF_CPU, false), "no wait has ended yet");
}

TEST_MADE(struct world *world, leads_to_what_has_samples, world_new(), world_free)
{
    add(world, OFF_CPU);
    assert_string_equal(said_of(world, TOP_CLOCK, true), "no samples yet; off-cpu has some: e");
    assert_string_equal(said_of(world, 1, false), "no samples yet; off-cpu has some: --event");
    add(world, TOP_CLOCK);
    assert_string_equal(said_of(world, 1, true), "no samples yet; cpu-clock has some: e");
}
