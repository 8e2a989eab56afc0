/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the writer and the reader share: the values that pass between them and their callers. Bit
 * positions and limits, each citing its section of the Fuchsia trace format, stand below them.
 * docs/trace-format.md is the normative page of this project.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Indices of the strings that every segment of ours defines first, in this order. */
enum fxt_known_string {
    FXT_STRING_PROCESS = 1, /* "process": the argument of a thread's name */
    FXT_STRING_SINCE,       /* "boot_ts_ns": the argument that says from when a name holds */
    FXT_STRING_META,        /* "kernel:meta" */
    FXT_STRING_DROP_STATS,  /* "drop_stats" */
    FXT_STRING_NUM_RECORDS, /* "num_records" */
    FXT_STRING_NUM_BYTES,   /* "num_bytes" */
    FXT_STRING_SESSION,     /* "cpu-profilerd.session": names of Data blobs, here and below */
    FXT_STRING_SYMBOLS,     /* "cpu-profilerd.symbols" */
    FXT_STRING_BOOKS,       /* "cpu-profilerd.books" */
    FXT_STRING_FIRST_FREE,
};
#define FXT_STRING_INDEX_MAX 32767

/* A reference to a string: an index that the segment has defined, or (index 0) the text inline. */
struct fxt_string {
    uint16_t index;
    const char *text; /* UTF-8, not NUL-terminated; borrowed */
    size_t text_bytes;
};

/* Bits of a SAMPLE blob's first word: which fields follow it, in this order. 0-5 are RFC-0274's. */
#define FXT_SAMPLE_CONTINUATION            (UINT64_C(1) << 0)
#define FXT_SAMPLE_CONTINUATION_COMPLETION (UINT64_C(1) << 1)
#define FXT_SAMPLE_PID                     (UINT64_C(1) << 2)
#define FXT_SAMPLE_TID                     (UINT64_C(1) << 3)
#define FXT_SAMPLE_BOOT_TS                 (UINT64_C(1) << 4)
#define FXT_SAMPLE_USER_STACK              (UINT64_C(1) << 5)
#define FXT_SAMPLE_CPU                     (UINT64_C(1) << 63)
#define FXT_SAMPLE_KERNEL_STACK            (UINT64_C(1) << 62)
#define FXT_SAMPLE_QUALITY                 (UINT64_C(1) << 61)

/* The stacks of a record that was read point into the reader's input. */
struct fxt_sample {
    uint64_t fields; /* FXT_SAMPLE_*: which of the following are there */
    uint64_t continuation;
    uint64_t continuation_completion;
    uint64_t pid;
    uint64_t tid;
    uint64_t boot_ts_ns;
    const uint64_t *user_stack; /* leaf first */
    size_t user_count;
    uint64_t cpu;
    const uint64_t *kernel_stack; /* leaf first */
    size_t kernel_count;
    uint64_t quality; /* [0..7] enum stack_quality, [8..15] closed because, [16..31] CFI, [32..47]
                         FP frames */
};

/* Type 10, subtype 0. `name` is at most 255 bytes, `build_id` at most 255; both borrowed. */
struct fxt_module {
    uint64_t time_ns;
    uint64_t pid;
    uint16_t module_id; /* unique within the process */
    const char *name;
    size_t name_bytes;
    const uint8_t *build_id;
    size_t build_id_bytes;
};

/* Type 10, subtype 1: [start, start + size) of the process shows the module from `vaddr` on. */
struct fxt_mmap {
    uint64_t time_ns; /* from when it holds */
    uint64_t pid;
    uint16_t module_id;
    uint8_t flags; /* ELF p_flags: X 1, W 2, R 4 */
    uint64_t start;
    uint64_t size_bytes;
    uint64_t vaddr; /* the module's own (ELF) address of `start` */
};

/* Type 7: the name of a process (tid 0) or a thread, valid from `since_ns` until the next one. */
struct fxt_name {
    uint64_t pid;
    uint64_t tid; /* 0: the process */
    uint64_t since_ns;
    struct fxt_string name;
};

/* Records that one CPU could not keep, as Fuchsia's kernel reports them. */
struct fxt_drop_stats {
    uint64_t cpu;
    uint64_t first_ns;
    uint64_t last_ns;
    uint32_t record_count;
    uint32_t size_bytes;
};
