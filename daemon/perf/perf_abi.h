/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The kernel's perf interface, with what is newer than the oldest <linux/perf_event.h> that we
 * build with (6.1): deferred callchains, of Linux 6.19. Only perf_*.c include it. Where the
 * system's header has these names as enumerators, the macros repeat their values.
 */

#include <linux/perf_event.h>
#include <stdint.h>

/* {header, u64 cookie, u64 nr, u64 ips[nr], sample_id}: the user chain of every sample that carried
 * the cookie. The chain begins without a context marker. */
#define PERF_RECORD_CALLCHAIN_DEFERRED 22

/* In a sample's chain: one word follows, the cookie, and ends the chain. */
#define PERF_CONTEXT_USER_DEFERRED ((uint64_t)-640)

/* Bits of the word of flags in struct perf_event_attr that follows read_format. */
#define PERF_ATTR_FLAG_DEFER_CALLCHAIN ((uint64_t)1 << 38) /* on events that sample */
#define PERF_ATTR_FLAG_DEFER_OUTPUT    ((uint64_t)1 << 39) /* on one event per CPU with sideband */
