/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Small recordings in memory for tests, written with the project's writer, whose bytes other tests
 * prove.
 */

#include "fxt_writer.h"
#include "profile.h"
#include "unit_test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define COMPLETE  UINT64_C(1) /* qualities */
#define TRUNCATED UINT64_C(4)

struct recording {
    uint64_t memory[65536];
    struct fxt_writer writer;
};

static inline struct recording *recording_new(void)
{
    struct recording *recording = calloc(1, sizeof *recording);
    assert_non_null(recording);
    fxt_writer_init(&recording->writer, recording->memory, sizeof recording->memory);
    fxt_write_segment_begin(&recording->writer, 1, "test");
    return recording;
}

static inline void add_name(struct recording *recording, uint64_t pid, uint64_t tid,
                            uint64_t since_ns, const char *name)
{
    fxt_write_name(&recording->writer,
                   &(struct fxt_name){.pid = pid,
                                      .tid = tid,
                                      .since_ns = since_ns,
                                      .name = {.text = name, .text_bytes = strlen(name)}});
}

/* The build-id is the single byte `build_id`, 0: none. */
static inline void add_module(struct recording *recording, uint64_t pid, uint16_t id,
                              const char *name, uint8_t build_id)
{
    fxt_write_module(&recording->writer, &(struct fxt_module){.pid = pid,
                                                              .module_id = id,
                                                              .name = name,
                                                              .name_bytes = strlen(name),
                                                              .build_id = &build_id,
                                                              .build_id_bytes = build_id != 0});
}

static inline void add_mmap(struct recording *recording, uint64_t time_ns, uint64_t pid,
                            uint16_t id, uint64_t start, uint64_t size_bytes, uint64_t vaddr)
{
    fxt_write_mmap(&recording->writer, &(struct fxt_mmap){.time_ns = time_ns,
                                                          .pid = pid,
                                                          .module_id = id,
                                                          .flags = 5,
                                                          .start = start,
                                                          .size_bytes = size_bytes,
                                                          .vaddr = vaddr});
}

/* A sample of CPU 1 with a user stack of `count` addresses, leaf first. */
static inline struct fxt_sample user_sample(uint64_t time_ns, uint64_t pid, uint64_t quality,
                                            const uint64_t *stack, size_t count)
{
    return (struct fxt_sample){.fields = FXT_SAMPLE_PID | FXT_SAMPLE_TID | FXT_SAMPLE_BOOT_TS |
                                         FXT_SAMPLE_USER_STACK | FXT_SAMPLE_CPU |
                                         FXT_SAMPLE_QUALITY,
                               .pid = pid,
                               .tid = pid,
                               .boot_ts_ns = time_ns,
                               .cpu = 1,
                               .quality = quality,
                               .user_stack = stack,
                               .user_count = count};
}

#define ADDRESSES(...) ROWS_OF(uint64_t, __VA_ARGS__)

static inline void add_sample(struct recording *recording, uint64_t time_ns, uint64_t pid,
                              uint64_t quality, const uint64_t *stack, size_t count)
{
    struct fxt_sample sample = user_sample(time_ns, pid, quality, stack, count);
    fxt_write_sample(&recording->writer, &sample);
}

/* A part of group `id`, and what completes it. */
static inline struct fxt_sample partial(uint64_t time_ns, uint64_t id)
{
    return (struct fxt_sample){.fields = FXT_SAMPLE_CONTINUATION | FXT_SAMPLE_PID | FXT_SAMPLE_TID |
                                         FXT_SAMPLE_BOOT_TS,
                               .continuation = id,
                               .pid = 7,
                               .tid = 7,
                               .boot_ts_ns = time_ns};
}

static inline struct fxt_sample completion(uint64_t id, const uint64_t *stack, size_t count)
{
    return (struct fxt_sample){.fields = FXT_SAMPLE_CONTINUATION_COMPLETION |
                                         FXT_SAMPLE_USER_STACK | FXT_SAMPLE_QUALITY,
                               .continuation_completion = id,
                               .user_stack = stack,
                               .user_count = count,
                               .quality = COMPLETE};
}

