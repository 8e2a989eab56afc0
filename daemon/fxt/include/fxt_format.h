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
    FXT_STRING_PROCESSES,   /* "cpu-profilerd.processes" */
    FXT_STRING_FIRST_FREE,
};
#define FXT_STRING_INDEX_MAX 32767

/* The text of a known string, NUL-terminated; "" for what is none. */
const char *fxt_known_string_text(enum fxt_known_string string);

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
#define FXT_SAMPLE_WEIGHT                  (UINT64_C(1) << 60)
#define FXT_SAMPLE_EVENT                   (UINT64_C(1) << 59)

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
    uint64_t weight;  /* how many periods of its event the sample counts for; without the field 1 */
    uint64_t event;   /* index of the event; without the field 0, the clock */
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

/*
 * From here on, positions of bits. A field is written as the format writes it, [first .. last] of a
 * 64-bit little-endian word, and is a mask; fxt_put() and fxt_get() move a value in and out of it.
 * `..._RESERVED` are the bits that must be 0. Each block cites its section of "Fuchsia trace
 * format" (docs/reference/tracing/trace-format.md of the Fuchsia source).
 */
#define FXT_BITS(first, last) ((UINT64_MAX >> (63 - (last))) & (UINT64_MAX << (first)))

static inline uint64_t fxt_put(uint64_t field, uint64_t value)
{
    return (value << __builtin_ctzll(field)) & field;
}

static inline uint64_t fxt_get(uint64_t word, uint64_t field)
{
    return (word & field) >> __builtin_ctzll(field);
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "stacks are handed out where they stand");

#define FXT_WORD_BYTES ((size_t)8)

/* "Record header"; type 15 is "Large record", which this project neither writes nor reads. */
#define FXT_HEADER_TYPE      FXT_BITS(0, 3)
#define FXT_HEADER_WORDS     FXT_BITS(4, 15)
#define FXT_RECORD_WORDS_MAX ((size_t)4095)
enum fxt_type {
    FXT_TYPE_METADATA = 0,
    FXT_TYPE_INITIALIZATION = 1,
    FXT_TYPE_STRING = 2,
    FXT_TYPE_THREAD = 3,
    FXT_TYPE_EVENT = 4,
    FXT_TYPE_BLOB = 5,
    FXT_TYPE_KERNEL_OBJECT = 7,
    FXT_TYPE_PROFILER = 10,
    FXT_TYPE_LARGE = 15,
};

/* "String reference": 0 is the empty string, the top bit says that the text stands in the record.
 */
#define FXT_REFERENCE_INLINE     ((uint16_t)0x8000)
#define FXT_REFERENCE_BYTES_MASK ((uint16_t)0x7fff)

/* Ours: the longest string that the writer takes. */
#define FXT_STRING_BYTES_MAX ((size_t)4096)

/* "Metadata record", "Provider info metadata", "Provider section metadata", "Trace info metadata".
 */
#define FXT_METADATA_KIND           FXT_BITS(16, 19)
#define FXT_PROVIDER_ID             FXT_BITS(20, 51)
#define FXT_PROVIDER_NAME_BYTES     FXT_BITS(52, 59)
#define FXT_PROVIDER_NAME_BYTES_MAX ((size_t)255)
#define FXT_PROVIDER_RESERVED       FXT_BITS(60, 63)
#define FXT_SECTION_RESERVED        FXT_BITS(52, 63)
#define FXT_TRACE_INFO_KIND         FXT_BITS(20, 23)
#define FXT_TRACE_INFO_KIND_MAGIC   0
#define FXT_MAGIC_WORD              UINT64_C(0x0016547846040010) /* "Magic number record" */
enum fxt_metadata {
    FXT_METADATA_PROVIDER_INFO = 1,
    FXT_METADATA_PROVIDER_SECTION = 2,
    FXT_METADATA_TRACE_INFO = 4,
};

/* "Initialization record" */
#define FXT_INITIALIZATION_RESERVED FXT_BITS(16, 63)
#define FXT_TICKS_PER_SECOND        UINT64_C(1000000000)

/* "String record" */
#define FXT_STRING_RECORD_INDEX    FXT_BITS(16, 30)
#define FXT_STRING_RECORD_BYTES    FXT_BITS(32, 46)
#define FXT_STRING_RECORD_RESERVED (FXT_BITS(31, 31) | FXT_BITS(47, 63))

