/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A trace with its buffer and its reader, for tests of what it writes: two CPUs, 0 and 5. What
 * is asked of the module cache stands in fake_tickets.h.
 */
#include "fake_tickets.h"
#include "process_table.h"
#include "trace.h"
#include "trace_cursor.h"
#include "unit_test.h"

#include "fxt_reader.h"

#define BUFFER_BYTES ((size_t)1 << 20)

/* Functions low [0x1000,0x1100), high [0x1200,0x1210), and a kernel-sized one; offset 0 is vaddr
 * 0x400000. Made anew by set_up(). */
extern struct module test_modules[2];

/* Whose processes are. As set_up() leaves it, each process is of a user that has no other. */
extern uint32_t (*owner_of)(int32_t pid);

struct world {
    struct trace_buffer *buffer;
    struct address_cache *addresses;
    struct trace *trace;
    struct process_table *processes;
    struct trace_cursor *chunks;
    struct fxt_reader *reader;
    bool shows_processes; /* whose they are; as set_up() leaves it, that is not in the text */
    char text[1 << 22];   /* what was read, a line a record */
};

/* For cmocka. */
int set_up(void **state);
int set_up_wide(void **state); /* with more room for samples */
int tear_down(void **state);

/* What the reader may have by now, a line a record; the tables' own records left out, and those of
 * cpu-profilerd.processes unless the world shows them. */
const char *read_shown(struct world *world);
/* What has been taken since the last call, shown or not. */
const char *read_all(struct world *world);

/* Compares it. */
static inline void expect_read(struct world *world, const char *expected)
{
    assert_string_equal(read_all(world), expected);
}

/* A process's program: its file at 0x7000000. */
void run(struct world *world, int32_t pid, const char *path);
/* The file of a ticket has been read: it is a test module. */
void answer(struct world *world, size_t ticket, const struct module *module);

/* 64 KiB of a file from `start` on. */
void map_at(struct world *world, int32_t pid, const char *path, uint64_t start, uint64_t time_ns);

/* A sample of CPU 5, whose thread is the leader. Returns whether it was uncertain. */
bool take_sample(struct world *world, int32_t pid, uint64_t time_ns, const uint64_t *stack,
                 size_t count);

/* The same in low() of the program of run(). */
static inline bool sample_low(struct world *world, int32_t pid, uint64_t time_ns)
{
    return take_sample(world, pid, time_ns, (const uint64_t[]){0x7001010}, 1);
}

#define STORY(name) TEST_OF(struct world *world, name, set_up, tear_down)
