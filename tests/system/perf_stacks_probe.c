/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Samples this machine through a real perf source that copies stacks, with a process pinned to
 * every CPU that tells where its stack pointer is and what lies above it, and holds the samples'
 * registers and copies against that. Prints a line a run. Exit status 0: all true, 1: something is
 * not, 77: the kernel refuses.
 */
#include "arch_x86_64.h"
#include "perf_source.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RUN_DRAINS     50
#define DRAIN_WAIT_NS  20000000L
#define CPU_MAX        256
#define PATTERN_WORDS  64 /* more than a red zone holds, so it lies above the stack pointer */
#define PATTERN_FACTOR UINT64_C(0x9e3779b97f4a7c15)
#define EXIT_SKIPPED   77

/* What a busy process tells of itself, in memory that it shares. */
struct truth {
    uint64_t pattern; /* its address */
    uint64_t sp;      /* written last, just before it does nothing but spin */
};

struct busy {
    pid_t pid;
    uint64_t stack_end;
    volatile struct truth *truth;
};

struct run {
    struct perf_source_config config;
    struct perf_source *source;
    struct busy *busy; /* one for each CPU of the source */
    uint64_t sample_count, busy_count, lost_count, unparsed_count;
    uint64_t wrong_sp_count, wrong_bytes_count, wrong_size_count, wrong_cut_count;
};

static int failures;

static void expect(bool truth, const char *claim)
{
    if (!truth) {
        printf("not true: %s\n", claim);
        failures++;
    }
}

static uint64_t pattern_word(pid_t pid, size_t index)
{
    return ((uint64_t)pid * PATTERN_WORDS + index) * PATTERN_FACTOR;
}

