/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Opens the events of one CPU and maps their rings: all of them, or none. perf_open has the events'
 * attributes, and the source's plan the sizes of the rings.
 */
#include "perf_cpu.h"

#include "cleanup.h"
#include "perf_open.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static int fault_map(int error, size_t bytes, struct fault *reterr)
{
    if (error == EPERM) {
        struct rlimit limit = {0};
        (void)getrlimit(RLIMIT_MEMLOCK, &limit);
        return fault_set(reterr, error,
                         "cannot lock %zu KiB for a ring: RLIMIT_MEMLOCK is %llu KiB and "
                         "kernel.perf_event_mlock_kb is used up; CAP_IPC_LOCK or a higher "
                         "LimitMEMLOCK= is needed",
                         bytes >> 10, (unsigned long long)(limit.rlim_cur >> 10));
    }
    return fault_set(reterr, error, "cannot map %zu KiB for a ring: %s", bytes >> 10,
                     strerror(error));
}

void perf_cpu_init(struct perf_cpu *cpu, uint32_t number)
{
    *cpu = (struct perf_cpu){.cpu = number, .absent = true};
    for (size_t i = 0; i < PERF_STREAMS; i++) {
        cpu->streams[i].fd = -1;
    }
}

void perf_cpu_close(struct perf_cpu *cpu)
{
    for (size_t i = 0; i < PERF_STREAMS; i++) {
        struct perf_stream *stream = &cpu->streams[i];
        if (stream->map != NULL) {
            (void)munmap(stream->map, stream->map_bytes);
        }
        (void)close_fd(stream->fd);
    }
    perf_cpu_init(cpu, cpu->cpu);
}

int perf_cpu_hide(void *map, size_t bytes)
{
    return madvise(map, bytes, MADV_DONTDUMP) < 0 ? -errno : 0;
}

static uint64_t ring_bytes(const struct perf_plan *plan, enum perf_stream_kind kind)
{
    switch (kind) {
    case PERF_STREAM_CLOCK:
        return plan->sample_ring_bytes;
    case PERF_STREAM_SIDEBAND:
        return plan->sideband_ring_bytes;
    case PERF_STREAM_SWITCHES:
    case PERF_STREAMS:
        break;
    }
    return plan->switch_ring_bytes;
}

/* Maps the ring with its control page. `map` is set when there is something to unmap. */
static int map_ring(struct perf_stream *stream, uint64_t data_bytes, uint8_t *bounce,
                    struct fault *reterr)
{
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    stream->map_bytes = page_bytes + data_bytes;
    void *map = mmap(NULL, stream->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, stream->fd, 0);
    if (map == MAP_FAILED) {
        return fault_map(errno, stream->map_bytes, reterr);
    }
    stream->map = map;
    perf_ring_init(&stream->ring, map, (const uint8_t *)map + page_bytes, data_bytes, bounce);
    int r = perf_cpu_hide(map, stream->map_bytes);
    return r < 0 ? fault_map(-r, stream->map_bytes, reterr) : 0;
}

/* A descriptor, or -errno. */
static int open_event(const struct perf_source *source, enum perf_stream_kind kind, uint32_t cpu)
{
    switch (kind) {
    case PERF_STREAM_CLOCK:
        return perf_open_sampling(&source->config, &source->features, &source->plan,
                                  source->deferring, cpu);
    case PERF_STREAM_SIDEBAND:
        return perf_open_sideband(&source->features, &source->plan, source->deferring, cpu);
    case PERF_STREAM_SWITCHES:
    case PERF_STREAMS:
        break;
    }
    return perf_open_switches(cpu);
}

/* Which streams a CPU has: sideband in any case. */
static bool has_stream(const struct perf_source *source, bool sampled, enum perf_stream_kind kind)
{
    return kind == PERF_STREAM_SIDEBAND ||
           (sampled && (kind != PERF_STREAM_SWITCHES || source->has_switches));
}

int perf_cpu_open(const struct perf_source *source, bool sampled, uint8_t *bounces,
                  struct perf_cpu *cpu, struct fault *reterr)
{
    int r = 0;
    perf_cpu_init(cpu, cpu->cpu);
    for (enum perf_stream_kind kind = 0; kind < PERF_STREAMS && r == 0; kind++) {
        struct perf_stream *stream = &cpu->streams[kind];
        if (!has_stream(source, sampled, kind)) {
            continue;
        }
        stream->fd = open_event(source, kind, cpu->cpu);
        r = stream->fd < 0 ? perf_open_fault(-stream->fd, reterr)
                           : map_ring(stream, ring_bytes(&source->plan, kind),
                                      bounces + kind * PERF_RING_BOUNCE_BYTES, reterr);
    }
    if (r < 0) {
        perf_cpu_close(cpu);
        return r;
    }
    cpu->absent = false;
    return 0;
}

uint64_t perf_cpu_ring_bytes(const struct perf_cpu *cpu)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < PERF_STREAMS; i++) {
        bytes += cpu->streams[i].map_bytes;
    }
    return bytes;
}

int perf_cpu_control(int fd, unsigned long request)
{
    return fd >= 0 && ioctl(fd, request, 0) < 0 ? -errno : 0;
}
