/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Whether a sample is wanted is decided once, when it is resolved first or when its process has
 * been read. No record reports a new uid or cgroup, so a sampled process is read again once a
 * second and after an exec. A program that has no name at the time has no frames either: they would
 * be those of the program that had it.
 */
#include "resolver.h"

static struct sample begin_sample(const struct perf_record *record)
{
    return (struct sample){
        .time_ns = record->time_ns,
        .weight = record->sample.weight,
        .event = record->event,
        .cpu = record->cpu,
        .pid = record->pid,
        .tid = record->tid,
        .kernel_mode = record->mode == PERF_MODE_KERNEL,
        .kernel_stack = record->sample.kernel_chain,
        .kernel_count = record->sample.kernel_count,
    };
}

/* Addresses that were settled without the table that they needed. */
static uint64_t unready_count(const struct resolver *resolver)
{
    const struct code_map *code = resolver->stack->code;
    return code == NULL ? 0 : code_map_unready_count(code);
}

static enum resolution take_stack(const struct resolver *resolver, const struct perf_record *record,
                                  bool settle, struct resolved *resolved)
{
    bool is_disowned = sideband_feed_disown(resolver->feed, resolved->process, &resolved->sample);
    resolved->is_open = !is_disowned && resolver->deferring && record->sample.deferred;
    if (is_disowned || resolved->is_open) {
        return RESOLVED_NOW;
    }
    uint64_t unready_before = unready_count(resolver);
    if (!user_stack_take(resolver->stack, &record->sample, resolved->process, settle,
                         &resolved->sample, &resolved->is_unmapped)) {
        resolved->awaited = code_map_awaited(resolver->stack->code);
        return RESOLVED_COLD;
    }
    resolved->is_cold = unready_count(resolver) > unready_before;
    return RESOLVED_NOW;
}

static unsigned find_sinks(const struct resolver *resolver, const struct resolved *resolved)
{
    unsigned wanted = 0;
    for (size_t i = 0; i < resolver->sinks->count; i++) {
        if (sink_wants(resolver->sinks->all[i], &resolved->sample, resolved->process)) {
            wanted |= 1U << i;
        }
    }
    return wanted;
}

enum resolution resolver_resolve(const struct resolver *resolver, const struct perf_record *record,
                                 unsigned wanted, bool settle, struct resolved *ret)
{
    *ret = (struct resolved){.sample = begin_sample(record)};
    struct sample *sample = &ret->sample;
    /* The chain that comes later is not kept for as long as a reading may take. */
    bool patient = !settle && !record->sample.deferred;
    bool awaited = false;
    ret->process = sideband_feed_find(resolver->feed, sample, !patient, &awaited);
    if (ret->process != NULL) {
        bool unknown = false;
        sample->cgroup = sideband_feed_cgroup(resolver->feed, record->sample.cgroup_id,
                                              ret->process, sample->time_ns, &unknown);
        awaited = awaited || (unknown && patient);
    }
    if (!awaited && wanted == 0) {
        if (ret->process != NULL &&
            sideband_feed_identify(resolver->feed, ret->process, sample->time_ns)) {
            awaited = patient;
        }
        wanted = find_sinks(resolver, ret);
    }
    if (awaited) {
        return RESOLVED_EARLY;
    }
    ret->wanted = wanted;
    return wanted != 0 ? take_stack(resolver, record, settle, ret) : RESOLVED_NOW;
}
