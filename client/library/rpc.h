/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The inside of a struct profctl: one varlink call at a time and its reply, as return values and
 * sentences. What a call means is libprofctl.c's.
 */

#include "connection.h"
#include "varlink.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

struct profctl {
    int fd; /* -1 once the connection is broken */
    bool was_answered;
    struct varlink_input input;
    int reply_fd; /* that came with the reply being read; -1: none */
    /* What a Read handed out and the caller has not taken. */
    int chunk_fd; /* -1: nothing */
    size_t chunk_bytes;
    bool chunk_end;
    uint64_t chunk_sequence;
    uint64_t ack; /* the sequence of what the caller took last; 0: nothing to confirm */
    struct connection_notes notes;
    char path[108]; /* of the socket */
};

/* How long a reply is waited for. */
#define RPC_SHORT_MS 5000  /* for what the daemon answers at once */
#define RPC_LONG_MS  30000 /* for what takes it some work */
#define RPC_FOREVER  (-1)

/* Fills `fault` (may be NULL); control characters become '?'. Returns -code. */
int rpc_fail(struct profctl_fault *fault, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Where the daemon's log is: a command where systemd runs the machine, else a place in words. */
const char *rpc_log_place(void);

/* Ends a connection on which something went wrong below the calls, `r` < 0, and says what. Returns
 * -errno. */
int rpc_fail_transport(struct profctl *conn, struct profctl_fault *fault, int r);

/*
 * Sends a call and waits for its reply, at most `limit_ms`. `parameters` is taken, NULL: no memory.
 * `*ret_reply` is the reply's parameters (returned: json_freep()), NULL where it has none; an error
 * reply leaves it as it is. Returns 0, or -errno as profctl.h has it.
 */
int rpc_call(struct profctl *conn, const char *method, cJSON *parameters, int limit_ms,
             cJSON **ret_reply, struct profctl_fault *fault);

/* A member of a reply's parameters (may be NULL); "" and `fallback` where it is not as expected. */
const char *rpc_string(const cJSON *parameters, const char *name);
int64_t rpc_integer(const cJSON *parameters, const char *name, int64_t fallback);
