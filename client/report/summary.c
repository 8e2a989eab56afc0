/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Counts how stacks end, and prints what all views have in common: the lines above and below, and
 * the first and last members of the JSON object.
 */
#include "summary.h"

#include "books_print.h"
#include "json_out.h"
#include "text_out.h"

#include <inttypes.h>

void summary_take(const struct profile *profile, struct summary *ret)
{
    struct summary summary = {.sample_count = profile->sample_count};
    for (size_t i = 0; i < profile->sample_count; i++) {
        switch (profile_rooted(&profile->samples[i])) {
        case PROFILE_STACK_NONE:
            summary.none_count++;
            break;
        case PROFILE_STACK_COMPLETE:
            summary.complete_count++;
            break;
        case PROFILE_STACK_UNPROVED:
            summary.unproved_count++;
            break;
        case PROFILE_STACK_TRUNCATED:
            summary.truncated_count++;
            break;
        case PROFILE_STACK_STITCHED:
            summary.truncated_count++;
            summary.stitched_count++;
            break;
        }
    }
    *ret = summary;
}

static double percent(uint64_t part, uint64_t whole)
{
    return whole == 0 ? 0 : 100.0 * (double)part / (double)whole;
}

void summary_print_head(const struct page *page, const struct profile *profile,
                        const struct summary *summary)
{
    FILE *file = page->file;
    char count[TEXT_COUNT_BYTES];
    char rate[TEXT_RATE_BYTES];
    double between_s = (double)(profile->last_ns - profile->first_ns) / 1e9;
    (void)fprintf(file, "%s in %.3f s%s\n", text_samples(summary->sample_count, count),
                  books_print_length_s(profile->books_json, between_s),
                  text_rate(profile_period_ns(profile), rate));
    (void)fprintf(file, "stacks: %" PRIu64 " complete (%.2f %%), ", summary->complete_count,
                  percent(summary->complete_count, summary->sample_count));
    if (summary->unproved_count > 0) {
        (void)fprintf(file, "%" PRIu64 " not proved, ", summary->unproved_count);
    }
    (void)fprintf(file, "%" PRIu64 " truncated", summary->truncated_count);
    if (summary->stitched_count > 0) {
        (void)fprintf(file, " (%" PRIu64 " stitched)", summary->stitched_count);
    }
    (void)fprintf(file, ", %" PRIu64 " without a user stack\n\n", summary->none_count);
}

void summary_print_foot(const struct page *page, const struct profile *profile)
{
    books_print_print(page->file, profile->books_json);
    if (profile->dropped_record_count > 0) {
        (void)fprintf(page->file, "%" PRIu64 " records were dropped, since the buffers were full\n",
                      profile->dropped_record_count);
    }
}

void summary_json_head(struct json_out *out, const struct profile *profile,
                       const struct summary *summary)
{
    uint64_t period_ns = profile_period_ns(profile);
    json_out_begin(out, NULL, '{');
    json_out_u64(out, "samples", summary->sample_count);
    if (period_ns > 0) {
        json_out_u64(out, "period_ns", period_ns);
    } else {
        json_out_raw(out, "period_ns", NULL);
    }
    json_out_u64(out, "duration_ns", profile->last_ns - profile->first_ns);
}

void summary_json_foot(struct json_out *out, const struct profile *profile,
                       const struct summary *summary)
{
    json_out_begin(out, "stacks", '{');
    json_out_u64(out, "complete", summary->complete_count);
    json_out_u64(out, "unproved", summary->unproved_count);
    json_out_u64(out, "truncated", summary->truncated_count);
    json_out_u64(out, "stitched", summary->stitched_count);
    json_out_u64(out, "none", summary->none_count);
    json_out_end(out, '}');
    json_out_raw(out, "books", profile->books_json);
    json_out_end(out, '}');
    (void)fputc('\n', out->file);
}
