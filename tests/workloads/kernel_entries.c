/* SPDX-License-Identifier: Apache-2.0 */

/*
 * In the program and in the kernel by turns, with every frame's pointer in its place, leaves and
 * the functions that enter the kernel included: no library stands between. A turn spins five calls
 * deep, reads 1 MiB of /dev/urandom in one system call, and, unless it is pinned, goes to another
 * CPU.
 *
 * A profiler of frame pointers must see, in the program and in the kernel alike:
 * main -> take_turns -> spin_deep (five times), main -> take_turns -> read_random,
 * main -> take_turns -> change_cpu. Prints at its end the CPU time of the first two.
 */
#include "workload.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DEPTH 5

static char random_bytes[1 << 20];

__attribute__((always_inline)) static inline long enter_kernel(long number, long first, long second,
                                                               long third)
{
    long result = number;
    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"(first), "S"(second), "d"(third)
                     : "rcx", "r11", "memory");
    return result;
}

static WORKLOAD_NOINLINE uint64_t spin_deep(unsigned depth)
{
    uint64_t value = depth > 1 ? spin_deep(depth - 1) : workload_spin(1000000);
    __asm__ volatile("" : "+r"(value));
    return value;
}

static WORKLOAD_NOINLINE long read_random(int fd)
{
    return enter_kernel(SYS_read, fd, (long)random_bytes, sizeof random_bytes);
}

static WORKLOAD_NOINLINE long change_cpu(unsigned cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    return enter_kernel(SYS_sched_setaffinity, 0, sizeof set, (long)&set);
}

static WORKLOAD_NOINLINE void take_turns(uint64_t deadline_ns, int fd, bool pinned,
                                         uint64_t ret_cpu_ns[2])
{
    unsigned cpu_count = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
    for (unsigned turn = 0; !workload_time_is_up(deadline_ns); turn++) {
        uint64_t began_ns = workload_cpu_ns();
        (void)spin_deep(DEPTH);
        uint64_t between_ns = workload_cpu_ns();
        if (read_random(fd) < 0) {
            exit(1);
        }
        ret_cpu_ns[0] += between_ns - began_ns;
        ret_cpu_ns[1] += workload_cpu_ns() - between_ns;
        if (!pinned && change_cpu(turn % cpu_count) < 0) {
            exit(1);
        }
    }
}

int main(int argc, char **argv)
{
    struct workload_options options = workload_options(argc, argv, 5);
    uint64_t cpu_ns[2] = {0, 0};
    int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        perror("cannot open /dev/urandom");
        return 1;
    }
    take_turns(workload_deadline_ns(options.seconds), fd, options.cpu >= 0, cpu_ns);
    workload_tell("spin_deep", cpu_ns[0]);
    workload_tell("read_random", cpu_ns[1]);
    return 0;
}
