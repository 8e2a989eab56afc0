/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Opens perf events and maps their rings. Every online CPU gets a dummy, which records what
 * processes do; those that are sampled get cpu-clock as well, which samples, and another dummy,
 * which records switches; each has a ring of its own, so that a flood of the one cannot push out
 * the others. Invariants: a struct perf_cpu in the table has all its events open and their rings
 * mapped. A CPU that goes offline while we open is left out. Memory that can hold copied stacks,
 * the rings and what their records are put together in, is in no core dump.
 *
 * perf_open knows the events and perf_plan how large rings are; reading them is left to the
 * collector. A CPU that comes online later is not sampled.
 */
#include "perf_source.h"

#include "arch_x86_64.h"
#include "cleanup.h"
#include "perf_abi.h"
#include "perf_machine.h"
#include "perf_open.h"
#include "perf_plan.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_SECOND ((uint64_t)1000000000)

/* The kernel's own default, for kernels that have no such sysctl. */
#define MAX_STACK_DEFAULT 127

/* The first ticks of all CPUs are spread over one period, or over this where a period is longer. */
#define PHASE_WINDOW_MAX_NS ((uint64_t)1000000)

#define RINGS_PER_CPU 3

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

/* Probes on the first CPU that is still online. */
static int probe_cpus(const uint32_t *cpus, size_t count, struct perf_features *ret,
                      struct fault *reterr)
{
    int r = -ENODEV;
    for (size_t i = 0; i < count && r == -ENODEV; i++) {
        r = perf_open_probe(cpus[i], ret);
    }
    return r < 0 ? perf_open_fault(-r, reterr) : 0;
}

int perf_source_probe(struct perf_features *ret, struct fault *reterr)
{
    cleanup_(freep) uint32_t *cpus = NULL;
    size_t count = 0;
    int r = perf_machine_online(&cpus, &count, reterr);
    return r < 0 ? r : probe_cpus(cpus, count, ret, reterr);
}

static void unmap_ring(void *map, size_t bytes)
{
    if (map != NULL) {
        (void)munmap(map, bytes);
    }
}

static void close_cpu(struct perf_cpu *cpu)
{
    unmap_ring(cpu->sample_map, cpu->sample_map_bytes);
    unmap_ring(cpu->sideband_map, cpu->sideband_map_bytes);
    unmap_ring(cpu->switch_map, cpu->switch_map_bytes);
    cpu->sample_fd = close_fd(cpu->sample_fd);
    cpu->sideband_fd = close_fd(cpu->sideband_fd);
    cpu->switch_fd = close_fd(cpu->switch_fd);
}

/* Kernels do so to perf rings by themselves; it is asked for since it must hold. */
static int hide_from_dumps(void *map, size_t bytes)
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
    return hide_from_dumps(map, page_bytes + data_bytes);
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

/*
 * Opens and maps one CPU into `cpu`, which close_cpu() releases whether this succeeds or not.
 * Returns 0, or -errno with a fault.
 */
static int open_cpu(const struct perf_source *source, const struct perf_plan *plan, bool sampled,
                    uint8_t *bounces, struct perf_cpu *cpu, struct fault *reterr)
{
    if (sampled) {
        cpu->sample_fd = perf_open_sampling(&source->config, &source->features, plan,
                                            source->deferring, cpu->cpu);
        if (cpu->sample_fd < 0) {
            return perf_open_fault(-cpu->sample_fd, reterr);
        }
    }
    cpu->sideband_fd = perf_open_sideband(&source->features, source->deferring, cpu->cpu);
    if (cpu->sideband_fd < 0) {
        return perf_open_fault(-cpu->sideband_fd, reterr);
    }
    if (sampled && source->has_switches) {
        cpu->switch_fd = perf_open_switches(cpu->cpu);
        if (cpu->switch_fd < 0) {
            return perf_open_fault(-cpu->switch_fd, reterr);
        }
    }
    return map_rings(plan, bounces, cpu, reterr);
}

static bool is_sampled(const struct perf_source_config *config, uint32_t cpu)
{
    bool found = config->cpus == NULL;
    for (size_t i = 0; i < config->cpu_count && !found; i++) {
        found = config->cpus[i] == cpu;
    }
    return found;
}

