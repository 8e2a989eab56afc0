/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Keeps what the kernel writes into the rings of a real perf source (unit/ring_recording.h), user
 * chains by frame pointers alone, so that tests can play it again. Arguments: the file to write,
 * the period in nanoseconds, how many rounds, and their length in milliseconds.
 */
#include "clock.h"
#include "perf_source.h"

#include "ring_recording.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HORIZON_LAG_NS 1000000

static void write_block(FILE *file, struct ring_block block, const void *bytes)
{
    if (fwrite(&block, sizeof block, 1, file) != 1 ||
        fwrite(bytes, 1, block.size_bytes, file) != block.size_bytes) {
        perror("cannot write");
        exit(1);
    }
}

/* One block for each record: a ring may hold more than a buffer of ours. */
static void keep_ring(FILE *file, uint32_t index, struct perf_ring *ring)
{
    const uint8_t *bytes = NULL;
    size_t size_bytes = 0;
    while (perf_ring_peek(ring, &bytes, &size_bytes) > 0) {
        write_block(file, (struct ring_block){.ring = index, .size_bytes = (uint32_t)size_bytes},
                    bytes);
        perf_ring_advance(ring, size_bytes);
    }
    (void)perf_ring_publish(ring);
}

static void keep_round(FILE *file, struct perf_source *source, uint64_t horizon_ns)
{
    for (size_t i = 0; i < source->cpu_count; i++) {
        perf_ring_refresh(&source->cpus[i].streams[PERF_STREAM_CLOCK].ring);
    }
    for (size_t i = 0; i < source->cpu_count; i++) {
        perf_ring_refresh(&source->cpus[i].streams[PERF_STREAM_SIDEBAND].ring);
        keep_ring(file, RING_SIDEBAND(i), &source->cpus[i].streams[PERF_STREAM_SIDEBAND].ring);
        keep_ring(file, RING_SAMPLES(i), &source->cpus[i].streams[PERF_STREAM_CLOCK].ring);
    }
    write_block(file, (struct ring_block){.ring = RING_ROUND_END, .horizon_ns = horizon_ns}, "");
}

static int record(FILE *file, struct perf_source *source, long round_count, long round_ms)
{
    const struct timespec wait = {.tv_sec = round_ms / 1000, .tv_nsec = round_ms % 1000 * 1000000};
    const struct ring_recording head = {
        .magic = RING_RECORDING_MAGIC,
        .sample_type = source->layout.sample_type,
        .cpu_count = (uint32_t)source->cpu_count,
        .sample_max_stack = source->sample_max_stack,
    };
    if (fwrite(&head, sizeof head, 1, file) != 1 || perf_source_enable_sideband(source) < 0 ||
        perf_source_enable_sampling(source) < 0) {
        perror("cannot begin");
        return 1;
    }
    for (long i = 0; i < round_count; i++) {
        (void)nanosleep(&wait, NULL);
        keep_round(file, source, clock_ns(CLOCK_BOOTTIME) - HORIZON_LAG_NS);
    }
    if (perf_source_disable_sampling(source) < 0) {
        perror("cannot end");
        return 1;
    }
    keep_round(file, source, UINT64_MAX);
    printf("deferred chains: %s\n", source->deferring ? "yes" : "no");
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        (void)fprintf(stderr, "usage: %s FILE PERIOD_NS ROUNDS ROUND_MS\n", argv[0]);
        return 2;
    }
    const struct perf_source_config config = {.period_ns = strtoull(argv[2], NULL, 10),
                                              .max_stack_depth = 127};
    struct perf_source *source = NULL;
    struct fault fault = {0};
    FILE *file = fopen(argv[1], "we");
    if (file == NULL || config.period_ns == 0) {
        perror(argv[1]);
        return 1;
    }
    int r = perf_source_open(&config, &source, &fault);
    if (r < 0) {
        (void)fprintf(stderr, "cannot open: %s\n", fault.text);
        return 1;
    }
    r = record(file, source, strtol(argv[3], NULL, 10), strtol(argv[4], NULL, 10));
    (void)perf_source_free(source);
    return fclose(file) == 0 ? r : 1;
}
