/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Two threads hand a byte to and fro, each waiting for the other: ping_pong SECONDS. Prints how
 * many switches a second that were.
 */
#include "workload.h"

#include <pthread.h>
#include <unistd.h>

static int there[2];
static int back[2];

static void *answer(void *unused)
{
    char byte;
    while (read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1) {
    }
    return unused;
}

int main(int argc, char **argv)
{
    double seconds = argc == 2 ? strtod(argv[1], NULL) : 0;
    pthread_t thread;
    uint64_t switches = 0;
    char byte = 'x';
    if (seconds <= 0 || pipe(there) != 0 || pipe(back) != 0 ||
        pthread_create(&thread, NULL, answer, NULL) != 0) {
        (void)fprintf(stderr, "usage: %s SECONDS\n", argv[0]);
        return 2;
    }
    uint64_t deadline_ns = workload_deadline_ns(seconds);
    while (!workload_time_is_up(deadline_ns)) {
        if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1) {
            return 1;
        }
        switches += 2;
    }
    printf("%.0f\n", (double)switches / seconds);
    (void)close(there[1]);
    return 0;
}
