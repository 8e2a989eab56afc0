/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Spends a profiler's time: `round_hog ATTACK SECONDS [COUNT]` does, without any right, what makes
 * the work that follows from one sample or one record as large as it can be. The time is the
 * profiler's, and so that of all users. ATTACK is one of
 *
 * - map: 65,000 one-instruction functions in made code, whose names in /tmp/perf-PID.map meet in
 *   one run of a table that is keyed by FNV-1a and probed linearly;
 * - dump: functions of which half a million records in /tmp/jit-PID.dump say which was there when,
 * out of the order of time, and each step adds one more;
 * - stacks: stacks of COUNT frames, each of them at an address that no sample had before;
 * - files: the same, each frame in a mapping of its own: one file, mapped 60,000 times;
 * - wide: 60,000 mappings, and children that share them, as fast as vfork() makes them;
 * - threads: threads that end at once.
 *
 * One thread on each CPU, but for `wide`. Prints `attack N`, how many steps it has made.
 */
#include "workload.h"

#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE_BYTES      ((size_t)4096)
#define FUNCTION_COUNT  65000
#define FUNCTION_BYTES  16
#define DUMP_ROUNDS     8 /* of records of all functions */
#define FRAMES_MAX      600
#define MAPPINGS_COUNT  60000
#define COLD_BYTES      ((size_t)1 << 34) /* addresses, of which none is ever touched */
#define RUN_MASK        UINT64_C(0x1ffff) /* of a table of 131,072 places */
#define RUN_PLACES      2048
#define SPIN_ITERATIONS 100000 /* some 50 us: each stack is sampled at most once */

/* push %rbp; mov %rdi,%rbp; 1: dec %esi; jnz 1b; pop %rbp; ret */
static const uint8_t spin_code[] = {0x55, 0x48, 0x89, 0xfd, 0xff, 0xce, 0x75, 0xfc, 0x5d, 0xc3};

struct frame {
    const struct frame *caller;
    uint64_t return_address;
};

typedef void (*spin_fn)(const struct frame *chain, unsigned iterations);

struct attack {
    const char *name;
    uint64_t end_ns;
    size_t frame_count;
    uint8_t *base; /* where return addresses are chosen */
    size_t place_count;
    size_t place_bytes;
    spin_fn spin;
    _Atomic uint64_t next_place; /* the threads take turns, so that no address comes twice */
    _Atomic uint64_t step_count;
    int dump_fd; /* -1: there is none */
};

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void *map_memory(size_t bytes, int protection)
{
    void *map = mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) {
        die("mmap");
    }
    return map;
}

static spin_fn make_spin(void)
{
    void *code = map_memory(PAGE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC);
    spin_fn spin = NULL;
    (void)memcpy(code, spin_code, sizeof spin_code);
    (void)memcpy(&spin, &code, sizeof spin);
    return spin;
}

/* The place in a table of 131,072 that a line of the map has by the hash of old. */
static uint64_t old_place(uint64_t start, uint32_t size_bytes, const char *name)
{
    uint64_t hash = (start ^ (uint64_t)size_bytes << 40) + 1;
    for (const char *c = name; *c != '\0'; c++) {
        hash = (hash ^ (uint8_t)*c) * UINT64_C(1099511628211);
    }
    return (hash ^ hash >> 32) & RUN_MASK;
}

/* All names meet in a run of RUN_PLACES places, so that the n-th is looked for in n steps. */
static void write_map(const uint8_t *base)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    FILE *map = fopen(path, "we");
    if (map == NULL) {
        die(path);
    }
    for (size_t i = 0; i < FUNCTION_COUNT; i++) {
        const uint64_t start = (uint64_t)(uintptr_t)base + i * FUNCTION_BYTES;
        char name[40];
        unsigned tries = 0;
        do {
            (void)snprintf(name, sizeof name, "made_%zu_%x", i, tries++);
        } while (old_place(start, FUNCTION_BYTES, name) >= RUN_PLACES);
        (void)fprintf(map, "%" PRIx64 " %x %s\n", start, FUNCTION_BYTES, name);
    }
    if (fclose(map) != 0) {
        die(path);
    }
}

struct dump_load {
    uint32_t kind;
    uint32_t total_bytes;
    uint64_t time_ns;
    uint32_t pid;
    uint32_t tid;
    uint64_t vma;
    uint64_t start;
    uint64_t size_bytes;
    uint64_t index;
    char name[24];
};

static struct dump_load dump_record(const uint8_t *base, size_t number, uint64_t time_ns)
{
    uint64_t start = (uint64_t)(uintptr_t)base + number % FUNCTION_COUNT * FUNCTION_BYTES;
    struct dump_load load = {
        .total_bytes = sizeof load,
        .time_ns = time_ns,
        .vma = start,
        .start = start,
        .size_bytes = FUNCTION_BYTES,
        .index = number,
    };
    (void)snprintf(load.name, sizeof load.name, "made_%zu", number);
    return load;
}

/* The later a record is in the file, the earlier is its time. */
static void begin_dump(struct attack *attack)
{
    const size_t count = (size_t)FUNCTION_COUNT * DUMP_ROUNDS;
    const uint64_t now_ns = workload_clock_ns(CLOCK_MONOTONIC);
    const uint64_t header[] = {UINT64_C(0x14a695444), 40 | (uint64_t)EM_X86_64 << 32,
                               (uint64_t)getpid() << 32, now_ns, 0};
    char path[64];
    (void)snprintf(path, sizeof path, "/tmp/jit-%d.dump", (int)getpid());
    attack->dump_fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
    struct dump_load *loads = calloc(FUNCTION_COUNT, sizeof *loads);
    if (attack->dump_fd < 0 || loads == NULL ||
        write(attack->dump_fd, header, sizeof header) != sizeof header) {
        die(path);
    }
    for (size_t i = 0; i < count; i += FUNCTION_COUNT) {
        for (size_t j = 0; j < FUNCTION_COUNT; j++) {
            loads[j] = dump_record(attack->base, i + j, now_ns - (i + j) * 1000);
        }
        if (write(attack->dump_fd, loads, FUNCTION_COUNT * sizeof *loads) < 0) {
            die(path);
        }
    }
    free(loads);
    if (mmap(NULL, PAGE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE, attack->dump_fd, 0) ==
        MAP_FAILED) {
        die(path);
    }
}

