/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Computes the sizes of the rings. A sample ring holds about RING_TIME_NS of samples of the largest
 * size, so that the reader may be late by that much. A copied stack always takes its full size in
 * the ring. If all rings together are too large for the memory, they shrink in this order: the
 * sample rings, down to RING_TIME_MIN_NS; the sideband rings, to a size that survives a storm, and
 * a default copy, to a size that most stacks fit in; both further; a default copy is dropped; a
 * default rate gets less time. Explicit values keep their size, and are refused with the numbers if
 * they do not fit. No sum overflows 64 bits, with periods of at least 1 ns, records of 16-bit size
 * and CPU_LIST_LIMIT CPUs.
 */
#include "perf_plan.h"

#include "clock.h"
#include "extremes.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

/*
 * Rings come in powers of two. One that holds four fifths of the time is taken rather than the
 * next, twice as large: 16 MiB for 4000 Hz with 16 KiB of stack each.
 */
#define RING_TIME_NS         ((uint64_t)250000000)
#define RING_TIME_ROUNDED_NS (RING_TIME_NS / 5 * 4)
#define RING_TIME_MIN_NS     ((uint64_t)50000000)
#define RING_TIME_LAST_NS                                                                          \
    ((uint64_t)10000000) /* a ring wakes its reader when a quarter is full                         \
                          */

/*
 * The least of a sample ring where memory allows: an eighth of the sideband ring beside it, so less
 * would save nothing, and at low rates it rides out a reader that stands still for seconds.
 */
#define SAMPLE_RING_LEAST_BYTES ((uint64_t)512 << 10)

/* Two loops of mmap() overrun 128 KiB within a drain interval, and do not fill 4 MiB. */
#define SIDEBAND_RING_BYTES       ((uint64_t)4 << 20)
#define SIDEBAND_RING_SMALL_BYTES ((uint64_t)1 << 20)
#define SMALL_ABOVE_CPUS          16

/*
 * 20,000 switches a second are 1.3 MB of records; they are drained every 100 ms. Where there are
 * more, idleness is told by others (switch_feed), as it is of what a small ring loses.
 */
#define SWITCH_RING_BYTES       ((uint64_t)512 << 10)
#define SWITCH_RING_SMALL_BYTES ((uint64_t)128 << 10)

/*
 * Other events come in bursts of any rate: 8 MiB are a tenth of a second of 10,000 samples a second
 * with 8 KiB of stack each. They give way before the clock does.
 */
#define FURTHER_RING_BYTES       ((uint64_t)8 << 20)
#define FURTHER_RING_MANY_BYTES  ((uint64_t)2 << 20)
#define FURTHER_RING_SMALL_BYTES ((uint64_t)512 << 10)
#define FURTHER_RING_LEAST_BYTES ((uint64_t)128 << 10)

#define STACK_COPY_BYTES_MIN  512  /* fewer are useless */
#define STACK_COPY_BYTES_GOOD 4096 /* less leaves many stacks without their root */

/*
 * What is given up, from row to row, until the rings fit. Small sideband rings are overrun sooner,
 * by storms of processes; that is counted, and the processes are read again.
 */
static const struct sacrifice {
    uint64_t sideband_bytes; /* 0: as usual */
    uint64_t switch_bytes;
    uint32_t least_copy_bytes; /* to which a default copy may shrink; 0: to none */
    uint64_t time_ns;          /* that the sample rings hold at least */
} sacrifices[] = {
    {0, 0, UINT32_MAX, RING_TIME_MIN_NS},
    {SIDEBAND_RING_SMALL_BYTES, SWITCH_RING_SMALL_BYTES, STACK_COPY_BYTES_GOOD, RING_TIME_MIN_NS},
    {256 << 10, 32 << 10, STACK_COPY_BYTES_GOOD, RING_TIME_MIN_NS},
    {256 << 10, 32 << 10, STACK_COPY_BYTES_MIN, RING_TIME_MIN_NS},
    {128 << 10, 16 << 10, STACK_COPY_BYTES_MIN, RING_TIME_MIN_NS},
    {128 << 10, 16 << 10, 0, RING_TIME_MIN_NS},
    {64 << 10, 16 << 10, 0, RING_TIME_MIN_NS},
    {64 << 10, 16 << 10, 0, RING_TIME_LAST_NS},
};

#define SACRIFICE_COUNT (sizeof sacrifices / sizeof sacrifices[0])

/* The last row for samples with a copy, and for those without where the rate is explicit. */
#define LAST_WITH_COPY    4
#define LAST_WITHOUT_COPY 6

#define RINGS_BYTES_MAX      ((uint64_t)512 << 20)
#define RINGS_MEMORY_DIVISOR 32

