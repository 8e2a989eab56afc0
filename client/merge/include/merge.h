/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Several recordings, of several hosts perhaps, as one: an archive for Perfetto, or one recording
 * with the segments of all. All times of a session stay as they are, so nothing within one changes
 * its order; which time of the day they are, each session says by the clock of its own machine.
 */

#include "fault.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* What one recording says of its clocks. */
struct merge_input {
    const char *path;        /* borrowed */
    const char *shared_path; /* borrowed; an earlier one that has samples of it; NULL: none */
    const char *other_path;  /* borrowed; one whose session has the same id, and is another one */
    char *host;              /* owned: as the recording has it, or "" */
    uint64_t size_bytes;     /* of whole records, not compressed */
    uint64_t session_count;  /* those that are told */
    uint64_t sample_count;
    uint64_t from_unix_ns; /* when the first session was created */
    uint64_t to_unix_ns;   /* when the last books were made; 0: there are none that say it */
    uint64_t moved_ns;     /* how far the wall clock was moved between the two, the most of all */
    bool has_packets;      /* Perfetto shows it as it is */
    bool is_cut;           /* it is not whole */
};

/* Looks at recordings. Returned: merge_inputs_free(). Returns 0, or -errno with a sentence in
 * `reterr`: -ENODATA: one does not say what time it was, or which host it is of. */
int merge_inputs_read(const char *const *paths, size_t count, struct merge_input **ret,
                      struct fault *reterr);
void merge_inputs_free(struct merge_input *inputs, size_t count);

/* How far two hosts may be apart by their own clocks: the most that two of them were moved
 * together. A single host is not apart. False: of one it is not known. */
bool merge_apart_ns(const struct merge_input *inputs, size_t count, uint64_t *ret_ns);

/* Writes a tar archive of the files as they are, and a manifest that names their hosts. Returns 0,
 * or -errno with a sentence in `reterr`; errors of the stream are its owner's. */
int merge_write_archive(const struct merge_input *inputs, size_t count, FILE *file,
                        struct fault *reterr);

/* Writes the recordings, not compressed, one behind the other; of one that is cut off what is
 * whole. The same results. */
int merge_write_recording(const struct merge_input *inputs, size_t count, FILE *file,
                          struct fault *reterr);
