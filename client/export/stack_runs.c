/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A table of stacks, each with the number of what was made of it last and the times for which that
 * holds. What is made is kept once, however often it is made, so memory grows with what is
 * different.
 */
#include "stack_runs.h"

#include "grow.h"
#include "places.h"

/* So many samples ahead it is fetched what they will need, a place further each time. */
#define AHEAD_SAMPLE ((size_t)32)
#define AHEAD_KEY    ((size_t)24)
#define AHEAD_KNOWN  ((size_t)16)
#define AHEAD_RUN    ((size_t)8)

struct stack_run {
    struct place_span span; /* no time is in it at first */
    uint32_t run;
};

void stack_runs_done(struct stack_runs *table)
{
    chain_keys_done(&table->keys);
    intern_done(&table->runs);
    free(table->known);
    *table = (struct stack_runs){0};
}

static int make_run(struct stack_runs *table, const struct profile *profile,
                    const struct profile_sample *sample, stack_run_fn make, void *userdata,
                    struct stack_run *known)
{
    struct made_run made = {0};
    int r = make(sample, userdata, &made);
    if (r == 0) {
        r = intern_add(&table->runs, made.bytes, made.size_bytes, &known->run);
    }
    if (r == 0) {
        known->span = place_find_span(profile, sample);
    }
    return r;
}

int stack_runs_find(struct stack_runs *table, const struct profile *profile,
                    const struct profile_sample *sample, stack_run_fn make, void *userdata,
                    uint32_t *ret_run)
{
    const struct stack_key key = stack_key(profile, sample);
    size_t known_count = table->keys.count;
    uint32_t item = 0;
    if (chain_keys_add(&table->keys, profile, sample, &key, sizeof key, &item) < 0 ||
        grow(table->known, table->known_capacity, (size_t)item + 1) < 0) {
        return -ENOMEM;
    }
    struct stack_run *known = &table->known[item];
    if (item == known_count) {
        *known = (struct stack_run){0};
    }
    bool holds = known->span.from_ns <= sample->time_ns && sample->time_ns < known->span.until_ns;
    int r = holds ? 0 : make_run(table, profile, sample, make, userdata, known);
    if (r == 0) {
        *ret_run = known->run;
    }
    return r;
}

struct made_run stack_runs_at(const struct stack_runs *table, uint32_t run)
{
    struct made_run made;
    made.bytes = intern_bytes(&table->runs, run, &made.size_bytes);
    return made;
}

int stack_runs_get(struct stack_runs *table, const struct profile *profile,
                   const struct profile_sample *sample, stack_run_fn make, void *userdata,
                   struct made_run *ret)
{
    uint32_t run = 0;
    int r = stack_runs_find(table, profile, sample, make, userdata, &run);
    if (r == 0) {
        *ret = stack_runs_at(table, run);
    }
    return r;
}

/* What is known of a stack by its first key, or NULL. */
static const struct stack_run *first_run(const struct stack_runs *table,
                                         const struct profile_sample *sample)
{
    uint32_t item = chain_keys_first(&table->keys, sample);
    return item == INTERN_NONE ? NULL : &table->known[item];
}

void stack_runs_fetch_ahead(const struct stack_runs *table, const struct profile *profile,
                            const uint32_t *samples, size_t count, size_t at)
{
    const struct profile_sample *all = profile->samples;
    size_t left = count - at;
    if (left > AHEAD_SAMPLE) {
        __builtin_prefetch(&all[samples[at + AHEAD_SAMPLE]]);
    }
    if (left > AHEAD_KEY) {
        chain_keys_fetch(&table->keys, &all[samples[at + AHEAD_KEY]]);
    }
    if (left > AHEAD_KNOWN) {
        __builtin_prefetch(first_run(table, &all[samples[at + AHEAD_KNOWN]]));
    }
    const struct stack_run *soon =
        left > AHEAD_RUN ? first_run(table, &all[samples[at + AHEAD_RUN]]) : NULL;
    if (soon != NULL) {
        intern_fetch_bytes(&table->runs, soon->run);
    }
}
