/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Opens perf events and maps their rings. Each online CPU gets a dummy event, for sideband. A CPU
 * that is sampled also gets:
 * - a cpu-clock event, for samples;
 * - another dummy, for switches, where the daemon sees all pids;
 * - a context-switches event, for waits, where the session has them;
 * - the events that the session chose beside the clock.
 * Each event has a ring of its own, so that a flood of one kind of records cannot push out another.
 * Only a follower has none: the samples of its leader have its count.
 *
 * Invariants: a struct perf_cpu has all its events open and their rings mapped, or none; the table
 * has a place for each CPU of the machine, and no place changes its CPU. Memory that can hold
 * copied stacks (the rings, and the buffers for records that wrap) is in no core dump.
 *
 * When a CPU goes offline the kernel disables its events for good: they can still be read. So a CPU
 * that comes back gets new events.
 *
 * perf_event has the list of events and those of one CPU, and perf_plan the sizes of rings. What
 * switches streams on and off goes by their consumers, so another event is another line of the
 * list.
 */
#include "perf_source.h"

#include "arch_x86_64.h"
#include "cleanup.h"
#include "clock.h"
#include "extremes.h"
#include "perf_event.h"
#include "perf_machine.h"
#include "threads.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

/* The kernel's own default, for kernels that have no such sysctl. */
#define MAX_STACK_DEFAULT 127

/* The first ticks of all CPUs are spread over one period, or over this where a period is longer. */
#define PHASE_WINDOW_MAX_NS ((uint64_t)1000000)

/* Probes on the first CPU that is still online. */
static int probe_cpus(const uint32_t *cpus, size_t count, struct perf_features *ret,
                      struct fault *reterr)
{
    int r = -ENODEV;
    for (size_t i = 0; i < count && r == -ENODEV; i++) {
        r = perf_event_probe(cpus[i], ret);
    }
    return r < 0 ? perf_event_fault(-r, 0, reterr) : 0;
}

int perf_source_probe(struct perf_features *ret, struct fault *reterr)
{
    cleanup_(freep) uint32_t *cpus = NULL;
    size_t count = 0;
    int r = perf_machine_online(&cpus, &count, reterr);
    return r < 0 ? r : probe_cpus(cpus, count, ret, reterr);
}

int perf_source_try(const struct event_code *code)
{
    cleanup_(freep) uint32_t *cpus = NULL;
    struct fault fault = {0};
    size_t count = 0;
    int r = perf_machine_online(&cpus, &count, &fault);
    if (r < 0) {
        return r;
    }
    r = -ENODEV;
    for (size_t i = 0; i < count && r == -ENODEV; i++) {
        r = perf_event_try(cpus[i], code);
    }
    return r;
}

const char *perf_source_why(int error)
{
    return perf_event_why(error);
}

static bool has_cpu(const uint32_t *cpus, size_t count, uint32_t cpu)
{
    for (size_t i = 0; i < count; i++) {
        if (cpus[i] == cpu) {
            return true;
        }
    }
    return false;
}

/* Lays out the table: those that are sampled, or those that are not. */
static void add_places(struct perf_source *source, bool sampled, const uint32_t *cpus, size_t count)
{
    const struct perf_source_config *config = &source->config;
    for (size_t i = 0; i < count; i++) {
        if (sampled ==
            (config->cpus == NULL || has_cpu(config->cpus, config->cpu_count, cpus[i]))) {
            perf_cpu_init(&source->cpus[source->sideband_count++], cpus[i]);
            source->cpu_count += sampled;
        }
    }
}

/* Opens the events that the place of a CPU has. */
static int open_cpu(const struct perf_source *source, size_t index, struct perf_cpu *cpu,
                    struct fault *reterr)
{
    uint8_t *bounces = source->bounces + index * source->stream_count * PERF_RING_BOUNCE_BYTES;
    return perf_cpu_open(source->events, source->stream_count, index < source->cpu_count, bounces,
                         cpu, reterr);
}

/* Opens what is online; a CPU that goes offline meanwhile is absent. */
static int open_cpus(struct perf_source *source, const uint32_t *online, size_t online_count,
                     struct fault *reterr)
{
    size_t sampled_count = 0;
    for (size_t i = 0; i < source->sideband_count; i++) {
        struct perf_cpu *cpu = &source->cpus[i];
        bool sampled = i < source->cpu_count;
        if (!has_cpu(online, online_count, cpu->cpu)) {
            continue;
        }
        int r = open_cpu(source, i, cpu, reterr);
        if (r < 0 && r != -ENODEV) {
            return r;
        }
        sampled_count += sampled && r == 0;
        source->ring_bytes += perf_cpu_ring_bytes(cpu);
    }
    return sampled_count > 0 ? 0 : fault_set(reterr, ENODEV, "all CPUs went offline");
}

