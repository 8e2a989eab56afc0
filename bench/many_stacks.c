/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Writes a recording to standard output, for benches of what reads it: as many samples as it is
 * told, of as many different stacks, which are shared out among 16 processes. Stacks are 6 to 21
 * frames deep and have the more of their outer frames in common, the further out they are.
 */
#include "fxt_writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define PROCESSES      UINT64_C(16)
#define DEPTH_MIN      6
#define DEPTH_RANGE    16
#define START          UINT64_C(0x400000)
#define CODE_BYTES     UINT64_C(0x1000000)
#define FUNCTIONS      UINT64_C(1024) /* of a process */
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

static void write_processes(struct fxt_writer *writer)
{
    for (uint64_t pid = 1; pid <= PROCESSES; pid++) {
        char name[16];
        int bytes = snprintf(name, sizeof name, "program-%u", (unsigned)pid);
        const struct fxt_name process = {.pid = pid,
                                         .name = {.text = name, .text_bytes = (size_t)bytes}};
        const struct fxt_module module = {
            .pid = pid, .module_id = 1, .name = name, .name_bytes = (size_t)bytes};
        const struct fxt_mmap mapping = {
            .pid = pid, .module_id = 1, .flags = 5, .start = START, .size_bytes = CODE_BYTES};
        fxt_write_name(writer, &process);
        fxt_write_module(writer, &module);
        fxt_write_mmap(writer, &mapping);
        write_functions(writer, name);
    }
}

/* Returns the stack's depth. A frame is one of 1, 4, 16, ... from the root on. */
static size_t make_stack(uint64_t number, uint64_t *stack)
{
    size_t depth = DEPTH_MIN + mix(number) % DEPTH_RANGE;
    for (size_t i = 0; i < depth; i++) {
        uint64_t among = i < 10 ? UINT64_C(1) << (2 * i) : UINT64_MAX;
        stack[depth - 1 - i] =
            START + mix(number % among + i) % (CODE_BYTES / CALL_BYTES) * CALL_BYTES;
    }
    stack[0] = START + number * CALL_BYTES % CODE_BYTES;
    return depth;
}

int main(int argc, char **argv)
{
    static uint64_t memory[PIECE_BYTES / sizeof(uint64_t)];
    struct fxt_writer writer;
    uint64_t sample_count = argc == 3 ? strtoull(argv[1], NULL, 10) : 0;
    uint64_t stack_count = argc == 3 ? strtoull(argv[2], NULL, 10) : 0;
    if (sample_count == 0 || stack_count == 0) {
        (void)fprintf(stderr, "usage: many_stacks SAMPLES STACKS\n");
        return 2;
    }
    fxt_writer_init(&writer, memory, sizeof memory);
    fxt_write_segment_begin(&writer, 1, "many_stacks");
    write_processes(&writer);
    for (uint64_t i = 0; i < sample_count; i++) {
        uint64_t stack[DEPTH_MIN + DEPTH_RANGE];
        uint64_t number = mix(i) % stack_count;
        struct fxt_sample sample = {
            .fields = FXT_SAMPLE_PID | FXT_SAMPLE_TID | FXT_SAMPLE_BOOT_TS | FXT_SAMPLE_CPU |
                      FXT_SAMPLE_USER_STACK | FXT_SAMPLE_QUALITY,
            .pid = 1 + number % PROCESSES,
            .tid = 1 + number % PROCESSES,
            .boot_ts_ns = (i + 1) * PERIOD_NS,
            .quality = 1,
            .user_stack = stack,
            .user_count = make_stack(number, stack),
        };
        fxt_write_sample(&writer, &sample);
        if (writer.used_bytes > PIECE_BYTES - 4096) {
            flush(&writer);
        }
    }
    flush(&writer);
    return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
