/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Prints a trace of Perfetto: the packets of all samples. The books are counters, from 0 at the
 * first sample to what they came to at the last.
 */
#include "writers.h"

#include "cleanup.h"
#include "perfetto_packets.h"

static void packets_freep(struct perfetto_packets **packets)
{
    *packets = perfetto_packets_free(*packets);
}

int perfetto_print(FILE *file, const struct profile *profile, const struct export_options *options)
{
    cleanup_(packets_freep) struct perfetto_packets *packets =
        perfetto_packets_new(file, profile, false);
    (void)options;
    if (packets == NULL) {
        return -ENOMEM;
    }
    int r = perfetto_packets_begin(packets, profile->first_ns);
    if (r == 0) {
        r = perfetto_packets_books(packets, profile->first_ns, profile->last_ns);
    }
    for (size_t i = 0; i < profile->sample_count && r == 0; i++) {
        r = perfetto_packets_sample(packets, &profile->samples[i]);
    }
    return r;
}
