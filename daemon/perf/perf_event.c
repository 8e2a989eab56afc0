/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The events that a CPU can have: their attributes, the probes for what this kernel supports, the
 * explanation of its errors, and the events of one CPU with their rings, all of them or none. All
 * events use CLOCK_BOOTTIME. Records of sampling and sideband have the same ids, so one layout
 * parses both. Switch records come by the ten thousand, so they have the fewest fields that show
 * idleness.
 */
#include "perf_event.h"

#include "arch_x86_64.h"
#include "cleanup.h"
#include "perf_machine.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SIDEBAND_WATERMARK_BYTES 65536
#define TRIED_PERIOD             1000000 /* any that each counter takes */

#define ID_BITS     (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU)
#define SWITCH_BITS (PERF_SAMPLE_TID | PERF_SAMPLE_TIME)

/* `leader_fd` -1: the event has no leader. */
static int open_in_group(const struct perf_event_attr *attr, uint32_t cpu, int leader_fd)
{
    long fd = syscall(SYS_perf_event_open, attr, -1, (int)cpu, leader_fd, PERF_FLAG_FD_CLOEXEC);
    return fd < 0 ? -errno : (int)fd;
}

static int open_event(const struct perf_event_attr *attr, uint32_t cpu)
{
    return open_in_group(attr, cpu, -1);
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
static uint64_t sample_type(const struct perf_source_config *config,
                            const struct perf_features *features)
{
    uint64_t type = ID_BITS | PERF_SAMPLE_CALLCHAIN;
    if (config->stack_copy_bytes != 0) {
        type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
    }
    return features->cgroup ? type | PERF_SAMPLE_CGROUP : type;
}

static struct perf_event_attr sampling_attr(const struct perf_source_config *config,
                                            const struct perf_features *features)
{
    struct perf_event_attr attr = common_attr(PERF_COUNT_SW_CPU_CLOCK);
    attr.sample_period = config->period_ns;
    attr.sample_type = sample_type(config, features);
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
    attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED;
    attr.mmap = 1;
    attr.mmap2 = 1;
    attr.build_id = features->build_id;
    attr.comm = 1;
    attr.comm_exec = 1;
    attr.task = 1;
    attr.ksymbol = features->ksymbol;
    attr.cgroup = features->cgroup;
    attr.wakeup_watermark = SIDEBAND_WATERMARK_BYTES;
    return attr;
}

/* Its ring wakes no thread: it is drained before the samples are. Where waits are wanted it is as
 * they are, and has what threads do beside their switches, in one order. */
static struct perf_event_attr switch_attr(const struct perf_event_needs *needs)
{
    struct perf_event_attr attr = common_attr(PERF_COUNT_SW_DUMMY);
    attr.sample_type = SWITCH_BITS;
    attr.context_switch = 1;
    attr.wakeup_watermark = UINT32_MAX;
    if (needs->config->has_waits) {
        attr.task = 1;
        attr.comm = 1;
        attr.comm_exec = 1;
        attr.wakeup_watermark = (uint32_t)(needs->plan->switch_ring_bytes / 4);
    }
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
        perf_machine_number(PERF_PARANOID_PATH, -1));
}

/* `needed_count` is 0 before the events of a session are known. */
static int fault_descriptors(int error, size_t needed_count, struct fault *reterr)
{
    struct rlimit limit = {0};
    char needed[64] = "";
    if (error == ENFILE) {
        return fault_set(reterr, error,
                         "this machine has no open file left for perf events: raise the sysctl "
                         "fs.file-max");
    }
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    if (needed_count > 0) {
        (void)snprintf(needed, sizeof needed, ", of which each sampled CPU needs %zu",
                       needed_count);
    }
    return fault_set(reterr, error,
                     "no file descriptor is left for perf events%s: RLIMIT_NOFILE is %llu; raise "
                     "LimitNOFILE= or ulimit -n",
                     needed, (unsigned long long)limit.rlim_cur);
}

int perf_event_fault(int error, size_t needed_count, struct fault *reterr)
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
        return fault_descriptors(error, needed_count, reterr);
    case EINVAL:
    case E2BIG:
        return fault_set(
            reterr, EOPNOTSUPP,
            "this kernel does not know an event that is needed: Linux 4.8 or newer is");
    default:
        return fault_set(reterr, error, "cannot open a perf event: %s", strerror(error));
    }
}

