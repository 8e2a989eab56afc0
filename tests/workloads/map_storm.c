/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Mappings that come and go as fast as two threads can make them, one on each of two CPUs:
 * `map_storm TURNS PING PONG` writes the two files, the same spinning code in both; each thread
 * maps the one or the other at its own fixed address, runs it for some 20 us, and maps and unmaps
 * other executable memory in between, so many times.
 *
 * A profiler must see: nothing of PING while PONG is mapped there. Prints for each turn `name begin
 * end tid`, times of CLOCK_BOOTTIME around the call.
 */
#include "workload.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE_BYTES  ((size_t)4096)
#define PLACE       UINT64_C(0x600000000000)
#define ASIDE_COUNT 3

struct turn {
    uint64_t begin_ns;
    uint64_t end_ns;
};

struct storm {
    pthread_t thread;
    int cpu;
    int files[2];
    pid_t tid;
    size_t turn_count;
    struct turn *turns; /* the first one is PING's, and so on */
};

/* mov ecx, 60000; 1: dec ecx; jnz 1b; ret */
static const uint8_t code[] = {0xb9, 0x60, 0xea, 0x00, 0x00, 0xff, 0xc9, 0x75, 0xfc, 0xc3};

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

static void map_aside(int file)
{
    for (int i = 0; i < ASIDE_COUNT; i++) {
        void *aside = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
        if (aside == MAP_FAILED || munmap(aside, PAGE_BYTES) < 0) {
            die("mmap");
        }
    }
}

static void *run_storm(void *userdata)
{
    struct storm *storm = userdata;
    void *place = (void *)(uintptr_t)(PLACE + (uint64_t)storm->cpu * (PAGE_BYTES << 8));
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)storm->cpu, &set);
    (void)pthread_setaffinity_np(pthread_self(), sizeof set, &set);
    storm->tid = gettid();
    for (size_t i = 0; i < storm->turn_count; i++) {
        struct turn *turn = &storm->turns[i];
        int file = storm->files[i % 2];
        if (mmap(place, PAGE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, file, 0) !=
            place) {
            die("mmap");
        }
        void (*spin)(void) = NULL;
        (void)memcpy(&spin, &place, sizeof spin);
        turn->begin_ns = workload_clock_ns(CLOCK_BOOTTIME);
        spin();
        turn->end_ns = workload_clock_ns(CLOCK_BOOTTIME);
        map_aside(file);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        (void)fprintf(stderr, "usage: %s TURNS PING PONG\n", argv[0]);
        return 2;
    }
    struct storm storms[2] = {0};
    const int files[2] = {write_code(argv[2]), write_code(argv[3])};
    for (int i = 0; i < 2; i++) {
        storms[i].cpu = i;
        (void)memcpy(storms[i].files, files, sizeof files);
        storms[i].turn_count = strtoul(argv[1], NULL, 10);
        storms[i].turns = calloc(storms[i].turn_count, sizeof *storms[i].turns);
        if (storms[i].turns == NULL ||
            pthread_create(&storms[i].thread, NULL, run_storm, &storms[i]) != 0) {
            die("thread");
        }
    }
    for (int i = 0; i < 2; i++) {
        (void)pthread_join(storms[i].thread, NULL);
        for (size_t turn = 0; turn < storms[i].turn_count; turn++) {
            const char *path = argv[2 + turn % 2];
            const char *slash = strrchr(path, '/');
            printf("%s %" PRIu64 " %" PRIu64 " %d\n", slash == NULL ? path : slash + 1,
                   storms[i].turns[turn].begin_ns, storms[i].turns[turn].end_ns,
                   (int)storms[i].tid);
        }
        free(storms[i].turns);
    }
    return 0;
}
