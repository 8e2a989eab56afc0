/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A recording in memory, as every verb works on it: samples whose stacks are numbers, and the
 * tables that turn a stack into names. profile_load() reads the whole file and only then resolves,
 * since names, corrections of mappings and completions of samples come after what they are about.
 *
 * Texts are numbers in `texts`, stacks numbers in `stacks` and `chains`; what these stand for is
 * borrowed from the profile. Memory is a small multiple of the recording's decompressed size. Many
 * samples can share one long stack, and a short name can mean a long one. So what is made of a
 * recording is counted. Beyond PROFILE_MADE_BYTES plus PROFILE_MADE_RATIO times that size, names
 * stay as compilers wrote them, and new stacks are left out. Each process has half of what others
 * leave.
 */

#include "demangle.h"
#include "fault.h"
#include "first_samples.h"
#include "fxt_format.h"
#include "inlines.h"
#include "intern.h"
#include "profile_event.h"
#include "recording.h"
#include "thread_books.h"
#include "unnamed.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* pids that are none (docs/trace-format.md). */
#define PROFILE_PID_OUTSIDE UINT64_C(0) /* another pid namespace */
#define PROFILE_PID_EXITED  UINT64_MAX

/* Where a wait without a sample of its beginning is shown. */
#define PROFILE_NO_STACK "[no stack]"

/* A stack that a sample begins and its completion ends is cut at so many entries. */
#define PROFILE_MERGED_MAX 510

/* The limit of what is made of a recording: these bytes, plus this many times its decompressed
 * size. Where its stacks lie may take half as much again. */
#define PROFILE_MADE_BYTES (UINT64_C(64) << 20)
#define PROFILE_MADE_RATIO 16

/* All values together are at most so much. */
#define PROFILE_TOTAL_MAX ((uint64_t)INT64_MAX)

/* Some of the values of a sample's quality. */
#define PROFILE_QUALITY_COMPLETE   1
#define PROFILE_QUALITY_SHORT_COPY 2
#define PROFILE_QUALITY_DEPTH      3
#define PROFILE_QUALITY_STITCHED   6
#define PROFILE_QUALITY_UNPROVED   7

/* How a sample's user stack ends. */
enum profile_rooted {
    PROFILE_STACK_NONE,
    PROFILE_STACK_COMPLETE,
    PROFILE_STACK_TRUNCATED,
    PROFILE_STACK_STITCHED, /* brought to its root from earlier ones of its thread: no proof */
    PROFILE_STACK_UNPROVED, /* at its root, by a frame pointer that is not proved to be one */
};

/* A thread, as long as nothing of it changes. Two tasks are one if all their members are equal. */
struct profile_task {
    uint64_t pid;
    uint64_t tid;
    uint32_t segment;      /* of the file: what its pid, and its stacks' addresses, belong to */
    uint32_t process_name; /* of `texts`; set by resolving, as the next two */
    uint32_t thread_name;  /* of `texts`; INTERN_NONE where the recording has none */
    uint32_t owner;        /* for profile_owner() */
};

/* Where the time of a thread went, all runs of its session together; only where waits are recorded.
 */
struct profile_thread {
    struct profile_task task; /* by its last name and owner; in no table */
    uint64_t begin_ns;        /* by the clock of samples' times */
    uint64_t voluntary_count; /* switches */
    uint64_t involuntary_count;
    bool is_unread;      /* it had ended or was not read in time: switches alone tell its times */
    uint64_t off_cpu_ns; /* what its samples of off-cpu stand for, whichever event is shown */
    struct thread_split times;
};

/* There are millions: each byte counts. */
struct profile_sample {
    uint64_t time_ns; /* of the clock that all of the recording has; profile_wall_offset_ns() */
    uint32_t task;    /* of `tasks` */
    uint32_t cpu;
    uint32_t user_stack;   /* of `stacks`; addresses */
    uint32_t rest_stack;   /* of `stacks`; where it goes on, as others do */
    uint32_t kernel_stack; /* of `stacks` */
    uint32_t chain;        /* of `chains`; frames, leaf first, never empty; set by resolving */
    union {
        uint32_t group;   /* the continuation that it is a part of, or INTERN_NONE */
        uint32_t located; /* of `located`, in its place once it is resolved */
    };
    uint8_t quality;  /* enum stack_quality of the daemon, in the file's values */
    uint8_t closed;   /* why it has no more: 0 normal */
    bool has_quality; /* its own record told it */
    bool in_kernel;   /* it was in the kernel, whether or not its frames there are known */
};

