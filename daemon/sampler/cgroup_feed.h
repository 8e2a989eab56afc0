/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which control group a sample's task was in. The kernel says an id with each sample, and a path
 * with each group that is made. The groups that were there before are walked through once, and
 * again when a sample has an id that is not known: less often after each walk that did not bring
 * it. Belongs to the collector thread; only sideband_feed.c and proc_feed.c use it.
 */

#include "cgroup_table.h"
#include "proc_read.h"

#include <stdbool.h>
#include <stdint.h>

#define CGROUP_FEED_PERIOD_NS UINT64_C(1000000000) /* no walk is repeated sooner, */
#define CGROUP_FEED_LEARN_NS  UINT64_C(100000000)  /* but in a namespace, until it helped once */

struct cgroup_feed;

/* Returned; NULL when there is no memory. */
struct cgroup_feed *cgroup_feed_new(void);
struct cgroup_feed *cgroup_feed_free(struct cgroup_feed *feed);

/* A group was made at `time_ns`. */
void cgroup_feed_tell(struct cgroup_feed *feed, uint64_t id, const char *path, uint64_t time_ns);

/* The group with an id, for a sample at `time_ns` of a process of `account`; NULL: not known. Then
 * `*ret_is_coming` says that a walk is under way. */
const struct cgroup *cgroup_feed_find(struct cgroup_feed *feed, uint64_t id, uint32_t account,
                                      uint64_t time_ns, bool *ret_is_coming);

/* True once when a walk is due, which the caller asks for. */
bool cgroup_feed_take_request(struct cgroup_feed *feed);
/* It was asked for, or was not. */
void cgroup_feed_asked(struct cgroup_feed *feed, bool asked);
/* Takes what a walk has read (borrowed). */
void cgroup_feed_take(struct cgroup_feed *feed, const struct proc_reading *reading);
