/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The first phase of a sample: whose it is, whether it is wanted, and its user stack. It asks for
 * what is missing (readings of /proc, tables of files) and writes nothing of the sample anywhere,
 * so a sample may be resolved again later. Belongs to the collector thread.
 */

#include "counters.h"
#include "perf_record.h"
#include "process_table.h"
#include "sample.h"
#include "sideband_feed.h"
#include "sink.h"
#include "user_stack.h"

#include <stdbool.h>

/* All borrowed. */
struct resolver {
    struct sideband_feed *feed;
    const struct sinks *sinks;
    struct user_stack *stack;
    bool deferring; /* chains may come in records of their own */
};

enum resolution {
    RESOLVED_NOW,   /* to be written where it is wanted, and counted elsewhere */
    RESOLVED_EARLY, /* its process has to be read from /proc first: not even whether it is wanted is
                     * known */
    RESOLVED_COLD,  /* it is wanted, and its stack needs a table that is not there yet */
};

struct resolved {
    struct sample sample;
    struct process *process; /* NULL: unknown */
    unsigned wanted;         /* the sinks that want it; 0 while that is not known */
    uint64_t awaited;        /* with RESOLVED_COLD: the file's bit, by code_map_awaited() */
    bool is_open;            /* its user stack comes later */
    bool is_cold;            /* it was unwound without a table that it needed */
    bool is_unmapped;        /* the stack led to an address in no known mapping */
};

/*
 * `wanted`: the sinks that are known to want it, 0: not known yet. With `settle` the result is
 * neither EARLY nor COLD. The frames are borrowed from the record or from the resolver's stack,
 * until the next call.
 */
enum resolution resolver_resolve(const struct resolver *resolver, const struct perf_record *record,
                                 unsigned wanted, bool settle, struct resolved *ret);
