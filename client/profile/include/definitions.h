/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a recording defines, as it does: when a task got which name, and a process which mapping.
 * For formats that have such records themselves.
 */

#include "places.h"
#include "profile.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct defined_name {
    uint64_t since_ns;
    uint64_t pid;
    uint64_t tid;  /* of a process that of its leader */
    uint32_t text; /* of the profile's `texts` */
    bool is_process;
};

struct defined_mapping {
    uint64_t time_ns; /* from when it holds */
    uint64_t pid;
    uint64_t start;
    uint64_t last;    /* its last address */
    uint64_t address; /* the module's own of `start` */
    uint32_t module;  /* of the profile, or INTERN_NONE */
};

/* A function that the recording names. */
struct defined_function {
    uint64_t start; /* as the task has it */
    uint64_t size_bytes;
    uint32_t name; /* of the profile's `texts` */
    uint32_t zero;
};

size_t defined_name_count(const struct profile *profile);
void defined_name_at(const struct profile *profile, size_t number, struct defined_name *ret);

size_t defined_mapping_count(const struct profile *profile);
void defined_mapping_at(const struct profile *profile, size_t number, struct defined_mapping *ret);

/* The function at a place of a sample's stack. False, and nothing is written: none is named. */
bool defined_function_find(const struct profile *profile, const struct profile_sample *sample,
                           const struct stack_place *place, struct defined_function *ret);

/* How many functions the recording names. */
size_t defined_symbol_count(const struct profile *profile);

/* What stands for a segment's functions of a module; INTERN_NONE: nothing, or there is no memory to
 * look. */
uint32_t defined_symbols(const struct profile *profile, uint32_t segment, uint32_t module);

/* The name, of the profile's texts, of that module's function at its own address, or INTERN_NONE.
 */
uint32_t defined_symbol_find(const struct profile *profile, uint32_t symbols, uint64_t address);