/* Where the mapping of a process ends that holds the address; 0 when there is none. */
static uint64_t mapping_end(pid_t pid, uint64_t address)
{
    char text[512];
    uint64_t end = 0;
    (void)snprintf(text, sizeof text, "/proc/%d/maps", (int)pid);
    FILE *file = fopen(text, "re");
    while (file != NULL && end == 0 && fgets(text, sizeof text, file) != NULL) {
        char *rest = NULL;
        uint64_t first = strtoull(text, &rest, 16);
        uint64_t last = strtoull(rest + 1, NULL, 16);
        end = first <= address && address < last ? last : 0;
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return end;
}

/*
 * The kernel copies what is there, and below a program's arguments there may be pages that no
 * program has touched yet.
 */
__attribute__((no_sanitize("address"))) static void touch_pages(uint64_t from, uint64_t until)
{
    for (uint64_t at = from; at < until; at += 4096) {
        (void)*(volatile uint8_t *)(uintptr_t)at;
    }
}

/* Spins with a constant stack pointer and a pattern on its stack, in a frame of its own: the
 * smallest copy holds that. */
__attribute__((noinline)) static _Noreturn void spin(volatile struct truth *truth)
{
    volatile uint64_t pattern[PATTERN_WORDS];
    for (size_t i = 0; i < PATTERN_WORDS; i++) {
        pattern[i] = pattern_word(getpid(), i);
    }
    truth->pattern = (uintptr_t)pattern;
    touch_pages(truth->pattern, mapping_end(getpid(), truth->pattern));
    __asm__ volatile("mov %%rsp, %0\n1: pause\n jmp 1b" : "=m"(truth->sp)::"memory");
    __builtin_unreachable();
}

static struct busy start_busy(uint32_t cpu)
{
    struct truth *truth =
        mmap(NULL, sizeof *truth, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (truth == MAP_FAILED) {
        abort();
    }
    struct busy busy = {.truth = truth, .pid = fork()};
    if (busy.pid == 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(cpu, &set);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)sched_setaffinity(0, sizeof set, &set);
        (void)alarm(60);
        spin(truth);
    }
    for (int i = 0; busy.truth->sp == 0 && i < 1000; i++) {
        (void)usleep(10000);
    }
    busy.stack_end = mapping_end(busy.pid, busy.truth->sp);
    return busy;
}

/* The pattern is in the copy where the stack pointer says. */
static bool has_pattern(const struct busy *busy, const struct perf_sample_view *view)
{
    uint64_t offset = busy->truth->pattern - busy->truth->sp;
    if (offset > view->user_stack_bytes ||
        view->user_stack_bytes - offset < PATTERN_WORDS * sizeof(uint64_t)) {
        return false;
    }
    for (size_t i = 0; i < PATTERN_WORDS; i++) {
        uint64_t word;
        memcpy(&word, view->user_stack + offset + i * sizeof word, sizeof word);
        if (word != pattern_word(busy->pid, i)) {
            return false;
        }
    }
    return true;
}

static void on_busy(struct run *run, const struct busy *busy, const struct perf_sample_view *view)
{
    uint64_t live_bytes = busy->stack_end - busy->truth->sp;
    uint64_t asked_bytes = run->config.stack_copy_bytes;
    run->busy_count++;
    if (!view->has_user_regs || view->user_regs_count != ARCH_PERF_REGS_COUNT ||
        view->user_regs[arch_perf_word[ARCH_DWARF_SP]] != busy->truth->sp) {
        run->wrong_sp_count++;
    }
    run->wrong_bytes_count += has_pattern(busy, view) ? 0 : 1;
    run->wrong_size_count +=
        view->user_stack_bytes != (live_bytes < asked_bytes ? live_bytes : asked_bytes);
    run->wrong_cut_count += view->user_stack_cut != (live_bytes >= asked_bytes);
}

static void drain_ring(struct run *run, struct perf_ring *ring, const struct busy *busy)
{
    const uint8_t *bytes = NULL;
    size_t size_bytes = 0;
    perf_ring_refresh(ring);
    int r;
    while ((r = perf_ring_peek(ring, &bytes, &size_bytes)) > 0) {
        struct perf_record record;
        if (perf_record_parse(&run->source->layout, bytes, size_bytes, &record) < 0) {
            run->unparsed_count++;
        } else if (record.kind == PERF_KIND_SAMPLE) {
            run->sample_count++;
            if (record.pid == busy->pid) {
                on_busy(run, busy, &record.sample);
            }
        } else if (record.kind == PERF_KIND_LOST) {
            run->lost_count += record.lost.count;
        }
        perf_ring_advance(ring, size_bytes);
        (void)perf_ring_publish(ring);
    }
    run->unparsed_count += r < 0;
}

/* Whether the mapping at an address is left out of core dumps. */
static bool is_hidden(const void *map)
{
    char line[512];
    bool here = false;
    bool hidden = false;
    FILE *file = fopen("/proc/self/smaps", "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        char *rest = NULL;
        uint64_t first = strtoull(line, &rest, 16);
        if (*rest == '-') {
            uint64_t last = strtoull(rest + 1, NULL, 16);
            here = first <= (uintptr_t)map && (uintptr_t)map < last;
        } else if (here && strncmp(line, "VmFlags:", 8) == 0) {
            hidden = strstr(line, " dd ") != NULL;
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return hidden;
}

static void check_source(const struct run *run)
{
    expect(is_hidden(run->source->bounces), "bounce buffers are in no core dump");
    for (size_t i = 0; i < run->source->cpu_count; i++) {
        struct perf_count count = {0};
        expect(is_hidden(run->source->cpus[i].streams[PERF_STREAM_CLOCK].map),
               "sample rings are in no core dump");
        expect(perf_source_read_count(run->source, i, 0, &count) == 0, "counts can be read");
        expect(count.lost_count == 0, "the kernel lost nothing");
    }
}

static void check(const struct run *run)
{
    uint64_t live_bytes = run->busy[0].stack_end - run->busy[0].truth->sp;
    printf("period %llu ns, %u bytes of stacks, first live %llu: samples %llu, of busy processes "
           "%llu, lost %llu, rings %llu KiB\n",
           (unsigned long long)run->config.period_ns, run->config.stack_copy_bytes,
           (unsigned long long)live_bytes, (unsigned long long)run->sample_count,
           (unsigned long long)run->busy_count, (unsigned long long)run->lost_count,
           (unsigned long long)(run->source->ring_bytes >> 10));
    check_source(run);
    expect(run->busy_count > 100, "the busy processes are sampled");
    expect(run->lost_count == 0, "no sample is lost");
    expect(run->unparsed_count == 0, "the rings make sense, and every record parses");
    expect(run->wrong_sp_count == 0, "samples have the stack pointer");
    expect(run->wrong_bytes_count == 0, "copies begin at the stack pointer");
    expect(run->wrong_size_count == 0, "copies end with the stack or the room for it");
    expect(run->wrong_cut_count == 0, "a copy that ends before its stack is cut");
}

/* Returns 0 or -errno of opening. */
static int run_with(struct run *run)
{
    const struct timespec wait = {.tv_nsec = DRAIN_WAIT_NS};
    struct fault fault = {0};
    int r = perf_source_open(&run->config, &run->source, &fault);
    if (run->source == NULL) {
        printf("cannot open: %s %s\n", fault.member, fault.text);
        return r;
    }
    if (run->source->cpu_count > CPU_MAX) {
        printf("%zu CPUs are more than this test handles\n", run->source->cpu_count);
        perf_source_free(run->source);
        return -EOPNOTSUPP;
    }
    for (size_t i = 0; i < run->source->cpu_count; i++) {
        run->busy[i] = start_busy(run->source->cpus[i].cpu);
        expect(run->busy[i].stack_end > 0, "a busy process says where its stack is");
    }
    expect(perf_source_enable_sampling(run->source) == 0, "sampling can be enabled");
    for (int i = 0; i < RUN_DRAINS; i++) {
        (void)nanosleep(&wait, NULL);
        for (size_t j = 0; j < run->source->cpu_count; j++) {
            drain_ring(run, &run->source->cpus[j].streams[PERF_STREAM_CLOCK].ring, &run->busy[j]);
        }
    }
    expect(perf_source_disable_sampling(run->source) == 0, "sampling can be disabled");
    check(run);
    for (size_t i = 0; i < run->source->cpu_count; i++) {
        (void)kill(run->busy[i].pid, SIGKILL);
        (void)waitpid(run->busy[i].pid, NULL, 0);
    }
    perf_source_free(run->source);
    return 0;
}

static bool kernel_refuses(int error)
{
    return error == EACCES || error == EPERM || error == ENOSYS || error == ENOENT ||
           error == EOPNOTSUPP;
}

int main(void)
{
    static const struct perf_source_config configs[] = {
        {.period_ns = 250000, .max_stack_depth = 127, .stack_copy_bytes = 16384},
        {.period_ns = 250000, .max_stack_depth = 510, .stack_copy_bytes = 1024},
        {.period_ns = 1001001, .max_stack_depth = 127, .stack_copy_bytes = 65000},
    };
    static struct busy busy[CPU_MAX];
    for (size_t i = 0; i < sizeof configs / sizeof configs[0]; i++) {
        struct run run = {.config = configs[i], .busy = busy};
        int r = run_with(&run);
        if (r < 0) {
            return kernel_refuses(-r) ? EXIT_SKIPPED : EXIT_FAILURE;
        }
    }
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