struct profile_module {
    uint32_t name;              /* of `texts` */
    uint32_t basename;          /* of `texts` */
    uint32_t build_id;          /* of `texts`, in lower-case hex; "" where it has none */
    uint32_t debug_file;        /* of `texts`: with the debugging information, or INTERN_NONE */
    enum inlines_source source; /* of it */
    bool is_anonymous;          /* "[anon]", "[jit]": its addresses mean nothing to anybody */
    bool is_unknown;            /* "[unknown]" */
};

/* Whose a process was. Texts are numbers in `texts`, INTERN_NONE where the recording does not say.
 * Two owners are one if all their members are equal. */
struct profile_owner {
    uint32_t cgroup;    /* the path of the control group */
    uint32_t unit;      /* of systemd: of the container where there is one, else of the machine */
    uint32_t user_unit; /* of a user's own manager, which is `unit` */
    uint32_t container; /* its id */
    uint32_t runtime;   /* of the container */
    uint32_t pod;       /* the uid of the pod */
    uint32_t uid;       /* the user, or whose subordinate uid it is; PROFILE_UID_UNKNOWN */
};
#define PROFILE_UID_UNKNOWN UINT32_MAX

/* One line of a stack. Two frames are one if all their members are equal. */
struct profile_frame {
    uint32_t name;   /* of `texts` */
    uint32_t module; /* of `modules`, or INTERN_NONE */
    uint32_t is_kernel;
    uint32_t is_inlined; /* into the frame that follows */
    uint32_t file;       /* of `texts`, or INTERN_NONE; where the frame was, as `line` */
    uint32_t line;       /* 0: not known */
};

/* What completes the samples that named a continuation id. */
struct profile_group {
    uint32_t user_stack;
    uint32_t kernel_stack;
    uint32_t member_count;
    uint8_t quality;
    uint8_t closed;
    bool in_kernel;
    bool is_completed;
};

/* Samples that a CPU's buffer had no room for. */
struct profile_drop {
    uint64_t cpu;
    uint64_t first_ns; /* when the first was taken, and the last */
    uint64_t last_ns;
    uint64_t record_count;
    uint32_t segment;
};

/* By what period a session was sampled, and when. */
struct profile_session_time {
    uint64_t period_ns; /* of its clock; 0: not known */
    uint64_t length_ns; /* for how long it was sampled: by its books, else by its samples */
    uint64_t first_ns;  /* of its samples of any event, as the next */
    uint64_t last_ns;
    const char *session_json; /* borrowed, of `session_jsons`; NULL: it is not told */
    char *books_json;         /* owned; NULL: it has none, as one that was read while it ran */
    bool has_samples;         /* of any event */
    bool has_idle_task;       /* its books know idleness by switches, so pid 0 is the idle task */
};

