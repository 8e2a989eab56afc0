/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is written of code that processes make, and when their maps are asked for. The module cache
 * is a stand-in that answers when the test says so.
 */
#include "trace_jit.h"

#include "cleanup.h"
#include "fxt_reader.h"
#include "trace_reader.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define BUFFER_BYTES ((size_t)1 << 22)
#define TICKETS_MAX  2048

/* The stand-in. */
struct module_ticket {
    int32_t pid;
    uint64_t start_time_ns;
    enum module_state state;
    const struct module *module;
    int released;
};

static struct module_ticket tickets[TICKETS_MAX];
static size_t ticket_count;

struct module_ticket *module_cache_request_perf_map(struct module_cache *cache,
                                                    const struct module_query *query)
{
    (void)cache;
    assert_true(ticket_count < TICKETS_MAX);
    assert_string_equal(query->path, "");
    struct module_ticket *ticket = &tickets[ticket_count++];
    *ticket = (struct module_ticket){.pid = query->pid, .start_time_ns = query->start_time_ns};
    return ticket;
}

enum module_state module_ticket_state(const struct module_ticket *ticket)
{
    return ticket->state;
}

const struct module *module_ticket_module(const struct module_ticket *ticket)
{
    return ticket->module;
}

void module_ticket_release(struct module_ticket *ticket)
{
    if (ticket != NULL) {
        ticket->released++;
    }
}

struct world {
    struct trace_buffer *buffer;
    struct trace_reader *chunks;
    struct fxt_reader *reader;
    struct trace_log *log;
    struct trace_symbols *symbols;
    struct trace_jits *jits;
    struct process process;
    char text[1 << 20];
};

static const struct symbol symbols[] = {
    {0x1000, 0x10, 0}, {0x1010, 0x10, 2}, {0x1020, 0x10, 4}, {0x1000, 0x10, 6}};
static const char names[] = "a\0b\0c\0A";

/* A map with the first functions; the last one is another at the address of the first. */
#define MAP(first, count)                                                                          \
    {                                                                                              \
        .symbols = {.symbols = symbols + (first),                                                  \
                    .symbol_count = (count),                                                       \
                    .names = names,                                                                \
                    .names_bytes = sizeof names},                                                  \
    }
static const struct module one = MAP(0, 1);
static const struct module two = MAP(0, 2);
static const struct module three = MAP(0, 3);
static const struct module replaced = MAP(3, 1);

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof *world);
    ticket_count = 0;
    world->buffer = trace_buffer_new(1, BUFFER_BYTES, 4096);
    world->reader = fxt_reader_new();
    world->log = trace_log_new(world->buffer);
    world->symbols = trace_symbols_new(world->log);
    world->jits = trace_jits_new(world->log, NULL, world->symbols);
    world->process = (struct process){.pid = 7, .from_ns = 50, .start_time_ns = 49};
    *state = world;
    return trace_reader_new(world->buffer, &world->chunks);
}

static int tear_down(void **state)
{
    struct world *world = *state;
    (void)trace_jits_free(world->jits);
    (void)trace_symbols_free(world->symbols);
    (void)trace_log_free(world->log);
    (void)trace_reader_free(world->chunks);
    (void)trace_buffer_free(world->buffer);
    (void)fxt_reader_free(world->reader);
    free(world);
    for (size_t i = 0; i < ticket_count; i++) {
        assert_int_equal(tickets[i].released, 1);
    }
    return 0;
}

static void describe(struct world *world, const struct fxt_record *record)
{
    size_t used = strlen(world->text);
    size_t room = sizeof world->text - used;
    if (record->kind == FXT_RECORD_MODULE) {
        (void)snprintf(world->text + used, room, "%.*s ", (int)record->module.name_bytes,
                       record->module.name);
    } else if (record->kind == FXT_RECORD_MMAP) {
        (void)snprintf(world->text + used, room, "%d:%d=%lx\n", (int)record->mmap.pid,
                       record->mmap.module_id, (unsigned long)record->mmap.vaddr);
    } else if (record->kind == FXT_RECORD_DATA) {
        (void)snprintf(world->text + used, room, "%.*s", (int)record->data.payload_bytes,
                       (const char *)record->data.payload);
    }
}

/* What has been written since the last call. */
static const char *read_all(struct world *world)
{
    struct trace_chunk chunk;
    world->text[0] = '\0';
    assert_true(trace_symbols_flush(world->symbols));
    do {
        trace_reader_read(world->chunks, BUFFER_BYTES, &chunk);
        for (size_t at = 0; at < chunk.size_bytes;) {
            struct fxt_record record;
            assert_int_equal(fxt_reader_next(world->reader, (const uint8_t *)chunk.bytes + at,
                                             chunk.size_bytes - at, &record),
                             1);
            describe(world, &record);
            at += record.size_bytes;
        }
        assert_true(trace_reader_acknowledge(world->chunks, chunk.sequence));
    } while (chunk.size_bytes > 0);
    return world->text;
}