/* Adds a sample with the stacks of some words: the user's and, behind a "|", the kernel's. */
static inline void add_stacks(struct recording *recording, struct fxt_sample sample,
                              char *const *words, const uint64_t *numbers, size_t count)
{
    size_t user_count = 0;
    while (user_count < count && strcmp(words[user_count], "|") != 0) {
        user_count++;
    }
    sample.user_stack = numbers;
    sample.user_count = user_count;
    sample.fields |= user_count > 0 ? FXT_SAMPLE_USER_STACK : 0;
    if (user_count < count) {
        sample.fields |= FXT_SAMPLE_KERNEL_STACK;
        sample.kernel_stack = numbers + user_count + 1;
        sample.kernel_count = count - user_count - 1;
    }
    fxt_write_sample(&recording->writer, &sample);
}

static inline void add_data(struct recording *recording, enum fxt_known_string name,
                            const char *lines)
{
    fxt_write_data(&recording->writer, name, lines, strlen(lines));
}

static inline void add_symbol(struct recording *recording, const char *build_id, const char *module,
                              const char *start, const char *name, uint64_t size)
{
    char line[256];
    (void)snprintf(line, sizeof line,
                   "{\"build_id\":\"%s\",\"module\":\"%s\",\"start\":\"%s\",\"size\":%llu,"
                   "\"name\":\"%s\"}\n",
                   build_id, module, start, (unsigned long long)size, name);
    add_data(recording, FXT_STRING_SYMBOLS, line);
}

/* Adds the record of a line, which is cut into words. Numbers are as in C. */
static inline void add_line(struct recording *recording, char *line)
{
    char *words[12] = {NULL};
    uint64_t numbers[12] = {0};
    size_t count = 0;
    for (char *word = strtok(line, " \n"); word != NULL; word = strtok(NULL, " \n")) {
        assert_in_range(count, 0, COUNT_OF(words) - 1);
        numbers[count] = strtoull(word, NULL, 0);
        words[count++] = word;
    }
    if (strcmp(words[0], "name") == 0) {
        add_name(recording, numbers[1], numbers[2], numbers[3], words[4]);
    } else if (strcmp(words[0], "module") == 0) {
        add_module(recording, numbers[1], (uint16_t)numbers[2], words[3], (uint8_t)numbers[4]);
    } else if (strcmp(words[0], "mmap") == 0) {
        add_mmap(recording, numbers[1], numbers[2], (uint16_t)numbers[3], numbers[4], numbers[5],
                 numbers[6]);
    } else if (strcmp(words[0], "symbol") == 0) {
        add_symbol(recording, words[1], words[2], words[3], words[4], count > 5 ? numbers[5] : 16);
    } else if (strcmp(words[0], "sample") == 0) {
        add_stacks(recording, user_sample(numbers[1], numbers[2], numbers[3], NULL, 0), words + 4,
                   numbers + 4, count - 4);
    } else if (strcmp(words[0], "partial") == 0) {
        struct fxt_sample part = partial(numbers[1], numbers[3]);
        part.pid = numbers[2];
        add_stacks(recording, part, words + 4, numbers + 4, count - 4);
    } else if (strcmp(words[0], "completion") == 0) {
        add_stacks(recording, completion(numbers[1], NULL, 0), words + 2, numbers + 2, count - 2);
    } else {
        assert_string_equal(words[0], "segment");
        fxt_write_segment_begin(&recording->writer, (uint32_t)numbers[1], "test");
    }
}

/*
 * Adds what lines say, which ";" parts:
 *     name PID TID SINCE NAME; module PID ID NAME [BUILD-ID]; mmap TIME PID ID START SIZE VADDR;
 *     symbol BUILD-ID MODULE START NAME [SIZE]; segment PROVIDER; sample TIME PID QUALITY STACKS;
 *     partial TIME PID ID STACKS; completion ID STACKS
 * STACKS are addresses of the user's and, behind a "|", of the kernel's.
 */
static inline void add_lines(struct recording *recording, const char *lines)
{
    char line[256];
    while (*lines != '\0') {
        size_t bytes = strcspn(lines, ";");
        (void)snprintf(line, sizeof line, "%.*s", (int)bytes, lines);
        add_line(recording, line);
        lines += bytes + (lines[bytes] == ';');
    }
}

static inline struct recording *recording_of(const char *lines)
{
    struct recording *recording = recording_new();
    add_lines(recording, lines);
    return recording;
}

/* Loads and frees the recording. */
static inline struct profile *load_recording(struct recording *recording)
{
    struct profile *profile = NULL;
    struct fault fault = {0};
    assert_true(fxt_writer_ok(&recording->writer));
    int r = profile_load_memory((const uint8_t *)recording->memory, recording->writer.used_bytes,
                                NULL, &profile, &fault);
    free(recording);
    if (r < 0) {
        fail_msg("%s", fault.text);
    }
    return profile;
}
