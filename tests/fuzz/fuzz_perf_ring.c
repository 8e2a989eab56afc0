/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Whatever head, tail and content are, reading ends at the head, and shows whole records that are
 * in memory. The input is the tail, the head, and the content of a ring of 256 bytes.
 */
#include "fuzz_target.h"
#include "perf_ring.h"

#include "perf_abi.h"

#include <stdlib.h>
#include <string.h>

#define DATA_BYTES ((size_t)256)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct perf_event_mmap_page meta;
    static _Alignas(8) uint8_t data[DATA_BYTES], bounce[DATA_BYTES], copy[DATA_BYTES];
    if (size < 16 || size > 16 + DATA_BYTES) {
        return 0;
    }
    memcpy(&meta.data_tail, bytes, 8);
    memcpy(&meta.data_head, bytes + 8, 8);
    memset(data, 0, DATA_BYTES);
    memcpy(data, bytes + 16, size - 16);

    struct perf_ring ring;
    const uint8_t *record = NULL;
    size_t record_bytes = 0;
    perf_ring_init(&ring, &meta, data, DATA_BYTES, bounce);
    perf_ring_refresh(&ring);
    uint64_t left_bytes = ring.head - ring.tail;
    while (perf_ring_peek(&ring, &record, &record_bytes) > 0) {
        if (record_bytes < sizeof(struct perf_event_header) || record_bytes > left_bytes) {
            abort();
        }
        memcpy(copy, record, record_bytes);
        left_bytes -= record_bytes;
        perf_ring_advance(&ring, record_bytes);
    }
    if (ring.tail != ring.head || meta.data_head - ring.tail >= 8) {
        abort();
    }
    return 0;
}
