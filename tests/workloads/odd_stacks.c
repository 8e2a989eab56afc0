/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Spins in stacks of an odd kind: `odd_stacks KIND SECONDS [REST]`. The process is named after the
 * kind, and sleeps REST times as long as it spins.
 * Built without frame pointers, so that what a profile has of a stack comes from call-frame
 * information, but for the hostile kinds: their code has none, and rsp and rbp point where they
 * like.
 */
#include "workload.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define KIND(name)                                                                                 \
    {                                                                                              \
#name, run_##name                                                                          \
    }
#define DEEP          2000
#define SHALLOW       60
#define WAVE          100
#define STACK_BYTES   65536
#define THREADS       4
#define SPIN_COUNT    1000000
#define HOSTILE_TURNS 2000000

static ucontext_t main_context, coroutine_context;
static char coroutine_stack[STACK_BYTES], signal_stack[STACK_BYTES];

/* Behind a call: so it is no tail call, and no loop takes the place of a recursion. */
static inline void stay(void)
{
    __asm__ volatile("");
}

static WORKLOAD_NOINLINE uint64_t odd_spin(void)
{
    return workload_spin(SPIN_COUNT);
}

static WORKLOAD_NOINLINE uint64_t recurse(unsigned int depth)
{
    uint64_t below = depth > 0 ? recurse(depth - 1) : odd_spin();
    stay();
    return below;
}

static WORKLOAD_NOINLINE void run_deep(void)
{
    (void)!recurse(DEEP);
    stay();
}

static WORKLOAD_NOINLINE void run_shallow(void)
{
    (void)!recurse(SHALLOW);
    stay();
}

/* Now shallow, now deep, one level after another. */
static WORKLOAD_NOINLINE void run_wave(void)
{
    static unsigned int level;
    level = (level + 1) % WAVE;
    (void)!recurse(level);
    stay();
}

static WORKLOAD_NOINLINE uint64_t tail_second(void)
{
    return odd_spin();
}

static WORKLOAD_NOINLINE uint64_t tail_first(void)
{
    return tail_second();
}

static WORKLOAD_NOINLINE void run_tail(void)
{
    (void)!tail_first();
    stay();
}

static WORKLOAD_NOINLINE uint64_t use_room(size_t bytes)
{
    volatile char *room = __builtin_alloca(bytes);
    memset((char *)room, 1, bytes);
    return odd_spin() + (uint64_t)room[bytes / 2];
}

static WORKLOAD_NOINLINE void run_alloca(void)
{
    static size_t bytes;
    bytes = (bytes * 5 + 777) % 4000;
    (void)!use_room(bytes + 16);
    stay();
}

static void on_signal(int number)
{
    (void)number;
    (void)!odd_spin();
    stay();
}

static WORKLOAD_NOINLINE void run_altstack(void)
{
    static bool set;
    if (!set) {
        stack_t stack = {.ss_sp = signal_stack, .ss_size = sizeof signal_stack};
        struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
        (void)sigaltstack(&stack, NULL);
        (void)sigaction(SIGUSR1, &action, NULL);
        set = true;
    }
    (void)raise(SIGUSR1);
}

/* A function that a signal interrupts at its first instruction, right behind another one. */
void trapped(void);
__asm__(".text\n"
        ".type before_trapped, @function\n"
        "before_trapped:\n"
        "    .cfi_startproc\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size before_trapped, . - before_trapped\n"
        ".globl trapped\n"
        ".type trapped, @function\n"
        "trapped:\n"
        "    .cfi_startproc\n"
        "    ud2\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size trapped, . - trapped\n");

static void on_trap(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    (void)!odd_spin();
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2; /* behind the ud2 */
}

static WORKLOAD_NOINLINE void run_trap(void)
{
    const struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    (void)sigaction(SIGILL, &action, NULL);
    trapped();
    stay();
}

static void coroutine_body(void)
{
    (void)!odd_spin();
    stay();
}

static WORKLOAD_NOINLINE void run_coroutine(void)
{
    (void)getcontext(&coroutine_context);
    coroutine_context.uc_stack.ss_sp = coroutine_stack;
    coroutine_context.uc_stack.ss_size = sizeof coroutine_stack;
    coroutine_context.uc_link = &main_context;
    makecontext(&coroutine_context, coroutine_body, 0);
    (void)swapcontext(&main_context, &coroutine_context);
}

static WORKLOAD_NOINLINE void run_vfork(void)
{
    int status = 0;
    pid_t pid = vfork();
    if (pid == 0) {
        (void)!odd_spin();
        _exit(0);
    }
    (void)!odd_spin();
    (void)waitpid(pid, &status, 0);
}

static void *tiny_thread(void *unused)
{
    (void)unused;
    (void)!odd_spin();
    stay();
    return NULL;
}

