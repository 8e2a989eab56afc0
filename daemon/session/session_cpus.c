/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Notices CPUs that go offline and come back, and opens new events for those that come back. A CPU
 * counts as gone when sysfs says that it is offline, or when its sideband, which is always on, has
 * stopped. The latter finds a CPU that went and came back between two looks, and all CPUs but the
 * first after a suspend. The kernel's uevents make a look happen at once; without them there is one
 * a second. A CPU that went offline lately is looked for more often, since its tasks are not
 * observed between its return and its new events.
 *
 * States: here -gone-> away -opened-> coming -replaced-> here. If events cannot be opened, that is
 * tried again at each look, and logged once. Sideband is opened in each state of the session;
 * perf_source knows whether the CPU is sampled.
 */
#include "session_cpus.h"

#include "cleanup.h"
#include "clock.h"
#include "cpu_events.h"
#include "log.h"
#include "perf_machine.h"

#include <errno.h>
#include <string.h>

#define LOOK_USEC      UINT64_C(1000000)
#define LOOK_AWAY_USEC UINT64_C(5000)
#define AWAY_LATELY_NS (2 * NS_PER_S)

/* A storm of events, of whatever devices, costs no more than so many looks. */
#define EVENTS_SPAN_USEC UINT64_C(1000000)
#define EVENTS_MAX       100

enum place {
    PLACE_HERE,
    PLACE_AWAY,
    PLACE_COMING, /* opened, and the collector's */
};

struct cpu {
    uint32_t cpu; /* its number; while it is coming, the source's table is the collector's */
    enum place place;
    bool refused;      /* since it is away */
    uint64_t known_ns; /* that nothing was missed before, CLOCK_BOOTTIME */
    uint64_t away_ns;  /* when it was found to be gone */
};

struct session_cpus {
    struct session_cpus_params params;
    struct session_cpus_counts counts;
    sd_event_source *tick_source;
    sd_event_source *events_source;
    int events_fd;
    struct cpu cpus[]; /* sideband_count of the source */
};

static bool is_online(const uint32_t *online, size_t count, uint32_t cpu)
{
    for (size_t i = 0; i < count; i++) {
        if (online[i] == cpu) {
            return true;
        }
    }
    return false;
}

static void refuse(struct session_cpus *cpus, size_t index, int error, const struct fault *fault)
{
    struct cpu *cpu = &cpus->cpus[index];
    if (error == -ENODEV || cpu->refused) {
        return;
    }
    cpu->refused = true;
    cpus->counts.refused++;
    log_warning(0, "session %s: CPU %u is online, and goes without: %s", cpus->params.session_id,
                cpu->cpu, fault->text);
}

static void open_again(struct session_cpus *cpus, size_t index)
{
    struct perf_opening *opening = NULL;
    struct fault fault = {0};
    int r = perf_source_reopen(cpus->params.source, index, &opening, &fault);
    if (r < 0) {
        refuse(cpus, index, r, &fault);
        return;
    }
    /* Asked for when its sideband is there: until now nothing of it can have been missed. */
    bool ran = perf_machine_runs_tasks(cpus->cpus[index].cpu);
    opening->gap_from_ns = ran ? cpus->cpus[index].known_ns : opening->gap_to_ns;
    cpus->cpus[index].place = PLACE_COMING;
    collector_replace_cpu(cpus->params.collector, opening);
}

static void look_at(struct session_cpus *cpus, size_t index, bool online, uint64_t time_ns)
{
    const struct perf_source *source = cpus->params.source;
    struct cpu *cpu = &cpus->cpus[index];
    if (cpu->place == PLACE_COMING) {
        return;
    }
    if (cpu->place == PLACE_HERE && online && perf_source_is_alive(source, index)) {
        cpu->known_ns = time_ns;
        return;
    }
    if (cpu->place == PLACE_HERE) {
        cpu->place = PLACE_AWAY;
        cpu->away_ns = time_ns;
        cpu->refused = false;
        log_info("session %s: CPU %u went offline", cpus->params.session_id, cpu->cpu);
        collector_lose_cpu(cpus->params.collector, index);
    }
    if (!online || !perf_machine_runs_tasks(cpu->cpu)) {
        cpu->known_ns = time_ns;
    }
    if (online) {
        open_again(cpus, index);
    }
}

