/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a person must read when something fails: filled by the config parser, by session and by
 * control, and in the client wherever a sentence beats an errno. It crosses the wire as the error
 * reply.
 */
struct fault {
    int code;        /* a positive errno value */
    char member[48]; /* the config member at fault ("targets.pids"), or "" */
    char text[320];  /* one sentence without a final full stop or newline, valid UTF-8 */
};

/*
 * Fills `reterr` (which may be NULL) from a printf format; a text that is too long is cut.
 * `code` is a positive errno value. Returns -code, so that callers can `return fault_set(...)`.
 */
int fault_set(struct fault *reterr, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same, naming the config member at fault. Returns -EINVAL. */
int fault_set_member(struct fault *reterr, const char *member, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