/* Opens those CPUs that are sampled, or those that are not. */
static int open_cpus(struct perf_source *source, const struct perf_plan *plan, bool sampled,
                     const uint32_t *cpus, size_t count, struct fault *reterr)
{
    for (size_t i = 0; i < count; i++) {
        size_t at = source->sideband_count;
        struct perf_cpu *cpu = &source->cpus[at];
        if (is_sampled(&source->config, cpus[i]) != sampled) {
            continue;
        }
        *cpu =
            (struct perf_cpu){.cpu = cpus[i], .sample_fd = -1, .sideband_fd = -1, .switch_fd = -1};
        int r =
            open_cpu(source, plan, sampled,
                     source->bounces + at * RINGS_PER_CPU * PERF_RING_BOUNCE_BYTES, cpu, reterr);
        if (r < 0) {
            close_cpu(cpu);
        }
        if (r < 0 && r != -ENODEV) {
            return r;
        }
        if (r == 0) {
            source->sideband_count++;
            source->cpu_count += sampled;
            source->ring_bytes +=
                cpu->sample_map_bytes + cpu->sideband_map_bytes + cpu->switch_map_bytes;
        }
    }
    return source->cpu_count > 0 ? 0 : fault_set(reterr, ENODEV, "all CPUs went offline");
}

/* Whoever names a CPU wants its samples: one that is not there is a mistake. */
static int check_cpus(const struct perf_source_config *config, const uint32_t *online,
                      size_t online_count, struct fault *reterr)
{
    size_t at = 0;
    for (size_t i = 0; i < config->cpu_count; i++) {
        uint32_t cpu = config->cpus[i];
        while (at < online_count && online[at] < cpu) {
            at++;
        }
        if (at == online_count || online[at] != cpu) {
            char path[64];
            (void)snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u", cpu);
            return fault_set_member(
                reterr, "cpus",
                "CPU %u is %s; CPUs that are online (" PERF_ONLINE_PATH ") are allowed", cpu,
                access(path, F_OK) == 0 ? "offline" : "none that this machine has");
        }
    }
    return 0;
}

static int make_plan(const struct perf_source_config *config, size_t online_count,
                     struct perf_plan *ret, struct fault *reterr)
{
    uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    struct perf_plan_input input = {
        .period_ns = config->period_ns,
        .max_stack_depth = config->max_stack_depth,
        .stack_copy_bytes = config->stack_copy_bytes,
        .user_regs_count = ARCH_PERF_REGS_COUNT,
        .kernel_stacks = config->kernel_stacks,
        .sysctl_max_stack = (uint32_t)perf_machine_number(PERF_MAX_STACK_PATH, MAX_STACK_DEFAULT),
        .cpu_count = config->cpus == NULL ? online_count : config->cpu_count,
        .sideband_count = online_count,
        .memory_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * page_bytes,
        .page_bytes = page_bytes,
    };
    return perf_plan_make(&input, ret, reterr);
}

/* Room to put a record of every ring together in; NULL when memory is out. */
static uint8_t *map_bounces(size_t bytes)
{
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map != MAP_FAILED && hide_from_dumps(map, bytes) < 0) {
        (void)munmap(map, bytes);
        map = MAP_FAILED;
    }
    return map == MAP_FAILED ? NULL : map;
}

/* Room for `count` CPUs, none of them opened yet; NULL when memory is out. */
static struct perf_source *new_source(const struct perf_source_config *config, size_t count)
{
    struct perf_source *source = calloc(1, sizeof *source);
    if (source == NULL) {
        return NULL;
    }
    source->config = *config;
    source->has_switches = perf_machine_sees_all_pids();
    source->layout = perf_open_layout(config);
    source->switch_layout = perf_open_switch_layout();
    source->cpus = calloc(count, sizeof *source->cpus);
    source->bounces_bytes = count * RINGS_PER_CPU * PERF_RING_BOUNCE_BYTES;
    source->bounces = map_bounces(source->bounces_bytes);
    if (source->cpus == NULL || source->bounces == NULL) {
        if (source->bounces != NULL) {
            (void)munmap(source->bounces, source->bounces_bytes);
        }
        free(source->cpus);
        free(source);
        return NULL;
    }
    return source;
}

int perf_source_open(const struct perf_source_config *config, struct perf_source **ret,
                     struct fault *reterr)
{
    cleanup_(freep) uint32_t *cpus = NULL;
    size_t count = 0;
    struct perf_plan plan = {0};
    int r = perf_machine_online(&cpus, &count, reterr);
    if (r >= 0) {
        r = check_cpus(config, cpus, count, reterr);
    }
    if (r >= 0) {
        r = make_plan(config, count, &plan, reterr);
    }
    if (r < 0) {
        return r;
    }

