/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Whatever the rings hold, a round ends, every sample is in the books once, and what comes out is a
 * recording that the strict reader takes. The input is a mode, the first round's horizon, for each
 * ring how many bytes it holds, its tail and how far its head is off, and then those bytes.
 */
#include "extremes.h"
#include "fuzz_target.h"
#include "fxt_reader.h"
#include "ring_world.h"

#include <stdlib.h>
#include <string.h>

struct ring_input {
    uint16_t content_bytes;
    uint16_t tail;
    int32_t head_off;
};

struct input {
    uint64_t mode;
    uint64_t horizon_ns;
    struct ring_input rings[2 * RING_CPU_COUNT];
};

static size_t fill_ring(struct ring_world *world, size_t index, const struct ring_input *input,
                        const uint8_t *bytes, size_t size)
{
    struct perf_cpu *cpu = &world->cpus[index / 2];
    struct perf_ring *ring = index % 2 == 0 ? &cpu->streams[PERF_STREAM_CLOCK].ring
                                            : &cpu->streams[PERF_STREAM_SIDEBAND].ring;
    uint64_t tail = RING_BYTES - UINT16_MAX / 2 + input->tail;
    size_t content_bytes = min_u64(input->content_bytes, size);
    uint8_t *data = (uint8_t *)world->data[index / 2][index % 2];
    size_t at = tail / 8 * 8 % RING_BYTES;
    size_t unwrapped_bytes = min_u64(content_bytes, RING_BYTES - at);
    memcpy(data + at, bytes, unwrapped_bytes);
    memcpy(data, bytes + unwrapped_bytes, content_bytes - unwrapped_bytes);
    ring->meta->data_tail = tail;
    ring->meta->data_head = tail / 8 * 8 + content_bytes + (uint64_t)input->head_off;
    perf_ring_init(ring, ring->meta, ring->data, RING_BYTES, ring->bounce);
    return content_bytes;
}

static void check(struct ring_world *world)
{
    size_t file_bytes = 0;
    struct fxt_record record;
    trace_poll(world->trace);
    for (size_t i = 0; i < RING_CPU_COUNT; i++) {
        const struct books_cpu counts = drain_books(world->drain, 0, i);
        if (counts.received != counts.kept + counts.filtered + counts.dropped) {
            abort();
        }
    }
    const uint8_t *file = ring_world_file(world, &file_bytes);
    struct fxt_reader *reader = fxt_reader_new();
    for (size_t at = 0; file != NULL && reader != NULL && at < file_bytes;
         at += record.size_bytes) {
        if (fxt_reader_next(reader, file + at, file_bytes - at, &record) != 1) {
            abort();
        }
    }
    (void)fxt_reader_free(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct input input;
    if (size < sizeof input) {
        return 0;
    }
    memcpy(&input, bytes, sizeof input);
    size_t used = sizeof input;
    struct ring_world *world = ring_world_new(&(struct ring_world_options){
        .unwind = input.mode % 2 == 0 ? SESSION_UNWIND_FP : SESSION_UNWIND_AUTO});
    for (size_t i = 0; world != NULL && i < 2 * RING_CPU_COUNT; i++) {
        used += fill_ring(world, i, &input.rings[i], bytes + used, size - used);
    }
    if (world != NULL) {
        drain_all(world->drain, input.horizon_ns);
        process_table_prune(world->processes, input.horizon_ns);
        drain_all(world->drain, UINT64_MAX);
        (void)drain_held(world->drain, UINT64_MAX);
        check(world);
    }
    (void)ring_world_free(world);
    return 0;
}
