/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Names of code that processes make while they run. A runtime lists it in a perf map, to which it
 * adds as it goes. The first sample in such code has the map read; then its mappings are "[jit]
 * (pid N)" in the file, a module of this process alone. What had no name then is looked for again,
 * and what had one is proved, in what the map has become, at times that grow further apart while
 * nothing comes of it. Belongs to the collector thread.
 */

#include "module_cache.h"
#include "process_table.h"
#include "trace_definition.h"
#include "trace_symbols.h"

struct trace_jits;
struct trace_jit;

/* Returned; NULL when there is no memory. All borrowed. */
struct trace_jits *trace_jits_new(struct definition_log *log, struct module_cache *cache,
                                  struct trace_symbols *symbols);
struct trace_jits *trace_jits_free(struct trace_jits *jits);

/* A log begins, in which nothing is written yet. What find() gave before is no more. */
void trace_jits_begin(struct trace_jits *jits);

/* The made code of a process's present program; borrowed. NULL: there are too many, of its owner
 * (half of what the others leave) or in all, and its code stays without names. */
struct trace_jit *trace_jits_find(struct trace_jits *jits, const struct process *process);

/* Defines a mapping of made code: as such if the map has been read, else by what the kernel calls
 * it, until the map has been. False: refused. */
bool trace_jit_define(struct trace_jits *jits, struct trace_jit *jit,
                      const struct shown_mapping *shown, uint64_t vaddr, const char *name);

/*
 * A sample fell at `address` of a mapping, at `time_ns`: names the function, or notes that it wants
 * a name. This holds for samples from `*ret_from_ns` on as long as trace_jits_epoch() stays;
 * TIME_OPEN_NS: for this one only. False: no room.
 */
bool trace_jit_name(struct trace_jits *jits, struct trace_jit *jit,
                    const struct shown_mapping *shown, uint64_t address, uint64_t time_ns,
                    uint64_t *ret_from_ns);
/* Never 0. */
uint32_t trace_jits_epoch(const struct trace_jits *jits);

/* Takes up the maps that have been read, and asks for those that are due: a bounded part of both.
 * False: something of a map is left for the next poll, or for when there is room. */
bool trace_jits_poll(struct trace_jits *jits);

/* Whether a map is being read in which something that was sampled may have its name. */
bool trace_jits_pending(const struct trace_jits *jits);

/* Whether what was sampled in made code until then has the names that it will have. */
bool trace_jits_proved(const struct trace_jits *jits, uint64_t time_ns);

/* Nothing is sampled any more: has the maps read of which something depends. */
void trace_jits_ask_again(struct trace_jits *jits);

/* No other reading will be taken for this log: what was sampled since the last one loses its name.
 */
void trace_jits_close(struct trace_jits *jits);
