/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the kernel wrote into the rings of one run, as tests/system/ring_recorder.c keeps it for
 * tests that have no such kernel. One `ring_recording` and then blocks, each a `ring_block` with
 * `size_bytes` bytes of whole records behind it, all multiples of 8, in this machine's byte order.
 * A round is one block for each ring that had something (taken as the collector takes it: the heads
 * of all sample rings were noted before sideband was looked at), then a block of RING_ROUND_END
 * with the round's horizon.
 */

#include <stdint.h>

#define RING_RECORDING_MAGIC UINT64_C(0x676e697266726570) /* "perfring" */

struct ring_recording {
    uint64_t magic;
    uint64_t sample_type; /* perf_record_layout.sample_type; there are no registers */
    uint32_t cpu_count;
    uint32_t sample_max_stack;
};

#define RING_ROUND_END         UINT32_MAX
#define RING_SAMPLES(cpu)      ((uint32_t)(cpu)*2)
#define RING_SIDEBAND(cpu)     ((uint32_t)(cpu)*2 + 1)
#define RING_IS_SIDEBAND(ring) ((ring) % 2 == 1)

struct ring_block {
    uint32_t ring; /* of the CPU at that index, or RING_ROUND_END */
    uint32_t size_bytes;
    uint64_t horizon_ns; /* of RING_ROUND_END */
};
