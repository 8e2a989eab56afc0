/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Spends its time in libc, in three ways: sort_in_libc() in what qsort calls (the comparison is
 * ours), copy_in_libc() in memcpy, draw_in_libc() in rand_r. Debian's libc has no frame pointers,
 * and of its functions only the exported ones have names.
 *
 * A profiler must see: rand_r by name; module+offset for the inner functions of qsort and memcpy,
 * which are not exported; our functions, main and the root beneath them. Prints the CPU time of the
 * three as `name nanoseconds`.
 */
#include "workload.h"

#define NUMBERS_COUNT 20000
#define COPY_BYTES    ((size_t)256 << 10)

static int compare_numbers(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left;
    uint32_t b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

static WORKLOAD_NOINLINE void sort_in_libc(uint32_t *numbers)
{
    uint32_t random = 1;
    for (size_t i = 0; i < NUMBERS_COUNT; i++) {
        random = random * 1664525U + 1013904223U;
        numbers[i] = random;
    }
    qsort(numbers, NUMBERS_COUNT, sizeof numbers[0], compare_numbers);
}

static WORKLOAD_NOINLINE void copy_in_libc(char *to, const char *from)
{
    for (int i = 0; i < 200; i++) {
        (void)memcpy(to, from, COPY_BYTES);
        __asm__ volatile("" : : "r"(to) : "memory");
    }
}

static WORKLOAD_NOINLINE unsigned draw_in_libc(void)
{
    unsigned state = 1;
    unsigned sum = 0;
    for (int i = 0; i < 500000; i++) {
        sum += (unsigned)rand_r(&state);
    }
    return sum;
}

int main(int argc, char **argv)
{
    struct workload_options options = workload_options(argc, argv, 2);
    uint64_t deadline_ns = workload_deadline_ns(options.seconds);
    uint64_t sort_cpu_ns = 0;
    uint64_t copy_cpu_ns = 0;
    uint64_t draw_cpu_ns = 0;
    uint32_t *numbers = calloc(NUMBERS_COUNT, sizeof numbers[0]);
    char *from = calloc(1, COPY_BYTES);
    char *to = calloc(1, COPY_BYTES);
    if (numbers == NULL || from == NULL || to == NULL) {
        return 1;
    }
    while (!workload_time_is_up(deadline_ns)) {
        uint64_t began_ns = workload_cpu_ns();
        sort_in_libc(numbers);
        uint64_t between_ns = workload_cpu_ns();
        copy_in_libc(to, from);
        sort_cpu_ns += between_ns - began_ns;
        uint64_t copied_ns = workload_cpu_ns();
        (void)draw_in_libc();
        copy_cpu_ns += copied_ns - between_ns;
        draw_cpu_ns += workload_cpu_ns() - copied_ns;
    }
    workload_tell("sort_in_libc", sort_cpu_ns);
    workload_tell("copy_in_libc", copy_cpu_ns);
    workload_tell("draw_in_libc", draw_cpu_ns);
    free(numbers);
    free(from);
    free(to);
    return 0;
}
