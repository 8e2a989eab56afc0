/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lies in a jitdump: `dump_liar HOW SECONDS FOLDER` makes one function, says in FOLDER/jit-PID.dump
 * that it is `made_true` or `made_false`, and runs it under `call_made`. HOW is
 * - honest: made_true;
 * - unordered: the records of made_false come last in the file, but have the earlier times;
 * - tsc: the header says that the times are the processor's;
 * - greedy: made_false is said to have all of the program's own code, and of its libraries;
 * - many: two million records;
 * - huge: the file is larger than anything that is read;
 * - replaced, fifo, link: it says made_true, but once it is mapped, another file that says
 *   made_false, a FIFO, or a link to such a file has its name;
 * - named: the file is named by pid 1;
 * - twice: the file has a second name;
 * - owned: another user makes the file, and the program waits for it;
 * - rewritten: it says made_true until FOLDER/go is there, and made_false then, when
 *   `call_rewritten` is the caller, for half of the time;
 * - growing: the same, but it is two million records that come then.
 *
 * A profiler must see made_true for honest and unordered, made_false for none but greedy's own
 * function, and neither below call_rewritten.
 */
#include "workload.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE_BYTES   ((size_t)4096)
#define MANY_RECORDS 2000000
#define BATCH        10000
#define HUGE_BYTES   ((off_t)5 << 28)

struct load {
    uint32_t kind;
    uint32_t total_bytes;
    uint64_t time_ns;
    uint32_t pid;
    uint32_t tid;
    uint64_t vma;
    uint64_t start;
    uint64_t size_bytes;
    uint64_t index;
    char name[16];
};

/* push %rbp; mov %rsp,%rbp; 1: dec %edi; jnz 1b; pop %rbp; ret */
static const uint8_t spin_code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xcf, 0x75, 0xfc, 0x5d, 0xc3};

typedef void (*made_fn)(unsigned iterations);

static const char *how;
static char path[256];
static uint8_t *made;

static bool is(const char *name)
{
    return strcmp(how, name) == 0;
}

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void put(int fd, const void *bytes, size_t size_bytes)
{
    if (write(fd, bytes, size_bytes) != (ssize_t)size_bytes) {
        die(path);
    }
}

static void put_load(int fd, const void *start, uint64_t size_bytes, uint64_t time_ns,
                     const char *name)
{
    struct load load = {
        .total_bytes = sizeof load,
        .time_ns = time_ns,
        .start = (uint64_t)(uintptr_t)start,
        .vma = (uint64_t)(uintptr_t)start,
        .size_bytes = size_bytes,
        .index = time_ns,
    };
    (void)snprintf(load.name, sizeof load.name, "%s", name);
    put(fd, &load, sizeof load);
}

/* The first is put last, so that no reader finds a part of them. */
static void put_many(int fd, uint64_t time_ns)
{
    const off_t at = lseek(fd, 0, SEEK_CUR);
    struct load *loads = calloc(BATCH, sizeof *loads);
    for (size_t i = 0; loads != NULL && i < BATCH; i++) {
        loads[i] = (struct load){.total_bytes = sizeof *loads,
                                 .time_ns = time_ns,
                                 .start = (uint64_t)(uintptr_t)made,
                                 .size_bytes = PAGE_BYTES,
                                 .name = "made_false"};
    }
    (void)lseek(fd, (off_t)sizeof *loads, SEEK_CUR);
    for (size_t i = 0; loads != NULL && i < MANY_RECORDS; i += BATCH) {
        put(fd, loads, BATCH * sizeof *loads);
    }
    if (loads != NULL && pwrite(fd, loads, sizeof *loads, at) != (ssize_t)sizeof *loads) {
        die(path);
    }
    free(loads);
}