struct profile {
    struct profile_sample *samples; /* owned; in the order of the file */
    size_t sample_capacity;
    size_t sample_count;
    struct profile_event event; /* which all samples are of */
    uint64_t *values;           /* owned; by sample: what it stands for, above 0; or NULL: 1 */
    size_t value_capacity;
    uint64_t value_total; /* where there are values; profile_total() */
    struct intern texts;
    struct intern tasks;            /* struct profile_task; of samples, and of them before they
                                     * were resolved */
    struct intern stacks;           /* arrays of uint64_t, leaf first; item 0 is the empty one */
    struct intern chains;           /* arrays of uint32_t: items of `frames` */
    struct intern frames;           /* struct profile_frame */
    struct profile_module *modules; /* owned */
    size_t module_capacity;
    size_t module_count;
    struct profile_tables *tables;  /* owned; names, mappings and symbols, for resolving */
    struct located_stacks *located; /* owned; where stacks lie, for resolving anew; or NULL */
    uint64_t read_bytes;            /* of the recording, decompressed */
    uint64_t loaded_bytes;          /* of what is made, before samples were resolved first */
    uint64_t left_out_count; /* samples that are shown without their frames, for want of room */
    uint64_t plain_count;    /* or without what debugging information says */
    bool is_resolved;        /* once; what comes then may find no room for a sample */
    struct inlines inlines;
    struct unnamed unnamed;
    struct profile_group *groups; /* owned */
    size_t group_capacity;
    size_t group_count;
    /* owned; the object of the session that has the clock, or NULL */
    char *session_json;
    char **session_jsons; /* owned, as what is in it; those of all sessions, as they came first */
    size_t session_count;
    char **event_names; /* owned, as what is in it; of the recording's events, the clock first */
    size_t event_capacity;
    size_t event_count;
    uint32_t *hosts; /* owned; by segment: of `texts`, whose it is; INTERN_NONE: it does not say */
    size_t host_count;
    /* owned; the books of all sessions as one object; NULL: a session that has samples has none */
    char *books_json;
    struct profile_session_time *session_times; /* owned; of each session */
    size_t session_time_count;
    uint32_t *session_of;          /* owned; by segment: of `session_times` */
    size_t sampled_session_count;  /* sessions that have samples, of any event */
    size_t bookless_session_count; /* those of them that have no books */
    struct profile_drop *drops;    /* owned; in the order of the file */
    size_t drop_capacity;
    size_t drop_count;
    uint64_t dropped_record_count;
    uint64_t dropped_bytes;
    uint64_t orphan_partial_count;    /* parts of samples without their completion */
    uint64_t orphan_completion_count; /* completions of nothing */
    uint64_t unknown_module_count;    /* Mmap records whose module was never told */
    uint64_t unselected_count;        /* samples that were taken away (selection.h) */
    uint64_t unselected_ns;           /* from the first sample of all, of any event, to the first
                                       * that is left */
    uint64_t first_ns;                /* of the samples; 0 when there are none */
    uint64_t last_ns;
    uint64_t from_ns; /* the part of the time that was selected (selection.h); 0: from the begin */
    uint64_t to_ns;   /* 0: to the end */
    struct profile_thread *threads; /* owned; none where a part of the time or of the code was
                                     * selected, since their times have no parts */
    size_t thread_capacity;
    size_t thread_count;
    struct intern whole_waits;   /* for wait_sums_are_whole() */
    bool has_chosen_threads;     /* some were taken away (selection.h) */
    struct first_samples firsts; /* of its segments, as the file has them */
    struct input_summary input;
};

/* A time, and how much follows it. */
struct profile_span {
    uint64_t begin_ns;
    uint64_t length_ns;
};

/* What functions are called. */
enum profile_names {
    PROFILE_NAMES_READABLE,
    PROFILE_NAMES_MANGLED, /* as compilers write them, and the file has them */
};

/*
 * Reads a recording: "-" is standard input. `event` is the one whose samples are taken, as a user
 * names it; NULL: the clock. Returned: profile_free(). Returns 0, or -errno with a sentence in
 * `reterr`. A recording that ends within a record is read up to there, and input.truncated says so.
 */
int profile_load(const char *path, enum profile_names names, const char *event,
                 struct profile **ret, struct fault *reterr);
/* The same, with readable names. */
int profile_load_memory(const uint8_t *bytes, size_t size_bytes, const char *event,
                        struct profile **ret, struct fault *reterr);
struct profile *profile_free(struct profile *profile);
void profile_freep(struct profile **profile);

/* Gives every sample its frames anew, once `inlines` has the addresses that it asked for, or knows
 * more of them. One whose process has no room for others keeps those that it has. Returns 0, or
 * -ENOMEM. */
int profile_resolve(struct profile *profile);

/* What is made of the recording by now, and what may be. */
uint64_t profile_made_bytes(const struct profile *profile);
uint64_t profile_made_bytes_max(const struct profile *profile);

/* What a sample stands for, by its number: ticks of the clock, or units of another event. */
static inline uint64_t profile_value(const struct profile *profile, size_t sample)
{
    return profile->values == NULL ? 1 : profile->values[sample];
}

/* The same of one of the profile's own. */
static inline uint64_t profile_value_of(const struct profile *profile,
                                        const struct profile_sample *sample)
{
    return profile_value(profile, (size_t)(sample - profile->samples));
}

/* From when on there was what a sample is of: a wait for as long as it stands for, up to the
 * sample; a sample of another event at its moment alone. */
static inline uint64_t profile_begin_ns(const struct profile *profile, size_t sample)
{
    uint64_t time_ns = profile->samples[sample].time_ns;
    uint64_t value_ns = profile->event.is_wait ? profile_value(profile, sample) : 0;
    return time_ns > value_ns ? time_ns - value_ns : 0;
}

/* What all samples stand for. */
static inline uint64_t profile_total(const struct profile *profile)
{
    return profile->values == NULL ? profile->sample_count : profile->value_total;
}

