/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The memory of one process in formats that have no time: each page belongs to one module for good.
 * Where the process had another module on a page later, the format shows that module's page at an
 * address of its own, above the addresses of programs. So no address has two meanings.
 */

#include "places.h"
#include "profile.h"

#include <stddef.h>
#include <stdint.h>

/* A module as it lies in the process. One that lies at two places is two. */
struct layout_module {
    uint64_t bias;   /* what an address has more than the module's own */
    uint32_t module; /* of the profile, or INTERN_NONE: what no module is known for */
    uint32_t zero;
};

/* All zero is empty. */
struct process_layout {
    struct intern modules; /* struct layout_module */
    struct intern pages;   /* numbers of pages */
    uint32_t *owners;      /* owned; of each page: an item of `modules` */
    size_t owner_capacity;
    struct intern moved; /* pages of modules that are shown elsewhere */
};

struct layout_range {
    uint64_t start;
    uint64_t size_bytes;
    uint32_t module; /* an item of the layout's modules */
};

void process_layout_done(struct process_layout *layout);

/*
 * Where the layout shows the instruction of a place that has an address; its page is added if it is
 * new. `ret_module` is the profile's module, or INTERN_NONE. The same place always has the same
 * answer. Returns 0, or -ENOMEM.
 */
int process_layout_add(struct process_layout *layout, const struct profile *profile,
                       const struct profile_sample *sample, const struct stack_place *place,
                       uint64_t *ret_address, uint32_t *ret_module);

const struct layout_module *process_layout_module(const struct process_layout *layout,
                                                  uint32_t module);

/* The pages that have modules, in the order of addresses, those in a row as one range. Returned:
 * free(). NULL when there is no memory. */
struct layout_range *process_layout_ranges(const struct process_layout *layout, size_t *ret_count);