static void put_dump(int fd, const char *name)
{
    const uint64_t now_ns = workload_clock_ns(CLOCK_MONOTONIC);
    const uint64_t header[] = {UINT64_C(0x14a695444), 40 | (uint64_t)EM_X86_64 << 32,
                               (uint64_t)getpid() << 32, now_ns, is("tsc") ? 1 : 0};
    put(fd, header, sizeof header);
    put_load(fd, made, PAGE_BYTES, now_ns, name);
    if (is("unordered")) {
        put_load(fd, made, PAGE_BYTES, now_ns - 1000, "made_false");
        put_load(fd, made + 4, PAGE_BYTES, 0, "made_false");
    } else if (is("greedy")) {
        for (uint64_t at = 0; at < UINT64_C(1) << 47; at += UINT64_C(1) << 31) {
            const void *start = NULL;
            (void)memcpy((void *)&start, &at, sizeof start);
            put_load(fd, start, UINT64_C(1) << 31, now_ns, "made_false");
        }
    } else if (is("many")) {
        put_many(fd, now_ns);
    } else if (is("huge") && ftruncate(fd, HUGE_BYTES) < 0) {
        die(path);
    }
}

static int create(const char *name)
{
    int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        die(name);
    }
    return fd;
}

/* The file that another user makes, once it is whole. */
static int wait_for_file(void)
{
    struct stat status;
    for (;;) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd >= 0 && fstat(fd, &status) == 0 && status.st_size > 40) {
            return fd;
        }
        (void)close(fd);
        (void)usleep(10000);
    }
}

/* Gives the name of the mapped file to something else. */
static void replace(void)
{
    char other[sizeof path + 8];
    (void)snprintf(other, sizeof other, "%s.other", path);
    if (is("twice")) {
        if (link(path, other) < 0) {
            die(other);
        }
        return;
    }
    if (is("fifo") ? mkfifo(other, 0600) < 0 : (put_dump(create(other), "made_false"), false)) {
        die(other);
    }
    if (is("link")) {
        (void)unlink(path);
        if (symlink(other, path) < 0) {
            die(path);
        }
    } else if (rename(other, path) < 0) {
        die(path);
    }
}

static bool tells_the_truth(void)
{
    static const char *const names[] = {"honest",   "unordered", "rewritten", "growing",
                                        "replaced", "fifo",      "link"};
    bool found = false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        found = found || is(names[i]);
    }
    return found;
}

static int begin(const char *folder)
{
    (void)snprintf(path, sizeof path, "%s/jit-%d.dump", folder, is("named") ? 1 : (int)getpid());
    int fd = is("owned") ? wait_for_file() : create(path);
    if (!is("owned")) {
        put_dump(fd, tells_the_truth() ? "made_true" : "made_false");
    }
    if (mmap(NULL, PAGE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED) {
        die("mmap of the dump");
    }
    if (is("replaced") || is("fifo") || is("link") || is("twice")) {
        replace();
    }
    return fd;
}

__attribute__((noinline)) static void call_made(made_fn function)
{
    function(100000);
    __asm__ volatile("" ::: "memory");
}

/* The same, once the dump says something else. */
__attribute__((noinline)) static void call_rewritten(made_fn function)
{
    function(100000);
    __asm__ volatile("" ::: "memory");
}

static void run(double seconds, void (*call)(made_fn))
{
    made_fn function = NULL;
    (void)memcpy(&function, &made, sizeof made);
    for (uint64_t deadline_ns = workload_deadline_ns(seconds); !workload_time_is_up(deadline_ns);) {
        call(function);
    }
}

/* Says made_true until it may lie. */
static void run_until_go(const char *folder)
{
    char go[PATH_MAX];
    (void)snprintf(go, sizeof go, "%s/go", folder);
    while (access(go, F_OK) != 0) {
        run(0.01, call_made);
    }
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        (void)fprintf(stderr, "usage: %s HOW SECONDS FOLDER\n", argv[0]);
        return 2;
    }
    how = argv[1];
    double seconds = strtod(argv[2], NULL);
    made = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
                -1, 0);
    if (made == MAP_FAILED) {
        die("mmap");
    }
    (void)memcpy(made, spin_code, sizeof spin_code);
    printf("%p\n", (void *)made);
    (void)fflush(stdout);
    int fd = begin(argv[3]);
    if (!is("rewritten") && !is("growing")) {
        run(seconds, call_made);
        return 0;
    }
    run_until_go(argv[3]);
    if (is("growing")) {
        put_many(fd, workload_clock_ns(CLOCK_MONOTONIC));
    } else {
        (void)lseek(fd, 0, SEEK_SET);
        put_dump(fd, "made_false");
    }
    run(seconds / 2, call_rewritten);
    return 0;
}