/* A config that names a CPU wants its samples: a missing one is a mistake. */
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

/* Followers have no rings. */
static size_t ring_event_count(const struct perf_source_config *config)
{
    size_t count = config->has_waits;
    for (size_t i = 0; i < config->event_count; i++) {
        count += !config->events[i].is_follower;
    }
    return count;
}

/* For the CPUs that are there. One that comes later has rings of the same size, if there is room.
 */
static int make_plan(const struct perf_source_config *config, size_t online_count,
                     struct perf_plan *ret, struct fault *reterr)
{
    uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    struct perf_plan_input input = {
        .period_ns = config->period_ns,
        .further_count = ring_event_count(config),
        .max_stack_depth = config->max_stack_depth,
        .stack_copy_bytes = config->stack_copy_bytes,
        .user_regs_count = ARCH_PERF_REGS_COUNT,
        .may_shrink_copy = config->may_shrink_copy,
        .may_drop_copy = config->may_drop_copy,
        .may_shrink_time = config->may_shrink_time,
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
    if (map != MAP_FAILED && perf_cpu_hide(map, bytes) < 0) {
        (void)munmap(map, bytes);
        map = MAP_FAILED;
    }
    return map == MAP_FAILED ? NULL : map;
}

static void free_memory(struct perf_source *source)
{
    if (source->bounces != NULL) {
        (void)munmap(source->bounces, source->bounces_bytes);
    }
    (void)pthread_mutex_destroy(&source->mutex);
    free(source->events);
    free(source->cpus);
    free(source);
}

static void find_groups(const struct perf_source_config *config, struct perf_group *groups)
{
    for (uint32_t event = 1; event <= config->event_count; event++) {
        const struct perf_event_choice *choice = &config->events[event - 1];
        struct perf_group *group = &groups[choice->leader];
        if (choice->is_follower) {
            assert(choice->leader < event);
            group->first_follower = group->follower_count == 0 ? event : group->first_follower;
            group->follower_count++;
        }
    }
}

/* Places for `count` CPUs, none of them opened yet; NULL when memory is out. */
static struct perf_source *new_source(const struct perf_source_config *config,
                                      const struct perf_features *features,
                                      const struct perf_plan *plan, const uint32_t *cpus,
                                      size_t count)
{
    struct perf_source *source = calloc(1, sizeof *source);
    if (source == NULL) {
        return NULL;
    }
    source->config = *config;
    source->config.stack_copy_bytes = plan->stack_copy_bytes;
    source->features = *features;
    source->plan = *plan;
    threads_init_lock(&source->mutex);
    source->has_switches = perf_machine_sees_all_pids();
    source->config.has_waits = config->has_waits && source->has_switches;
    source->layout = perf_event_layout(&source->config, features, false);
    source->rated_layout = perf_event_layout(&source->config, features, true);
    source->switch_layout = perf_event_switch_layout();
    source->sample_max_stack = plan->sample_max_stack;
    /* They are chains of frame pointers; beside a copied stack they would be of no use. */
    source->deferring = features->deferred_callchains && plan->stack_copy_bytes == 0;
    source->cpus = calloc(count, sizeof *source->cpus);
    source->stream_count = PERF_STREAMS + config->event_count;
    source->events = calloc(source->stream_count, sizeof *source->events);
    if (source->cpus == NULL || source->events == NULL) {
        free_memory(source);
        return NULL;
    }
    find_groups(config, source->groups);
    perf_event_list(
        &(struct perf_event_needs){
            .config = &source->config,
            .features = &source->features,
            .plan = &source->plan,
            .groups = source->groups,
            .has_switches = source->has_switches,
            .deferring = source->deferring,
        },
        source->events);
    source->bounces_bytes = count * source->stream_count * PERF_RING_BOUNCE_BYTES;
    source->bounces = map_bounces(source->bounces_bytes);
    if (source->bounces == NULL) {
        free_memory(source);
        return NULL;
    }
    add_places(source, true, cpus, count);
    add_places(source, false, cpus, count);
    source->config.cpus = NULL; /* the caller's own */
    source->config.events = NULL;
    return source;
}

/* The CPUs of the machine, the offline ones too; without a list of these, the online ones. */
static int find_places(const uint32_t *online, size_t online_count, uint32_t **ret_cpus,
                       size_t *ret_count, struct fault *reterr)
{
    cleanup_(freep) uint32_t *cpus = NULL;
    size_t count = 0;
    struct fault ignored;
    bool known = perf_machine_present(&cpus, &count, &ignored) >= 0 && count > 0;
    for (size_t i = 0; i < online_count && known; i++) {
        known = has_cpu(cpus, count, online[i]);
    }
    if (!known) {
        free(cpus);
        count = online_count;
        cpus = calloc(count, sizeof *cpus);
        if (cpus == NULL) {
            return fault_set(reterr, ENOMEM, "no memory for a list of %zu CPUs", count);
        }
        memcpy(cpus, online, count * sizeof *cpus);
    }
    *ret_cpus = take_ptr(cpus);
    *ret_count = count;
    return 0;
}

/* Returns 0, or -EOPNOTSUPP with a fault where our clock is not that of the kernel's records. */
static int check_clock(struct fault *reterr)
{
    const int64_t offset_ns = perf_machine_clock_offset_ns();
    return offset_ns == 0
               ? 0
               : fault_set(reterr, EOPNOTSUPP,
                           "the daemon is in a time namespace whose boot clock is %" PRId64
                           " s off the kernel's, which samples are timed by; start it outside",
                           offset_ns / (int64_t)NS_PER_S);
}

int perf_source_open(const struct perf_source_config *config, struct perf_source **ret,
                     struct fault *reterr)
{
    cleanup_(freep) uint32_t *online = NULL;
    cleanup_(freep) uint32_t *places = NULL;
    size_t online_count = 0;
    size_t place_count = 0;
    struct perf_plan plan = {0};
    struct perf_features features = {0};
    int r = check_clock(reterr);
    if (r >= 0) {
        r = perf_machine_online(&online, &online_count, reterr);
    }
    if (r < 0) {
        return r;
    }
    if (online_count == 0) {
        return fault_set(reterr, ENODEV, PERF_ONLINE_PATH " names no CPU");
    }
    r = check_cpus(config, online, online_count, reterr);
    if (r >= 0) {
        r = make_plan(config, online_count, &plan, reterr);
    }
    if (r >= 0) {
        r = find_places(online, online_count, &places, &place_count, reterr);
    }
    if (r >= 0) {
        r = probe_cpus(online, online_count, &features, reterr);
    }
    if (r < 0 || place_count == 0) {
        return r < 0 ? r : -ENODEV;
    }

