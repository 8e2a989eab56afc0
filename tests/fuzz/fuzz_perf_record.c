/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any bytes, in any layout, give a view inside the record or -EBADMSG. Four bytes choose the ids
 * and the rest of sample_type, eight the registers; what follows is the record.
 */
#include "fuzz_target.h"
#include "perf_record_views.h"

#include "perf_abi.h"

#include <errno.h>
#include <stdlib.h>

#define LAYOUT_BITS                                                                                \
    (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |                \
     PERF_SAMPLE_ADDR | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU |                 \
     PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER | \
     PERF_SAMPLE_READ | PERF_SAMPLE_CGROUP)
/* Bits of no id choose how many words a reading has, and how many followers its event. */
#define READ_WORDS_SHIFT 28
#define FOLLOWERS_SHIFT  24

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    uint32_t sample_type;
    uint64_t user_regs_mask;
    const size_t prefix_bytes = sizeof sample_type + sizeof user_regs_mask;
    if (size < prefix_bytes || size - prefix_bytes > UINT16_MAX) {
        return 0;
    }
    memcpy(&sample_type, bytes, sizeof sample_type);
    memcpy(&user_regs_mask, bytes + sizeof sample_type, sizeof user_regs_mask);
    size_t record_bytes = size - prefix_bytes;
    uint8_t *record = malloc(record_bytes > 0 ? record_bytes : 1);
    if (record == NULL) {
        return 0;
    }
    memcpy(record, bytes + prefix_bytes, record_bytes);

    struct perf_record_layout layout =
        perf_record_layout_make(sample_type & LAYOUT_BITS, user_regs_mask);
    layout.read_words = sample_type >> READ_WORDS_SHIFT;
    layout.follower_count = sample_type >> FOLLOWERS_SHIFT & 15;
    struct perf_record parsed;
    int r = perf_record_parse(&layout, record, record_bytes, &parsed);
    if (r != -EBADMSG && (r != 0 || !perf_record_views_inside(&parsed, record, record_bytes))) {
        abort();
    }
    free(record);
    return 0;
}