static struct trace_jit *find(struct world *world)
{
    struct trace_jit *jit = trace_jits_find(world->jits, &world->process);
    assert_non_null(jit);
    return jit;
}

static void define(struct world *world, uint16_t id, uint64_t start)
{
    const struct shown_mapping shown = {
        .pid = world->process.pid, .module_id = id, .start = start, .size_bytes = 0x1000};
    assert_true(trace_jit_define(world->jits, find(world), &shown, start, "[anon]"));
}

static void name(struct world *world, uint64_t address)
{
    assert_true(trace_jit_name(world->jits, find(world), address));
}

static void answer(struct world *world, const struct module *module)
{
    struct module_ticket *ticket = &tickets[ticket_count - 1];
    assert_int_equal(ticket->state, MODULE_PENDING);
    ticket->module = module;
    ticket->state = module == NULL ? MODULE_FAILED : MODULE_READY;
    assert_true(trace_jits_poll(world->jits));
}

#define LINE(module, start, name)                                                                  \
    "{\"build_id\":\"\",\"module\":\"" module "\",\"start\":\"" start                              \
    "\",\"size\":16,\"name\":\"" name "\"}\n"

static void names_each_function_once_in_a_module_of_its_process(void **state)
{
    struct world *world = *state;
    define(world, 3, 0x1000);
    name(world, 0x1004);
    name(world, 0x1008);
    name(world, 0x1014);
    assert_string_equal(read_all(world), "[anon] 7:3=1000\n");
    assert_int_equal(ticket_count, 1);
    assert_int_equal(tickets[0].pid, 7);
    assert_int_equal(tickets[0].start_time_ns, 49);
    answer(world, &two);
    assert_string_equal(read_all(world),
                        "[jit] (pid 7) 7:3=1000\n" LINE("[jit] (pid 7)", "0x1010", "b")
                            LINE("[jit] (pid 7)", "0x1000", "a"));
    name(world, 0x100c);
    define(world, 4, 0x2000);
    assert_string_equal(read_all(world), "[jit] (pid 7) 7:4=2000\n");
    assert_int_equal(ticket_count, 1);
}

static void looks_again_for_what_the_map_did_not_have(void **state)
{
    struct world *world = *state;
    define(world, 3, 0x1000);
    name(world, 0x1004);
    answer(world, &one);
    (void)read_all(world);
    name(world, 0x1024);
    assert_true(trace_jits_poll(world->jits));
    assert_int_equal(ticket_count, 1); /* not at once */
    for (int i = 0; i < 200 && ticket_count == 1; i++) {
        (void)poll(NULL, 0, 10);
        assert_true(trace_jits_poll(world->jits));
    }
    assert_int_equal(ticket_count, 2);
    answer(world, &three);
    assert_string_equal(read_all(world), LINE("[jit] (pid 7)", "0x1020", "c"));
}

static void asks_at_the_end_for_what_is_missing_only(void **state)
{
    struct world *world = *state;
    name(world, 0x1004);
    name(world, 0x1014);
    answer(world, &one);
    (void)read_all(world);
    assert_false(trace_jits_pending(world->jits));
    trace_jits_ask_again(world->jits);
    assert_true(trace_jits_pending(world->jits));
    assert_true(trace_jits_poll(world->jits));
    assert_int_equal(ticket_count, 2);
    assert_true(trace_jits_pending(world->jits));
    answer(world, &two);
    assert_false(trace_jits_pending(world->jits));
    assert_string_equal(read_all(world), LINE("[jit] (pid 7)", "0x1010", "b"));

    trace_jits_ask_again(world->jits);
    assert_true(trace_jits_poll(world->jits));
    assert_false(trace_jits_pending(world->jits));
    assert_int_equal(ticket_count, 2);
}

static void does_not_wait_for_a_map_that_has_nothing_to_name(void **state)
{
    struct world *world = *state;
    name(world, 0x1004);
    trace_jits_ask_again(world->jits); /* while the first reading is under way */
    answer(world, &one);
    assert_string_equal(read_all(world), LINE("[jit] (pid 7)", "0x1000", "a"));
    assert_true(trace_jits_poll(world->jits));
    assert_int_equal(ticket_count, 1);
    assert_false(trace_jits_pending(world->jits));
}

