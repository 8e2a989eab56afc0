/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One kernel record's bytes -> a typed view into them. Pure; every length is checked before use, so
 * any bytes at all give either a view inside the record or -EBADMSG.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What the events were opened with, which decides how their records are laid out. All of them have
 * sample_id_all.
 */
struct perf_record_layout {
    uint64_t sample_type;    /* attr.sample_type */
    uint64_t user_regs_mask; /* attr.sample_regs_user */
    size_t read_words;     /* that attr.read_format makes, with PERF_SAMPLE_READ; the count first */
    size_t follower_count; /* with PERF_FORMAT_GROUP: events that are counted with this one, at most
                            * PERF_FOLLOWERS_MAX; 0: another format */
};

#define PERF_FOLLOWERS_MAX 7

/* Words that a reading with PERF_FORMAT_GROUP begins with: how many events, and the two times. */
#define PERF_GROUP_HEAD_WORDS 3

/*
 * `sample_type` may have PERF_SAMPLE_IDENTIFIER, IP, TID, TIME, ADDR, ID, STREAM_ID, CPU, PERIOD,
 * READ, CALLCHAIN, REGS_USER, STACK_USER and CGROUP; anything else is a mistake of the caller's,
 * who sets read_words with READ: of a group the head, and as many words for each of its events.
 */
struct perf_record_layout perf_record_layout_make(uint64_t sample_type, uint64_t user_regs_mask);

enum perf_record_kind {
    PERF_KIND_SAMPLE,
    PERF_KIND_MMAP, /* MMAP2 */
    PERF_KIND_COMM,
    PERF_KIND_FORK,
    PERF_KIND_EXIT,
    PERF_KIND_LOST,
    PERF_KIND_THROTTLE,
    PERF_KIND_UNTHROTTLE,
    PERF_KIND_SWITCH, /* SWITCH_CPU_WIDE */
    PERF_KIND_DEFERRED_CALLCHAIN,
    PERF_KIND_KSYMBOL, /* code that the kernel was given, or got rid of */
    PERF_KIND_CGROUP,  /* a control group was made */
    PERF_KIND_OTHER,   /* of a type that we do not use */
};

enum perf_cpu_mode {
    PERF_MODE_UNKNOWN,
    PERF_MODE_KERNEL,
    PERF_MODE_USER,
    PERF_MODE_OTHER, /* hypervisor, guest */
};

#define PERF_BUILD_ID_BYTES_MAX 20

/* What the followers of a sample's event have counted, in the order of their events. */
struct perf_followed {
    uint32_t first; /* the index of the first one's event, where the reader sets it */
    uint32_t count;
    uint64_t values[PERF_FOLLOWERS_MAX]; /* since they were opened; then how much of that is this
                                          * sample's, where the reader sets it */
};

struct perf_sample_view {
    const uint64_t *kernel_chain; /* without the context markers; leaf first; NULL: none */
    size_t kernel_count;
    const uint64_t *user_chain; /* ends before a word that is no address but a context marker */
    size_t user_count;
    bool deferred; /* the user chain will come in a record of its own */
    uint64_t deferred_cookie;
    bool has_user_regs;
    uint64_t user_regs_abi;    /* PERF_SAMPLE_REGS_ABI_* */
    const uint64_t *user_regs; /* one word for each bit of the mask */
    size_t user_regs_count;
    const uint8_t *user_stack; /* the copied bytes, from the stack pointer up */
    size_t user_stack_bytes;   /* those that are valid (dyn_size) */
    uint64_t cgroup_id;        /* of the task; 0 where the layout has none */
    uint64_t counted;          /* what the event has counted since it was opened; 0 where the layout
                                * has none */
    uint64_t weight;           /* how much of that is this sample's, where its reader sets it */
    struct perf_followed followed; /* with it */
    uint64_t wait;       /* the wait that begins with it, where its reader sets it; 0: none */
    bool user_stack_cut; /* all the room for the copy is full, so the stack may go on above;
                          * else the kernel could read no further: no memory, or a page
                          * that is not present */
};

struct perf_mmap_view {
    uint64_t start;
    uint64_t size_bytes;
    uint64_t file_offset;
    bool executable;
    bool has_build_id; /* else device, inode and generation */
    uint8_t build_id_bytes;
    uint8_t build_id[PERF_BUILD_ID_BYTES_MAX];
    uint32_t device_major;
    uint32_t device_minor;
    uint64_t inode;
    uint64_t inode_generation;
    const char *path; /* NUL-terminated inside the record */
};

struct perf_record {
    enum perf_record_kind kind;
    enum perf_cpu_mode mode;
    /* 0 where the layout has no such id; other records than samples have them in a trailer, which a
     * PERF_KIND_OTHER may lack. */
    uint64_t event_id; /* of the event that wrote it */
    uint32_t event;    /* of a sample: the index of that event, where its reader sets it */
    int32_t pid;       /* the task that the record is about: of FORK the child */
    int32_t tid;
    uint64_t time_ns;
    uint32_t cpu;
    union {
        struct perf_sample_view sample;
        struct perf_mmap_view mmap;
        struct {
            const char *text; /* NUL-terminated inside the record */
            bool exec;
        } comm;
        struct {
            int32_t pid, parent_pid, tid, parent_tid;
            uint64_t time_ns; /* the record's own; the same clock */
        } task;               /* FORK and EXIT */
        struct {
            uint64_t count;
        } lost;
        struct {
            bool out;
            bool preempted;    /* out: the task could have run on */
            int32_t other_pid; /* next when out, previous when in; 0 is idle */
            int32_t other_tid;
        } context_switch;
        struct {
            uint64_t cookie;
            const uint64_t *chain; /* of the user, as in a sample */
            size_t count;
        } deferred;
        struct {
            uint64_t start;
            uint32_t size_bytes;
            bool is_bpf; /* else a trampoline or the like */
            bool gone;
            const char *name; /* NUL-terminated inside the record */
        } ksymbol;
        struct {
            uint64_t id;
            const char *path; /* from the root of its hierarchy; NUL-terminated inside the record */
        } cgroup;
    };
};

/*
 * Parses one record (borrowed, 8-byte aligned, as perf_ring_peek() shows it).
 * Returns 0, or -EBADMSG and leaves `ret` unspecified: a length does not fit.
 */
int perf_record_parse(const struct perf_record_layout *layout, const uint8_t *bytes,
                      size_t size_bytes, struct perf_record *ret);