/* Kernel frames share one budget with user frames; stacks of system calls are seldom deeper. */
#define KERNEL_FRAMES_ALLOWANCE 64

/* Header, four ids (identifier, tid, time, cpu), the chain's count, two context markers, and the
 * control group. */
#define SAMPLE_FIXED_WORDS (1 + 4 + 1 + 2 + 1)
/* Beside the registers and the copy: the registers' kind, the copy's size, and how much is valid.
 */
#define SAMPLE_COPY_WORDS (1 + 2)
/* Its size has 16 bits; the kernel copies less of a stack where the sample would not fit. */
#define SAMPLE_BYTES_MAX ((uint64_t)UINT16_MAX / 8 * 8)

#define MIB ((uint64_t)1 << 20)

static uint64_t sample_bytes_without_copy(const struct perf_plan_input *input,
                                          uint16_t sample_max_stack)
{
    uint64_t words = SAMPLE_FIXED_WORDS + (uint64_t)sample_max_stack;
    if (input->stack_copy_bytes > 0) {
        words += SAMPLE_COPY_WORDS + (uint64_t)input->user_regs_count;
    }
    return words * sizeof(uint64_t);
}

static uint64_t sample_bytes(const struct perf_plan_input *input, uint16_t sample_max_stack)
{
    return min_u64(sample_bytes_without_copy(input, sample_max_stack) + input->stack_copy_bytes,
                   SAMPLE_BYTES_MAX);
}

static uint64_t samples_in(uint64_t time_ns, uint64_t period_ns)
{
    return time_ns / period_ns + 1;
}

/* The power of two of at least a page that holds `time_ns` of samples. */
static uint64_t ring_bytes_for(uint64_t time_ns, const struct perf_plan_input *input,
                               uint16_t sample_max_stack)
{
    uint64_t wanted_bytes =
        samples_in(time_ns, input->period_ns) * sample_bytes(input, sample_max_stack);
    uint64_t ring_bytes = input->page_bytes;
    while (ring_bytes < wanted_bytes) {
        ring_bytes *= 2;
    }
    return ring_bytes;
}

static int choose_depth(const struct perf_plan_input *input, uint16_t *ret, struct fault *reterr)
{
    if (input->stack_copy_bytes == 0 && input->max_stack_depth > input->sysctl_max_stack) {
        return fault_set_member(reterr, "max_stack_depth",
                                "%u frames are more than this kernel records; allowed are 1 to %u "
                                "(kernel.perf_event_max_stack)",
                                input->max_stack_depth, input->sysctl_max_stack);
    }
    uint64_t wanted = input->max_stack_depth;
    if (input->kernel_stacks) {
        wanted += KERNEL_FRAMES_ALLOWANCE;
    }
    *ret = (uint16_t)min_u64(wanted, min_u64(input->sysctl_max_stack, UINT16_MAX));
    return 0;
}

static uint64_t total_bytes(const struct perf_plan_input *input, const struct perf_plan *plan)
{
    uint64_t sampled_bytes = plan->sample_ring_bytes + plan->switch_ring_bytes +
                             2 * input->page_bytes +
                             input->further_count * (plan->further_ring_bytes + input->page_bytes);
    return input->cpu_count * sampled_bytes +
           input->sideband_count * (plan->sideband_ring_bytes + input->page_bytes);
}

static uint64_t allowed_bytes(const struct perf_plan_input *input)
{
    return min_u64(input->memory_bytes / RINGS_MEMORY_DIVISOR, RINGS_BYTES_MAX);
}

static const struct sacrifice *last_sacrifice(const struct perf_plan_input *input)
{
    return &sacrifices[input->stack_copy_bytes > 0 ? LAST_WITH_COPY : LAST_WITHOUT_COPY];
}

/* The largest sample ring that every CPU can have, 0 where none can. */
static uint64_t largest_ring_bytes(const struct perf_plan_input *input)
{
    struct perf_plan plan = {
        .sample_ring_bytes = input->page_bytes,
        .sideband_ring_bytes = last_sacrifice(input)->sideband_bytes,
        .switch_ring_bytes = last_sacrifice(input)->switch_bytes,
        .further_ring_bytes = FURTHER_RING_LEAST_BYTES,
    };
    while (total_bytes(input, &plan) <= allowed_bytes(input)) {
        plan.sample_ring_bytes *= 2;
    }
    return plan.sample_ring_bytes == input->page_bytes ? 0 : plan.sample_ring_bytes / 2;
}

