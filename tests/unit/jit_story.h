/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The made code of a process and its map, for tests of what is written of it. What is
 * asked of the module cache stands in fake_tickets.h. A map has last changed CHANGED_NS before it
 * was read, but where a test says otherwise, and mappings and samples are younger. To be included
 * once.
 */
#include "fake_tickets.h"
#include "trace_jit.h"
#include "unit_test.h"

#include "clock.h"
#include "fxt_reader.h"
#include "perf_map.h"
#include "trace_cursor.h"

#include <poll.h>

#define BUFFER_BYTES ((size_t)1 << 22)
#define CHANGED_NS   (10 * NS_PER_S)
#define MAPPED_NS    (5 * NS_PER_S)

struct world {
    struct trace_buffer *buffer;
    struct trace_cursor *chunks;
    struct fxt_reader *reader;
    struct definition_log *log;
    struct trace_symbols *symbols;
    struct trace_jits *jits;
    struct process process;
    uint64_t mapped_ns;
    char text[1 << 20];
};

/* What maps say: functions of 16 bytes, and each one's claim. */
#define SHARED PERF_MAP_CLAIM_SHARED
static const char names[] = "a\0b\0c\0A";
static const struct symbol symbols[] = {{0x1000, 0x10, 0}, {0x1010, 0x10, 2}, {0x1020, 0x10, 4}};
static const uint32_t claims[] = {0, 100, 200};
static const struct symbol replaced_symbols[] = {{0x1000, 0x10, 6}, {0x1010, 0x10, 2}};
static const uint32_t replaced_claims[] = {300 | SHARED, 100};

struct map {
    const struct symbol *symbols;
    const uint32_t *claims;
    size_t count;
    uint64_t text_bytes;
};
static const struct map one = {symbols, claims, 1, 100};
static const struct map two = {symbols, claims, 2, 200};
static const struct map three = {symbols, claims, 3, 300};
static const struct map replaced = {replaced_symbols, replaced_claims, 2, 400};

#define MAPS_MAX 2048
static struct module modules[MAPS_MAX];
static struct perf_map_state states[MAPS_MAX];
static uint64_t changed_before_ns; /* a map is read */
static bool is_rewritten;          /* the next map */

/* The table that an answer to the last question has. */
static const struct module *make_module(const struct map *map)
{
    size_t at = ticket_count - 1;
    assert_true(at < MAPS_MAX);
    int64_t changed_ns = (int64_t)(clock_ns(CLOCK_REALTIME) - changed_before_ns);
    states[at] = (struct perf_map_state){
        .text_bytes = map->text_bytes,
        .text_hash = map->text_bytes + 1,
        .known_bytes = tickets[at].known_bytes,
        .known_hash = tickets[at].known_bytes + (is_rewritten ? 2 : 1),
        .changed_s = changed_ns / (int64_t)NS_PER_S,
        .changed_ns = changed_ns % (int64_t)NS_PER_S,
    };
    modules[at] = (struct module){.identity = {.device = 1, .inode = 99},
                                  .symbols = {.symbols = map->symbols,
                                              .symbol_count = map->count,
                                              .claims = map->claims,
                                              .names = names,
                                              .names_bytes = sizeof names,
                                              .build_id = (const uint8_t *)&states[at],
                                              .build_id_bytes = sizeof states[at]}};
    return &modules[at];
}

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof *world);
    fake_tickets_reset();
    changed_before_ns = CHANGED_NS;
    is_rewritten = false;
    world->buffer = trace_buffer_new(1, BUFFER_BYTES, 4096);
    world->reader = fxt_reader_new();
    world->log = definition_log_new(world->buffer);
    world->symbols = trace_symbols_new(world->log);
    world->jits = trace_jits_new(world->log, NULL, world->symbols);
    world->process = (struct process){.pid = 7, .from_ns = 50, .start_time_ns = 49};
    world->mapped_ns = clock_ns(CLOCK_BOOTTIME) - MAPPED_NS;
    *state = world;
    return trace_cursor_new(world->buffer, &world->chunks);
}

static int tear_down(void **state)
{
    struct world *world = *state;
    (void)trace_jits_free(world->jits);
    (void)trace_symbols_free(world->symbols);
    (void)definition_log_free(world->log);
    (void)trace_cursor_free(world->chunks);
    (void)trace_buffer_free(world->buffer);
    (void)fxt_reader_free(world->reader);
    free(world);
    fake_tickets_check();
    return 0;
}