/* "Thread record", "Thread reference": 0 means that process and thread stand in the record. */
#define FXT_THREAD_INDEX     FXT_BITS(16, 23)
#define FXT_THREAD_INDEX_MAX 255
#define FXT_THREAD_RESERVED  FXT_BITS(24, 63)

/* "Event record", "Duration complete event". */
#define FXT_EVENT_KIND                   FXT_BITS(16, 19)
#define FXT_EVENT_KIND_DURATION_COMPLETE 4
#define FXT_EVENT_ARGUMENT_COUNT         FXT_BITS(20, 23)
#define FXT_EVENT_THREAD                 FXT_BITS(24, 31)
#define FXT_EVENT_CATEGORY               FXT_BITS(32, 47)
#define FXT_EVENT_NAME                   FXT_BITS(48, 63)

/* "Arguments", "Argument header", "Argument types". */
#define FXT_ARGUMENT_TYPE         FXT_BITS(0, 3)
#define FXT_ARGUMENT_WORDS        FXT_BITS(4, 15)
#define FXT_ARGUMENT_NAME         FXT_BITS(16, 31)
#define FXT_ARGUMENT_UINT32_VALUE FXT_BITS(32, 63)
enum fxt_argument {
    FXT_ARGUMENT_UINT32 = 2,
    FXT_ARGUMENT_UINT64 = 4,
    FXT_ARGUMENT_KOID = 8,
};

/* "Blob record", "Blob types"; SAMPLE is ours, one of the unassigned numbers. */
#define FXT_BLOB_NAME          FXT_BITS(16, 31)
#define FXT_BLOB_PAYLOAD_BYTES FXT_BITS(32, 46)
#define FXT_BLOB_TYPE          FXT_BITS(48, 55)
#define FXT_BLOB_RESERVED      (FXT_BITS(47, 47) | FXT_BITS(56, 63))
enum fxt_blob {
    FXT_BLOB_DATA = 1,
    FXT_BLOB_SAMPLE = 0x80,
};

/* "Kernel object record"; the kinds are ZX_OBJ_TYPE_*. */
#define FXT_OBJECT_KIND           FXT_BITS(16, 23)
#define FXT_OBJECT_NAME           FXT_BITS(24, 39)
#define FXT_OBJECT_ARGUMENT_COUNT FXT_BITS(40, 43)
#define FXT_OBJECT_RESERVED       FXT_BITS(44, 63)
enum fxt_object {
    FXT_OBJECT_PROCESS = 1,
    FXT_OBJECT_THREAD = 2,
};

/* "Profiler record", "Module record", "Mmap record". */
#define FXT_PROFILER_KIND         FXT_BITS(16, 19)
#define FXT_PROFILER_THREAD       FXT_BITS(20, 27)
#define FXT_PROFILER_MODULE_ID    FXT_BITS(28, 43)
#define FXT_MODULE_NAME_BYTES     FXT_BITS(44, 51)
#define FXT_MODULE_BUILD_ID_BYTES FXT_BITS(52, 59)
#define FXT_MODULE_TEXT_BYTES_MAX ((size_t)255) /* of the name and of the build-id */
#define FXT_MODULE_RESERVED       FXT_BITS(60, 63)
#define FXT_MMAP_FLAGS            FXT_BITS(44, 46)
#define FXT_MMAP_FLAGS_MAX        7
#define FXT_MMAP_RESERVED         FXT_BITS(47, 63)
enum fxt_profiler {
    FXT_PROFILER_MODULE = 0,
    FXT_PROFILER_MMAP = 1,
};

/* Every field of a SAMPLE blob that there is. */
#define FXT_SAMPLE_FIELDS_KNOWN                                                                    \
    (FXT_SAMPLE_CONTINUATION | FXT_SAMPLE_CONTINUATION_COMPLETION | FXT_SAMPLE_PID |               \
     FXT_SAMPLE_TID | FXT_SAMPLE_BOOT_TS | FXT_SAMPLE_USER_STACK | FXT_SAMPLE_CPU |                \
     FXT_SAMPLE_KERNEL_STACK | FXT_SAMPLE_QUALITY | FXT_SAMPLE_WEIGHT | FXT_SAMPLE_EVENT)
