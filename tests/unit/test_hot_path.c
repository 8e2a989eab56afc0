/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A sample of what was met before allocates nothing, from the ring to the trace buffer. The linker
 * leads all calls of our own code that allocate through here (--wrap).
 */
#include "drain_world.h"

#define ROUNDS           64
#define SAMPLES_OF_ROUND 32
#define ROUND_NS         UINT64_C(1000000)
#define STACK_BYTES      512
#define WARM_ROUNDS      4
#define INODE            77 /* of put_mmap() */
#define GROUP            8 /* and 9: two control groups, in which there are threads of the process */

static size_t allocation_count;

/* In place of a function that allocates: counts the call. */
#define COUNTED(function, parameters, arguments)                                                   \
    void *__real_##function parameters;                                                            \
    void *__wrap_##function parameters;                                                            \
    void *__wrap_##function parameters                                                             \
    {                                                                                              \
        allocation_count++;                                                                        \
        return __real_##function arguments;                                                        \
    }
COUNTED(malloc, (size_t bytes), (bytes))
COUNTED(calloc, (size_t count, size_t bytes), (count, bytes))
COUNTED(realloc, (void *old, size_t bytes), (old, bytes))
COUNTED(reallocarray, (void *old, size_t count, size_t bytes), (old, count, bytes))

/* A sample of the clock, and what its two followers have counted by then. */
static void put_reading(struct ring_world *world, size_t cpu, uint64_t time_ns)
{
    PUT(world, cpu, CLOCK, SAMPLE, PERF_RECORD_MISC_USER, 1, pair(PID, PID), time_ns, cpu, 3, 0, 0,
        time_ns, 10, time_ns / 7, 11, time_ns / 500, 12, 2, PERF_CONTEXT_USER, 0x5010);
}

/* A round as the collector has it: two CPUs, whose samples fall into the same few addresses. */
static void run_round(struct ring_world *world, uint64_t begin_ns, bool stacks)
{
    for (uint64_t i = 0; i < SAMPLES_OF_ROUND; i++) {
        uint64_t time_ns = begin_ns + i * 1000;
        if (world->source.groups[0].follower_count > 0) {
            put_reading(world, i % 2, time_ns);
        } else if (stacks) {
            put_stack(world, i % 2, PID, time_ns, STACK_BYTES);
        } else if (world->source.features.cgroup) {
            put_sample_in(world, i % 2, PID, time_ns, GROUP + i % 2);
        } else {
            put_sample(world, i % 2, PID, time_ns, 0x5010 + i % 8 * 0x10);
        }
    }
    drain_all(world->drain, begin_ns + ROUND_NS / 2);
    (void)drain_held(world->drain, begin_ns + ROUND_NS / 2);
    (void)trace_poll(world->trace);
}

static void expect_no_allocations(struct ring_world *world, bool stacks)
{
    put_program(world);
    put_group(world, 300, GROUP, "/a");
    put_group(world, 301, GROUP + 1, "/b");
    drain_all(world->drain, 1000);
    drain_prefetch(world->drain);
    fake_module_ready(&world->cache, INODE, fake_module_table());
    uint64_t time_ns = 2 * ROUND_NS;
    allocation_count = 0;
    for (size_t i = 0; i < WARM_ROUNDS; i++, time_ns += ROUND_NS) {
        run_round(world, time_ns, stacks);
    }
    assert_int_not_equal(allocation_count, 0);
    const uint64_t received = drain_books(world->drain, 0, 0).received;
    allocation_count = 0;
    for (size_t i = 0; i < ROUNDS; i++, time_ns += ROUND_NS) {
        run_round(world, time_ns, stacks);
    }
    assert_int_equal(allocation_count, 0);
    assert_int_equal(drain_books(world->drain, 0, 0).received - received,
                     ROUNDS * SAMPLES_OF_ROUND / 2);
    assert_int_equal(drain_held(world->drain, time_ns), 0);
}

DRAIN_STORY(a_sample_of_what_was_met_allocates_nothing, set_up)
{
    expect_no_allocations(world, false);
}

DRAIN_STORY(neither_do_those_of_followers, set_up)
{
    world->source.config.event_count = 2;
    world->source.groups[0] = (struct perf_group){1, 2};
    world->source.rated_layout = perf_record_layout_make(RING_SAMPLE_TYPE | PERF_SAMPLE_READ, 0);
    expect_no_allocations(world, false);
    assert_int_equal(counted(world).bad_records, 0);
    assert_true(drain_books(world->drain, 0, 0).events[1].received > ROUNDS);
}

DRAIN_STORY(a_stack_of_what_was_met_allocates_nothing, set_up_stacks)
{
    expect_no_allocations(world, true);
}

DRAIN_STORY(groups_that_were_met_allocate_nothing, set_up_groups)
{
    expect_no_allocations(world, false);
}
