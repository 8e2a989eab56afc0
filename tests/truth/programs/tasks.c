/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Threads, processes and stacks that begin elsewhere than main(), by the number TRUTH_TASK.
 */
#include "truth.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define CHURN     1 /* threads are made all the time, and end soon */
#define VFORK     2 /* a child on its parent's stack */
#define COROUTINE 3 /* makecontext() and swapcontext() */
#define RAW_CLONE 4 /* threads by clone() itself, from code without call-frame information */
#define FIBERS    5 /* stacks that are changed by assembly */
#define FORKS     6 /* processes are made all the time */
#define CHAINED   7 /* the program executes another, TRUTH_NEXT, which executes it */
#define TWINS     8 /* two libraries in turn at one address */
#define ANONYMOUS 9 /* code in anonymous memory, without a perf map */

#define SPIN        300000
#define STACK_BYTES 65536

TRUTH_FUNCTION uint64_t spin(uint64_t count);
TRUTH_FUNCTION uint64_t spin(uint64_t count)
{
    return truth_spin(count);
}

TRUTH_FUNCTION void turn(void);

#if TRUTH_TASK == CHURN
TRUTH_FUNCTION void *thread(void *unused);
TRUTH_FUNCTION void *thread(void *unused)
{
    (void)spin(SPIN);
    TRUTH_STAY();
    return unused;
}

TRUTH_FUNCTION void turn(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        if (pthread_create(&threads[i], NULL, thread, NULL) != 0) {
            abort();
        }
    }
    for (int i = 0; i < 4; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    TRUTH_STAY();
}
#elif TRUTH_TASK == VFORK
TRUTH_FUNCTION void child(void);
TRUTH_FUNCTION void child(void)
{
    (void)spin(SPIN);
    TRUTH_STAY();
}

TRUTH_FUNCTION void turn(void)
{
    pid_t pid = vfork();
    if (pid == 0) {
        child();
        _exit(0);
    }
    (void)spin(SPIN / 2);
    (void)waitpid(pid, NULL, 0);
    TRUTH_STAY();
}
#elif TRUTH_TASK == FORKS
TRUTH_FUNCTION void child(void);
TRUTH_FUNCTION void child(void)
{
    (void)spin(SPIN * 4);
    TRUTH_STAY();
}

TRUTH_FUNCTION void turn(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        child();
        _exit(0);
    }
    (void)waitpid(pid, NULL, 0);
    TRUTH_STAY();
}
#elif TRUTH_TASK == COROUTINE
static ucontext_t main_context, coroutine_context;
static char coroutine_stack[STACK_BYTES];

TRUTH_FUNCTION void coroutine(void);
TRUTH_FUNCTION void coroutine(void)
{
    (void)spin(SPIN);
    (void)swapcontext(&coroutine_context, &main_context);
    (void)spin(SPIN);
    TRUTH_STAY();
}

TRUTH_FUNCTION void turn(void)
{
    (void)getcontext(&coroutine_context);
    coroutine_context.uc_stack.ss_sp = coroutine_stack;
    coroutine_context.uc_stack.ss_size = sizeof coroutine_stack;
    coroutine_context.uc_link = &main_context;
    makecontext(&coroutine_context, coroutine, 0);
    (void)swapcontext(&main_context, &coroutine_context);
    (void)spin(SPIN);
    (void)swapcontext(&main_context, &coroutine_context);
    TRUTH_STAY();
}
#elif TRUTH_TASK == RAW_CLONE
/* raw_clone(stack): makes a thread that runs raw_body() on that stack and ends. */
void raw_clone(void *stack, int *done);
__asm__(".text\n.globl raw_clone\n.type raw_clone, @function\n"
        "raw_clone:\n"
        "    mov %rsi, %r8\n"
        "    mov %rdi, %rsi\n"
        "    mov $0x10f00, %edi\n" /* VM, FS, FILES, SIGHAND, THREAD */
        "    mov $56, %eax\n"
        "    mov %r8, %r12\n"
        "    xor %r8d, %r8d\n"
        "    syscall\n"
        "    test %eax, %eax\n"
        "    jz raw_thread\n"
        "    ret\n"
        ".size raw_clone, . - raw_clone\n"
        ".globl raw_thread\n.type raw_thread, @function\n"
        "raw_thread:\n"
        "    xor %ebp, %ebp\n"
        "    mov %r12, %rdi\n"
        "    call raw_body\n"
        "    ud2\n"
        ".size raw_thread, . - raw_thread\n");

TRUTH_FUNCTION void raw_body(int *done);
TRUTH_FUNCTION void raw_body(int *done)
{
    long result = SYS_exit;
    (void)spin(SPIN);
    __atomic_store_n(done, 1, __ATOMIC_RELEASE);
    /* Nothing on the stack is touched any more: the next thread may have it. */
    __asm__ volatile("syscall" : "+a"(result) : "D"(0) : "rcx", "r11", "memory");
    __builtin_unreachable();
}

