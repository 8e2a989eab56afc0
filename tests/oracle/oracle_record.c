/* SPDX-License-Identifier: Apache-2.0 */

/* Samples of the whole machine, of which those of some processes are kept. */
#include "oracle.h"
#include "perf_source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXIT_SKIPPED    77
#define DRAIN_WAIT_NS   10000000L
#define MAX_STACK_DEPTH 127
#define REGS_ABI_64     2
#define NS_PER_SECOND   1000000000L
#define FIRST_CAPACITY  ((size_t)256)

void *oracle_alloc(void *old, size_t bytes)
{
    void *result = realloc(old, bytes == 0 ? 1 : bytes);
    if (result == NULL) {
        (void)fprintf(stderr, "out of memory\n");
        exit(EXIT_FAILURE);
    }
    return result;
}

static void *copy_of(const void *bytes, size_t size_bytes)
{
    void *copy = oracle_alloc(NULL, size_bytes);
    if (size_bytes > 0) {
        memcpy(copy, bytes, size_bytes);
    }
    return copy;
}

static void keep(struct oracle_process *process, const struct perf_record *record)
{
    const struct perf_sample_view *view = &record->sample;
    if (!view->has_user_regs || view->user_regs_abi != REGS_ABI_64 ||
        view->user_regs_count != ARCH_PERF_REGS_COUNT) {
        process->without_registers_count++;
        return;
    }
    if (process->sample_count == process->sample_capacity) {
        process->sample_capacity =
            process->sample_capacity == 0 ? FIRST_CAPACITY : 2 * process->sample_capacity;
        process->samples =
            oracle_alloc(process->samples, process->sample_capacity * sizeof *process->samples);
    }
    struct oracle_sample *sample = &process->samples[process->sample_count++];
    *sample = (struct oracle_sample){
        .tid = record->tid,
        .kernel_mode = record->mode == PERF_MODE_KERNEL,
        .ip = view->user_regs[ARCH_PERF_IP_WORD],
        .stack = copy_of(view->user_stack, view->user_stack_bytes),
        .stack_bytes = view->user_stack_bytes,
        .stack_cut = view->user_stack_cut,
        .chain = copy_of(view->user_chain, view->user_count * sizeof *view->user_chain),
        .chain_count = view->user_count,
        .chain_cut = view->user_count >= MAX_STACK_DEPTH,
    };
    for (size_t i = 0; i < ARCH_REGISTERS_COUNT; i++) {
        sample->registers[i] = view->user_regs[arch_perf_word[i]];
    }
}

static void on_record(const struct oracle_config *config, struct oracle_process *processes,
                      size_t process_count, const struct perf_record *record)
{
    if (record->kind == PERF_KIND_LOST) {
        (void)printf("lost %llu samples\n", (unsigned long long)record->lost.count);
    }
    for (size_t i = 0; record->kind == PERF_KIND_SAMPLE && i < process_count; i++) {
        if (processes[i].pid == record->pid && processes[i].sample_count < config->samples_max) {
            keep(&processes[i], record);
        }
    }
}

static void drain(const struct oracle_config *config, struct oracle_process *processes,
                  size_t process_count, struct perf_source *source)
{
    const uint8_t *bytes = NULL;
    size_t size_bytes = 0;
    struct perf_record record;
    for (size_t i = 0; i < source->cpu_count; i++) {
        struct perf_ring *ring = &source->cpus[i].streams[PERF_STREAM_CLOCK].ring;
        perf_ring_refresh(ring);
        while (perf_ring_peek(ring, &bytes, &size_bytes) > 0) {
            if (perf_record_parse(&source->layout, bytes, size_bytes, &record) == 0) {
                on_record(config, processes, process_count, &record);
            }
            perf_ring_advance(ring, size_bytes);
        }
        (void)perf_ring_publish(ring);
    }
}

static bool has_enough(const struct oracle_config *config, const struct oracle_process *processes,
                       size_t process_count)
{
    for (size_t i = 0; i < process_count; i++) {
        if (processes[i].sample_count < config->samples_max) {
            return false;
        }
    }
    return true;
}

void oracle_record(const struct oracle_config *config, struct oracle_process *processes,
                   size_t process_count)
{
    const struct perf_source_config source_config = {
        .period_ns = config->period_ns,
        .max_stack_depth = MAX_STACK_DEPTH,
        .stack_copy_bytes = config->stack_copy_bytes,
    };
    const struct timespec wait = {.tv_nsec = DRAIN_WAIT_NS};
    struct perf_source *source = NULL;
    struct fault fault = {0};
    int r = perf_source_open(&source_config, &source, &fault);
    if (r == 0) {
        r = perf_source_enable_sampling(source);
    }
    if (r < 0) {
        (void)printf("cannot sample: %s\n", fault.text);
        exit(r == -EACCES || r == -EPERM || r == -ENOENT || r == -EOPNOTSUPP ? EXIT_SKIPPED
                                                                             : EXIT_FAILURE);
    }
    for (uint64_t waited_ns = 0;
         waited_ns < config->duration_ns && !has_enough(config, processes, process_count);
         waited_ns += DRAIN_WAIT_NS) {
        (void)nanosleep(&wait, NULL);
        drain(config, processes, process_count, source);
    }
    (void)perf_source_disable_sampling(source);
    drain(config, processes, process_count, source);
    (void)perf_source_free(source);
}

void oracle_process_done(struct oracle_process *process)
{
    for (size_t i = 0; i < process->sample_count; i++) {
        free(process->samples[i].stack);
        free(process->samples[i].chain);
    }
    free(process->samples);
    *process = (struct oracle_process){0};
}
