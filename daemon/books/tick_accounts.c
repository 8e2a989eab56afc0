/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Brings the two rings of a CPU together: before a record of the ring of samples is told, all
 * switches up to its time are. Counts; judges nothing.
 */
#include "tick_accounts.h"

#include <stdlib.h>

struct account {
    struct tick_ledger ledger;
    struct switch_feed feed;
};

struct tick_accounts {
    const struct perf_source *source;
    struct account cpus[]; /* cpu_count of the source */
};

struct tick_accounts *tick_accounts_new(struct perf_source *source)
{
    struct tick_accounts *accounts =
        calloc(1, sizeof *accounts + source->cpu_count * sizeof accounts->cpus[0]);
    if (accounts == NULL) {
        return NULL;
    }
    accounts->source = source;
    for (size_t i = 0; i < source->cpu_count; i++) {
        struct account *account = &accounts->cpus[i];
        tick_ledger_init(&account->ledger, source->config.period_ns);
        switch_feed_init(&account->feed, source->has_switches ? &source->cpus[i].switch_ring : NULL,
                         &source->switch_layout, &account->ledger);
    }
    return accounts;
}

struct tick_accounts *tick_accounts_free(struct tick_accounts *accounts)
{
    free(accounts);
    return NULL;
}

void tick_accounts_return(struct tick_accounts *accounts, size_t cpu_index)
{
    const struct perf_source *source = accounts->source;
    uint64_t started_ns = source->cpus[cpu_index].started_ns;
    tick_ledger_start(&accounts->cpus[cpu_index].ledger, started_ns, source->has_switches);
    switch_feed_start(&accounts->cpus[cpu_index].feed, started_ns);
}

void tick_accounts_start(struct tick_accounts *accounts)
{
    for (size_t i = 0; i < accounts->source->cpu_count; i++) {
        if (!accounts->source->cpus[i].absent) {
            tick_accounts_return(accounts, i);
        }
    }
}

void tick_accounts_lose(struct tick_accounts *accounts, size_t cpu_index, uint64_t time_ns)
{
    tick_ledger_end(&accounts->cpus[cpu_index].ledger, time_ns);
}

bool tick_accounts_drained(struct tick_accounts *accounts, size_t cpu_index)
{
    struct account *account = &accounts->cpus[cpu_index];
    switch_feed_refresh(&account->feed);
    return switch_feed_is_empty(&account->feed);
}

void tick_accounts_leave(struct tick_accounts *accounts, size_t cpu_index)
{
    tick_ledger_close(&accounts->cpus[cpu_index].ledger);
}

void tick_accounts_end(struct tick_accounts *accounts)
{
    const struct perf_source *source = accounts->source;
    for (size_t i = 0; i < source->cpu_count; i++) {
        if (!source->cpus[i].absent) {
            tick_ledger_end(&accounts->cpus[i].ledger, source->cpus[i].stopped_ns);
        }
    }
}

void tick_accounts_close(struct tick_accounts *accounts)
{
    for (size_t i = 0; i < accounts->source->cpu_count; i++) {
        tick_ledger_close(&accounts->cpus[i].ledger);
    }
}

void tick_accounts_suspended(struct tick_accounts *accounts, uint64_t jump_ns)
{
    for (size_t i = 0; i < accounts->source->cpu_count; i++) {
        tick_ledger_suspended(&accounts->cpus[i].ledger, jump_ns);
    }
}

void tick_accounts_refresh(struct tick_accounts *accounts)
{
    for (size_t i = 0; i < accounts->source->cpu_count; i++) {
        switch_feed_refresh(&accounts->cpus[i].feed);
    }
}

void tick_accounts_take(struct tick_accounts *accounts, size_t cpu_index,
                        const struct perf_record *record)
{
    struct tick_ledger *ledger = &accounts->cpus[cpu_index].ledger;
    switch_feed_until(&accounts->cpus[cpu_index].feed, record->time_ns);
    switch (record->kind) {
    case PERF_KIND_SAMPLE:
        tick_ledger_sample(ledger, record->time_ns);
        break;
    case PERF_KIND_LOST:
        tick_ledger_lost(ledger, record->lost.count);
        break;
    case PERF_KIND_THROTTLE:
        tick_ledger_throttle(ledger, record->time_ns);
        break;
    case PERF_KIND_UNTHROTTLE:
        tick_ledger_unthrottle(ledger, record->time_ns);
        break;
    case PERF_KIND_MMAP:
    case PERF_KIND_COMM:
    case PERF_KIND_FORK:
    case PERF_KIND_EXIT:
    case PERF_KIND_SWITCH:
    case PERF_KIND_DEFERRED_CALLCHAIN:
    case PERF_KIND_KSYMBOL:
    case PERF_KIND_OTHER:
        break;
    }
}

void tick_accounts_reach(struct tick_accounts *accounts, size_t cpu_index, uint64_t horizon_ns)
{
    struct account *account = &accounts->cpus[cpu_index];
    switch_feed_until(&account->feed, horizon_ns);
    switch_feed_publish(&account->feed);
    if (horizon_ns != UINT64_MAX) {
        tick_ledger_advance(&account->ledger, horizon_ns);
    }
}

enum switch_wish tick_accounts_wish(struct tick_accounts *accounts, size_t cpu_index,
                                    uint64_t horizon_ns)
{
    return switch_feed_judge(&accounts->cpus[cpu_index].feed, horizon_ns);
}

void tick_accounts_tell_idle(struct tick_accounts *accounts, size_t cpu_index, uint64_t idle_ns)
{
    tick_ledger_tell_idle(&accounts->cpus[cpu_index].ledger, idle_ns);
}

uint64_t tick_accounts_bad_count(const struct tick_accounts *accounts)
{
    uint64_t count = 0;
    for (size_t i = 0; i < accounts->source->cpu_count; i++) {
        count += accounts->cpus[i].feed.bad_count;
    }
    return count;
}

struct tick_counts tick_accounts_counts(const struct tick_accounts *accounts, size_t cpu_index)
{
    return tick_ledger_counts(&accounts->cpus[cpu_index].ledger);
}
