/* SPDX-License-Identifier: Apache-2.0 */

/* How much of what processes make is taken up at a time, and in all. */
#include "jit_story.h"

/* A map of FUNCTIONS functions of 16 bytes, of which the n-th is called `f` and a number: by turns
 * those that FNV-1a, as a table of 2^17 places was once keyed by, puts into 2,048 of its places. */
#define FUNCTIONS 12000

/* Names that samples may look up until the next poll, those of one account, and the steps that a
 * poll adds. */
#define NAMES       4096
#define NAMES_OWN   2048
#define STEPS       1024
#define LATE_OF_ONE 65536

static uint64_t old_place(uint64_t start, const char *text)
{
    uint64_t hash = (start ^ UINT64_C(16) << 40) + 1;
    for (const char *c = text; *c != '\0'; c++) {
        hash = (hash ^ (uint8_t)*c) * UINT64_C(1099511628211);
    }
    return (hash ^ hash >> 32) & 0x1ffff;
}

static const struct module *make_large_map(void)
{
    static struct symbol large[FUNCTIONS];
    static char texts[FUNCTIONS * 12];
    static struct module map;
    static uint32_t large_claims[FUNCTIONS];
    static struct perf_map_state large_state = {.text_bytes = 1000000, .changed_s = 1};
    static size_t used;
    if (used > 0) {
        return &map;
    }
    for (size_t i = 0; i < FUNCTIONS; i++) {
        large_claims[i] = (uint32_t)i;
        large[i] = (struct symbol){0x100000 + 16 * i, 16, (uint32_t)used};
        unsigned tries = 0;
        do {
            (void)snprintf(texts + used, sizeof texts - used, "f%x", tries++);
        } while (old_place(large[i].start, texts + used) >= 2048);
        used += strlen(texts + used) + 1;
    }
    map = (struct module){.symbols = {.symbols = large,
                                      .symbol_count = FUNCTIONS,
                                      .claims = large_claims,
                                      .names = texts,
                                      .names_bytes = used,
                                      .build_id = (const uint8_t *)&large_state,
                                      .build_id_bytes = sizeof large_state}};
    return &map;
}

static size_t count_lines(const char *text)
{
    size_t count = 0;
    for (; *text != '\0'; text++) {
        count += *text == '{';
    }
    return count;
}

static void name_all(struct world *world, int32_t pid)
{
    world->process.pid = pid;
    for (size_t i = 0; i < FUNCTIONS; i++) {
        name(world, 0x100000 + 16 * i);
    }
}

static void poll_until_settled(struct world *world)
{
    while (!trace_jits_poll(world->jits)) {
        assert_true(trace_jits_pending(world->jits));
    }
}

JIT_TEST(goes_through_a_large_map_in_steps)
{
    name_all(world, 7);
    poll_until_settled(world);
    struct module_ticket *ticket = &tickets[ticket_count - 1];
    ticket->module = make_large_map();
    ticket->state = MODULE_READY;
    size_t polls = 0;
    size_t written = 0;
    bool settled = false;
    for (; !settled; polls++) {
        settled = trace_jits_poll(world->jits);
        size_t lines = count_lines(read_all(world));
        assert_true(lines <= NAMES + STEPS);
        assert_true(settled || trace_jits_pending(world->jits));
        written += lines;
    }
    assert_int_equal(written, FUNCTIONS); /* late, but each once */
    assert_int_equal(polls, (FUNCTIONS + NAMES + STEPS - 1) / (NAMES + STEPS));
}

/* Has the map of a process read, before anything of it is sampled. */
static void read_large_map(struct world *world, int32_t pid, uint32_t owner)
{
    world->process.pid = pid;
    world->process.owner = owner;
    (void)find(world);
    tickets[ticket_count - 1].module = make_large_map();
    tickets[ticket_count - 1].state = MODULE_READY;
    assert_true(trace_jits_poll(world->jits));
}

/* Whatever is sampled between two polls. What the samples do not take is left for the poll. */
JIT_TEST(looks_up_a_few_names_between_polls)
{
    read_large_map(world, 1, 4711);
    name_all(world, 1);
    assert_int_equal(count_lines(read_all(world)), NAMES_OWN);
    assert_true(trace_jits_pending(world->jits));
    assert_false(trace_jits_poll(world->jits));
    assert_int_equal(count_lines(read_all(world)), NAMES - NAMES_OWN + STEPS);
    assert_false(trace_jits_poll(world->jits));
    assert_int_equal(count_lines(read_all(world)), NAMES + STEPS);
    assert_true(trace_jits_poll(world->jits));
    assert_int_equal(count_lines(read_all(world)), FUNCTIONS - 2 * (NAMES + STEPS));
}

/* Another account's names are looked up at once, while one has taken its part. */
JIT_TEST(leaves_names_to_other_accounts)
{
    read_large_map(world, 1, 4711);
    read_large_map(world, 2, 4711);
    read_large_map(world, 3, 4712);
    name_all(world, 1);
    world->process.pid = 2;
    name(world, 0x100004);
    assert_int_equal(count_lines(read_all(world)), NAMES_OWN);
    world->process.pid = 3;
    name(world, 0x100004);
    assert_contains(read_all(world), "[jit] (pid 3)");
}

