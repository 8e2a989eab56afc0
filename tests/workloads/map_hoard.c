/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Executable mappings of one page: `map_hoard FILE COUNT CHILDREN SECONDS` writes FILE, maps it
 * COUNT times, makes so many children, which have the mappings too, prints `ready` and its pid, and
 * runs the code at the last mapping for so many seconds, the children for a moment in 100 ms. With
 * 0 seconds all of them sleep instead, until one of them is killed. Each mapping counts in a
 * profiler by the length of FILE.
 *
 * A profiler must see: time in FILE, for about SECONDS, whatever other users map.
 */
#include "workload.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define PAGE_BYTES ((size_t)4096)

/* mov ecx, 1000000; 1: dec ecx; jnz 1b; ret */
static const uint8_t code[] = {0xb9, 0x40, 0x42, 0x0f, 0x00, 0xff, 0xc9, 0x75, 0xfc, 0xc3};

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static int write_code(const char *path)
{
    uint8_t page[PAGE_BYTES] = {0};
    (void)memcpy(page, code, sizeof code);
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
    if (file < 0 || write(file, page, sizeof page) != (ssize_t)sizeof page) {
        die(path);
    }
    return file;
}

/* The last of `count` mappings: all are of the file's one page, so no two of them become one. */
static void *map_often(int file, size_t count)
{
    uint8_t *place = mmap(NULL, count * PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (count == 0 || place == MAP_FAILED) {
        die("room for mappings");
    }
    for (size_t i = 0; i < count; i++) {
        if (mmap(place + i * PAGE_BYTES, PAGE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED,
                 file, 0) == MAP_FAILED) {
            die("mmap");
        }
    }
    return place + (count - 1) * PAGE_BYTES;
}

static void make_children(long count, void (*spin)(void), double seconds)
{
    const struct timespec pause_time = {.tv_nsec = 100000000};
    for (long i = 0; i < count; i++) {
        pid_t child = fork();
        if (child < 0) {
            die("fork");
        }
        if (child == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            while (seconds > 0) {
                spin();
                (void)nanosleep(&pause_time, NULL);
            }
            (void)pause();
            exit(0);
        }
    }
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        (void)fprintf(stderr, "usage: %s FILE COUNT CHILDREN SECONDS\n", argv[0]);
        return 2;
    }
    double seconds = strtod(argv[4], NULL);
    void *place = map_often(write_code(argv[1]), (size_t)strtol(argv[2], NULL, 10));
    void (*spin)(void) = NULL;
    (void)memcpy(&spin, &place, sizeof spin);
    make_children(strtol(argv[3], NULL, 10), spin, seconds);
    printf("ready %d\n", (int)getpid());
    (void)fflush(stdout);
    if (seconds == 0) {
        (void)pause();
    }
    uint64_t deadline_ns = workload_deadline_ns(seconds);
    while (!workload_time_is_up(deadline_ns)) {
        spin();
    }
    return 0;
}
