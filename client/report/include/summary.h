/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What stands above and below every view of a recording.
 */

#include "page.h"
#include "profile.h"

#include <stdint.h>
#include <stdio.h>

struct json_out;

/* Samples, by how their user stacks end. */
struct summary {
    uint64_t sample_count;
    uint64_t complete_count;
    uint64_t unproved_count; /* at their root, but not on proof */
    uint64_t truncated_count;
    uint64_t stitched_count; /* of them */
    uint64_t none_count;
};

void summary_take(const struct profile *profile, struct summary *ret);

/* The lines above a view. */
void summary_print_head(const struct page *page, const struct profile *profile,
                        const struct summary *summary);
/* Those below it. */
void summary_print_foot(const struct page *page, const struct profile *profile);

/* The first and the last members of the JSON object. */
void summary_json_head(struct json_out *out, const struct profile *profile,
                       const struct summary *summary);
void summary_json_foot(struct json_out *out, const struct profile *profile,
                       const struct summary *summary);
