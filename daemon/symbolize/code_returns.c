/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Tells from which instructions the flow comes to a return, or to a row of the file. The look back
 * takes a jump to another function for a call of it. Where that function never returns, only its
 * symbol says that it is one. One way to a return is enough: on all others the look back has found
 * the same. What is sure is not asked of ways that are not.
 */
#include "code_returns.h"

#define ROUNDS_MAX 24

struct returns {
    const struct code_region *region;
    const struct cfi_table *table;
    struct code_backward *states;
};

/* Whether the flow comes to a return where it goes on, at another function's start or not. */
static bool does_return_at(const struct returns *run, const struct code_site *from,
                           const struct code_site *to)
{
    const struct code_backward *state = &run->states[code_region_number(run->region, from)];
    const struct code_backward *there = &run->states[code_region_number(run->region, to)];
    bool is_other = code_start_is_function(to->start) && to->function != from->function;
    if (code_row_is_call(to->row)) {
        return true;
    }
    return (is_other && code_backward_is_return(there)) ||
           (there->returns != 0 && there->trust >= state->trust);
}

static bool does_return_to(const struct returns *run, const struct code_site *from, uint64_t target)
{
    const struct code_site *to = code_region_find(run->region, target);
    return to != NULL ? does_return_at(run, from, to)
                      : code_row_is_call(cfi_table_find(run->table, target));
}

static bool does_return(const struct returns *run, const struct code_site *site)
{
    const struct code_region *region = run->region;
    const struct code_site *next = code_region_next(region, site);
    const struct code_table table = code_region_table(region, site);
    if (site->effect.flow == CODE_RETURN) {
        return true;
    }
    if (code_region_fall(site, next) != CODE_FALL_NONE && does_return_at(run, site, next)) {
        return true;
    }
    bool is_jump = site->effect.flow == CODE_JUMP || site->effect.flow == CODE_BRANCH;
    if (is_jump && does_return_to(run, site, site->effect.target)) {
        return true;
    }
    for (size_t i = 0; i < table.count; i++) {
        if (does_return_to(run, site, region->targets[table.first + i])) {
            return true;
        }
    }
    return false;
}

bool code_returns_run(const struct code_region *region, const struct cfi_table *table,
                      struct code_backward *states)
{
    const struct returns run = {region, table, states};
    bool changed = true;
    for (size_t round = 0; changed && round < ROUNDS_MAX; round++) {
        if (!code_region_visit(region, 1)) {
            return false;
        }
        changed = false;
        for (size_t i = region->site_count; i-- > 0;) {
            bool is_new = states[i].returns == 0 && code_backward_is_known(&states[i]) &&
                          does_return(&run, &region->sites[i]);
            states[i].returns = states[i].returns || is_new;
            changed |= is_new;
        }
    }
    return true;
}
