/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Samples this machine for a second through a real perf source, with a busy process pinned to every
 * CPU and a child that execs `true`, and checks what the rings say against the kernel's own counts.
 * Prints a line a CPU. Exit status 0: all true, 1: something is not, 77: the kernel refuses.
 */
#include "clock.h"
#include "perf_source.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PERIOD_NS     ((uint64_t)250000)
#define RUN_DRAINS    50
#define DRAIN_WAIT_NS 20000000L
#define CPU_MAX       1024
#define EXIT_SKIPPED  77

struct tally {
    uint32_t cpu;
    pid_t busy_pid;
    uint64_t sample_count;
    uint64_t busy_count;
    uint64_t busy_chain_count;   /* of those: with a user chain */
    uint64_t kernel_chain_count; /* of all samples */
    uint64_t ring_lost_count;
    uint64_t steal_begin_ns;
};

struct story {
    struct perf_source *source;
    struct tally *tallies; /* one for each of the source's CPUs */
    uint64_t begin_ns;
    pid_t child_pid;
    bool child_forked, child_named, child_mapped, child_exited;
    uint64_t unparsed_count;
    uint64_t misplaced_count; /* samples of another CPU than the ring's, or of another time */
};

static int failures;

static void expect(bool truth, const char *claim)
{
    if (!truth) {
        printf("not true: %s\n", claim);
        failures++;
    }
}

/* What the hypervisor has taken from a CPU so far; 0 where that is not known. */
static uint64_t read_steal_ns(uint32_t cpu)
{
    char line[512];
    uint64_t steal_ticks = 0;
    FILE *file = fopen("/proc/stat", "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        char *at = line + 3;
        if (strncmp(line, "cpu", 3) == 0 && *at != ' ' && strtoul(at, &at, 10) == cpu) {
            for (int column = 0; column < 8; column++) {
                steal_ticks = strtoull(at, &at, 10);
            }
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return steal_ticks * (1000000000 / (uint64_t)sysconf(_SC_CLK_TCK));
}

static pid_t start_busy(uint32_t cpu)
{
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(cpu, &set);
        (void)sched_setaffinity(0, sizeof set, &set);
        (void)alarm(60);
        for (volatile uint64_t i = 0; getppid() == parent; i++) {
            for (volatile unsigned spin = 0; spin < 10000000; spin++) {
            }
        }
        _exit(0);
    }
    return pid;
}

static pid_t start_child(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        (void)execlp("true", "true", (char *)NULL);
        _exit(127);
    }
    return pid;
}

static void on_sample(struct story *story, struct tally *tally, const struct perf_record *record)
{
    tally->sample_count++;
    tally->kernel_chain_count += record->sample.kernel_chain != NULL ? 1 : 0;
    if (record->cpu != tally->cpu || record->time_ns < story->begin_ns ||
        record->time_ns > clock_ns(CLOCK_BOOTTIME)) {
        story->misplaced_count++;
    }
    if (record->pid == tally->busy_pid) {
        tally->busy_count++;
        tally->busy_chain_count += record->sample.user_count > 0 ? 1 : 0;
    }
}

static void on_sideband(struct story *story, const struct perf_record *record)
{
    if (record->pid != story->child_pid) {
        return;
    }
    if (record->kind == PERF_KIND_FORK) {
        story->child_forked = record->task.parent_pid == getpid();
    } else if (record->kind == PERF_KIND_COMM && record->comm.exec) {
        story->child_named = strcmp(record->comm.text, "true") == 0;
    } else if (record->kind == PERF_KIND_MMAP && record->mmap.executable) {
        const char *name = strrchr(record->mmap.path, '/');
        story->child_mapped |= name != NULL && strcmp(name, "/true") == 0;
    } else if (record->kind == PERF_KIND_EXIT) {
        story->child_exited = true;
    }
}

static void drain_ring(struct story *story, struct tally *tally, struct perf_ring *ring)
{
    const uint8_t *bytes = NULL;
    size_t size_bytes = 0;
    perf_ring_refresh(ring);
    int r;
    while ((r = perf_ring_peek(ring, &bytes, &size_bytes)) > 0) {
        struct perf_record record;
        if (perf_record_parse(&story->source->layout, bytes, size_bytes, &record) < 0) {
            story->unparsed_count++;
        } else if (record.kind == PERF_KIND_SAMPLE) {
            on_sample(story, tally, &record);
        } else if (record.kind == PERF_KIND_LOST) {
            tally->ring_lost_count += record.lost.count;
        } else {
            on_sideband(story, &record);
        }
        perf_ring_advance(ring, size_bytes);
    }
    story->unparsed_count += r < 0;
    (void)perf_ring_publish(ring);
}

