/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A runtime that uses addresses again: `jitreuse HOW [--seconds S] [--cpu N]` makes functions at
 * random places of 32 KiB, mostly over earlier ones, says so in /tmp/perf-PID.map, and only then
 * runs them. HOW is
 * - append: a line for each function is added to the map;
 * - protect: the same, and the memory is never writable and executable at once;
 * - two: the same, with two names by turns;
 * - rewrite: the map is written anew, with the functions that are there;
 * - rename: the same, as another file under that name;
 * - dump: each function is told of in /tmp/jit-PID.dump, with the time, and stays for a few ms; the
 *   map says something else;
 * - move: the same, and some functions are moved;
 * - leave: as append, but before the last second the map is removed, and tells of nothing more.
 *
 * A profiler must see: above three callers digit_A, digit_B, digit_C the function `made_ABC` (three
 * hexadecimal digits), or none; never another. The callers have no part in what is made.
 */
#include "workload.h"

#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <unistd.h>

#define REGION_BYTES ((size_t)32768)
#define STAY_BYTES   ((size_t)64)
#define MADE_MAX     4095
#define STAY         MADE_MAX /* the function that is never replaced */
#define DIGITS       3
#define SLOTS        64
#define LAST_MS      500 /* at the end nothing is made over anything */

typedef void (*made_fn)(uint64_t iterations);

struct made {
    size_t offset;
    size_t size_bytes;
    unsigned number;
    unsigned index; /* in a dump */
};

static struct {
    uint8_t *region;
    struct made there[SLOTS]; /* what nothing else has been made over */
    size_t there_count;
    char map_path[64];
    const char *how;
    int dump_fd; /* -1: nothing is told in a dump */
    unsigned made_count;
    unsigned index; /* of the next function */
    bool is_silent;
    uint64_t random;
} runtime;

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static uint64_t draw(uint64_t below)
{
    runtime.random = runtime.random * 6364136223846793005U + 1442695040888963407U;
    return (runtime.random >> 33) % below;
}

static bool is(const char *how)
{
    return strcmp(runtime.how, how) == 0;
}

/* push %rbp; mov %rsp,%rbp; 1: nop...; dec %rdi; jne 1b; pop %rbp; ret */
static void write_code(uint8_t *at, size_t size_bytes)
{
    static const uint8_t begin[] = {0x55, 0x48, 0x89, 0xe5};
    static const uint8_t turn[] = {0x48, 0xff, 0xcf, 0x0f, 0x85};
    static const uint8_t end[] = {0x5d, 0xc3};
    size_t nops = size_bytes - sizeof begin - sizeof turn - 4 - sizeof end;
    int32_t back = -(int32_t)(nops + sizeof turn + 4);
    (void)memcpy(at, begin, sizeof begin);
    at += sizeof begin;
    (void)memset(at, 0x90, nops);
    at += nops;
    (void)memcpy(at, turn, sizeof turn);
    at += sizeof turn;
    (void)memcpy(at, &back, sizeof back);
    at += sizeof back;
    (void)memcpy(at, end, sizeof end);
}

static void protect(int protection)
{
    if (is("protect") && mprotect(runtime.region, REGION_BYTES, protection) != 0) {
        die("mprotect");
    }
}

static int print_line(char *text, size_t room, const struct made *made)
{
    return snprintf(text, room, "%" PRIx64 " %zx made_%03x\n",
                    (uint64_t)(uintptr_t)(runtime.region + made->offset), made->size_bytes,
                    made->number);
}

static void write_text(int fd, const char *text, size_t bytes)
{
    if (fd < 0 || write(fd, text, bytes) != (ssize_t)bytes || close(fd) != 0) {
        die(runtime.map_path);
    }
}

/* What a jitdump begins with, and its records. */
struct dump_header {
    uint32_t magic;
    uint32_t version;
    uint32_t total_size;
    uint32_t machine;
    uint32_t pad;
    uint32_t pid;
    uint64_t time_ns;
    uint64_t flags;
};

struct dump_load {
    uint32_t kind;
    uint32_t total_size;
    uint64_t time_ns;
    uint32_t pid;
    uint32_t tid;
    uint64_t vma;
    uint64_t start;
    uint64_t size_bytes;
    uint64_t index;
};

struct dump_move {
    uint32_t kind;
    uint32_t total_size;
    uint64_t time_ns;
    uint32_t pid;
    uint32_t tid;
    uint64_t vma;
    uint64_t old_start;
    uint64_t start;
    uint64_t size_bytes;
    uint64_t index;
};

static void write_dump(const void *bytes, size_t size_bytes)
{
    if (write(runtime.dump_fd, bytes, size_bytes) != (ssize_t)size_bytes) {
        die("jitdump");
    }
}