/* The times of all threads together. */
struct thread_split profile_threads_sum(const struct profile *profile);

/* What makes names readable; borrowed. */
struct demangler *profile_demangler(struct profile *profile);

/* A task by the number that samples have; borrowed, until tasks are added. */
static inline const struct profile_task *profile_task(const struct profile *profile, uint32_t task)
{
    size_t size_bytes = 0;
    return intern_bytes(&profile->tasks, task, &size_bytes);
}

/* An owner by the number that samples have; borrowed. Where nothing is known, no member is. */
const struct profile_owner *profile_owner(const struct profile *profile, uint32_t owner);

enum profile_label {
    PROFILE_LABEL_UNIT,      /* "nginx.service", with the container that it is in; else the path */
    PROFILE_LABEL_CONTAINER, /* "docker:0123...", "[no known container]" */
    PROFILE_LABEL_USER,      /* the name if all of the recording is of this host; else "uid 1000" */
    PROFILE_LABELS,
};

/* Whether the owner is a unit or a container, and not only a user or a control group. */
bool profile_owner_is_named(const struct profile *profile, uint32_t owner);

/* What to call the owner of a sample's process; "[unknown]" where nothing is known. Of `texts`. */
uint32_t profile_label(const struct profile *profile, const struct profile_sample *sample,
                       enum profile_label label);

/* A sample's frames, kernel and user together, leaf first. Borrowed. */
static inline const uint32_t *profile_chain(const struct profile *profile, uint32_t chain,
                                            size_t *ret_count)
{
    size_t size_bytes = 0;
    const uint32_t *frames = intern_bytes(&profile->chains, chain, &size_bytes);
    *ret_count = size_bytes / sizeof *frames;
    return frames;
}

static inline const struct profile_frame *profile_frame(const struct profile *profile,
                                                        uint32_t frame)
{
    size_t size_bytes = 0;
    return intern_bytes(&profile->frames, frame, &size_bytes);
}

static inline const char *profile_text(const struct profile *profile, uint32_t text)
{
    return intern_text(&profile->texts, text);
}

static inline enum profile_rooted profile_rooted(const struct profile_sample *sample)
{
    switch (sample->quality) {
    case 0:
        return PROFILE_STACK_NONE;
    case PROFILE_QUALITY_COMPLETE:
        return PROFILE_STACK_COMPLETE;
    case PROFILE_QUALITY_STITCHED:
        return PROFILE_STACK_STITCHED;
    case PROFILE_QUALITY_UNPROVED:
        return PROFILE_STACK_UNPROVED;
    default:
        return PROFILE_STACK_TRUNCATED;
    }
}

/* Whether the sample is of a thread of the kernel: it has no user stack, and its process never had
 * anything mapped. */
bool profile_is_kernel_thread(const struct profile *profile, const struct profile_sample *sample);

/* The name of the machine that a segment is of, as tasks have it. NULL: it is not told. Borrowed.
 */
const char *profile_host(const struct profile *profile, uint32_t segment);

/* Whether the recording is of more than one machine. */
bool profile_has_hosts(const struct profile *profile);

/* When the recording began, with its first sample of any event, and its length, which every view
 * says: of several sessions the sum of theirs. Where a part of the time was selected, both are of
 * the part. */
struct profile_span profile_span(const struct profile *profile);
/* The same of the session that a segment of the file is of. */
struct profile_span profile_session_span(const struct profile *profile, uint32_t segment);

/* The sampling period, from the books or the session; 0 when neither tells, or sessions have
 * several. */
uint64_t profile_period_ns(const struct profile *profile);

/* The same of the session that a sample of the clock is of. */
uint64_t profile_sample_period_ns(const struct profile *profile,
                                  const struct profile_sample *sample);

/* Whether that is known of all samples, so that they can be summed up as times. */
bool profile_has_periods(const struct profile *profile);

/* Whether sessions' periods are so different that numbers of samples are no measure of time. */
bool profile_periods_differ(const struct profile *profile);

/* The CPU time that all samples of the clock stand for; 0: not known. */
double profile_cpu_seconds(const struct profile *profile);

/*
 * What is to be added to times of a profile for those of the wall clock, in nanoseconds since 1970.
 * Times are of CLOCK_BOOTTIME, of sessions of several boots all by that of the machine that was
 * booted first. False, and nothing is written: a session does not say what time of the day it was;
 * then times of several sessions have nothing in common.
 */
bool profile_wall_offset_ns(const struct profile *profile, int64_t *ret);
