/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The books of all sampled CPUs while they are kept: where the ticks of each CPU went, for how long
 * it was offline, and for how long a hypervisor had it. A `cpu_index` is an index into the source's
 * CPUs. Belongs to the collector thread.
 */

#include "books.h"
#include "clock.h"
#include "perf_source.h"

struct cpu_books;

/* Returned: cpu_books_free(). NULL when there is no memory. `source` is borrowed meanwhile. */
struct cpu_books *cpu_books_new(struct perf_source *source);
struct cpu_books *cpu_books_free(struct cpu_books *books);

/* Another reader of a CPU's switch records, by a view of its own (borrowed): the ring's room is
 * given back when both have read it. Above `rate_max` switches a second the records are off for a
 * second. */
void cpu_books_share(struct cpu_books *books, size_t cpu_index, const struct perf_ring *view,
                     uint64_t rate_max);

/* When they were off last: records may be missing from the first time on and up to the second,
 * which is UINT64_MAX while they are off. 0 and 0: never. */
struct switches_off {
    uint64_t from_ns;
    uint64_t to_ns;
};
struct switches_off cpu_books_switches_off(const struct cpu_books *books, size_t cpu_index);

/* Sampling was enabled, at the started_ns of each CPU that is not absent. */
void cpu_books_start(struct cpu_books *books);
/* Sampling was disabled, at each CPU's stopped_ns: called before the rings are drained for the last
 * time, */
void cpu_books_end(struct cpu_books *books);
/* and after. */
void cpu_books_close(struct cpu_books *books);

/* A CPU is found to be offline. Returns when it went, CLOCK_BOOTTIME. */
uint64_t cpu_books_lose(struct cpu_books *books, size_t cpu_index, struct clock_moment now);
/* True when its old switch records are all taken. It leaves their ring; its ticks begin again at
 * its new started_ns, in new rings. */
bool cpu_books_drained(struct cpu_books *books, size_t cpu_index);
void cpu_books_leave(struct cpu_books *books, size_t cpu_index);
void cpu_books_return(struct cpu_books *books, size_t cpu_index);
/* The machine was suspended for a time. */
void cpu_books_suspended(struct cpu_books *books, uint64_t jump_ns);

/* A round: it begins; each record of the clock's ring; a CPU's switch records up to the horizon are
 * taken (UINT64_MAX: all of them). */
void cpu_books_refresh(struct cpu_books *books);
void cpu_books_take(struct cpu_books *books, size_t cpu_index, const struct perf_record *record);
/* A record of another event's ring. */
void cpu_books_take_event(struct cpu_books *books, size_t cpu_index, uint32_t event,
                          const struct perf_record *record);
void cpu_books_reach(struct cpu_books *books, size_t cpu_index, uint64_t horizon_ns);

/*
 * Reads what the kernel has counted, as of the horizon of the last round: what was counted since is
 * not drained yet. Once a second it reads for how long CPUs idled and were stolen, too. Switches a
 * CPU's switch records off where they cost more than they are worth, and an event that brings more
 * samples than the session may have.
 */
void cpu_books_read(struct cpu_books *books, uint64_t horizon_ns);
/* The last reading of a run, after cpu_books_close(). */
void cpu_books_read_last(struct cpu_books *books);

/* The books of a CPU as of the last round and reading, without what became of its samples; `held`
 * is the number of samples. */
struct books_cpu cpu_books_line(const struct cpu_books *books, size_t cpu_index);
/* Switch records of all CPUs that could not be parsed. */
uint64_t cpu_books_bad_count(const struct cpu_books *books);