static void dump_load(const struct made *made)
{
    char bytes[sizeof(struct dump_load) + 16 + 4096];
    uint64_t start = (uint64_t)(uintptr_t)(runtime.region + made->offset);
    int name_bytes = snprintf(bytes + sizeof(struct dump_load), 16, "made_%03x", made->number) + 1;
    const struct dump_load load = {
        .total_size = (uint32_t)(sizeof load + (size_t)name_bytes + made->size_bytes),
        .time_ns = workload_clock_ns(CLOCK_MONOTONIC),
        .pid = (uint32_t)getpid(),
        .tid = (uint32_t)getpid(),
        .vma = start,
        .start = start,
        .size_bytes = made->size_bytes,
        .index = made->index,
    };
    (void)memcpy(bytes, &load, sizeof load);
    (void)memcpy(bytes + sizeof load + name_bytes, runtime.region + made->offset, made->size_bytes);
    write_dump(bytes, load.total_size);
}

static void dump_move(const struct made *made, size_t old_offset)
{
    const struct dump_move move = {
        .kind = 1,
        .total_size = sizeof move,
        .time_ns = workload_clock_ns(CLOCK_MONOTONIC),
        .pid = (uint32_t)getpid(),
        .tid = (uint32_t)getpid(),
        .old_start = (uint64_t)(uintptr_t)(runtime.region + old_offset),
        .vma = (uint64_t)(uintptr_t)(runtime.region + made->offset),
        .start = (uint64_t)(uintptr_t)(runtime.region + made->offset),
        .size_bytes = made->size_bytes,
        .index = made->index,
    };
    write_dump(&move, sizeof move);
}

/* Begins a dump, and maps it so that it is found. */
static void begin_dump(void)
{
    const struct dump_header header = {
        .magic = 0x4a695444,
        .version = 1,
        .total_size = sizeof header,
        .machine = EM_X86_64,
        .pid = (uint32_t)getpid(),
        .time_ns = workload_clock_ns(CLOCK_MONOTONIC),
    };
    char path[64];
    (void)snprintf(path, sizeof path, "/tmp/jit-%d.dump", (int)getpid());
    runtime.dump_fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (runtime.dump_fd < 0 ||
        mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, runtime.dump_fd, 0) == MAP_FAILED) {
        die(path);
    }
    write_dump(&header, sizeof header);
}

static void append_map(const struct made *made)
{
    char text[128];
    int bytes = print_line(text, sizeof text, made);
    write_text(open(runtime.map_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600), text,
               (size_t)bytes);
}

static void write_map(const char *path, int flags)
{
    static char text[SLOTS * 128];
    size_t used = 0;
    for (size_t i = 0; i < runtime.there_count; i++) {
        used += (size_t)print_line(text + used, sizeof text - used, &runtime.there[i]);
    }
    write_text(open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600), text, used);
}

/* That all of the region is one function, which is wrong. */
static void write_wrong_map(void)
{
    char text[128];
    int bytes = snprintf(text, sizeof text, "%" PRIx64 " %zx made_wrong\n",
                         (uint64_t)(uintptr_t)runtime.region, REGION_BYTES);
    write_text(open(runtime.map_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), text,
               (size_t)bytes);
}

static void tell(const struct made *made)
{
    char other[sizeof runtime.map_path + 8];
    if (runtime.dump_fd >= 0) {
        dump_load(made);
    } else if (is("rewrite")) {
        write_map(runtime.map_path, O_TRUNC);
    } else if (is("rename")) {
        (void)snprintf(other, sizeof other, "%s.new", runtime.map_path);
        write_map(other, O_TRUNC);
        if (rename(other, runtime.map_path) != 0) {
            die("rename");
        }
    } else if (!runtime.is_silent) {
        append_map(made);
    }
}

/* Forgets what something else is made over. */
static void forget(size_t offset, size_t size_bytes)
{
    size_t kept = 0;
    for (size_t i = 0; i < runtime.there_count; i++) {
        const struct made *other = &runtime.there[i];
        if (other->offset + other->size_bytes <= offset || offset + size_bytes <= other->offset) {
            runtime.there[kept++] = *other;
        }
    }
    runtime.there_count = kept;
}

static void keep(const struct made *made)
{
    runtime.there_count = runtime.there_count < SLOTS ? runtime.there_count : SLOTS - 1;
    runtime.there[runtime.there_count++] = *made;
}

/* Makes a function, and forgets those that it is made over, and one if there are too many. */
static struct made make(size_t offset, size_t size_bytes, unsigned number)
{
    const struct made made = {
        .offset = offset, .size_bytes = size_bytes, .number = number, .index = runtime.index++};
    forget(offset, size_bytes);
    keep(&made);
    protect(PROT_READ | PROT_WRITE);
    write_code(runtime.region + offset, size_bytes);
    protect(PROT_READ | PROT_EXEC);
    tell(&made);
    return made;
}

