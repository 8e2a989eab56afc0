/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Work in step with ticks: `in_step TICK_US[,TICK_US...] [--seconds S] [--cpu N]` is busy all the
 * time. The starts of a tick are the multiples of its length on CLOCK_MONOTONIC, as the kernel's
 * are; its first 2.6 % are its handler's. With several ticks, at most three, the rhythms run in one
 * thread at the same time: it is in work_N(), where bit i of N says whether the handler of the tick
 * i has its turn. The share of that handler is the sum of the work_N() with that bit.
 *
 * A profiler must find each handler with the share that it had, whatever its rate: one that samples
 * in step finds it never, or too often. At the end the program prints the CPU time of each
 * work_N(). They wait for a time by the time stamp counter, which takes no call, so that all
 * samples of a turn are in its function, and measure themselves by it: a tick interrupts what runs
 * between two turns, too, and takes some 10 us on a slow machine, a tenth of a handler. Only a turn
 * in which something else ran is measured from outside.
 */
#include "workload.h"

#include <sys/resource.h>
#include <x86intrin.h>

#define HANDLER_PERMILLE  26
#define CALIBRATION_NS    UINT64_C(200000000)
#define SPIN_TURNS        20
#define TICK_US_MAX       1000000
#define ARGUMENTS_SKIPPED 1
#define TICKS_MAX         3

struct counter {
    uint64_t base_ns; /* CLOCK_MONOTONIC, and the time stamp counter at the same moment */
    uint64_t base_tsc;
    double tsc_per_ns;
};

/* The functions differ in what they spin, so that no compiler makes one of them. */
#define WORK(number)                                                                               \
    static WORKLOAD_NOINLINE uint64_t work_##number(uint64_t until_tsc)                            \
    {                                                                                              \
        const uint64_t begin_tsc = __rdtsc();                                                      \
        uint64_t now_tsc = begin_tsc;                                                              \
        while (now_tsc < until_tsc) {                                                              \
            (void)workload_spin(SPIN_TURNS + (number));                                            \
            now_tsc = __rdtsc();                                                                   \
        }                                                                                          \
        return now_tsc - begin_tsc;                                                                \
    }
WORK(0)
WORK(1)
WORK(2)
WORK(3)
WORK(4)
WORK(5)
WORK(6)
WORK(7)

static const struct {
    const char *name;
    uint64_t (*work)(uint64_t until_tsc); /* returns what it took */
} turns[1 << TICKS_MAX] = {
    {"work_0", work_0}, {"work_1", work_1}, {"work_2", work_2}, {"work_3", work_3},
    {"work_4", work_4}, {"work_5", work_5}, {"work_6", work_6}, {"work_7", work_7},
};

static struct counter calibrate(void)
{
    struct counter counter = {.base_tsc = __rdtsc(), .base_ns = workload_clock_ns(CLOCK_MONOTONIC)};
    uint64_t now_ns = counter.base_ns;
    while (now_ns < counter.base_ns + CALIBRATION_NS) {
        now_ns = workload_clock_ns(CLOCK_MONOTONIC);
    }
    counter.tsc_per_ns =
        (double)(__rdtsc() - counter.base_tsc) / (double)(now_ns - counter.base_ns);
    return counter;
}

/* The base is moved to now each time, so that an error of the rate is that of one tick. */
static uint64_t tsc_at(struct counter *counter, uint64_t time_ns)
{
    counter->base_tsc = __rdtsc();
    counter->base_ns = workload_clock_ns(CLOCK_MONOTONIC);
    uint64_t left_ns = time_ns > counter->base_ns ? time_ns - counter->base_ns : 0;
    return counter->base_tsc + (uint64_t)((double)left_ns * counter->tsc_per_ns);
}

/* What the kernel says of this thread at a moment. */
struct account {
    long switches; /* how often it had to make way for another */
    uint64_t cpu_ns;
};

static struct account take_account(void)
{
    struct rusage usage = {0};
    (void)getrusage(RUSAGE_THREAD, &usage);
    return (struct account){usage.ru_nivcsw, workload_cpu_ns()};
}

/* The CPU time of one call; `last` is what was said after the one before. */
static uint64_t spend(const struct counter *counter, struct account *last,
                      uint64_t (*work)(uint64_t), uint64_t until_tsc)
{
    const struct account before = *last;
    const uint64_t taken_tsc = work(until_tsc);
    *last = take_account();
    return last->switches == before.switches ? (uint64_t)((double)taken_tsc / counter->tsc_per_ns)
                                             : last->cpu_ns - before.cpu_ns;
}

/* Of "1000,4000,10000"; returns how many there are, 0 for what is no such list. */
static size_t parse_ticks(const char *text, uint64_t ticks_ns[TICKS_MAX])
{
    size_t count = 0;
    char *end = NULL;
    for (const char *at = text; count < TICKS_MAX; at = end + 1) {
        uint64_t tick_us = strtoull(at, &end, 10);
        if (tick_us == 0 || tick_us > TICK_US_MAX || (*end != ',' && *end != '\0')) {
            return 0;
        }
        ticks_ns[count++] = tick_us * 1000;
        if (*end == '\0') {
            return count;
        }
    }
    return 0;
}

/* Whose turn it is now, as the number of its work_N(), and until when. */
static unsigned find_turn(const uint64_t *ticks_ns, size_t count, uint64_t now_ns,
                          uint64_t *ret_until_ns)
{
    unsigned number = 0;
    uint64_t until_ns = UINT64_MAX;
    for (size_t i = 0; i < count; i++) {
        uint64_t start_ns = now_ns / ticks_ns[i] * ticks_ns[i];
        uint64_t next_ns = start_ns + ticks_ns[i] / 1000 * HANDLER_PERMILLE;
        if (now_ns < next_ns) {
            number |= 1U << i;
        } else {
            next_ns = start_ns + ticks_ns[i];
        }
        until_ns = next_ns < until_ns ? next_ns : until_ns;
    }
    *ret_until_ns = until_ns;
    return number;
}

int main(int argc, char **argv)
{
    uint64_t ticks_ns[TICKS_MAX] = {0};
    size_t count = argc < 2 ? 0 : parse_ticks(argv[1], ticks_ns);
    if (count == 0) {
        (void)fprintf(stderr, "usage: %s TICK_US[,TICK_US...] [--seconds S] [--cpu N]\n", argv[0]);
        return 2;
    }
    struct workload_options options =
        workload_options(argc - ARGUMENTS_SKIPPED, argv + ARGUMENTS_SKIPPED, 2);
    struct counter counter = calibrate();
    uint64_t deadline_ns = workload_deadline_ns(options.seconds);
    uint64_t spent_ns[1 << TICKS_MAX] = {0};
    struct account last = take_account();
    uint64_t now_ns = workload_clock_ns(CLOCK_MONOTONIC);
    while (now_ns < deadline_ns) {
        uint64_t until_ns = 0;
        unsigned number = find_turn(ticks_ns, count, now_ns, &until_ns);
        spent_ns[number] += spend(&counter, &last, turns[number].work, tsc_at(&counter, until_ns));
        /* A turn that passed while something else ran is left out. */
        now_ns = workload_clock_ns(CLOCK_MONOTONIC);
    }
    for (size_t number = 0; number < (size_t)1 << count; number++) {
        workload_tell(turns[number].name, spent_ns[number]);
    }
    return 0;
}