/* The largest copy with which RING_TIME_MIN_NS of samples fit that ring, 0 where none does. */
static uint64_t largest_copy_bytes(const struct perf_plan_input *input, uint16_t sample_max_stack)
{
    uint64_t room_bytes =
        largest_ring_bytes(input) / samples_in(RING_TIME_MIN_NS, input->period_ns);
    uint64_t other_bytes = sample_bytes_without_copy(input, sample_max_stack);
    if (input->stack_copy_bytes == 0 || room_bytes < other_bytes + STACK_COPY_BYTES_MIN) {
        return 0;
    }
    return (room_bytes - other_bytes) / 8 * 8;
}

/* The same for the rate. */
static uint64_t highest_rate_hz(const struct perf_plan_input *input, uint16_t sample_max_stack)
{
    uint64_t samples = largest_ring_bytes(input) / sample_bytes(input, sample_max_stack);
    return samples == 0 ? 0 : NS_PER_S / (RING_TIME_MIN_NS / samples + 1);
}

static int refuse_rings(const struct perf_plan_input *input, const struct perf_plan *plan,
                        struct fault *reterr)
{
    char events[48] = "";
    char advice[96] = "no rate is low enough for so little memory";
    uint64_t rate_hz = highest_rate_hz(input, plan->sample_max_stack);
    uint64_t copy_bytes = largest_copy_bytes(input, plan->sample_max_stack);
    if (copy_bytes > 0) {
        (void)snprintf(advice, sizeof advice,
                       "lower stack_copy_bytes to %llu or the rate to %llu Hz",
                       (unsigned long long)copy_bytes, (unsigned long long)rate_hz);
    } else if (rate_hz > 0) {
        (void)snprintf(advice, sizeof advice, "lower the rate to %llu Hz",
                       (unsigned long long)rate_hz);
    }
    if (input->further_count > 0) {
        (void)snprintf(events, sizeof events, " and %zu more event%s", input->further_count,
                       input->further_count == 1 ? "" : "s");
    }
    return fault_set_member(
        reterr, copy_bytes > 0 ? "stack_copy_bytes" : "frequency_hz",
        "%llu Hz x %llu bytes x %zu CPUs%s need %llu MiB of rings for 50 ms (%llu KiB of samples, "
        "%llu KiB of sideband, %llu KiB of switches each); allowed are %llu MiB (1/32 of the memory, at most 512 MiB): %s",
        (unsigned long long)((NS_PER_S + input->period_ns / 2) / input->period_ns),
        (unsigned long long)sample_bytes(input, plan->sample_max_stack), input->cpu_count, events,
        (unsigned long long)((plan->total_bytes + MIB - 1) / MIB),
        (unsigned long long)(plan->sample_ring_bytes >> 10),
        (unsigned long long)(plan->sideband_ring_bytes >> 10),
        (unsigned long long)(plan->switch_ring_bytes >> 10),
        (unsigned long long)(allowed_bytes(input) / MIB), advice);
}

/* Halves one kind of rings, which the plan has, as long as that is needed and more than the least.
 */
static void shrink(const struct perf_plan_input *input, const struct perf_plan *plan,
                   uint64_t *ring_bytes, uint64_t least_bytes)
{
    while (total_bytes(input, plan) > allowed_bytes(input) && *ring_bytes > least_bytes) {
        *ring_bytes /= 2;
    }
}

/* Rings of one row, of samples with `copy_bytes`. Returns whether they fit; the plan has its total
 * in any case. */
static bool try_rings(const struct perf_plan_input *wanted, const struct sacrifice *row,
                      uint32_t copy_bytes, struct perf_plan *plan)
{
    struct perf_plan_input input = *wanted;
    input.stack_copy_bytes = copy_bytes;
    bool many = input.sideband_count > SMALL_ABOVE_CPUS;
    uint64_t least_bytes = ring_bytes_for(row->time_ns, &input, plan->sample_max_stack);
    plan->stack_copy_bytes = copy_bytes;
    plan->sample_ring_bytes =
        max_u64(SAMPLE_RING_LEAST_BYTES,
                ring_bytes_for(RING_TIME_ROUNDED_NS, &input, plan->sample_max_stack));
    plan->sideband_ring_bytes = row->sideband_bytes > 0 ? row->sideband_bytes
                                : many                  ? SIDEBAND_RING_SMALL_BYTES
                                                        : SIDEBAND_RING_BYTES;
    plan->switch_ring_bytes = row->sideband_bytes > 0 ? row->switch_bytes
                              : many                  ? SWITCH_RING_SMALL_BYTES
                                                      : SWITCH_RING_BYTES;
    plan->further_ring_bytes = input.further_count == 0 ? 0
                               : many                   ? FURTHER_RING_MANY_BYTES
                                                        : FURTHER_RING_BYTES;
    shrink(&input, plan, &plan->further_ring_bytes, FURTHER_RING_SMALL_BYTES);
    shrink(&input, plan, &plan->sample_ring_bytes, least_bytes);
    shrink(&input, plan, &plan->further_ring_bytes, FURTHER_RING_LEAST_BYTES);
    plan->total_bytes = total_bytes(&input, plan);
    return plan->total_bytes <= allowed_bytes(&input);
}