const char *perf_event_why(int error)
{
    switch (error) {
    case ENOENT:
    case ENODEV:
    case ENXIO:
        return "is none that this machine counts: its processor, or the virtual machine, has no "
               "such counter";
    case EOPNOTSUPP:
        return "cannot be sampled here: its counter sets off no interrupt, or has no precise form";
    case EINVAL:
        return "is refused by the kernel: a term, a modifier or its period is none that the "
               "counter takes";
    case EBUSY:
        return "is taken by another user of the counter";
    default:
        return NULL;
    }
}

int perf_event_try(uint32_t cpu, const struct event_code *code)
{
    struct perf_event_attr attr = common_attr(code->config);
    attr.type = (uint32_t)code->type;
    attr.config1 = code->config1;
    attr.config2 = code->config2;
    attr.sample_type = ID_BITS;
    attr.sample_period = TRIED_PERIOD;
    attr.exclude_idle = code->type == PERF_TYPE_SOFTWARE;
    cleanup_(closep) int fd = open_event(&attr, cpu);
    return fd < 0 ? fd : 0;
}

/* Why an event of a session was refused, where that is the event's own fault: the clock, which is
 * opened before, was not. */
static int event_fault(const struct perf_event *event, int error, size_t needed_count,
                       struct fault *reterr)
{
    const char *why = perf_event_why(error);
    if (event->name[0] == '\0' || why == NULL) {
        return perf_event_fault(error, needed_count, reterr);
    }
    if (event->leader_name != NULL && (error == EINVAL || error == EOPNOTSUPP)) {
        return fault_set_member(reterr, "events",
                                "'%s' cannot follow '%s': the kernel refuses both in one group, as "
                                "it does with counters of two devices, or more than there are; "
                                "give it as an event of its own, or fewer followers",
                                event->name, event->leader_name);
    }
    return fault_set_member(reterr, "events", "'%s' %s ('profctl events' lists what there is)",
                            event->name, why);
}

static bool accepts(const struct perf_event_attr *attr, uint32_t cpu)
{
    cleanup_(closep) int fd = open_event(attr, cpu);
    return fd >= 0;
}

int perf_event_probe(uint32_t cpu, struct perf_features *ret)
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
    struct perf_event_attr with_ksymbol = sideband_attr(&(struct perf_features){.ksymbol = true});
    struct perf_event_attr with_cgroup = sideband_attr(&(struct perf_features){.cgroup = true});
    with_cgroup.sample_type |= PERF_SAMPLE_CGROUP;
    *ret = (struct perf_features){
        .deferred_callchains = accepts(&deferring, cpu),
        .format_lost = accepts(&with_lost, cpu),
        .build_id = accepts(&with_build_id, cpu),
        .ksymbol = accepts(&with_ksymbol, cpu),
        .cgroup = accepts(&with_cgroup, cpu),
    };
    return 0;
}

struct perf_record_layout perf_event_layout(const struct perf_source_config *config,
                                            const struct perf_features *features, bool is_rated)
{
    struct perf_record_layout layout =
        perf_record_layout_make(sample_type(config, features) | (is_rated ? PERF_SAMPLE_READ : 0),
                                config->stack_copy_bytes == 0 ? 0 : ARCH_PERF_REGS_MASK);
    /* Value, the two times, id, and what was lost. */
    layout.read_words = !is_rated ? 0 : features->format_lost ? 5 : 4;
    return layout;
}

struct perf_record_layout perf_event_switch_layout(void)
{
    return perf_record_layout_make(SWITCH_BITS, 0);
}

/* What an event of a session counts. */
static void set_code(struct perf_event_attr *attr, const struct event_code *code)
{
    attr->type = (uint32_t)code->type;
    attr->config = code->config;
    attr->config1 = code->config1;
    attr->config2 = code->config2;
    attr->precise_ip = code->precise & 3U;
    attr->exclude_user = code->exclude_user;
    attr->exclude_kernel = code->exclude_kernel;
    attr->exclude_idle = code->type == PERF_TYPE_SOFTWARE;
}

/* An event of a session that is counted with another: while that one is on, and read with each of
 * its samples. It is opened enabled, since its leader is not. */
