/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Opens perf events and maps their rings. Every online CPU gets two events: cpu-clock, which
 * samples, and a dummy, which records what processes do; each has a ring of its own, so that a
 * flood of the one cannot push out the other. Invariants: a struct perf_cpu in the table has both
 * events open and both rings mapped; all events have the same clock (CLOCK_BOOTTIME) and the same
 * ids in their records, so one layout parses both rings. A CPU that goes offline while we open is
 * left out. Memory that can hold copied stacks, the rings and what their records are put together
 * in, is in no core dump.
 *
 * perf_plan says how large rings are; reading them is left to the collector. A CPU that comes
 * online later is not sampled.
 */
#include "perf_source.h"

#include "arch_x86_64.h"
#include "cleanup.h"
#include "perf_abi.h"
#include "perf_plan.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_SECOND ((uint64_t)1000000000)

#define ONLINE_PATH    "/sys/devices/system/cpu/online"
#define MAX_STACK_PATH "/proc/sys/kernel/perf_event_max_stack"
#define PARANOID_PATH  "/proc/sys/kernel/perf_event_paranoid"

/* What we read of sysfs and sysctl ends within a page. */
#define SMALL_FILE_BYTES ((size_t)4096)

/* The kernel's own default, for kernels that have no such sysctl. */
#define MAX_STACK_DEFAULT 127

#define SIDEBAND_WATERMARK_BYTES 65536

/* The first ticks of all CPUs are spread over one period, or over this where a period is longer. */
#define PHASE_WINDOW_MAX_NS ((uint64_t)1000000)

#define ID_BITS (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU)

/* Reads a small text file. Returns 0 or -errno. */
static int read_small_file(const char *path, char text[SMALL_FILE_BYTES])
{
    cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    ssize_t size = read(fd, text, SMALL_FILE_BYTES);
    if (size < 0) {
        return -errno;
    }
    if ((size_t)size == SMALL_FILE_BYTES) {
        return -E2BIG;
    }
    text[size] = '\0';
    return 0;
}

static long read_number(const char *path, long otherwise)
{
    char text[SMALL_FILE_BYTES];
    if (read_small_file(path, text) < 0) {
        return otherwise;
    }
    char *end = text;
    long number = strtol(text, &end, 10);
    return end == text ? otherwise : number;
}

static int read_online_cpus(uint32_t **ret_cpus, size_t *ret_count, struct fault *reterr)
{
    char text[SMALL_FILE_BYTES];
    int r = read_small_file(ONLINE_PATH, text);
    if (r >= 0) {
        r = perf_plan_cpus(text, ret_cpus, ret_count);
    }
    if (r < 0) {
        (void)fault_set(reterr, -r, "cannot read the CPUs from " ONLINE_PATH ": %s", strerror(-r));
    }
    return r;
}