/* The copy that is tried after `copy_bytes`, when it is a default. */
static uint32_t next_smaller_copy(uint32_t copy_bytes)
{
    uint32_t smaller = 32768;
    while (smaller >= copy_bytes) {
        smaller /= 2;
    }
    return smaller;
}

/* Whether samples without a copy are what is wanted, or will do. */
static bool may_have_no_copy(const struct perf_plan_input *input)
{
    return input->stack_copy_bytes == 0 || (input->may_shrink_copy && input->may_drop_copy &&
                                            input->max_stack_depth <= input->sysctl_max_stack);
}

static uint32_t least_copy_bytes(const struct perf_plan_input *input)
{
    uint32_t least = input->may_shrink_copy ? STACK_COPY_BYTES_MIN : input->stack_copy_bytes;
    return may_have_no_copy(input) ? 0 : least;
}

/* Tries the copies that a row allows. */
static bool try_row(const struct perf_plan_input *input, const struct sacrifice *row,
                    struct perf_plan *plan)
{
    uint32_t copy_bytes = input->stack_copy_bytes;
    if (row->time_ns < RING_TIME_MIN_NS && !input->may_shrink_time) {
        return false;
    }
    if (row->least_copy_bytes == 0) {
        return may_have_no_copy(input) && try_rings(input, row, 0, plan);
    }
    bool fits = try_rings(input, row, copy_bytes, plan);
    while (!fits && input->may_shrink_copy && copy_bytes > row->least_copy_bytes) {
        copy_bytes = next_smaller_copy(copy_bytes);
        fits = try_rings(input, row, copy_bytes, plan);
    }
    return fits;
}

/* A sideband ring of 1 MiB is usual with many CPUs, and small enough not to speak of with few. */
static void describe_cut(const struct perf_plan_input *input, struct perf_plan *plan)
{
    char rings[112] = "";
    unsigned long long allowed_mib = allowed_bytes(input) / MIB;
    if (plan->sideband_ring_bytes < SIDEBAND_RING_SMALL_BYTES) {
        (void)snprintf(rings, sizeof rings,
                       "; a CPU's records of what processes do have %llu KiB, and storms lose some",
                       (unsigned long long)(plan->sideband_ring_bytes >> 10));
    }
    if (plan->stack_copy_bytes == 0 && input->stack_copy_bytes > 0) {
        (void)fault_set_member(&plan->cut, "unwind",
                               "is \"fp\": the rings of %zu CPUs have no room for copies of stacks "
                               "in %llu MiB (1/32 of the memory, at most 512 MiB)%s",
                               input->cpu_count, allowed_mib, rings);
    } else if (plan->stack_copy_bytes < input->stack_copy_bytes) {
        (void)fault_set_member(&plan->cut, "stack_copy_bytes",
                               "is %u instead of %u, so that the rings of %zu CPUs fit in %llu MiB "
                               "(1/32 of the memory, at most 512 MiB)%s",
                               plan->stack_copy_bytes, input->stack_copy_bytes, input->cpu_count,
                               allowed_mib, rings);
    } else if (rings[0] != '\0') {
        (void)fault_set_member(&plan->cut, "cpus",
                               "are %zu, whose rings fit in %llu MiB (1/32 of the memory, at most "
                               "512 MiB) when they are small%s",
                               input->cpu_count, allowed_mib, rings);
    }
}

int perf_plan_make(const struct perf_plan_input *input, struct perf_plan *ret, struct fault *reterr)
{
    assert(input->period_ns > 0 && input->page_bytes > 0);
    assert(input->cpu_count > 0 && input->cpu_count <= input->sideband_count);
    struct perf_plan plan = {0};
    bool fits = false;
    int r = choose_depth(input, &plan.sample_max_stack, reterr);
    for (size_t i = 0; r >= 0 && i < SACRIFICE_COUNT && !fits; i++) {
        fits = try_row(input, &sacrifices[i], &plan);
    }
    if (r >= 0 && !fits) {
        struct perf_plan_input least = *input;
        least.stack_copy_bytes = least_copy_bytes(input);
        (void)try_rings(&least, last_sacrifice(&least), least.stack_copy_bytes, &plan);
        r = refuse_rings(&least, &plan, reterr);
    }
    if (r < 0) {
        return r;
    }
    describe_cut(input, &plan);
    *ret = plan;
    return 0;
}
