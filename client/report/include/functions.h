/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a frame counts as in a view. Frames that a person cannot tell apart are one function: those
 * of one name in one module, and of a profile with lines those of one line. A function without a
 * name is called by an address, which means another function in another build of the module; so
 * builds are told apart there. A view of modules takes all frames of a module for one.
 */

#include "profile.h"

#include <stdbool.h>

/* Texts are the profile's; INTERN_NONE where a member does not apply. */
struct function {
    uint32_t name;
    uint32_t module;   /* its path */
    uint32_t basename; /* the last part of that */
    uint32_t build_id; /* of the module, in hex; of a function without a name */
    uint32_t file;
    uint32_t line; /* 0: not known */
};

struct functions {
    struct intern items; /* struct function */
    uint32_t *of_frame;  /* owned; by frame of the profile: an item */
};

enum functions_unit {
    FUNCTIONS_EACH,
    FUNCTIONS_OF_MODULES, /* a module is one */
};

/* Returns 0, or -ENOMEM. Either way functions_done() releases it. */
int functions_find(const struct profile *profile, enum functions_unit unit, struct functions *ret);
void functions_done(struct functions *functions);

/* Borrowed. */
const struct function *functions_get(const struct functions *functions, uint32_t item);

/* Orders two functions as a person reads them: by name, then by module, file and line. */
int functions_compare(const struct profile *profile, const struct function *a,
                      const struct function *b);

/*
 * Whether a user who writes `wanted` means the function. The first of these readings by which any
 * function that was sampled is meant counts: the whole name; the name without what a compiler
 * appends to one that it has changed ("walk" for "walk.constprop.0"); a glob, in which "..." is
 * what a narrow page left out.
 */
#define FUNCTION_READINGS 3
bool functions_are_meant(unsigned reading, const char *wanted, const char *name);

/* By frame of the profile: whether the stack of a sample has it; those that only samples had that
 * are not selected have none. Returned: free(). NULL: there is no memory. */
bool *functions_sampled_frames(const struct profile *profile);