static void set_next_look(struct session_cpus *cpus, uint64_t time_ns)
{
    uint64_t usec = LOOK_USEC;
    for (size_t i = 0; i < cpus->params.source->sideband_count; i++) {
        const struct cpu *cpu = &cpus->cpus[i];
        if (cpu->place == PLACE_AWAY && time_ns - cpu->away_ns < AWAY_LATELY_NS) {
            usec = LOOK_AWAY_USEC;
        }
    }
    (void)sd_event_source_set_time_relative(cpus->tick_source, usec);
    (void)sd_event_source_set_enabled(cpus->tick_source, SD_EVENT_ONESHOT);
}

void session_cpus_look(struct session_cpus *cpus)
{
    const struct perf_source *source = cpus->params.source;
    cleanup_(freep) uint32_t *online = NULL;
    size_t count = 0;
    struct fault ignored;
    uint64_t time_ns = clock_ns(CLOCK_BOOTTIME);
    /* Where sysfs cannot be read, opening a CPU's events shows whether it is online. */
    bool told = perf_machine_online(&online, &count, &ignored) >= 0;
    for (size_t i = 0; i < source->sideband_count; i++) {
        bool is_off = told && !is_online(online, count, cpus->cpus[i].cpu);
        look_at(cpus, i, !is_off, time_ns);
    }
    set_next_look(cpus, time_ns);
}

void session_cpus_replaced(struct session_cpus *cpus)
{
    for (;;) {
        struct perf_opening *old = collector_take_replaced(cpus->params.collector);
        if (old == NULL) {
            return;
        }
        cpus->cpus[old->index].place = PLACE_HERE;
        cpus->cpus[old->index].known_ns = old->gap_to_ns;
        cpus->counts.returned++;
        log_info("session %s: CPU %u is online, and taken in", cpus->params.session_id,
                 old->cpu.cpu);
        (void)perf_opening_free(old);
    }
}

static int on_tick(sd_event_source *source, uint64_t usec, void *userdata)
{
    (void)usec;
    (void)source;
    session_cpus_look(userdata);
    return 0;
}

static int on_events(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
    (void)source;
    (void)revents;
    if (cpu_events_take(fd)) {
        session_cpus_look(userdata);
    }
    return 0;
}

/* Without them a look a second is what there is. */
static void listen_for_events(struct session_cpus *cpus)
{
    cpus->events_fd = cpu_events_open();
    if (cpus->events_fd >= 0 && sd_event_add_io(cpus->params.event, &cpus->events_source,
                                                cpus->events_fd, EPOLLIN, on_events, cpus) >= 0) {
        (void)sd_event_source_set_description(cpus->events_source, "cpu-events");
        (void)sd_event_source_set_ratelimit(cpus->events_source, EVENTS_SPAN_USEC, EVENTS_MAX);
    }
}

int session_cpus_new(const struct session_cpus_params *params, struct session_cpus **ret)
{
    const struct perf_source *source = params->source;
    struct session_cpus *cpus =
        calloc(1, sizeof *cpus + source->sideband_count * sizeof cpus->cpus[0]);
    if (cpus == NULL) {
        return -ENOMEM;
    }
    cpus->params = *params;
    cpus->events_fd = -1;
    for (size_t i = 0; i < source->sideband_count; i++) {
        cpus->cpus[i].cpu = source->cpus[i].cpu;
        cpus->cpus[i].place = source->cpus[i].absent ? PLACE_AWAY : PLACE_HERE;
        cpus->cpus[i].known_ns = clock_ns(CLOCK_BOOTTIME);
    }
    int r = sd_event_add_time_relative(params->event, &cpus->tick_source, CLOCK_MONOTONIC,
                                       LOOK_USEC, 0, on_tick, cpus);
    if (r < 0) {
        (void)session_cpus_free(cpus);
        return r;
    }
    (void)sd_event_source_set_description(cpus->tick_source, "cpus");
    listen_for_events(cpus);
    session_cpus_look(cpus);
    *ret = cpus;
    return 0;
}

struct session_cpus *session_cpus_free(struct session_cpus *cpus)
{
    if (cpus != NULL) {
        (void)sd_event_source_disable_unref(cpus->tick_source);
        (void)sd_event_source_disable_unref(cpus->events_source);
        (void)close_fd(cpus->events_fd);
        free(cpus);
    }
    return NULL;
}

struct session_cpus_counts session_cpus_counts(const struct session_cpus *cpus)
{
    return cpus->counts;
}