static void an_address_keeps_its_first_name(void **state)
{
    struct world *world = *state;
    name(world, 0x1004);
    name(world, 0x1024);
    answer(world, &one);
    assert_string_equal(read_all(world), LINE("[jit] (pid 7)", "0x1000", "a"));
    trace_jits_ask_again(world->jits);
    assert_true(trace_jits_poll(world->jits));
    answer(world, &replaced);
    assert_string_equal(read_all(world), "");
    name(world, 0x1008); /* another address of it, met now */
    assert_string_equal(read_all(world), LINE("[jit] (pid 7)", "0x1000", "A"));
}

static void a_process_without_a_map_stays_as_it_is(void **state)
{
    struct world *world = *state;
    define(world, 3, 0x1000);
    name(world, 0x1004);
    answer(world, NULL);
    define(world, 4, 0x2000);
    assert_string_equal(read_all(world), "[anon] 7:3=1000\n[anon] 7:4=2000\n");
    assert_false(trace_jits_pending(world->jits));

    /* Until there is one. */
    trace_jits_ask_again(world->jits);
    assert_true(trace_jits_poll(world->jits));
    answer(world, &one);
    assert_string_equal(read_all(world), "[jit] (pid 7) 7:4=2000\n[jit] (pid 7) 7:3=1000\n" LINE(
                                             "[jit] (pid 7)", "0x1000", "a"));
}

static void another_program_with_the_pid_has_a_name_of_its_own(void **state)
{
    struct world *world = *state;
    name(world, 0x1004);
    answer(world, &one);
    world->process.exec_ns = 90;
    name(world, 0x1004);
    answer(world, &one);
    assert_string_equal(read_all(world), LINE("[jit] (pid 7)", "0x1000", "a")
                                             LINE("[jit] (pid 7) (2)", "0x1000", "a"));
}

static void a_new_log_begins_with_nothing(void **state)
{
    struct world *world = *state;
    name(world, 0x1004);
    answer(world, &one);
    (void)read_all(world);
    name(world, 0x1014);
    trace_jits_begin(world->jits);
    name(world, 0x1004);
    answer(world, &one);
    assert_string_equal(read_all(world), LINE("[jit] (pid 7)", "0x1000", "a"));
}

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
    size_t used = 0;
    for (size_t i = 0; i < FUNCTIONS; i++) {
        large[i] = (struct symbol){0x100000 + 16 * i, 16, (uint32_t)used};
        unsigned tries = 0;
        do {
            (void)snprintf(texts + used, sizeof texts - used, "f%x", tries++);
        } while (old_place(large[i].start, texts + used) >= 2048);
        used += strlen(texts + used) + 1;
    }
    map = (struct module){
        .symbols = {
            .symbols = large, .symbol_count = FUNCTIONS, .names = texts, .names_bytes = used}};
    return &map;
}

static size_t count_lines(const char *text)
{
    size_t count = 0;
    for (; *text != '\0'; text++) {
        count += *text == '\n';
    }
    return count;
}

static void goes_through_a_large_map_in_steps(void **state)
{
    struct world *world = *state;
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
static void gives_each_process_a_slice(void **state)
{
    struct world *world = *state;
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
    assert_non_null(strstr(read_all(world), "[jit] (pid 16)"));
}

/* In one poll, with those of the samples before it, 32 at the most: the others come in the next. */
static void asks_for_a_few_maps_at_a_time(void **state)
{
    struct world *world = *state;
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

static void is_bounded_whatever_is_sampled(void **state)
{
    struct world *world = *state;
    for (int32_t pid = 1; pid <= 1024; pid++) {
        world->process.pid = pid;
        (void)find(world);
    }
    world->process.pid = 2000;
    assert_null(trace_jits_find(world->jits, &world->process));
    world->process.pid = 1;
    for (uint64_t address = 0; address < 600000; address++) {
        name(world, address);
    }
    trace_jits_ask_again(world->jits);
    assert_true(trace_jits_poll(world->jits));
}

#define JIT_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        JIT_TEST(names_each_function_once_in_a_module_of_its_process),
        JIT_TEST(looks_again_for_what_the_map_did_not_have),
        JIT_TEST(asks_at_the_end_for_what_is_missing_only),
        JIT_TEST(does_not_wait_for_a_map_that_has_nothing_to_name),
        JIT_TEST(an_address_keeps_its_first_name),
        JIT_TEST(a_process_without_a_map_stays_as_it_is),
        JIT_TEST(another_program_with_the_pid_has_a_name_of_its_own),
        JIT_TEST(a_new_log_begins_with_nothing),
        JIT_TEST(goes_through_a_large_map_in_steps),
        JIT_TEST(gives_each_process_a_slice),
        JIT_TEST(asks_for_a_few_maps_at_a_time),
        JIT_TEST(is_bounded_whatever_is_sampled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