static void run(const struct made *made, unsigned digit);

static WORKLOAD_NOINLINE void run_made(const struct made *made)
{
    made_fn function = NULL;
    uint8_t *code = runtime.region + made->offset;
    (void)memcpy(&function, &code, sizeof function);
    function(400000 / made->size_bytes);
}

#define DIGIT(name)                                                                                \
    static WORKLOAD_NOINLINE void digit_##name(const struct made *made, unsigned digit)            \
    {                                                                                              \
        run(made, digit + 1);                                                                      \
        __asm__ volatile("");                                                                      \
    }
DIGIT(0)
DIGIT(1)
DIGIT(2)
DIGIT(3)
DIGIT(4)
DIGIT(5)
DIGIT(6)
DIGIT(7)
DIGIT(8)
DIGIT(9)
DIGIT(a)
DIGIT(b)
DIGIT(c)
DIGIT(d)
DIGIT(e)
DIGIT(f)

/* Calls the function below the callers that its number's digits from `digit` on say. */
static WORKLOAD_NOINLINE void run(const struct made *made, unsigned digit)
{
    static void (*const digits[])(const struct made *, unsigned) = {
        digit_0, digit_1, digit_2, digit_3, digit_4, digit_5, digit_6, digit_7,
        digit_8, digit_9, digit_a, digit_b, digit_c, digit_d, digit_e, digit_f};
    if (digit == DIGITS) {
        run_made(made);
    } else {
        digits[made->number >> 4 * (DIGITS - 1 - digit) & 15](made, digit);
    }
    __asm__ volatile("");
}

static void run_for(const struct made *made, uint64_t ms)
{
    uint64_t end_ns = workload_clock_ns(CLOCK_MONOTONIC) + ms * 1000000;
    while (workload_clock_ns(CLOCK_MONOTONIC) < end_ns) {
        run(made, 0);
    }
}

/* Moves a function to a place that does not overlap with its own, if it is still there. */
static void move(struct made *made)
{
    size_t old_offset = made->offset;
    size_t offset = STAY_BYTES + draw(REGION_BYTES - STAY_BYTES - made->size_bytes);
    if (offset < old_offset + made->size_bytes && old_offset < offset + made->size_bytes) {
        return;
    }
    forget(old_offset, made->size_bytes);
    forget(offset, made->size_bytes);
    made->offset = offset;
    keep(made);
    write_code(runtime.region + offset, made->size_bytes);
    dump_move(made, old_offset);
}

static struct made make_and_run(const struct made *stay)
{
    size_t size_bytes = 64 + draw(4000);
    size_t offset = STAY_BYTES + draw(REGION_BYTES - STAY_BYTES - size_bytes);
    unsigned number = runtime.made_count++ % MADE_MAX;
    struct made made = make(offset, size_bytes, is("two") ? number % 2 : number);
    uint64_t part = runtime.dump_fd >= 0 ? 8 : 1; /* of the time that they are run */
    run_for(&made, draw(8) == 0 ? 1200 / part : draw(40) / part);
    if (is("move")) {
        move(&made);
        run_for(&made, draw(8));
    }
    const struct made *older = &runtime.there[draw(runtime.there_count)];
    run_for(older, draw(20) / part);
    run_for(stay, draw(20) / part);
    return made;
}

int main(int argc, char **argv)
{
    runtime.how = argc < 2 ? "append" : argv[1];
    argv[1] = argv[0];
    const struct workload_options options = workload_options(argc - 1, argv + 1, 5);
    runtime.random = (uint64_t)getpid();
    runtime.region =
        mmap(NULL, REGION_BYTES, PROT_READ | PROT_EXEC | (is("protect") ? 0 : PROT_WRITE),
             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (runtime.region == MAP_FAILED) {
        die("mmap");
    }
    (void)snprintf(runtime.map_path, sizeof runtime.map_path, "/tmp/perf-%d.map", (int)getpid());
    runtime.dump_fd = -1;
    if (is("dump") || is("move")) {
        write_wrong_map();
        begin_dump();
    }
    const struct made stay = make(0, STAY_BYTES, STAY);
    struct made last = stay;
    for (uint64_t deadline_ns = workload_deadline_ns(options.seconds);
         !workload_time_is_up(deadline_ns);) {
        last = make_and_run(&stay);
    }
    if (is("leave")) {
        runtime.is_silent = true;
        (void)unlink(runtime.map_path);
        for (uint64_t deadline_ns = workload_deadline_ns(1); !workload_time_is_up(deadline_ns);) {
            (void)make_and_run(&stay);
        }
        return 0;
    }
    run_for(&last, LAST_MS);
    run_for(&stay, LAST_MS);
    return 0;
}
