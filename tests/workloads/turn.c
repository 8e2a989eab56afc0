/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A short life under the name of its file: `turn LOG MICROSECONDS [COUNT OTHER]` spins, tells LOG,
 * and with a COUNT above 0 becomes the program OTHER, which becomes this one, and so on.
 *
 * A profiler must see: in the time between begin and end this process under this name, and nothing
 * of what it was before or will be. Appends `name begin end pid` to LOG, times of CLOCK_BOOTTIME.
 */
#include "workload.h"

#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

static WORKLOAD_NOINLINE void turn_spin(uint64_t end_ns)
{
    while (workload_clock_ns(CLOCK_BOOTTIME) < end_ns) {
        (void)workload_spin(500);
    }
}

static void tell(const char *path, const char *name, uint64_t begin_ns)
{
    char line[128];
    int log = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    int bytes = snprintf(line, sizeof line, "%s %" PRIu64 " %" PRIu64 " %d\n", name, begin_ns,
                         workload_clock_ns(CLOCK_BOOTTIME), (int)getpid());
    if (log < 0 || write(log, line, (size_t)bytes) != bytes) {
        perror(path);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    uint64_t begin_ns = workload_clock_ns(CLOCK_BOOTTIME);
    if (argc != 3 && argc != 5) {
        (void)fprintf(stderr, "usage: %s LOG MICROSECONDS [COUNT OTHER]\n", argv[0]);
        return 2;
    }
    const char *slash = strrchr(argv[0], '/');
    turn_spin(begin_ns + strtoull(argv[2], NULL, 10) * 1000);
    tell(argv[1], slash == NULL ? argv[0] : slash + 1, begin_ns);
    if (argc == 5 && strtol(argv[3], NULL, 10) > 0) {
        char count[32];
        (void)snprintf(count, sizeof count, "%ld", strtol(argv[3], NULL, 10) - 1);
        (void)execl(argv[4], argv[4], argv[1], argv[2], count, argv[0], (char *)NULL);
        perror(argv[4]);
        return 1;
    }
    return 0;
}
