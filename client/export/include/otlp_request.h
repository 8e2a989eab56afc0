/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The samples that a profile has as requests of OTLP, one after the other, each within the limits
 * of a store. A request has the samples of one window of the wall clock, a profile for each
 * service. Which samples it has depends on the recording, the limits and where it begins, on
 * nothing else: so a sender that knows how many samples have been taken goes on where it was.
 *
 * A service is the container, the user's unit or the unit that a process is in, else the process's
 * name; all threads of the kernel are the service "kernel". Of several hosts each has its own.
 */

#include "profile.h"

#include <stddef.h>
#include <stdint.h>

/* What a sample says of its task beside the service. */
enum otlp_detail {
    OTLP_DETAIL_SERVICE, /* nothing: equal stacks are one sample */
    OTLP_DETAIL_PROCESS, /* the process's name and number */
    OTLP_DETAIL_THREAD,  /* the thread's too, and the CPU */
};

struct otlp_limits {
    uint64_t window_ns; /* a request has samples of one window, which begin at multiples of it */
    size_t samples_max; /* of a profile */
    size_t frames_max;  /* of a stack; what is more is cut at the root's end */
    size_t bytes_max;   /* of a request with more than one sample */
    enum otlp_detail detail;
};

struct otlp_request {
    uint8_t *bytes; /* owned: free() */
    size_t size_bytes;
    size_t sample_count; /* those from the position on */
    size_t profile_count;
    size_t cut_count;       /* samples whose stack was cut */
    uint64_t first_unix_ns; /* of the samples */
    uint64_t last_unix_ns;
};

struct otlp_requests;

/* `profile` is borrowed as long as there is a result (returned: otlp_requests_free()). Returns 0;
 * -ENODATA: it does not say what time it was; -ENOMEM. */
int otlp_requests_new(const struct profile *profile, const struct otlp_limits *limits,
                      struct otlp_requests **ret);
struct otlp_requests *otlp_requests_free(struct otlp_requests *requests);
void otlp_requests_freep(struct otlp_requests **requests);

/* Makes the request that begins with the sample `position`, in the order of time, and has at most
 * `sample_max` of them. The recording has more. Returns 0, or -ENOMEM. */
int otlp_requests_make(struct otlp_requests *requests, size_t position, size_t sample_max,
                       struct otlp_request *ret);