static struct perf_event following_event(const struct perf_event_needs *needs,
                                         const struct perf_event *leader,
                                         const struct perf_event_choice *choice, size_t index)
{
    struct perf_event event = {
        .attr = common_attr(0),
        .consumer = PERF_CONSUMER_LEADER,
        .index = (uint32_t)index,
        .leader = choice->leader,
        .leader_name = choice->leader == 0 ? "cpu-clock" : leader->name,
    };
    (void)snprintf(event.name, sizeof event.name, "%s", choice->name);
    set_code(&event.attr, &choice->code);
    event.attr.disabled = 0;
    event.attr.read_format = sampling_attr(needs->config, needs->features).read_format;
    return event;
}

/* Has an event's samples say what its followers have counted as well. */
static void lead(struct perf_event *event)
{
    event->attr.sample_type |= PERF_SAMPLE_READ;
    event->attr.read_format |= PERF_FORMAT_GROUP;
}

/* An event of a session beside the clock. Its chains come with its samples, not later. */
static struct perf_event chosen_event(const struct perf_event_needs *needs,
                                      const struct perf_event_choice *choice, size_t index)
{
    struct perf_event event = {
        .attr = sampling_attr(needs->config, needs->features),
        .consumer = PERF_CONSUMER_SAMPLES,
        .index = (uint32_t)index,
        .ring_bytes = needs->plan->further_ring_bytes,
    };
    if (event.attr.sample_stack_user > choice->stack_copy_bytes) {
        event.attr.sample_stack_user = choice->stack_copy_bytes;
    }
    (void)snprintf(event.name, sizeof event.name, "%s", choice->name);
    set_code(&event.attr, &choice->code);
    event.attr.exclude_hv = 0; /* what some machines cannot leave out */
    event.attr.exclude_guest = 0;
    event.attr.sample_max_stack = needs->plan->sample_max_stack;
    event.attr.wakeup_watermark =
        (uint32_t)(needs->plan->further_ring_bytes / PERF_PLAN_WAKEUP_PARTS);
    event.attr.sample_period = choice->period;
    /* The period that the kernel would say for a sample is the one that it had set, not what was
     * counted: where it changes a period in its course, samples would stand for ten times too much.
     */
    if (choice->period == 0) {
        event.attr.freq = 1;
        event.attr.sample_freq = choice->frequency_hz;
        event.attr.sample_type |= PERF_SAMPLE_READ;
    }
    return event;
}

/* A sample of each switch away from a task. */
static struct perf_event wait_event(const struct perf_event_needs *needs)
{
    const struct perf_event_choice choice = {
        .code = {.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CONTEXT_SWITCHES},
        .period = 1,
        .stack_copy_bytes = needs->config->wait_copy_bytes,
    };
    struct perf_event event = chosen_event(needs, &choice, 0);
    event.consumer = needs->config->has_waits ? PERF_CONSUMER_WAITS : PERF_CONSUMER_NONE;
    return event;
}

