/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Readings of small files and of event counts, in the collector's own time: every drain of samples
 * for the counts, every second for idleness. The judging is done by others (cpu_presence,
 * cpu_ticks).
 */
#include "collector_cpus.h"

#include "clock.h"
#include "cpu_time.h"

#include <stdlib.h>
#include <string.h>

#define IDLE_TELL_NS NS_PER_S

struct collector_cpus {
    const struct perf_source *source;
    const char *idle_source;
    struct perf_count *kernel; /* cpu_count of the source, as each of these */
    struct cpu_presence *presence;
    struct cpu_time *idle; /* as it was told of last; as of the next time */
    struct cpu_time *idle_now;
    uint64_t next_idle_ns;
};

/* In this order: an interruption between the two must not look like a suspend. */
struct cpu_moment collector_cpus_now(void)
{
    uint64_t boottime_ns = clock_ns(CLOCK_BOOTTIME);
    uint64_t monotonic_ns = clock_ns(CLOCK_MONOTONIC);
    return (struct cpu_moment){.boottime_ns = boottime_ns, .monotonic_ns = monotonic_ns};
}

/* A moment not long ago: since the machine was last suspended. */
static struct cpu_moment moment_at(uint64_t boottime_ns)
{
    struct cpu_moment now = collector_cpus_now();
    uint64_t ahead_ns = now.boottime_ns > now.monotonic_ns ? now.boottime_ns - now.monotonic_ns : 0;
    return (struct cpu_moment){
        .boottime_ns = boottime_ns,
        .monotonic_ns = boottime_ns - ahead_ns,
    };
}

struct collector_cpus *collector_cpus_new(const struct perf_source *source)
{
    struct collector_cpus *cpus = calloc(1, sizeof *cpus);
    if (cpus == NULL) {
        return NULL;
    }
    cpus->source = source;
    cpus->kernel = calloc(source->cpu_count, sizeof *cpus->kernel);
    cpus->presence = calloc(source->cpu_count, sizeof *cpus->presence);
    cpus->idle = calloc(source->cpu_count, sizeof *cpus->idle);
    cpus->idle_now = calloc(source->cpu_count, sizeof *cpus->idle_now);
    if (cpus->kernel == NULL || cpus->presence == NULL || cpus->idle == NULL ||
        cpus->idle_now == NULL) {
        return collector_cpus_free(cpus);
    }
    cpus->idle_source = cpu_idle_source(CPU_IDLE_ROOT, source->cpus[0].cpu);
    for (size_t i = 0; i < source->cpu_count; i++) {
        cpus->idle[i].cpu = source->cpus[i].cpu;
    }
    return cpus;
}

struct collector_cpus *collector_cpus_free(struct collector_cpus *cpus)
{
    if (cpus != NULL) {
        free(cpus->kernel);
        free(cpus->presence);
        free(cpus->idle);
        free(cpus->idle_now);
        free(cpus);
    }
    return NULL;
}

void collector_cpus_start(struct collector_cpus *cpus, struct drain *drain)
{
    const struct perf_source *source = cpus->source;
    cpus->next_idle_ns = clock_ns(CLOCK_BOOTTIME) + IDLE_TELL_NS;
    drain_start(drain);
    (void)cpu_idle_read(CPU_IDLE_ROOT, cpus->idle_source, cpus->idle, source->cpu_count);
    for (size_t i = 0; i < source->cpu_count; i++) {
        cpu_presence_start(&cpus->presence[i], moment_at(source->cpus[i].started_ns),
                           cpus->kernel[i].time_running_ns, source->cpus[i].absent);
    }
}

static void tell_idle(struct collector_cpus *cpus, struct drain *drain)
{
    size_t cpu_count = cpus->source->cpu_count;
    memcpy(cpus->idle_now, cpus->idle, cpu_count * sizeof *cpus->idle);
    (void)cpu_idle_read(CPU_IDLE_ROOT, cpus->idle_source, cpus->idle_now, cpu_count);
    for (size_t i = 0; i < cpu_count; i++) {
        uint64_t idle_ns = cpus->idle_now[i].idle_ns;
        /* The kernel's sums may go back by a tick. */
        if (idle_ns >= cpus->idle[i].idle_ns) {
            drain_tell_idle(drain, i, idle_ns - cpus->idle[i].idle_ns);
            cpus->idle[i].idle_ns = idle_ns;
        }
    }
}

void collector_cpus_stop(struct collector_cpus *cpus, struct drain *drain)
{
    const struct perf_source *source = cpus->source;
    drain_stop(drain);
    tell_idle(cpus, drain);
    collector_cpus_read(cpus, UINT64_MAX);
    for (size_t i = 0; i < source->cpu_count; i++) {
        cpu_presence_stop(&cpus->presence[i], moment_at(source->cpus[i].stopped_ns));
    }
}

void collector_cpus_read(struct collector_cpus *cpus, uint64_t horizon_ns)
{
    for (size_t i = 0; i < cpus->source->cpu_count; i++) {
        struct cpu_moment before = collector_cpus_now();
        struct perf_count count;
        if (perf_source_read_count(cpus->source, i, &count) < 0) {
            continue;
        }
        struct cpu_moment after = collector_cpus_now();
        if (!cpus->source->cpus[i].absent) {
            cpu_presence_see(&cpus->presence[i], before, after, count.time_running_ns);
            uint64_t since_ns = after.boottime_ns > horizon_ns ? after.boottime_ns - horizon_ns : 0;
            count.time_running_ns -=
                since_ns < count.time_running_ns ? since_ns : count.time_running_ns;
        }
        cpus->kernel[i] = count;
    }
}

void collector_cpus_tell_idle(struct collector_cpus *cpus, struct drain *drain, uint64_t time_ns)
{
    if (time_ns >= cpus->next_idle_ns) {
        tell_idle(cpus, drain);
        cpus->next_idle_ns = time_ns + IDLE_TELL_NS;
    }
}

uint64_t collector_cpus_lose(struct collector_cpus *cpus, size_t index)
{
    struct perf_count count = cpus->kernel[index];
    (void)perf_source_read_count(cpus->source, index, &count);
    cpus->kernel[index] = count;
    return cpu_presence_lose(&cpus->presence[index], collector_cpus_now(), count.time_running_ns);
}

void collector_cpus_return(struct collector_cpus *cpus, size_t index)
{
    const struct perf_cpu *cpu = &cpus->source->cpus[index];
    /* What the sum has of the time offline is no idleness. */
    (void)cpu_idle_read(CPU_IDLE_ROOT, cpus->idle_source, &cpus->idle[index], 1);
    cpu_presence_return(&cpus->presence[index], moment_at(cpu->started_ns),
                        cpu->before.time_running_ns);
}

const char *collector_cpus_idle_source(const struct collector_cpus *cpus)
{
    return cpus->idle_source;
}

struct perf_count collector_cpus_count(const struct collector_cpus *cpus, size_t index)
{
    return cpus->kernel[index];
}

uint64_t collector_cpus_offline_ns(const struct collector_cpus *cpus, size_t index,
                                   uint64_t monotonic_ns)
{
    return cpu_presence_offline_ns(&cpus->presence[index], monotonic_ns);
}
