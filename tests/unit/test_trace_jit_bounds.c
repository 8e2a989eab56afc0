/* SPDX-License-Identifier: Apache-2.0 */

/* How much of what processes make is taken up at a time, and in all. */
#include "jit_story.h"

/* A map of FUNCTIONS functions of 16 bytes, of which the n-th is called `f` and a number: by turns
 * those that FNV-1a, as a table of 2^17 places was once keyed by, puts into 2,048 of its places. */
#define FUNCTIONS 4000

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
    size_t used = 0;
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

JIT_TEST(goes_through_a_large_map_in_steps)
{
    for (size_t i = 0; i < FUNCTIONS; i++) {
        name(world, 0x100000 + 16 * i);
    }
    struct module_ticket *ticket = &tickets[ticket_count - 1];
    ticket->module = make_large_map();
    ticket->state = MODULE_READY;
    size_t polls = 0;
    size_t written = 0;
    bool settled = false;
    for (; !settled; polls++) {
        settled = trace_jits_poll(world->jits);
        size_t lines = count_lines(read_all(world));
        assert_true(lines <= 1024);
        assert_true(settled || trace_jits_pending(world->jits));
        written += lines;
    }
    assert_int_equal(written, FUNCTIONS); /* late, but each once */
    assert_int_equal(polls, (FUNCTIONS + 1023) / 1024);
    assert_false(trace_jits_pending(world->jits));
}

/* Of 16 processes 15 have so much that each would take several polls; the last one has its name in
 * the first poll. */
JIT_TEST(gives_each_process_a_slice)
{
    const struct module *map = make_large_map();
    for (int32_t pid = 1; pid <= 15; pid++) {
        world->process.pid = pid;
        for (size_t i = 0; i < FUNCTIONS; i++) {
            name(world, 0x100000 + 16 * i);
        }
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
    assert_true(trace_jits_poll(world->jits));
}
