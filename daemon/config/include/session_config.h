/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The JSON text of a session config -> values with every default filled in, or a fault that names
 * the member, what is wrong with it and what is allowed. Pure; bounded; refuses unknown, repeated
 * and contradicting members. The same function serves Create and `profctl check`.
 */

#include "fault.h"
#include "session_events.h"
#include "session_notes.h"
#include "session_off_cpu.h"
#include "session_targets.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SESSION_CONFIG_BYTES_MAX ((size_t)65536)
#define SESSION_CPUS_BYTES       256

#define SESSION_FREQUENCY_HZ_MAX     100000
#define SESSION_STACK_COPY_BYTES_MIN 512
#define SESSION_STACK_COPY_BYTES_MAX 65000
#define SESSION_DURATION_S_MAX       31536000
#define SESSION_SAMPLE_BYTES         256 /* what a sample takes in a buffer, as sizes reckon */

/* How user stacks are found; the values are those of "unwind". */
enum session_unwind {
    SESSION_UNWIND_FP,   /* the kernel's frame-pointer chains */
    SESSION_UNWIND_AUTO, /* a copy of each stack: call-frame information, else frame pointers */
    SESSION_UNWIND_CFI,  /* a copy of each stack: call-frame information alone */
};

/* Where a config has no "unwind". The schema and docs/session-config.md say the same. */
#define SESSION_UNWIND_DEFAULT SESSION_UNWIND_AUTO

struct session_config {
    uint64_t period_ns;       /* "sample_period_ns", or sampling_period_ns() of "frequency_hz" */
    uint32_t frequency_hz;    /* as it was asked for; 999; 0 with "sample_period_ns" */
    uint16_t max_stack_depth; /* 1-510; 127 */
    enum session_unwind unwind;
    uint32_t stack_copy_bytes; /* a multiple of 8, 512-65,000; by rate; with fp always 0 */
    bool rate_is_default;      /* no text asked for it, which holds for the next two too: */
    bool unwind_is_default;    /* a session may do with less */
    bool stack_copy_is_default;
    bool kernel_stacks;             /* false */
    bool kernel_threads;            /* true */
    bool exclude_self;              /* true */
    uint32_t buffer_kib_per_cpu;    /* 256-4,194,304; rate x min(max_duration_s, 60) x 256 bytes, at
                                       least 8,192 */
    uint32_t max_duration_s;        /* 1-31,536,000; 0: none */
    char cpus[SESSION_CPUS_BYTES];  /* a list for cpu_list_parse(); "": all that are online */
    struct session_targets targets; /* none: everything */
    struct session_events events;
    struct session_off_cpu off_cpu; /* off */
    uint32_t max_event_rate_hz;     /* the administrator's: no member */
    struct session_notes notes;     /* what the parser has to say of the values */
};

/* What the administrator lets a session have; daemon_config.h reads it from his file. */
struct session_limits {
    const char *path;              /* of that file, for faults; borrowed */
    uint32_t max_frequency_hz;     /* 1-100,000 */
    bool max_frequency_is_default; /* the file says nothing of it */
    uint32_t max_stack_copy_bytes; /* a multiple of 8, 512-65,000; 0: none, frame pointers alone */
    uint32_t max_duration_s;       /* 0: any, or none */
    bool allow_kernel_stacks;
    unsigned allowed_events;        /* a bit for each event_kind */
    bool allowed_events_is_default; /* as above */
    uint32_t max_event_rate_hz;     /* samples a second of all events beside the clock on a CPU; 0:
                                     * any */
};
extern const struct session_limits session_no_limits;

/*
 * `detached` decides the default of max_duration_s (600, else none). Whatever a text asks for above
 * a limit is a fault that names the limit and its file; defaults give way. Returns 0, -EINVAL with
 * a fault that always names a member ("config" for the text as a whole), or -ENOMEM.
 */
int session_config_parse_within(const char *text, size_t text_bytes, bool detached,
                                const struct session_limits *limits, struct session_config *ret,
                                struct fault *reterr);
/* The same within session_no_limits. */
int session_config_parse(const char *text, size_t text_bytes, bool detached,
                         struct session_config *ret, struct fault *reterr);

/*
 * The config with all defaults, as the JSON object that Status and the file show; it parses back to
 * the same values. Returned: free(). NULL when there is no memory.
 */
char *session_config_print(const struct session_config *config);
