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

struct profile_tables {
    struct names names;
    struct mappings mappings;
    struct symbols symbols;
    struct owners owners;
    uint64_t *first_ns; /* owned; by segment: of its first sample of any event, or UINT64_MAX */
    size_t first_capacity;
    size_t first_count;
};