static int open_event(const struct perf_event_attr *attr, uint32_t cpu)
{
    long fd = syscall(SYS_perf_event_open, attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
    return fd < 0 ? -errno : (int)fd;
}

static struct perf_event_attr common_attr(uint64_t config)
{
    return (struct perf_event_attr){
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof(struct perf_event_attr),
        .config = config,
        .disabled = 1,
        .sample_id_all = 1,
        .use_clockid = 1,
        .clockid = CLOCK_BOOTTIME,
        .watermark = 1,
    };
}

/* What samples hold. Sideband has the ids alone, so one layout describes both. */
static uint64_t sample_type(const struct perf_source_config *config)
{
    uint64_t type = ID_BITS | PERF_SAMPLE_CALLCHAIN;
    return config->stack_copy_bytes == 0 ? type
                                         : type | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
}

static struct perf_event_attr sampling_attr(const struct perf_source_config *config,
                                            const struct perf_features *features)
{
    struct perf_event_attr attr = common_attr(PERF_COUNT_SW_CPU_CLOCK);
    attr.sample_period = config->period_ns;
    attr.sample_type = sample_type(config);
    attr.sample_regs_user = config->stack_copy_bytes == 0 ? 0 : ARCH_PERF_REGS_MASK;
    attr.sample_stack_user = config->stack_copy_bytes;
    attr.read_format =
        PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING | PERF_FORMAT_ID;
    if (features->format_lost) {
        attr.read_format |= PERF_FORMAT_LOST;
    }
    attr.exclude_idle = 1;
    attr.exclude_hv = 1;
    attr.exclude_guest = 1;
    attr.exclude_callchain_kernel = !config->kernel_stacks;
    return attr;
}

static struct perf_event_attr sideband_attr(const struct perf_features *features)
{
    struct perf_event_attr attr = common_attr(PERF_COUNT_SW_DUMMY);
    attr.sample_type = ID_BITS;
    attr.mmap = 1;
    attr.mmap2 = 1;
    attr.build_id = features->build_id;
    attr.comm = 1;
    attr.comm_exec = 1;
    attr.task = 1;
    attr.wakeup_watermark = SIDEBAND_WATERMARK_BYTES;
    return attr;
}

/* Sets bits of the word of flags, which may have no name in the system's header. */
static void add_flags(struct perf_event_attr *attr, uint64_t flags)
{
    enum {
        FLAGS_OFFSET = offsetof(struct perf_event_attr, read_format) + sizeof(uint64_t)
    };
    _Static_assert(offsetof(struct perf_event_attr, wakeup_events) ==
                       FLAGS_OFFSET + sizeof(uint64_t),
                   "the flags are one word");
    uint64_t word;
    memcpy(&word, (const uint8_t *)attr + FLAGS_OFFSET, sizeof word);
    word |= flags;
    memcpy((uint8_t *)attr + FLAGS_OFFSET, &word, sizeof word);
}

static int fault_refused(int error, struct fault *reterr)
{
    return fault_set(
        reterr, error,
        "the kernel refuses perf events on all CPUs (kernel.perf_event_paranoid is "
        "%ld): CAP_PERFMON is needed; at 3, which Debian's own kernels have, "
        "CAP_SYS_ADMIN or the sysctl at 2; a container's seccomp profile or a security "
        "module may refuse as well",
        read_number(PARANOID_PATH, -1));
}

static int fault_descriptors(int error, struct fault *reterr)
{
    struct rlimit limit = {0};
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    return fault_set(
        reterr, error,
        "no file descriptor is left for the events, two for each CPU: RLIMIT_NOFILE is "
        "%llu; raise LimitNOFILE= or ulimit -n",
        (unsigned long long)limit.rlim_cur);
}

/* `error` of perf_event_open(), positive. */
static int fault_open(int error, struct fault *reterr)
{
    switch (error) {
    case EACCES:
    case EPERM:
        return fault_refused(error, reterr);
    case ENOSYS:
    case ENOENT:
    case EOPNOTSUPP:
        return fault_set(reterr, error,
                         "this kernel has no perf events (CONFIG_PERF_EVENTS), or a container's "
                         "seccomp profile hides perf_event_open: %s",
                         strerror(error));
    case EMFILE:
    case ENFILE:
        return fault_descriptors(error, reterr);
    case EINVAL:
    case E2BIG:
        return fault_set(
            reterr, EOPNOTSUPP,
            "this kernel does not know an event that is needed: Linux 4.8 or newer is");
    default:
        return fault_set(reterr, error, "cannot open a perf event: %s", strerror(error));
    }
}

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

static bool accepts(const struct perf_event_attr *attr, uint32_t cpu)
{
    cleanup_(closep) int fd = open_event(attr, cpu);
    return fd >= 0;
}

/* Returns 0, or -errno when this CPU has no event at all. */
static int probe_cpu(uint32_t cpu, struct perf_features *ret)
{
    static const struct perf_source_config any = {.period_ns = 1000000, .max_stack_depth = 1};
    static const struct perf_features none = {0};
    static const struct perf_features all = {.build_id = true, .format_lost = true};

    struct perf_event_attr attr = sampling_attr(&any, &none);
    cleanup_(closep) int fd = open_event(&attr, cpu);
    if (fd < 0) {
        return fd;
    }
    struct perf_event_attr deferring = sideband_attr(&none);
    deferring.sample_type |= PERF_SAMPLE_CALLCHAIN;
    add_flags(&deferring, PERF_ATTR_FLAG_DEFER_CALLCHAIN | PERF_ATTR_FLAG_DEFER_OUTPUT);
    struct perf_event_attr with_lost = sampling_attr(&any, &all);
    struct perf_event_attr with_build_id = sideband_attr(&all);
    *ret = (struct perf_features){
        .deferred_callchains = accepts(&deferring, cpu),
        .format_lost = accepts(&with_lost, cpu),
        .build_id = accepts(&with_build_id, cpu),
    };
    return 0;
}

/* Probes on the first CPU that is still online. */
static int probe_cpus(const uint32_t *cpus, size_t count, struct perf_features *ret,
                      struct fault *reterr)
{
    int r = -ENODEV;
    for (size_t i = 0; i < count && r == -ENODEV; i++) {
        r = probe_cpu(cpus[i], ret);
    }
    return r < 0 ? fault_open(-r, reterr) : 0;
}

int perf_source_probe(struct perf_features *ret, struct fault *reterr)
{
    cleanup_(freep) uint32_t *cpus = NULL;
    size_t count = 0;
    int r = read_online_cpus(&cpus, &count, reterr);
    return r < 0 ? r : probe_cpus(cpus, count, ret, reterr);
}

static void close_cpu(struct perf_cpu *cpu)
{
    if (cpu->sample_map != NULL) {
        (void)munmap(cpu->sample_map, cpu->sample_map_bytes);
    }
    if (cpu->sideband_map != NULL) {
        (void)munmap(cpu->sideband_map, cpu->sideband_map_bytes);
    }
    cpu->sample_fd = close_fd(cpu->sample_fd);
    cpu->sideband_fd = close_fd(cpu->sideband_fd);
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
    cpu->sample_map_bytes = page_bytes + plan->sample_ring_bytes;
    cpu->sideband_map_bytes = page_bytes + plan->sideband_ring_bytes;
    int r = map_ring(cpu->sample_fd, plan->sample_ring_bytes, bounces, &cpu->sample_map,
                     &cpu->sample_ring);
    if (r < 0) {
        return fault_map(-r, cpu->sample_map_bytes, reterr);
    }
    r = map_ring(cpu->sideband_fd, plan->sideband_ring_bytes, bounces + PERF_RING_BOUNCE_BYTES,
                 &cpu->sideband_map, &cpu->sideband_ring);
    return r < 0 ? fault_map(-r, cpu->sideband_map_bytes, reterr) : 0;
}

/* Opens and maps one CPU into `cpu`, which close_cpu() releases whether this succeeds or not. */
static int open_cpu(const struct perf_source *source, const struct perf_plan *plan,
                    uint8_t *bounces, struct perf_cpu *cpu, struct fault *reterr)
{
    struct perf_event_attr attr = sampling_attr(&source->config, &source->features);
    attr.sample_max_stack = plan->sample_max_stack;
    attr.wakeup_watermark = (uint32_t)(plan->sample_ring_bytes / 4);
    add_flags(&attr, source->deferring ? PERF_ATTR_FLAG_DEFER_CALLCHAIN : 0);
    cpu->sample_fd = open_event(&attr, cpu->cpu);
    if (cpu->sample_fd < 0) {
        return fault_open(-cpu->sample_fd, reterr);
    }
    attr = sideband_attr(&source->features);
    attr.build_id =
        0; /* it would stand where device and inode do, and those say which file it is */
    add_flags(&attr, source->deferring ? PERF_ATTR_FLAG_DEFER_OUTPUT : 0);
    cpu->sideband_fd = open_event(&attr, cpu->cpu);
    if (cpu->sideband_fd < 0) {
        return fault_open(-cpu->sideband_fd, reterr);
    }
    return map_rings(plan, bounces, cpu, reterr);
}

static int open_cpus(struct perf_source *source, const struct perf_plan *plan, const uint32_t *cpus,
                     size_t count, struct fault *reterr)
{
    for (size_t i = 0; i < count; i++) {
        struct perf_cpu *cpu = &source->cpus[source->cpu_count];
        uint8_t *bounces = source->bounces + source->cpu_count * 2 * PERF_RING_BOUNCE_BYTES;
        *cpu = (struct perf_cpu){.cpu = cpus[i], .sample_fd = -1, .sideband_fd = -1};
        int r = open_cpu(source, plan, bounces, cpu, reterr);
        if (r < 0) {
            close_cpu(cpu);
        }
        if (r < 0 && r != -ENODEV) {
            return r;
        }
        if (r == 0) {
            source->cpu_count++;
            source->ring_bytes += cpu->sample_map_bytes + cpu->sideband_map_bytes;
        }
    }
    return source->cpu_count > 0 ? 0 : fault_set(reterr, ENODEV, "all CPUs went offline");
}

static int make_plan(const struct perf_source_config *config, size_t cpu_count,
                     struct perf_plan *ret, struct fault *reterr)
{
    uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    struct perf_plan_input input = {
        .period_ns = config->period_ns,
        .max_stack_depth = config->max_stack_depth,
        .stack_copy_bytes = config->stack_copy_bytes,
        .user_regs_count = ARCH_PERF_REGS_COUNT,
        .kernel_stacks = config->kernel_stacks,
        .sysctl_max_stack = (uint32_t)read_number(MAX_STACK_PATH, MAX_STACK_DEFAULT),
        .cpu_count = cpu_count,
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
    source->layout = perf_record_layout_make(
        sample_type(config), config->stack_copy_bytes == 0 ? 0 : ARCH_PERF_REGS_MASK);
    source->cpus = calloc(count, sizeof *source->cpus);
    source->bounces_bytes = count * 2 * PERF_RING_BOUNCE_BYTES;
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
    int r = read_online_cpus(&cpus, &count, reterr);
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
        r = open_cpus(source, &plan, cpus, count, reterr);
    }
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
    for (size_t i = 0; i < source->cpu_count; i++) {
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
    for (size_t i = 0; i < source->cpu_count; i++) {
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

static uint64_t monotonic_now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
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
    uint64_t slice_ns = window_ns / source->cpu_count + 1;
    uint64_t start_ns = monotonic_now_ns();
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
    }
    return 0;
}

int perf_source_enable_sampling(struct perf_source *source)
{
    int r = enable_at_random_phases(source);
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
