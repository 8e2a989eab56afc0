/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Samples by process or thread, and in the order of time within one; or in that alone. */

#include "profile.h"

#include <stddef.h>
#include <stdint.h>

enum sample_order_by {
    SAMPLE_ORDER_PROCESS, /* of one segment, with one pid and one name */
    SAMPLE_ORDER_THREAD,  /* of one segment, with one pid and one tid */
    SAMPLE_ORDER_PID,     /* with one pid, in all segments */
    SAMPLE_ORDER_TIME,    /* all are one */
};

/* The numbers of all samples; those of a process or thread stand together. Returned: free(); NULL
 * when there is no memory. */
uint32_t *sample_order(const struct profile *profile, enum sample_order_by by);

/* Behind the last sample of the process or thread that has the one at `order[first]`. */
size_t sample_order_end(const struct profile *profile, const uint32_t *order,
                        enum sample_order_by by, size_t first);