/* Takes what one account may have looked up until the next poll, with addresses that have no name.
 */
static void take_names(struct world *world)
{
    for (uint64_t i = 0; i < NAMES_OWN; i++) {
        name(world, 0x300000 + i);
    }
    (void)read_all(world);
}

JIT_TEST(what_is_late_is_looked_up_in_the_reading_before_it)
{
    define(world, 3, 0x1000);
    name(world, 0x1004);
    answer(world, &three);
    name(world, 0x1004);
    wait_for_question(world);
    take_names(world);
    uint64_t before_ns = clock_ns(CLOCK_BOOTTIME);
    assert_int_equal(name_at(world, 0x1024, world->mapped_ns + 1), TIME_OPEN_NS);
    uint64_t from_ns = name_at(world, 0x1024, clock_ns(CLOCK_BOOTTIME));
    assert_in_range(from_ns, world->mapped_ns + 1, before_ns);
    expect_read(world, "");
    answer(world, &replaced);
    expect_read(world, JIT_LINE("0x1020", "c"));
    assert_true(trace_jits_poll(world->jits));
    expect_read(world, "[anon] 7:3 1020+10=1020 later\n[anon] 7:3 1000+10=1000 later\n");
}

/* However much is late, and comes late with each poll. */
JIT_TEST(takes_the_first_reading_of_a_busy_process)
{
    name_all(world, 7);
    tickets[ticket_count - 1].module = make_large_map();
    tickets[ticket_count - 1].state = MODULE_READY;
    size_t written = 0;
    for (size_t polls = 0; polls < 3; polls++) {
        name_all(world, 7);
        assert_false(trace_jits_poll(world->jits));
        written += count_lines(read_all(world));
    }
    assert_in_range(written, NAMES_OWN, FUNCTIONS);
}

/* What would have the name of another function is not written. */
JIT_TEST(refuses_what_cannot_be_late)
{
    read_large_map(world, 1, 4711);
    for (uint64_t i = 0; i < NAMES_OWN + LATE_OF_ONE; i++) {
        name(world, 0x100004);
    }
    const struct shown_mapping region = region_at(world, 3, 0x100000);
    uint64_t from_ns = 0;
    assert_false(trace_jit_name(world->jits, find(world), &region, 0x100004,
                                clock_ns(CLOCK_BOOTTIME), &from_ns));
    assert_int_equal(definition_log_refused_count(world->log, DEFINITION_TASK), 1);
}

JIT_TEST(what_is_late_at_the_end_loses_its_name)
{
    define(world, 3, 0x1000);
    name(world, 0x1004);
    answer(world, &three);
    take_names(world);
    name(world, 0x1024);
    assert_false(trace_jits_proved(world->jits, 0));
    trace_jits_close(world->jits);
    expect_read(world, "[anon] 7:3 1000+1000=1000 later\n");
    assert_true(trace_jits_proved(world->jits, UINT64_MAX));
}

/* Of 16 processes 15 have so much that each would take several polls; the last one has its name in
 * the first poll. */
JIT_TEST(gives_each_process_a_slice)
{
    const struct module *map = make_large_map();
    for (int32_t pid = 1; pid <= 15; pid++) {
        name_all(world, pid);
        poll_until_settled(world);
    }
    world->process.pid = 16;
    name(world, 0x100004);
    for (size_t i = 0; i < ticket_count; i++) {
        tickets[i].module = map;
        tickets[i].state = MODULE_READY;
    }
    assert_int_equal(ticket_count, 16);
    assert_false(trace_jits_poll(world->jits));
    assert_contains(read_all(world), "[jit] (pid 16)");
}

/* In one poll, with those of the samples before it, 32 at the most: the others come in the next. */
JIT_TEST(asks_for_a_few_maps_at_a_time)
{
    for (int32_t pid = 1; pid <= 100; pid++) {
        world->process.pid = pid;
        name(world, 0x1004);
    }
    assert_int_equal(ticket_count, 32);
    for (size_t asked = 64; asked <= 96; asked += 32) {
        assert_true(trace_jits_pending(world->jits));
        assert_true(trace_jits_poll(world->jits));
        assert_int_equal(ticket_count, asked);
    }
    assert_true(trace_jits_poll(world->jits));
    assert_true(trace_jits_poll(world->jits));
    assert_int_equal(ticket_count, 100);
}

JIT_TEST(is_bounded_whatever_is_sampled)
{
    for (int32_t pid = 1; pid <= 1024; pid++) {
        world->process.pid = pid;
        (void)find(world);
    }
    world->process.pid = 2000;
    assert_null(trace_jits_find(world->jits, &world->process));
    world->process.owner = 4712; /* who has half of what the others leave */
    for (int32_t pid = 2000; pid < 2512; pid++) {
        world->process.pid = pid;
        (void)find(world);
    }
    world->process.pid = 3000;
    assert_null(trace_jits_find(world->jits, &world->process));
    world->process.owner = 4713;
    (void)find(world);
    world->process.owner = 0;
    world->process.pid = 1;
    for (uint64_t address = 0; address < 600000; address++) {
        name(world, address);
    }
    trace_jits_ask_again(world->jits);
    poll_until_settled(world);
}