static WORKLOAD_NOINLINE void run_tiny(void)
{
    pthread_t threads[THREADS];
    pthread_attr_t attributes;
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setstacksize(&attributes, (size_t)PTHREAD_STACK_MIN);
    for (size_t i = 0; i < THREADS; i++) {
        if (pthread_create(&threads[i], &attributes, tiny_thread, NULL) != 0) {
            exit(1);
        }
    }
    for (size_t i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    (void)pthread_attr_destroy(&attributes);
}

/* hostile_spin(turns, rsp, rbp): a loop with any stack and frame pointer, and no call-frame
 * information. rsp 0: the present one. No signal may come. */
void hostile_spin(uint64_t turns, uint64_t stack_pointer, uint64_t frame_pointer);
__asm__(".text\n"
        ".globl hostile_spin\n"
        ".type hostile_spin, @function\n"
        "hostile_spin:\n"
        "    mov %rsp, %r8\n"
        "    mov %rbp, %r9\n"
        "    mov %rdx, %rbp\n"
        "    test %rsi, %rsi\n"
        "    cmovnz %rsi, %rsp\n"
        "1:  dec %rdi\n"
        "    jnz 1b\n"
        "    mov %r8, %rsp\n"
        "    mov %r9, %rbp\n"
        "    ret\n"
        ".size hostile_spin, . - hostile_spin\n");

/* Frame pointers that lead nowhere, back, round in a circle, or off the end. */
static WORKLOAD_NOINLINE void run_hostilebp(void)
{
    uint64_t circle[6];
    uint64_t code = (uint64_t)(uintptr_t)hostile_spin + 1;
    circle[0] = (uint64_t)(uintptr_t)&circle[2];
    circle[1] = code;
    circle[2] = (uint64_t)(uintptr_t)&circle[0];
    circle[3] = code;
    circle[4] = (uint64_t)(uintptr_t)&circle[4];
    circle[5] = code;
    uint64_t pointers[] = {circle[0],
                           circle[2],
                           circle[4],
                           circle[4] + 1,
                           0,
                           8,
                           UINT64_MAX,
                           UINT64_MAX - 15,
                           UINT64_C(1) << 63,
                           UINT64_C(0x7ffffffffff8),
                           UINT64_C(0xffffffff81000000),
                           code - 1};
    for (size_t i = 0; i < sizeof pointers / sizeof pointers[0]; i++) {
        hostile_spin(HOSTILE_TURNS, 0, pointers[i]);
    }
}

/* Whether this CPU returns from an interrupt to a stack pointer that is no address. Some do not:
 * the kernel ends the program at its first interrupt. */
static bool survives_stack_pointer(uint64_t pointer)
{
    pid_t child = fork();
    if (child == 0) {
        struct rlimit no_core = {0};
        (void)setrlimit(RLIMIT_CORE, &no_core);
        hostile_spin(200ULL * HOSTILE_TURNS, pointer, 0); /* long enough for interrupts */
        _exit(0);
    }
    int status = 1;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

/* Stack pointers to nothing, to code, beyond all memory, and to the last bytes of a page with
 * nothing behind it. */
static WORKLOAD_NOINLINE void run_hostilesp(void)
{
    static uint64_t no_address;
    static uint8_t *page;
    if (page == NULL) {
        page = mmap(NULL, (size_t)2 * STACK_BYTES, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        (void)munmap(page + STACK_BYTES, STACK_BYTES);
        no_address = survives_stack_pointer(UINT64_C(1) << 63) ? UINT64_C(1) << 63 : 16;
    }
    uint64_t end = (uint64_t)(uintptr_t)page + STACK_BYTES;
    uint64_t pointers[] = {16,
                           end,
                           end - 8,
                           end - 4096,
                           end - 3,
                           (uint64_t)(uintptr_t)hostile_spin,
                           UINT64_MAX - 7,
                           UINT64_MAX,
                           no_address,
                           UINT64_C(0x7ffffffff000),
                           UINT64_C(0xffffffff81000000)};
    for (size_t i = 0; i < sizeof pointers / sizeof pointers[0]; i++) {
        hostile_spin(HOSTILE_TURNS, pointers[i], pointers[(i + 1) % 3]);
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } kinds[] = {
        KIND(deep),   KIND(shallow),   KIND(wave),      KIND(tail),
        KIND(alloca), KIND(altstack),  KIND(coroutine), KIND(vfork),
        KIND(tiny),   KIND(hostilebp), KIND(hostilesp), KIND(trap),
    };
    void (*run)(void) = NULL;
    for (size_t i = 0; (argc == 3 || argc == 4) && i < sizeof kinds / sizeof kinds[0]; i++) {
        run = strcmp(argv[1], kinds[i].name) == 0 ? kinds[i].run : run;
    }
    if (run == NULL) {
        (void)fprintf(stderr, "usage: %s KIND SECONDS [REST]\n", argv[0]);
        return 2;
    }
    (void)prctl(PR_SET_NAME, argv[1]);
    uint64_t deadline_ns = workload_deadline_ns(strtod(argv[2], NULL));
    unsigned rest = argc == 4 ? (unsigned)strtoul(argv[3], NULL, 10) : 0;
    while (!workload_time_is_up(deadline_ns)) {
        uint64_t began_ns = workload_cpu_ns();
        run();
        stay();
        workload_rest(rest, workload_cpu_ns() - began_ns);
    }
    return 0;
}
