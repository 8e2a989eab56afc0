/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What samples refer to, by numbers (iids) that mean something until the sequence begins anew:
 * names, modules, frames, stacks. Each is gathered for a packet when its number is first asked for.
 */

#include "locations.h"
#include "perfetto_sequence.h"
#include "profile.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum perfetto_string {
    STRING_FUNCTION,
    STRING_BUILD_ID,
    STRING_PATH,
    STRING_SOURCE,
    STRING_KINDS,
};

/* A frame that was written without a function. */
struct unnamed_frame {
    uint64_t address; /* the module's own */
    uint32_t module;
    uint32_t symbols; /* of it, defined_symbols() */
};

/* What was gathered of a module. */
struct gathered_module {
    bool is_gathered;
    uint32_t symbols; /* defined_symbols(); INTERN_NONE: names that come late are not for it */
};

struct perfetto_interned {
    const struct profile *profile;      /* borrowed */
    struct perfetto_sequence *sequence; /* borrowed; `fault` is set where memory is short */
    struct locations locations;
    struct intern strings[STRING_KINDS]; /* those that were gathered; a number is the iid less 1 */
    struct intern frames;                /* struct frame_key; likewise */
    uint64_t *frame_of;                  /* owned; by location of one line: its iid, 0: none yet */
    size_t frame_of_capacity;
    size_t frame_of_count;
    bool is_live;                    /* names may come late; the profile has one segment */
    struct gathered_module *modules; /* owned; by number of a mapping */
    size_t module_capacity;
    size_t module_count;
    size_t stack_count;  /* that were gathered: the first ones */
    uint64_t *frame_ids; /* owned; of the stack at hand */
    size_t frame_capacity;
    struct unnamed_frame *unnamed; /* owned */
    size_t unnamed_capacity;
    size_t unnamed_count;
};

void perfetto_interned_done(struct perfetto_interned *interned);

/* Forgets all numbers; frames without a function stay noted. */
void perfetto_interned_forget(struct perfetto_interned *interned);

/* The iid of a sample's stack. */
uint64_t perfetto_interned_stack(struct perfetto_interned *interned,
                                 const struct profile_sample *sample);
