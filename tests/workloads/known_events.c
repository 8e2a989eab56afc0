/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Has events that it counts itself: known_events ROUNDS. A round touches 300 new pages in
 * touch_few() and 700 in touch_many(), and hands a byte to its child and waits for it to come back
 * in wait_for_child().
 *
 * Prints where the code of each function lies, as `function start end`; its ids, as `ids pid tid`;
 * and `counts from_ns to_ns faults switches waits`: what the kernel has counted for this thread
 * alone (getrusage), which no profiler has a part in, between two moments of CLOCK_BOOTTIME. Waits
 * are the switches in which it left its CPU by itself.
 */
#include "workload.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE_BYTES ((size_t)4096)
#define FEW        300
#define MANY       700

struct counts {
    uint64_t time_ns;
    long faults;
    long switches;
    long waits;
};

static struct counts read_counts(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_THREAD, &usage);
    return (struct counts){
        .faults = usage.ru_minflt + usage.ru_majflt,
        .switches = usage.ru_nvcsw + usage.ru_nivcsw,
        .waits = usage.ru_nvcsw,
    };
}

/* Counts at a moment: nothing happens while its time is read. */
static struct counts counts_now(void)
{
    struct counts before;
    struct counts after = read_counts();
    do {
        before = after;
        before.time_ns = workload_clock_ns(CLOCK_BOOTTIME);
        after = read_counts();
    } while (before.faults != after.faults || before.switches != after.switches);
    return before;
}

/* Each ends with a jump back, so the end of its code is that of the section. */
#define OWN_SECTION(name) __attribute__((noinline, section(#name)))
extern const char __start_code_touch_few[], __stop_code_touch_few[];
extern const char __start_code_touch_many[], __stop_code_touch_many[];
extern const char __start_code_wait_for_child[], __stop_code_wait_for_child[];

static OWN_SECTION(code_touch_few) void touch_few(volatile char *pages)
{
    for (size_t i = 0; i < FEW; i++) {
        pages[i * PAGE_BYTES] = 1;
    }
}

static OWN_SECTION(code_touch_many) void touch_many(volatile char *pages)
{
    for (size_t i = 0; i < MANY; i++) {
        pages[i * PAGE_BYTES] = 2;
    }
}

static OWN_SECTION(code_wait_for_child) bool wait_for_child(const int to[2], const int from[2])
{
    char byte = 'x';
    bool good = write(to[1], &byte, 1) == 1 && read(from[0], &byte, 1) == 1;
    __asm__ volatile("" ::: "memory"); /* no tail call */
    return good;
}

static void answer(const int to[2], const int from[2])
{
    char byte = 0;
    (void)close(to[1]);
    while (read(to[0], &byte, 1) == 1 && write(from[1], &byte, 1) == 1) {
    }
}

static bool play(const int to[2], const int from[2])
{
    char *pages = mmap(NULL, (FEW + MANY) * PAGE_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) {
        return false;
    }
    (void)madvise(pages, (FEW + MANY) * PAGE_BYTES, MADV_NOHUGEPAGE);
    touch_few(pages);
    touch_many(pages + FEW * PAGE_BYTES);
    return munmap(pages, (FEW + MANY) * PAGE_BYTES) == 0 && wait_for_child(to, from);
}

static void tell_code(const char *name, const char *start, const char *end)
{
    printf("%s %#llx %#llx\n", name, (unsigned long long)(uintptr_t)start,
           (unsigned long long)(uintptr_t)end);
}

static void tell_counts(const struct counts *from, const struct counts *to)
{
    printf("counts %llu %llu %ld %ld %ld\n", (unsigned long long)from->time_ns,
           (unsigned long long)to->time_ns, to->faults - from->faults,
           to->switches - from->switches, to->waits - from->waits);
}

int main(int argc, char **argv)
{
    long rounds = argc == 2 ? strtol(argv[1], NULL, 10) : 0;
    int to[2];
    int from[2];
    if (rounds <= 0) {
        (void)fprintf(stderr, "usage: %s ROUNDS\n", argv[0]);
        return 2;
    }
    if (pipe(to) != 0 || pipe(from) != 0) {
        return 1;
    }
    pid_t child = fork();
    if (child == 0) {
        answer(to, from);
        _exit(0);
    }
    /* The pages of the code itself. */
    if (!play(to, from)) {
        return 1;
    }
    (void)counts_now();
    /* What lies before is counted up to a switch. */
    if (!wait_for_child(to, from)) {
        return 1;
    }
    struct counts began = counts_now();
    for (long i = 0; i < rounds; i++) {
        if (!play(to, from)) {
            return 1;
        }
    }
    struct counts ended = counts_now();
    printf("ids %ld %ld\n", (long)getpid(), (long)syscall(SYS_gettid));
    tell_code("touch_few", __start_code_touch_few, __stop_code_touch_few);
    tell_code("touch_many", __start_code_touch_many, __stop_code_touch_many);
    tell_code("wait_for_child", __start_code_wait_for_child, __stop_code_wait_for_child);
    tell_counts(&began, &ended);
    return 0;
}