static void map_one_file_often(struct attack *attack)
{
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    uint8_t *base = map_memory(2 * MAPPINGS_COUNT * PAGE_BYTES, PROT_NONE);
    for (size_t i = 0; i < MAPPINGS_COUNT; i++) {
        /* The same offset each time, so no two are one mapping. */
        if (mmap(base + i * PAGE_BYTES, PAGE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED,
                 file, 0) == MAP_FAILED) {
            die("mmap of the file");
        }
    }
    attack->base = base;
    attack->place_count = MAPPINGS_COUNT;
    attack->place_bytes = PAGE_BYTES;
}

static void run_on_next_cpu(void)
{
    static _Atomic int next_cpu;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)next_cpu++, &set);
    (void)sched_setaffinity(0, sizeof set, &set);
}

static void *show_stacks(void *userdata)
{
    struct attack *attack = userdata;
    struct frame frames[FRAMES_MAX + 1];
    run_on_next_cpu();
    while (!workload_time_is_up(attack->end_ns)) {
        uint64_t place = attack->next_place;
        attack->next_place += attack->frame_count;
        for (size_t i = 0; i < attack->frame_count; i++) {
            uint64_t offset = (place + i) % attack->place_count * attack->place_bytes;
            frames[i] =
                (struct frame){&frames[i + 1], (uint64_t)(uintptr_t)attack->base + offset + 8};
        }
        frames[attack->frame_count] = (struct frame){0};
        if (attack->dump_fd >= 0) {
            const struct dump_load load =
                dump_record(attack->base, place, workload_clock_ns(CLOCK_MONOTONIC));
            (void)!write(attack->dump_fd, &load, sizeof load);
        }
        attack->spin(frames, SPIN_ITERATIONS);
        attack->step_count++;
    }
    return NULL;
}

static void *end_at_once(void *userdata)
{
    return userdata;
}

static void *make_threads(void *userdata)
{
    struct attack *attack = userdata;
    run_on_next_cpu();
    while (!workload_time_is_up(attack->end_ns)) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, end_at_once, NULL) == 0) {
            (void)pthread_join(thread, NULL);
            attack->step_count++;
        }
    }
    return NULL;
}

static void *make_children(void *userdata)
{
    struct attack *attack = userdata;
    while (!workload_time_is_up(attack->end_ns)) {
        pid_t child = vfork(); /* the point: a child costs its parent next to nothing */
        if (child == 0) {
            _exit(0);
        }
        if (child > 0 && waitpid(child, NULL, 0) == child) {
            attack->step_count++;
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    struct attack attack = {.name = argc > 1 ? argv[1] : "", .spin = make_spin(), .dump_fd = -1};
    void *(*run)(void *) = show_stacks;
    long thread_count = sysconf(_SC_NPROCESSORS_ONLN);
    attack.frame_count = argc > 3 ? strtoul(argv[3], NULL, 10) : 120;
    if (attack.frame_count > FRAMES_MAX) {
        attack.frame_count = FRAMES_MAX;
    }
    if (strcmp(attack.name, "map") == 0) {
        attack.place_count = FUNCTION_COUNT;
        attack.place_bytes = FUNCTION_BYTES;
        attack.base = map_memory((size_t)FUNCTION_COUNT * FUNCTION_BYTES, PROT_READ | PROT_EXEC);
        write_map(attack.base);
    } else if (strcmp(attack.name, "dump") == 0) {
        attack.place_count = FUNCTION_COUNT;
        attack.place_bytes = FUNCTION_BYTES;
        attack.base = map_memory((size_t)FUNCTION_COUNT * FUNCTION_BYTES, PROT_READ | PROT_EXEC);
        begin_dump(&attack);
    } else if (strcmp(attack.name, "stacks") == 0) {
        attack.place_bytes = FUNCTION_BYTES;
        attack.place_count = COLD_BYTES / FUNCTION_BYTES;
        attack.base = map_memory(COLD_BYTES, PROT_READ | PROT_EXEC);
    } else if (strcmp(attack.name, "files") == 0) {
        map_one_file_often(&attack);
    } else if (strcmp(attack.name, "wide") == 0) {
        map_one_file_often(&attack);
        run = make_children;
        thread_count = 1;
    } else if (strcmp(attack.name, "threads") == 0) {
        run = make_threads;
    } else {
        (void)fprintf(stderr, "usage: %s map|dump|stacks|files|wide|threads SECONDS [FRAMES]\n",
                      argv[0]);
        return 2;
    }
    printf("ready\n");
    (void)fflush(stdout);
    attack.end_ns = workload_deadline_ns(strtod(argv[2], NULL));
    pthread_t threads[64];
    for (long i = 0; i < thread_count && i < 64; i++) {
        if (pthread_create(&threads[i], NULL, run, &attack) != 0) {
            die("thread");
        }
    }
    for (long i = 0; i < thread_count && i < 64; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    printf("%s %" PRIu64 "\n", attack.name, (uint64_t)attack.step_count);
    return 0;
}