static uint64_t last_mmap_ns; /* of what was read last */

/* When a mapping record holds from. */
static const char *describe_time(const struct world *world, uint64_t time_ns)
{
    return time_ns == world->mapped_ns ? "mapped" : time_ns < world->mapped_ns ? "before" : "later";
}

static void describe(struct world *world, const struct fxt_record *record)
{
    size_t used = strlen(world->text);
    size_t room = sizeof world->text - used;
    if (record->kind == FXT_RECORD_MODULE) {
        (void)snprintf(world->text + used, room, "%.*s ", (int)record->module.name_bytes,
                       record->module.name);
    } else if (record->kind == FXT_RECORD_MMAP) {
        (void)snprintf(world->text + used, room, "%d:%d %lx+%lx=%lx %s\n", (int)record->mmap.pid,
                       record->mmap.module_id, (unsigned long)record->mmap.start,
                       (unsigned long)record->mmap.size_bytes, (unsigned long)record->mmap.vaddr,
                       describe_time(world, record->mmap.time_ns));
        last_mmap_ns = record->mmap.time_ns;
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
        trace_cursor_read(world->chunks, BUFFER_BYTES, &chunk);
        for (size_t at = 0; at < chunk.size_bytes;) {
            struct fxt_record record;
            assert_int_equal(fxt_reader_next(world->reader, (const uint8_t *)chunk.bytes + at,
                                             chunk.size_bytes - at, &record),
                             1);
            describe(world, &record);
            at += record.size_bytes;
        }
        assert_true(trace_cursor_acknowledge(world->chunks, chunk.sequence));
    } while (chunk.size_bytes > 0);
    return world->text;
}

static inline void expect_read(struct world *world, const char *expected)
{
    assert_string_equal(read_all(world), expected);
}

static struct trace_jit *find(struct world *world)
{
    struct trace_jit *jit = trace_jits_find(world->jits, &world->process);
    assert_non_null(jit);
    return jit;
}

static struct shown_mapping region_at(const struct world *world, uint16_t id, uint64_t start)
{
    return (struct shown_mapping){.pid = world->process.pid,
                                  .module_id = id,
                                  .start = start,
                                  .size_bytes = 0x1000,
                                  .from_ns = world->mapped_ns};
}

static inline void define(struct world *world, uint16_t id, uint64_t start)
{
    const struct shown_mapping region = region_at(world, id, start);
    assert_true(trace_jit_define(world->jits, find(world), &region, start, "[anon]"));
}

/* A sample in the region 3. */
static uint64_t name_at(struct world *world, uint64_t address, uint64_t time_ns)
{
    const struct shown_mapping region = region_at(world, 3, address & ~UINT64_C(0xfff));
    uint64_t from_ns = 0;
    assert_true(trace_jit_name(world->jits, find(world), &region, address, time_ns, &from_ns));
    return from_ns;
}

static inline void name(struct world *world, uint64_t address)
{
    (void)name_at(world, address, clock_ns(CLOCK_BOOTTIME));
}

static inline void fail_look(struct world *world, enum module_failure failure)
{
    struct module_ticket *ticket = &tickets[ticket_count - 1];
    assert_int_equal(ticket->state, MODULE_PENDING);
    ticket->failure = failure;
    ticket->state = MODULE_FAILED;
    assert_true(trace_jits_poll(world->jits));
}

static inline void answer(struct world *world, const struct map *map)
{
    assert_int_equal(tickets[ticket_count - 1].state, MODULE_PENDING);
    fake_tickets_ready(ticket_count - 1, make_module(map));
    assert_true(trace_jits_poll(world->jits));
}

/* Waits for the next question: that what is sampled must be asked about again. */
static inline void wait_for_question(struct world *world)
{
    size_t before = ticket_count;
    for (int i = 0; i < 500 && ticket_count == before; i++) {
        (void)poll(NULL, 0, 10);
        assert_true(trace_jits_poll(world->jits));
    }
    assert_int_equal(ticket_count, before + 1);
}

#define LINE(module, start, name)                                                                  \
    "{\"build_id\":\"\",\"module\":\"" module "\",\"start\":\"" start                              \
    "\",\"size\":16,\"name\":\"" name "\"}\n"
#define JIT_LINE(start, name) LINE("[jit] (pid 7)", start, name)

#define JIT_TEST(name) TEST_OF(struct world *world, name, set_up, tear_down)
