/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a recording says of its processes, their owners and mappings and its modules' functions:
 * filled while it is loaded, sealed then, and looked up by resolving.
 */

#include "mappings.h"
#include "names.h"
#include "owners.h"
#include "symbols.h"

/* When a segment was sampled. */
struct sampled_time {
    uint64_t first_ns; /* of its samples of any event, as the next; UINT64_MAX: there is none */
    uint64_t last_ns;
};

struct profile_tables {
    struct names names;
    struct mappings mappings;
    struct symbols symbols;
    struct owners owners;
    struct sampled_time *sampled; /* owned; by segment */
    size_t sampled_capacity;
    size_t sampled_count;
};
