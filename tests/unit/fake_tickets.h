/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A module cache for tests of the trace: it notes what it is asked for, and its answers are what
 * the test puts into its tickets, when the test likes. It knows no vDSO.
 */
#include "module_cache.h"

#define TICKETS_MAX 8200

struct module_ticket {
    char path[64]; /* "[kernel]"; "map of PID" and the question's path: a map of made code */
    int32_t pid;
    uint64_t start_time_ns;
    uint64_t inode;
    uint32_t known_bytes;
    enum module_state state;
    enum module_failure failure;
    uint64_t shown_ns;
    const struct module *module;
};

extern struct module_ticket tickets[TICKETS_MAX]; /* in the order of the requests */
extern size_t ticket_count;
extern bool refuses_requests; /* for files */

void fake_tickets_reset(void);
/* Asserts that each ticket was released, and none twice. */
void fake_tickets_check(void);
/* A file has been read. */
void fake_tickets_ready(size_t index, const struct module *module);