static char raw_stack[STACK_BYTES] __attribute__((aligned(16)));

TRUTH_FUNCTION void turn(void)
{
    int done = 0;
    register int *keep __asm__("r12") = &done;
    __asm__ volatile("" : "+r"(keep));
    raw_clone(raw_stack + sizeof raw_stack, &done);
    __asm__ volatile("" ::: "r12", "rcx", "r11", "memory");
    while (__atomic_load_n(&done, __ATOMIC_ACQUIRE) == 0) {
        (void)spin(100);
    }
    TRUTH_STAY();
}
#elif TRUTH_TASK == FIBERS
static char fiber_stack[STACK_BYTES] __attribute__((aligned(16)));
static void *fiber_sp, *main_sp;

/* change(from, to): leaves the stack pointer in *from, and goes on with `to`. */
void change(void **from, void *to);
__asm__(".text\n.globl change\n.type change, @function\n"
        "change:\n"
        "    .cfi_startproc\n"
        "    push %rbp\n    .cfi_def_cfa_offset 16\n    .cfi_offset %rbp, -16\n"
        "    push %rbx\n    .cfi_def_cfa_offset 24\n    .cfi_offset %rbx, -24\n"
        "    mov %rsp, (%rdi)\n"
        "    mov %rsi, %rsp\n"
        "    pop %rbx\n    .cfi_def_cfa_offset 16\n    .cfi_restore %rbx\n"
        "    pop %rbp\n    .cfi_def_cfa_offset 8\n    .cfi_restore %rbp\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size change, . - change\n"
        /* The beginning of a fiber, without a caller. */
        ".globl fiber_begin\n.type fiber_begin, @function\n"
        "fiber_begin:\n"
        "    .cfi_startproc\n    .cfi_undefined %rip\n"
        "    call fiber\n"
        "    ud2\n"
        "    .cfi_endproc\n"
        ".size fiber_begin, . - fiber_begin\n");
void fiber_begin(void);

TRUTH_FUNCTION void fiber(void);
TRUTH_FUNCTION void fiber(void)
{
    for (;;) {
        (void)spin(SPIN);
        change(&fiber_sp, main_sp);
    }
}

TRUTH_FUNCTION void turn(void)
{
    if (fiber_sp == NULL) {
        void **top = (void **)(void *)(fiber_stack + sizeof fiber_stack - 64);
        top[2] = (void *)fiber_begin;
        fiber_sp = top;
    }
    change(&main_sp, fiber_sp);
    (void)spin(SPIN);
    TRUTH_STAY();
}
#elif TRUTH_TASK == CHAINED
TRUTH_FUNCTION void TRUTH_OWN(void);
TRUTH_FUNCTION void TRUTH_OWN(void)
{
    (void)spin(SPIN * 30);
    TRUTH_STAY();
}

TRUTH_FUNCTION void turn(void)
{
    char path[4096];
    char *const arguments[] = {TRUTH_NEXT, NULL};
    ssize_t bytes = readlink("/proc/self/exe", path, sizeof path - 64);
    TRUTH_OWN();
    while (bytes > 0 && path[bytes - 1] != '/') {
        bytes--;
    }
    __builtin_strcpy(path + bytes, TRUTH_NEXT ".truth");
    (void)execv(path, arguments);
    abort();
}
#elif TRUTH_TASK == TWINS
TRUTH_FUNCTION void turn(void)
{
    static uint64_t earlier;
    for (int i = 0; i < 2; i++) {
        void *library =
            dlopen(i == 0 ? TRUTH_FOLDER "/twin_a.so" : TRUTH_FOLDER "/twin_b.so", RTLD_NOW);
        if (library == NULL) {
            abort();
        }
        void (*work)(uint64_t) = (void (*)(uint64_t))dlsym(library, "work");
        uint64_t page = (uint64_t)(uintptr_t)work / 4096;
        if (earlier != 0 && page != earlier) {
            abort();
        }
        earlier = page;
        work(SPIN * 10);
        (void)dlclose(library);
    }
    TRUTH_STAY();
}
#elif TRUTH_TASK == ANONYMOUS
/* push rbx; push rbp; mov ebp, 7; call rdi; pop rbp; pop rbx; ret */
static const unsigned char code[] = {0x53, 0x55, 0xbd, 7, 0, 0, 0, 0xff, 0xd7, 0x5d, 0x5b, 0xc3};

TRUTH_FUNCTION void called(void);
TRUTH_FUNCTION void called(void)
{
    (void)spin(SPIN);
    TRUTH_STAY();
}

TRUTH_FUNCTION void turn(void)
{
    static void (*made)(void (*)(void));
    if (made == NULL) {
        void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        __builtin_memcpy(page, code, sizeof code);
        made = (void (*)(void (*)(void)))page;
    }
    made(called);
    TRUTH_STAY();
}
#endif

int main(void)
{
    truth_begin();
    for (;;) {
        turn();
        TRUTH_STAY();
    }
}