static void drain(struct story *story)
{
    for (size_t i = 0; i < story->source->cpu_count; i++) {
        drain_ring(story, &story->tallies[i],
                   &story->source->cpus[i].streams[PERF_STREAM_SIDEBAND].ring);
        drain_ring(story, &story->tallies[i],
                   &story->source->cpus[i].streams[PERF_STREAM_CLOCK].ring);
    }
}

static void run(struct story *story)
{
    expect(perf_source_enable_sideband(story->source) == 0, "sideband can be enabled");
    expect(perf_source_enable_sampling(story->source) == 0, "sampling can be enabled");
    story->child_pid = start_child();
    for (int i = 0; i < RUN_DRAINS; i++) {
        const struct timespec wait = {.tv_nsec = DRAIN_WAIT_NS};
        (void)nanosleep(&wait, NULL);
        drain(story);
    }
    expect(perf_source_disable_sampling(story->source) == 0, "sampling can be disabled");
    (void)waitpid(story->child_pid, NULL, 0);
    drain(story);
}

static void check_cpu(const struct story *story, size_t index)
{
    const struct tally *tally = &story->tallies[index];
    struct perf_count count = {0};
    expect(perf_source_read_count(story->source, index, 0, &count) == 0, "counts can be read");
    uint64_t expected = count.time_running_ns / PERIOD_NS;
    uint64_t stolen = (read_steal_ns(tally->cpu) - tally->steal_begin_ns) / PERIOD_NS;
    printf(
        "cpu %u: expected %llu, received %llu, lost %llu, stolen about %llu, of the busy process "
        "%llu\n",
        tally->cpu, (unsigned long long)expected, (unsigned long long)tally->sample_count,
        (unsigned long long)count.lost_count, (unsigned long long)stolen,
        (unsigned long long)tally->busy_count);

    expect(count.lost_count == 0 && tally->ring_lost_count == 0, "no sample is lost");
    expect(tally->sample_count + count.lost_count <= expected + 1, "no more samples than ticks");
    expect(tally->sample_count + stolen >= expected / 2, "a busy CPU is sampled at most ticks");
    expect(tally->busy_count > 0, "the busy process is sampled");
    expect(tally->busy_chain_count * 10 >= tally->busy_count * 9,
           "samples of the busy process have a user chain");
    expect(tally->kernel_chain_count == 0, "no kernel chains unless asked for");
}

static void check(const struct story *story)
{
    for (size_t i = 0; i < story->source->cpu_count; i++) {
        check_cpu(story, i);
    }
    expect(story->unparsed_count == 0, "the rings make sense, and every record parses");
    expect(story->misplaced_count == 0, "samples are of their ring's CPU and of the run's time");
    expect(story->child_forked, "FORK of the child, with its parent");
    expect(story->child_named, "COMM of the child's exec");
    expect(story->child_mapped, "MMAP of the program that the child ran");
    expect(story->child_exited, "EXIT of the child");
}

static bool kernel_refuses(int error)
{
    return error == EACCES || error == EPERM || error == ENOSYS || error == ENOENT ||
           error == EOPNOTSUPP;
}

int main(void)
{
    static struct tally tallies[CPU_MAX];
    const struct perf_source_config config = {.period_ns = PERIOD_NS, .max_stack_depth = 127};
    struct fault fault = {0};
    struct story story = {.tallies = tallies, .begin_ns = clock_ns(CLOCK_BOOTTIME)};
    int r = perf_source_open(&config, &story.source, &fault);
    if (r < 0) {
        printf("cannot open: %s\n", fault.text);
        return kernel_refuses(-r) ? EXIT_SKIPPED : EXIT_FAILURE;
    }
    if (story.source->cpu_count > CPU_MAX) {
        printf("%zu CPUs are more than this test counts\n", story.source->cpu_count);
        return EXIT_SKIPPED;
    }
    printf("build_id %d, format_lost %d, deferred_callchains %d, rings %llu KiB\n",
           story.source->features.build_id, story.source->features.format_lost,
           story.source->features.deferred_callchains,
           (unsigned long long)(story.source->ring_bytes >> 10));
    for (size_t i = 0; i < story.source->cpu_count; i++) {
        tallies[i].cpu = story.source->cpus[i].cpu;
        tallies[i].steal_begin_ns = read_steal_ns(tallies[i].cpu);
        tallies[i].busy_pid = start_busy(tallies[i].cpu);
    }
    run(&story);
    check(&story);
    for (size_t i = 0; i < story.source->cpu_count; i++) {
        (void)kill(tallies[i].busy_pid, SIGKILL);
        (void)waitpid(tallies[i].busy_pid, NULL, 0);
    }
    perf_source_free(story.source);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
