/* SPDX-License-Identifier: Apache-2.0 */

/* What is written of code of which a jitdump tells, where both clocks are alike. */
#include "jit_story.h"
#include "jitdump.h"
#include "trace_dumped.h"

#define FIRST  JITDUMP_VADDR
#define SECOND (JITDUMP_VADDR + 16)

static const char dump_names[] = "a\0b";
static const struct symbol dump_symbols[] = {{FIRST, 0x10, 0}, {SECOND, 0x10, 2}};
static struct made_shared shared;
static void *laid[MAPS_MAX]; /* of each ticket; owned */

static struct dumped_code *begin(struct world *world)
{
    const struct module_query query = {.path = "/tmp/jit-7.dump"};
    shared = (struct made_shared){.log = world->log, .symbols = world->symbols};
    dump_clock_note(&shared.dump_clock, world->mapped_ns, world->mapped_ns, 0);
    struct dumped_code *code = dumped_new(&query, 0, "[jit] (pid 7)");
    assert_non_null(code);
    return code;
}

static void end(struct dumped_code *code)
{
    (void)dumped_free(&shared, code);
    assert_int_equal(shared.note_count, 0);
    for (size_t i = 0; i < ticket_count; i++) {
        free(laid[i]);
    }
}

/* A reading that begins `begin_ns` after the mapping, in which `a` has 0x1000 from the start, and
 * `b` after `b_ns`, if that is not 0. */
static void take(struct world *world, struct dumped_code *code, uint64_t b_ns, uint64_t begin_ns)
{
    struct code_claim both[] = {
        {.time_ns = world->mapped_ns, .start = 0x1000, .end = 0x1010, .vaddr = FIRST},
        {.time_ns = world->mapped_ns + b_ns,
         .start = 0x1000,
         .end = 0x1010,
         .vaddr = SECOND,
         .order = 1},
    };
    struct module_ticket *ticket = &tickets[ticket_count++];
    *ticket = (struct module_ticket){.known_bytes = (uint32_t)code->state.text_bytes};
    const struct map map = {dump_symbols, NULL, 2, b_ns == 0 ? 100 : 200};
    struct module *module = (struct module *)(uintptr_t)make_module(&map);
    size_t size_bytes = 0;
    size_t used = 0;
    module->symbols.names = dump_names;
    module->symbols.names_bytes = sizeof dump_names;
    void **bytes = &laid[ticket_count - 1];
    assert_int_equal(code_spans_build(both, b_ns == 0 ? 1 : 2, bytes, &size_bytes), 0);
    assert_int_equal(code_spans_open(*bytes, size_bytes, &module->spans, &used), 0);
    ticket->module = module;
    (void)dumped_take(&shared, code, ticket, world->mapped_ns + begin_ns);
    while (!dumped_is_settled(code)) {
        assert_true(dumped_settle(&shared, code));
    }
}

static void sample(struct world *world, struct dumped_code *code, uint64_t after_ns)
{
    const struct shown_mapping region = region_at(world, 3, 0x1000);
    assert_true(dumped_name(&shared, code, &region, 0x1004, world->mapped_ns + after_ns));
}

#define SHOWN_A                                                                                    \
    "[jit] (pid 7) 7:3 1000+10=200000000000000 mapped\n" JIT_LINE("0x200000000000000", "a")
#define SHOWN_B                                                                                    \
    "[jit] (pid 7) 7:3 1000+10=200000000000010 later\n" JIT_LINE("0x200000000000010", "b")

JIT_TEST(each_sample_has_the_function_of_its_time)
{
    struct dumped_code *code = begin(world);
    sample(world, code, 5);
    expect_read(world, "");
    take(world, code, 50, 100);
    expect_read(world, SHOWN_A);
    sample(world, code, 60);
    sample(world, code, 70);
    expect_read(world, SHOWN_B);
    assert_int_equal(last_mmap_ns, world->mapped_ns + 50);
    assert_false(dumped_wants(code)); /* all was before the reading */
    end(code);
}

JIT_TEST(what_has_ended_meanwhile_is_hidden)
{
    struct dumped_code *code = begin(world);
    sample(world, code, 5);
    take(world, code, 0, 10);
    expect_read(world, SHOWN_A);
    sample(world, code, 60); /* it is `a` still, as far as is known */
    expect_read(world, "");
    assert_true(dumped_wants(code));
    assert_false(dumped_is_proved(code, world->mapped_ns + 60));
    take(world, code, 50, 100);
    assert_contains(read_all(world), SHOWN_B);
    assert_true(dumped_is_proved(code, world->mapped_ns + 60));
    end(code);
}

/* Once, however much is sampled then; what was before the last reading keeps its name. */
JIT_TEST(nothing_has_a_name_after_the_end)
{
    struct dumped_code *code = begin(world);
    sample(world, code, 5);
    take(world, code, 0, 10);
    sample(world, code, 60);
    expect_read(world, SHOWN_A);
    is_rewritten = true;
    take(world, code, 50, 100);
    expect_read(world, "[anon] 7:3 1000+1000=1000 later\n");
    assert_int_equal(last_mmap_ns, world->mapped_ns + 10);
    sample(world, code, 70);
    sample(world, code, 7);
    expect_read(world, "");
    assert_false(dumped_wants(code));
    end(code);
}

/* One process's addresses that wait for a reading. What cannot wait is not written, nor is anything
 * of it; what waited has its name. */
JIT_TEST(few_enough_wait_to_be_named)
{
    struct dumped_code *code = begin(world);
    const struct shown_mapping region = region_at(world, 3, 0x1000);
    size_t count = 0;
    while (dumped_name(&shared, code, &region, 0x1000 + count, world->mapped_ns + 5)) {
        count++;
    }
    assert_int_equal(count, MADE_NOTES_MAX / 8);
    assert_int_equal(definition_log_refused_count(world->log, DEFINITION_TASK), 1);
    take(world, code, 0, 100);
    expect_read(world, SHOWN_A);
    sample(world, code, 110);
    end(code);
}
