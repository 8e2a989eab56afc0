/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What proof-formats.sh records: time in functions with names that formats could trip over, in
 * inlined ones, below 500 frames, in the kernel, and in a thread with such a name. Each for SECONDS
 * (the argument) of the CPU's time. A function hard_N_____ gets another name of as many bytes once
 * the program is built.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define DEPTH 496 /* below main(), which has at least three frames */
#define PIECE ((size_t)65536)
#define NEVER __attribute__((noinline, noclone))
#define LONG_NAME                                                                                  \
    a_name_that_is_longer_than_any_line_of_a_terminal_and_than_what_some_readers_take_for_a_name_at_all_so_it_goes_on_and_on_up_to_two_hundred_and_some_letters_which_templates_of_compilers_reach_without_any_effort_and_with_digits_0123456789

static double seconds;
static volatile unsigned long sum;

static double cpu_time(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static inline __attribute__((always_inline)) void innermost(void)
{
    for (int i = 0; i < 100000; i++) {
        sum += (unsigned long)i;
    }
}

static inline __attribute__((always_inline)) void middle(void)
{
    innermost();
}

/* A function that is busy itself, by what is inlined into it. */
#define BUSY(name)                                                                                 \
    NEVER void name(void);                                                                         \
    NEVER void name(void)                                                                          \
    {                                                                                              \
        double end = cpu_time() + seconds;                                                         \
        while (cpu_time() < end) {                                                                 \
            middle();                                                                              \
        }                                                                                          \
    }

BUSY(plain)
BUSY(hard_0_____)
BUSY(hard_1_____)
BUSY(hard_2_____)
BUSY(hard_3_____)
BUSY(hard_4_____)
BUSY(hard_5_____)
BUSY(hard_6_____)
BUSY(LONG_NAME)

NEVER void deep(int depth);
NEVER void deep(int depth)
{
    if (depth == 0) {
        plain();
    } else {
        deep(depth - 1);
    }
    sum++; /* so that no call is a jump */
}

/* Busy in the kernel. */
NEVER void reads(void);
NEVER void reads(void)
{
    char *piece = malloc(PIECE);
    int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    double end = cpu_time() + seconds;
    while (cpu_time() < end && read(fd, piece, PIECE) > 0) {
        sum++;
    }
    (void)close(fd);
    free(piece);
}

static void *thread(void *argument)
{
    (void)prctl(PR_SET_NAME, "t;\"h\n\033[7m\357\277\275");
    plain();
    return argument;
}

int main(int argc, char **argv)
{
    pthread_t other;
    seconds = argc > 1 ? strtod(argv[1], NULL) : 0.2;
    bool has_thread = pthread_create(&other, NULL, thread, NULL) == 0;
    hard_0_____();
    hard_1_____();
    hard_2_____();
    hard_3_____();
    hard_4_____();
    hard_5_____();
    hard_6_____();
    LONG_NAME();
    deep(DEPTH);
    reads();
    if (has_thread) {
        (void)pthread_join(other, NULL);
    }
    return 0;
}
