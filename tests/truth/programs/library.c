/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Time spent in the C library and in the kernel, by the number TRUTH_LIBRARY. Stepped through,
 * every instruction of the library that is met must have main() and turn() below it.
 */
#include "step.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MEMORY      1 /* copies, comparisons, searches: hand-written for each CPU */
#define TEXT        2 /* printf and strtod */
#define HEAP        3 /* malloc, free, locks, once */
#define VDSO        4 /* clocks, without the kernel */
#define KERNEL      5 /* system calls */
#define CONSTRUCTED 6 /* before main() */
#define EXITED      7 /* behind main() */

static char from[5000] __attribute__((unused)), to[5000] __attribute__((unused));
static volatile uint64_t sink __attribute__((unused));

TRUTH_FUNCTION void turn(void);
TRUTH_FUNCTION void turn(void)
{
    static volatile size_t size;
    size = (size * 5 + 777) % 4096;
#if TRUTH_LIBRARY == MEMORY
    memset(from, 'x', size);
    from[size] = 0;
    memmove(to + 3, from, size + 1);
    sink =
        (uint64_t)memcmp(from, to + 3, size) + strlen(from) + (uint64_t)(strchr(from, 'y') == NULL);
    sink += (uint64_t)strcmp(from, to + 3) + (uint64_t)(memchr(to + 3, 0, size + 1) != NULL);
    strncpy(to, from, 100);
#elif TRUTH_LIBRARY == TEXT
    (void)snprintf(to, sizeof to, "%zu %.17g %s %x", size, (double)size / 7, "text",
                   (unsigned int)size);
    sink = (uint64_t)strtod(strchr(to, ' '), NULL) + strtoul(to, NULL, 10);
#elif TRUTH_LIBRARY == HEAP
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    (void)pthread_mutex_lock(&mutex);
    char *room = malloc(size + 1);
    char *other = malloc(64);
    room = realloc(room, size * 2 + 1);
    free(other);
    free(room);
    (void)pthread_mutex_unlock(&mutex);
#elif TRUTH_LIBRARY == VDSO
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    sink = (uint64_t)now.tv_nsec + (uint64_t)time(NULL);
#elif TRUTH_LIBRARY == KERNEL
    char byte = 1;
    static int ends[2];
    if (ends[1] == 0) {
        (void)!pipe(ends);
    }
    (void)!write(ends[1], &byte, 1);
    (void)!read(ends[0], &byte, 1);
    sink = (uint64_t)getppid();
#else
    (void)truth_spin(TRUTH_COUNT(100000));
#endif
    TRUTH_STAY();
}

__attribute__((unused, always_inline)) static inline void run(void)
{
    truth_step_prepare();
    turn(); /* its first time differs */
    truth_begin();
    truth_step();
    for (;;) {
        turn();
        TRUTH_STAY();
    }
}

#if TRUTH_LIBRARY == CONSTRUCTED
__attribute__((constructor)) TRUTH_FUNCTION void outside(void)
{
    run();
}
#elif TRUTH_LIBRARY == EXITED
TRUTH_FUNCTION void outside(void)
{
    run();
}
#endif

int main(void)
{
#if TRUTH_LIBRARY == EXITED
    (void)atexit(outside);
#elif TRUTH_LIBRARY != CONSTRUCTED
    run();
#endif
    return 0;
}
