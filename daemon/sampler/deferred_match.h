/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Brings samples together with the user chains that the kernel delivers later (Linux 6.19): it
 * walks a task's stack when the task returns to its program, and both carry a cookie. A chain may
 * come in another CPU's ring than its samples, before or after them, late or never. Bounded, pure,
 * allocates nothing after deferred_match_new(). Belongs to the collector thread.
 *
 * A sample whose chain is here is whole. Any other waits as a partial of an id: all samples of one
 * cookie on one CPU share an id.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DEFERRED_MATCH_OPEN_MAX 256 /* ids that wait, for each CPU */

struct deferred_match;

/* Returned; NULL when there is no memory. */
struct deferred_match *deferred_match_new(size_t cpu_count);
struct deferred_match *deferred_match_free(struct deferred_match *deferred);

struct deferred_match_chain {
    int32_t tid;
    uint64_t cookie;
    uint64_t exec_ns;       /* the last exec of its process before it; 0: none is known */
    bool expected;          /* samples of its task are kept, so one should match it */
    const uint64_t *frames; /* leaf first */
    size_t count;
};

/* Copies a chain, which stays for two rounds. What finds no room is counted. */
void deferred_match_add_chain(struct deferred_match *deferred,
                              const struct deferred_match_chain *chain);

/*
 * The chain of a sample at `time_ns`; its frames are borrowed until deferred_match_end_round().
 * False: it is not here, or shows what the process has executed since.
 */
bool deferred_match_find_chain(struct deferred_match *deferred, int32_t tid, uint64_t cookie,
                               uint64_t time_ns, struct deferred_match_chain *ret);

/* Samples of one cookie on one CPU that wait. */
struct deferred_match_open {
    size_t cpu_index;
    int32_t pid;
    int32_t tid;
    uint64_t cookie;
    uint64_t id;       /* the caller's; not 0 */
    uint64_t first_ns; /* of its samples */
    uint64_t sample_count;
};

/* The id of the samples that wait for that chain on that CPU; 0: none does. */
uint64_t deferred_match_open_id(const struct deferred_match *deferred, size_t cpu_index,
                                int32_t tid, uint64_t cookie);
/*
 * A sample that waits (`sample_count` is ignored). Where others wait for the same chain it is one
 * of them, unless its id is another: then it takes their place. Returns how many it has replaced.
 * There must be room on its CPU: deferred_match_take_excess().
 */
uint64_t deferred_match_wait(struct deferred_match *deferred,
                             const struct deferred_match_open *sample);
size_t deferred_match_open_count(const struct deferred_match *deferred);

/*
 * Each takes one that waits out of the table and copies it, or returns false. The oldest of a CPU
 * that has no room for another; the oldest of any CPU whose first sample is not newer than
 * `time_ns`.
 */
bool deferred_match_take_excess(struct deferred_match *deferred, size_t cpu_index,
                                struct deferred_match_open *ret);
bool deferred_match_take_expired(struct deferred_match *deferred, uint64_t time_ns,
                                 struct deferred_match_open *ret);

/*
 * Once all samples of a round are handled: takes one whose chain is here, with the chain (borrowed
 * until deferred_match_end_round(); empty, and `*ret_exec` true, where it shows what the process
 * has executed since), until it returns false.
 */
bool deferred_match_take_done(struct deferred_match *deferred, struct deferred_match_open *ret,
                              struct deferred_match_chain *ret_chain, bool *ret_exec);
/* Then: forgets the chains that were here in the last round already. */
void deferred_match_end_round(struct deferred_match *deferred);

/* Expected chains that no sample asked for. */
uint64_t deferred_match_orphan_count(const struct deferred_match *deferred);
