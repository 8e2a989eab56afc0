/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Writes a recording to standard output, for benches of what reads it: as many samples as it is
 * told, of as many different stacks, which are shared out among 16 processes. Stacks are 6 to 21
 * frames deep and have the more of their outer frames in common, the further out they are.
 *
 * With a number of processes they are those of a build: one after the other, each of one of 16
 * programs that it has at an address of its own, as ASLR has it.
 */
#include "fxt_writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define PROGRAMS       UINT64_C(16)
#define DEPTH_MIN      6
#define DEPTH_RANGE    16
#define START          UINT64_C(0x400000)   /* of the first process's code */
#define START_PAGES    UINT64_C(0x10000000) /* within so many pages begins that of another */
#define PAGE_BYTES     UINT64_C(4096)
#define CODE_BYTES     UINT64_C(0x1000000)
#define FUNCTIONS      UINT64_C(1024) /* of a program */
#define FUNCTION_BYTES (CODE_BYTES / FUNCTIONS)
#define CALL_BYTES     UINT64_C(1024) /* between two addresses that stacks have */
#define PIECE_BYTES    65536
#define PERIOD_NS      UINT64_C(250000)

/* A number that looks random, of a number. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* Writes out what the writer has, and empties it. */
static void flush(struct fxt_writer *writer)
{
    if (!fxt_writer_ok(writer) ||
        fwrite(writer->bytes, 1, writer->used_bytes, stdout) != writer->used_bytes) {
        (void)fprintf(stderr, "many_stacks: cannot write\n");
        exit(EXIT_FAILURE);
    }
    writer->used_bytes = 0;
}

static void write_functions(struct fxt_writer *writer, const char *module)
{
    for (uint64_t i = 0; i < FUNCTIONS; i++) {
        char line[160];
        int bytes = snprintf(line, sizeof line,
                             "{\"build_id\":\"\",\"module\":\"%s\",\"start\":\"0x%" PRIx64
                             "\",\"size\":%" PRIu64 ",\"name\":\"function_%" PRIu64 "\"}\n",
                             module, i * FUNCTION_BYTES, FUNCTION_BYTES, i);
        fxt_write_data(writer, FXT_STRING_SYMBOLS, line, (size_t)bytes);
        flush(writer);
    }
}

/* Where a process has its program. */
static uint64_t start_of(uint64_t pid)
{
    return pid <= PROGRAMS ? START : START + mix(pid) % START_PAGES * PAGE_BYTES;
}

static void write_process(struct fxt_writer *writer, uint64_t pid)
{
    char name[16];
    uint64_t program = (pid - 1) % PROGRAMS + 1;
    int bytes = snprintf(name, sizeof name, "program-%u", (unsigned)program);
    const struct fxt_name process = {.pid = pid,
                                     .name = {.text = name, .text_bytes = (size_t)bytes}};
    const struct fxt_module module = {
        .pid = pid, .module_id = 1, .name = name, .name_bytes = (size_t)bytes};
    const struct fxt_mmap mapping = {
        .pid = pid, .module_id = 1, .flags = 5, .start = start_of(pid), .size_bytes = CODE_BYTES};
    fxt_write_name(writer, &process);
    fxt_write_module(writer, &module);
    fxt_write_mmap(writer, &mapping);
    if (pid <= PROGRAMS) {
        write_functions(writer, name);
    }
    flush(writer);
}

/* Returns the stack's depth. A frame is one of 1, 4, 16, ... from the root on. */
static size_t make_stack(uint64_t number, uint64_t start, uint64_t *stack)
{
    size_t depth = DEPTH_MIN + mix(number) % DEPTH_RANGE;
    for (size_t i = 0; i < depth; i++) {
        uint64_t among = i < 10 ? UINT64_C(1) << (2 * i) : UINT64_MAX;
        stack[depth - 1 - i] =
            start + mix(number % among + i) % (CODE_BYTES / CALL_BYTES) * CALL_BYTES;
    }
    stack[0] = start + number * CALL_BYTES % CODE_BYTES;
    return depth;
}

static void write_sample(struct fxt_writer *writer, uint64_t at, uint64_t number, uint64_t pid)
{
    uint64_t stack[DEPTH_MIN + DEPTH_RANGE];
    struct fxt_sample sample = {
        .fields = FXT_SAMPLE_PID | FXT_SAMPLE_TID | FXT_SAMPLE_BOOT_TS | FXT_SAMPLE_CPU |
                  FXT_SAMPLE_USER_STACK | FXT_SAMPLE_QUALITY,
        .pid = pid,
        .tid = pid,
        .boot_ts_ns = (at + 1) * PERIOD_NS,
        .quality = 1,
        .user_stack = stack,
        .user_count = make_stack(number, start_of(pid), stack),
    };
    fxt_write_sample(writer, &sample);
    if (writer->used_bytes > PIECE_BYTES - 4096) {
        flush(writer);
    }
}

int main(int argc, char **argv)
{
    static uint64_t memory[PIECE_BYTES / sizeof(uint64_t)];
    struct fxt_writer writer;
    uint64_t sample_count = argc >= 3 ? strtoull(argv[1], NULL, 10) : 0;
    uint64_t stack_count = argc >= 3 ? strtoull(argv[2], NULL, 10) : 0;
    uint64_t process_count = argc >= 4 ? strtoull(argv[3], NULL, 10) : PROGRAMS;
    if (argc > 4 || sample_count == 0 || stack_count == 0 || process_count < PROGRAMS) {
        (void)fprintf(stderr, "usage: many_stacks SAMPLES STACKS [PROCESSES]\n");
        return 2;
    }
    fxt_writer_init(&writer, memory, sizeof memory);
    fxt_write_segment_begin(&writer, 1, "many_stacks");
    for (uint64_t pid = 1; pid <= process_count; pid++) {
        write_process(&writer, pid);
    }
    for (uint64_t i = 0; i < sample_count; i++) {
        uint64_t number = mix(i) % stack_count;
        /* Processes come one after the other, and each has stacks of its program. */
        uint64_t round = i * (process_count / PROGRAMS) / sample_count;
        write_sample(&writer, i, number, 1 + number % PROGRAMS + round * PROGRAMS);
    }
    flush(&writer);
    return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
