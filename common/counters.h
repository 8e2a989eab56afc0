/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * All counters of the books, one line each: name, unit, meaning. Each room counts into a block of
 * its own; the books print the sum of the blocks, in the order of the table. The name is the member
 * of the JSON object, which files keep, and its row in docs/trace-format.md begins with unit and
 * meaning: check.docs compares them. The accounting of ticks is in books.h.
 */

#include <stdint.h>

#define COUNTERS(X)                                                                                \
    X(orphan_partials, samples, "whose user stack was to come later, and never came")              \
    X(orphan_completions, stacks, "that belong to no sample")                                      \
    X(truncated_stacks, samples, "whose stack does not reach its root")                            \
    X(stitched_stacks, samples, "whose stack was brought to its root from earlier ones")           \
    X(unproved_stacks, samples, "whose stack is at its root, but not on proof")                    \
    X(cold_stacks, samples, "unwound before the tables that they needed had come")                 \
    X(code_lookups, addresses, "of frames whose rule was looked up")                               \
    X(code_lookups_kept, addresses, "of them, whose rule was remembered from before")              \
    X(mapping_uncertain, samples, "taken while it was uncertain what was mapped")                  \
    X(modules_unread, modules, "whose file could not be read")                                     \
    X(mappings_refused, frames, "in a mapping that had no room in its user's share of the log")    \
    X(names_refused, functions, "whose name had no room in its user's share of the log")           \
    X(tasks_refused, definitions, "without room in their user's share: the sample was dropped")    \
    X(addresses_refused, addresses, "not noted while their file was being read")                   \
    X(proc_unread, readings, "of /proc/PID that did not come, or not whole")                       \
    X(sideband_lost, records, "of what processes do that were lost")                               \
    X(bad_records, records, "of the kernel, of any kind, that made no sense")                      \
    X(table_refused, entries, "that found no place in the daemon's table of processes")            \
    X(threads_refused, records, "of threads without a place among those whose waits are followed") \
    X(threads_forgotten, threads, "that had ended, and whose line others took the place of")       \
    X(wait_stacks_refused, waits, "whose stack had no room")                                       \
    X(late_rounds, rounds, "of the collector that took so long that rings may overflow")

#define COUNTER_MEMBER(name, unit, meaning) uint64_t name;
struct counters {
    COUNTERS(COUNTER_MEMBER)
};
#undef COUNTER_MEMBER

static inline void counters_add(struct counters *sum, const struct counters *counters)
{
#define COUNTER_ADD(name, unit, meaning) sum->name += counters->name;
    COUNTERS(COUNTER_ADD)
#undef COUNTER_ADD
}
