/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Opens and maps what one CPU has: all of it, or nothing. Which events those are, perf_open knows;
 * how large their rings are, the source's plan.
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

static void unmap_ring(void *map, size_t bytes)
{
    if (map != NULL) {
        (void)munmap(map, bytes);
    }
}

void perf_cpu_close(struct perf_cpu *cpu)
{
    unmap_ring(cpu->sample_map, cpu->sample_map_bytes);
    unmap_ring(cpu->sideband_map, cpu->sideband_map_bytes);
    unmap_ring(cpu->switch_map, cpu->switch_map_bytes);
    (void)close_fd(cpu->sample_fd);
    (void)close_fd(cpu->sideband_fd);
    (void)close_fd(cpu->switch_fd);
    *cpu = (struct perf_cpu){
        .cpu = cpu->cpu,
        .absent = true,
        .sample_fd = -1,
        .sideband_fd = -1,
        .switch_fd = -1,
    };
}

int perf_cpu_hide(void *map, size_t bytes)
{
    return madvise(map, bytes, MADV_DONTDUMP) < 0 ? -errno : 0;
}

/*
 * Maps a ring with its control page. Returns 0 or -errno; `ret_map` is set when there is something
 * to unmap.
 */
static int map_ring(int fd, uint64_t data_bytes, uint8_t *bounce, void **ret_map,
                    struct perf_ring *ret_ring)
{
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    void *map = mmap(NULL, page_bytes + data_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) {
        return -errno;
    }
    perf_ring_init(ret_ring, map, (const uint8_t *)map + page_bytes, data_bytes, bounce);
    *ret_map = map;
    return perf_cpu_hide(map, page_bytes + data_bytes);
}

static int map_rings(const struct perf_plan *plan, uint8_t *bounces, struct perf_cpu *cpu,
                     struct fault *reterr)
{
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    int r = 0;
    cpu->sample_map_bytes = cpu->sample_fd < 0 ? 0 : page_bytes + plan->sample_ring_bytes;
    cpu->sideband_map_bytes = page_bytes + plan->sideband_ring_bytes;
    cpu->switch_map_bytes = cpu->switch_fd < 0 ? 0 : page_bytes + plan->switch_ring_bytes;
    if (cpu->sample_fd >= 0) {
        r = map_ring(cpu->sample_fd, plan->sample_ring_bytes, bounces, &cpu->sample_map,
                     &cpu->sample_ring);
    }
    if (r < 0) {
        return fault_map(-r, cpu->sample_map_bytes, reterr);
    }
    r = map_ring(cpu->sideband_fd, plan->sideband_ring_bytes, bounces + PERF_RING_BOUNCE_BYTES,
                 &cpu->sideband_map, &cpu->sideband_ring);
    if (r < 0) {
        return fault_map(-r, cpu->sideband_map_bytes, reterr);
    }
    if (cpu->switch_fd >= 0) {
        r = map_ring(cpu->switch_fd, plan->switch_ring_bytes, bounces + 2 * PERF_RING_BOUNCE_BYTES,
                     &cpu->switch_map, &cpu->switch_ring);
    }
    return r < 0 ? fault_map(-r, cpu->switch_map_bytes, reterr) : 0;
}

static int open_events(const struct perf_source *source, bool sampled, struct perf_cpu *cpu,
                       struct fault *reterr)
{
    if (sampled) {
        cpu->sample_fd = perf_open_sampling(&source->config, &source->features, &source->plan,
                                            source->deferring, cpu->cpu);
        if (cpu->sample_fd < 0) {
            return perf_open_fault(-cpu->sample_fd, reterr);
        }
    }
    cpu->sideband_fd =
        perf_open_sideband(&source->features, &source->plan, source->deferring, cpu->cpu);
    if (cpu->sideband_fd < 0) {
        return perf_open_fault(-cpu->sideband_fd, reterr);
    }
    if (sampled && source->has_switches) {
        cpu->switch_fd = perf_open_switches(cpu->cpu);
        if (cpu->switch_fd < 0) {
            return perf_open_fault(-cpu->switch_fd, reterr);
        }
    }
    return 0;
}

int perf_cpu_open(const struct perf_source *source, bool sampled, uint8_t *bounces,
                  struct perf_cpu *cpu, struct fault *reterr)
{
    *cpu = (struct perf_cpu){.cpu = cpu->cpu, .sample_fd = -1, .sideband_fd = -1, .switch_fd = -1};
    int r = open_events(source, sampled, cpu, reterr);
    if (r == 0) {
        r = map_rings(&source->plan, bounces, cpu, reterr);
    }
    if (r < 0) {
        perf_cpu_close(cpu);
    }
    return r;
}

uint64_t perf_cpu_ring_bytes(const struct perf_cpu *cpu)
{
    return cpu->sample_map_bytes + cpu->sideband_map_bytes + cpu->switch_map_bytes;
}

int perf_cpu_control(int fd, unsigned long request)
{
    return fd >= 0 && ioctl(fd, request, 0) < 0 ? -errno : 0;
}