    struct perf_source *source = new_source(config, &features, &plan, places, place_count);
    if (source == NULL) {
        return fault_set(reterr, ENOMEM, "no memory for the events of %zu CPUs", place_count);
    }
    r = open_cpus(source, online, online_count, reterr);
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
        perf_cpu_close(&source->cpus[i]);
    }
    free_memory(source);
    return NULL;
}

int perf_source_enable_sideband(struct perf_source *source)
{
    for (size_t i = 0; i < source->sideband_count; i++) {
        int r = perf_cpu_enable(&source->cpus[i], PERF_CONSUMER_SIDEBAND, true);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static void sleep_until(uint64_t monotonic_ns)
{
    const struct timespec at = clock_timespec(monotonic_ns);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR) {
    }
}

/* A moment is known well enough if it is known to this, and is not looked for for ever. */
#define MOMENT_NS    20000
#define MOMENT_TRIES 8

/* At which moment a CPU's clock had run for how long. */
struct clock_reading {
    uint64_t now_ns; /* CLOCK_BOOTTIME; not earlier than it was */
    uint64_t running_ns;
};

/* Another task, or the hypervisor, may have the CPU amid a reading: then it is made again, and the
 * shortest counts. */
static struct clock_reading read_clock(const struct perf_source *source, size_t index)
{
    struct clock_reading best = {0};
    uint64_t best_took_ns = UINT64_MAX;
    for (unsigned i = 0; i < MOMENT_TRIES && best_took_ns > MOMENT_NS; i++) {
        struct perf_count count = {0};
        uint64_t before_ns = clock_ns(CLOCK_BOOTTIME);
        (void)perf_source_read_count(source, index, 0, &count);
        uint64_t now_ns = clock_ns(CLOCK_BOOTTIME);
        if (now_ns - before_ns < best_took_ns) {
            best_took_ns = now_ns - before_ns;
            best = (struct clock_reading){now_ns, count.time_running_ns};
        }
    }
    return best;
}

/*
 * Between the switching of an event and a reading of the clock another task may have the CPU for
 * milliseconds, in which ticks came, or would have come. So how long the event ran tells the moment
 * as well. Each of the two can only be too late, so the earlier one is taken.
 */
static int switch_samples(struct perf_source *source, size_t index, bool enable)
{
    struct perf_cpu *cpu = &source->cpus[index];
    struct clock_reading before = read_clock(source, index);
    int r = perf_cpu_enable(cpu, PERF_CONSUMER_SAMPLES, enable);
    uint64_t noted_ns = clock_ns(CLOCK_BOOTTIME);
    struct clock_reading after = read_clock(source, index);
    uint64_t ran_ns = after.running_ns - before.running_ns;
    if (enable) {
        cpu->started_ns = min_u64(noted_ns, after.now_ns - ran_ns);
    } else {
        cpu->stopped_ns = min_u64(noted_ns, before.now_ns + ran_ns);
    }
    return r;
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
    uint64_t start_ns = clock_ns(CLOCK_MONOTONIC);
    for (size_t i = 0; i < source->cpu_count; i++) {
        uint32_t random;
        if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random) {
            return -errno;
        }
        sleep_until(start_ns + i * slice_ns + random % slice_ns);
        int r = switch_samples(source, i, true);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

/* What tells of switches goes on and off together. */
static int enable_switches(struct perf_source *source, size_t index, bool enable)
{
    int r = perf_cpu_enable(&source->cpus[index], PERF_CONSUMER_SWITCHES, enable);
    int waits = perf_cpu_enable(&source->cpus[index], PERF_CONSUMER_WAITS, enable);
    return r < 0 ? r : waits;
}

/* The collector may want them while the main thread ends the sampling that they are for. */
int perf_source_control_switches(struct perf_source *source, size_t index, bool enable)
{
    (void)pthread_mutex_lock(&source->mutex);
    int r = enable && !source->sampling ? 0 : enable_switches(source, index, enable);
    (void)pthread_mutex_unlock(&source->mutex);
    return r;
}

int perf_source_control_waits(struct perf_source *source, size_t index, uint64_t period)
{
    return perf_stream_set_period(&source->cpus[index].streams[PERF_STREAM_WAITS], period);
}

int perf_source_control_event(struct perf_source *source, size_t index, uint32_t event, bool enable)
{
    (void)pthread_mutex_lock(&source->mutex);
    int r = enable && !source->sampling
                ? 0
                : perf_stream_enable(&source->cpus[index].streams[perf_event_place(event)], enable);
    (void)pthread_mutex_unlock(&source->mutex);
    return r;
}

static int disable_all(struct perf_source *source)
{
    int result = 0;
    source->sampling = false;
    for (size_t i = 0; i < source->cpu_count; i++) {
        int r = switch_samples(source, i, false);
        result = result < 0 ? result : r;
        r = enable_switches(source, i, false);
        result = result < 0 ? result : r;
    }
    return result;
}

int perf_source_enable_sampling(struct perf_source *source)
{
    int r = 0;
    (void)pthread_mutex_lock(&source->mutex);
    source->sampling = true;
    for (size_t i = 0; i < source->cpu_count && r == 0; i++) {
        r = enable_switches(source, i, true);
    }
    r = r < 0 ? r : enable_at_random_phases(source);
    if (r < 0) {
        (void)disable_all(source);
    }
    (void)pthread_mutex_unlock(&source->mutex);
    return r;
}

int perf_source_disable_sampling(struct perf_source *source)
{
    (void)pthread_mutex_lock(&source->mutex);
    int r = source->sampling ? disable_all(source) : 0;
    (void)pthread_mutex_unlock(&source->mutex);
    return r;
}

static bool read_enabled_ns(int fd, uint64_t *ret)
{
    /* As the sideband's read_format lays it out. */
    struct {
        uint64_t value;
        uint64_t time_enabled_ns;
    } read_out = {0};
    if (read(fd, &read_out, sizeof read_out) != (ssize_t)sizeof read_out) {
        return false;
    }
    *ret = read_out.time_enabled_ns;
    return true;
}

/* The time of an event that is on goes on from one reading to the next. */
bool perf_source_is_alive(const struct perf_source *source, size_t index)
{
    int fd = source->cpus[index].streams[PERF_STREAM_SIDEBAND].fd;
    uint64_t before_ns = 0;
    uint64_t after_ns = 0;
    return fd >= 0 && read_enabled_ns(fd, &before_ns) && read_enabled_ns(fd, &after_ns) &&
           after_ns > before_ns;
}

int perf_source_reopen(const struct perf_source *source, size_t index, struct perf_opening **ret,
                       struct fault *reterr)
{
    struct perf_opening *opening = calloc(1, sizeof *opening);
    if (opening == NULL) {
        return fault_set(reterr, ENOMEM, "no memory for the events of a CPU");
    }
    opening->index = index;
    opening->cpu.cpu = source->cpus[index].cpu;
    int r = open_cpu(source, index, &opening->cpu, reterr);
    if (r == 0) {
        r = perf_cpu_enable(&opening->cpu, PERF_CONSUMER_SIDEBAND, true);
        opening->gap_to_ns = clock_ns(CLOCK_BOOTTIME);
    }
    if (r < 0) {
        (void)perf_opening_free(opening);
        return r;
    }
    *ret = opening;
    return 0;
}

struct perf_opening *perf_opening_free(struct perf_opening *opening)
{
    if (opening != NULL) {
        perf_cpu_close(&opening->cpu);
        free(opening);
    }
    return NULL;
}

void perf_opening_push(struct perf_opening **list, struct perf_opening *opening)
{
    opening->next = *list;
    *list = opening;
}

struct perf_opening *perf_opening_pop(struct perf_opening **list)
{
    struct perf_opening *opening = *list;
    if (opening != NULL) {
        *list = opening->next;
        opening->next = NULL;
    }
    return opening;
}

void perf_opening_free_all(struct perf_opening *list)
{
    while (list != NULL) {
        (void)perf_opening_free(perf_opening_pop(&list));
    }
}

bool perf_source_replace(struct perf_source *source, struct perf_opening *opening)
{
    size_t index = opening->index;
    struct perf_cpu *cpu = &source->cpus[index];
    bool sampled = index < source->cpu_count;
    for (uint32_t event = 0; sampled && event <= source->config.event_count; event++) {
        size_t place = perf_event_place(event);
        struct perf_count *before = &opening->cpu.streams[place].before;
        if (perf_source_read_count(source, index, event, before) < 0) {
            *before = cpu->streams[place].before;
        }
    }
    (void)pthread_mutex_lock(&source->mutex);
    struct perf_cpu old = *cpu;
    opening->cpu.started_ns = old.started_ns;
    opening->cpu.stopped_ns = old.stopped_ns;
    *cpu = opening->cpu;
    opening->cpu = old;
    bool ticking = sampled && source->sampling;
    if (ticking) {
        (void)enable_switches(source, index, true);
        (void)switch_samples(source, index, true);
    }
    (void)pthread_mutex_unlock(&source->mutex);
    return ticking;
}

/* Reads as many words of an event's count, and of those behind them that there are up to
 * `words_max`. Returns 0 or -errno. */
static int read_words(int fd, uint64_t *words, size_t words_min, size_t words_max)
{
    ssize_t size = read(fd, words, words_max * sizeof *words);
    if (size < 0) {
        return -errno;
    }
    return (size_t)size < words_min * sizeof *words ? -EIO : 0;
}

/* As read_format lays it out; the last word is there with PERF_FORMAT_LOST only. Of a group the two
 * times come first, and then its events, of which the leader is the first. A leader whose CPU went
 * has lost its followers. */
static int read_fd(const struct perf_source *source, int fd, bool is_leader, struct perf_count *ret)
{
    uint64_t words[PERF_GROUP_HEAD_WORDS + (1 + PERF_FOLLOWERS_MAX) * 3] = {0};
    const size_t words_min = 2 + perf_source_event_words(source) + is_leader;
    int r =
        read_words(fd, words, words_min, is_leader ? sizeof words / sizeof words[0] : words_min);
    const uint64_t *times = words + 1;
    const uint64_t *own = is_leader ? words + PERF_GROUP_HEAD_WORDS : words;
    const uint64_t *lost = is_leader ? own + 2 : own + 4;
    if (r == 0) {
        *ret = (struct perf_count){own[0], times[0], times[1],
                                   source->features.format_lost ? *lost : 0};
    }
    return r;
}

int perf_source_read_count(const struct perf_source *source, size_t index, uint32_t event,
                           struct perf_count *ret)
{
    struct perf_count count = {0};
    assert(index < source->cpu_count);
    const struct perf_stream *stream = &source->cpus[index].streams[perf_event_place(event)];
    *ret = stream->before;
    int r = stream->fd < 0
                ? 0
                : read_fd(source, stream->fd, source->groups[event].follower_count > 0, &count);
    ret->value += count.value;
    ret->time_enabled_ns += count.time_enabled_ns;
    ret->time_running_ns += count.time_running_ns;
    ret->lost_count += count.lost_count;
    return r;
}