void perf_event_list(const struct perf_event_needs *needs, struct perf_event *events)
{
    const struct perf_plan *plan = needs->plan;
    struct perf_event *clock = &events[PERF_STREAM_CLOCK];
    struct perf_event *sideband = &events[PERF_STREAM_SIDEBAND];
    struct perf_event *switches = &events[PERF_STREAM_SWITCHES];
    *clock = (struct perf_event){
        .attr = sampling_attr(needs->config, needs->features),
        .consumer = PERF_CONSUMER_SAMPLES,
        .ring_bytes = plan->sample_ring_bytes,
    };
    clock->attr.sample_max_stack = plan->sample_max_stack;
    clock->attr.wakeup_watermark = (uint32_t)(plan->sample_ring_bytes / 4);
    *sideband = (struct perf_event){
        .attr = sideband_attr(needs->features),
        .consumer = PERF_CONSUMER_SIDEBAND,
        .ring_bytes = plan->sideband_ring_bytes,
    };
    /* It would stand where device and inode do, and those say which file it is. */
    sideband->attr.build_id = 0;
    if (plan->sideband_ring_bytes / 4 < SIDEBAND_WATERMARK_BYTES) {
        sideband->attr.wakeup_watermark = (uint32_t)(plan->sideband_ring_bytes / 4);
    }
    *switches = (struct perf_event){
        .attr = switch_attr(needs),
        .consumer = needs->has_switches ? PERF_CONSUMER_SWITCHES : PERF_CONSUMER_NONE,
        .ring_bytes = plan->switch_ring_bytes,
    };
    events[PERF_STREAM_WAITS] = wait_event(needs);
    for (size_t i = 0; i < needs->config->event_count; i++) {
        const struct perf_event_choice *choice = &needs->config->events[i];
        events[PERF_STREAMS + i] =
            choice->is_follower
                ? following_event(needs, &events[perf_event_place(choice->leader)], choice, i + 1)
                : chosen_event(needs, choice, i + 1);
    }
    for (uint32_t event = 0; event <= needs->config->event_count; event++) {
        if (needs->groups[event].follower_count > 0) {
            lead(&events[perf_event_place(event)]);
        }
    }
    if (needs->deferring) {
        add_flags(&clock->attr, PERF_ATTR_FLAG_DEFER_CALLCHAIN);
        add_flags(&sideband->attr, PERF_ATTR_FLAG_DEFER_OUTPUT);
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

void perf_cpu_init(struct perf_cpu *cpu, uint32_t number)
{
    *cpu = (struct perf_cpu){.cpu = number, .absent = true};
    for (size_t i = 0; i < PERF_STREAMS_MAX; i++) {
        cpu->streams[i].fd = -1;
    }
}

void perf_cpu_close(struct perf_cpu *cpu)
{
    for (size_t i = 0; i < PERF_STREAMS_MAX; i++) {
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

/* How many events, and so descriptors, a sampled CPU has. */
static size_t count_needed(const struct perf_event *events, size_t event_count)
{
    size_t count = 0;
    for (size_t i = 0; i < event_count; i++) {
        count += events[i].consumer != PERF_CONSUMER_NONE;
    }
    return count;
}

/* Opens an event, and maps its ring where it has one. */
static int open_stream(const struct perf_event *event, const struct perf_cpu *cpu,
                       size_t needed_count, uint8_t *bounce, struct perf_stream *stream,
                       struct fault *reterr)
{
    const bool is_follower = event->consumer == PERF_CONSUMER_LEADER;
    stream->fd = open_in_group(&event->attr, cpu->cpu,
                               is_follower ? cpu->streams[perf_event_place(event->leader)].fd : -1);
    if (stream->fd < 0) {
        return event_fault(event, -stream->fd, needed_count, reterr);
    }
    return is_follower ? 0 : map_ring(stream, event->ring_bytes, bounce, reterr);
}

/* Sideband comes from each CPU, all else from those that are sampled. */
int perf_cpu_open(const struct perf_event *events, size_t event_count, bool sampled,
                  uint8_t *bounces, struct perf_cpu *cpu, struct fault *reterr)
{
    const size_t needed_count = count_needed(events, event_count);
    int r = 0;
    perf_cpu_init(cpu, cpu->cpu);
    for (size_t i = 0; i < event_count && r == 0; i++) {
        const struct perf_event *event = &events[i];
        struct perf_stream *stream = &cpu->streams[i];
        stream->consumer = event->consumer;
        stream->event = event->index;
        stream->is_rated = event->attr.freq;
        if (event->consumer == PERF_CONSUMER_NONE ||
            (!sampled && event->consumer != PERF_CONSUMER_SIDEBAND)) {
            continue;
        }
        r = open_stream(event, cpu, needed_count, bounces + i * PERF_RING_BOUNCE_BYTES, stream,
                        reterr);
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
    for (size_t i = 0; i < PERF_STREAMS_MAX; i++) {
        bytes += cpu->streams[i].map_bytes;
    }
    return bytes;
}

int perf_stream_enable(const struct perf_stream *stream, bool enable)
{
    unsigned long request = enable ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE;
    return stream->fd >= 0 && ioctl(stream->fd, request, 0) < 0 ? -errno : 0;
}

int perf_stream_set_period(const struct perf_stream *stream, uint64_t period)
{
    return stream->fd >= 0 && ioctl(stream->fd, PERF_EVENT_IOC_PERIOD, &period) < 0 ? -errno : 0;
}

int perf_cpu_enable(const struct perf_cpu *cpu, enum perf_consumer consumer, bool enable)
{
    int result = 0;
    for (size_t i = 0; i < PERF_STREAMS_MAX; i++) {
        if (cpu->streams[i].consumer == consumer) {
            int r = perf_stream_enable(&cpu->streams[i], enable);
            result = result < 0 ? result : r;
        }
    }
    return result;
}