    struct perf_source *source = new_source(config, count);
    if (source == NULL) {
        return fault_set(reterr, ENOMEM, "no memory for the events of %zu CPUs", count);
    }
    source->sample_max_stack = plan.sample_max_stack;
    r = probe_cpus(cpus, count, &source->features, reterr);
    if (r == 0) {
        /* They are chains of frame pointers; beside a copied stack they would be of no use. */
        source->deferring = source->features.deferred_callchains && config->stack_copy_bytes == 0;
        r = open_cpus(source, &plan, true, cpus, count, reterr);
    }
    if (r == 0) {
        r = open_cpus(source, &plan, false, cpus, count, reterr);
    }
    source->config.cpus = NULL; /* the caller's own */
    if (r < 0) {
        (void)perf_source_free(source);
        return r;
    }
    *ret = source;
    return 0;
}

struct perf_source *perf_source_free(struct perf_source *source)
{
    if (source == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < source->sideband_count; i++) {
        close_cpu(&source->cpus[i]);
    }
    (void)munmap(source->bounces, source->bounces_bytes);
    free(source->cpus);
    free(source);
    return NULL;
}

static int control_event(int fd, unsigned long request)
{
    return ioctl(fd, request, 0) < 0 ? -errno : 0;
}

int perf_source_enable_sideband(struct perf_source *source)
{
    for (size_t i = 0; i < source->sideband_count; i++) {
        int r = control_event(source->cpus[i].sideband_fd, PERF_EVENT_IOC_ENABLE);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static void sleep_until(uint64_t monotonic_ns)
{
    struct timespec at = {
        .tv_sec = (time_t)(monotonic_ns / NS_PER_SECOND),
        .tv_nsec = (long)(monotonic_ns % NS_PER_SECOND),
    };
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR) {
    }
}

static uint64_t now_ns(clockid_t clock)
{
    struct timespec now;
    (void)clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

/*
 * A CPU's timer starts when its event is enabled, so the moments of enabling are the phases. Every
 * CPU gets a random moment in a slice of its own, which makes them differ and keeps the whole as
 * short as the window.
 */
static int enable_at_random_phases(struct perf_source *source)
{
    uint64_t window_ns = source->config.period_ns;
    window_ns = window_ns < PHASE_WINDOW_MAX_NS ? window_ns : PHASE_WINDOW_MAX_NS;
    assert(source->cpu_count > 0);
    uint64_t slice_ns = window_ns / source->cpu_count + 1;
    uint64_t start_ns = now_ns(CLOCK_MONOTONIC);
    for (size_t i = 0; i < source->cpu_count; i++) {
        uint32_t random;
        if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random) {
            return -errno;
        }
        sleep_until(start_ns + i * slice_ns + random % slice_ns);
        int r = control_event(source->cpus[i].sample_fd, PERF_EVENT_IOC_ENABLE);
        if (r < 0) {
            return r;
        }
        source->cpus[i].started_ns = now_ns(CLOCK_BOOTTIME);
    }
    return 0;
}

int perf_source_control_switches(struct perf_source *source, size_t index, bool enable)
{
    int fd = source->cpus[index].switch_fd;
    return fd < 0 ? 0 : control_event(fd, enable ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE);
}

int perf_source_enable_sampling(struct perf_source *source)
{
    int r = 0;
    for (size_t i = 0; i < source->cpu_count && r == 0; i++) {
        r = perf_source_control_switches(source, i, true);
    }
    r = r < 0 ? r : enable_at_random_phases(source);
    if (r < 0) {
        (void)perf_source_disable_sampling(source);
    }
    return r;
}

int perf_source_disable_sampling(struct perf_source *source)
{
    int result = 0;
    for (size_t i = 0; i < source->cpu_count; i++) {
        int r = control_event(source->cpus[i].sample_fd, PERF_EVENT_IOC_DISABLE);
        result = result < 0 ? result : r;
        source->cpus[i].stopped_ns = now_ns(CLOCK_BOOTTIME);
        r = perf_source_control_switches(source, i, false);
        result = result < 0 ? result : r;
    }
    return result;
}

int perf_source_read_count(const struct perf_source *source, size_t index, struct perf_count *ret)
{
    /* As read_format lays it out; the last word is there with PERF_FORMAT_LOST only. */
    struct {
        uint64_t value;
        uint64_t time_enabled_ns;
        uint64_t time_running_ns;
        uint64_t id;
        uint64_t lost_count;
    } read_out = {0};
    size_t wanted_bytes = sizeof read_out - (source->features.format_lost ? 0 : sizeof(uint64_t));
    assert(index < source->cpu_count);
    ssize_t size = read(source->cpus[index].sample_fd, &read_out, wanted_bytes);
    if (size < 0) {
        return -errno;
    }
    if ((size_t)size != wanted_bytes) {
        return -EIO;
    }
    *ret = (struct perf_count){
        .time_enabled_ns = read_out.time_enabled_ns,
        .time_running_ns = read_out.time_running_ns,
        .lost_count = read_out.lost_count,
    };
    return 0;
}
