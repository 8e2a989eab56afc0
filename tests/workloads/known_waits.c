/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Waits in known ways, and measures that itself: known_waits KIND SECONDS [FILE]. KIND is
 *   nap    a thread sleeps and works by turns, in wait_in_nap() and work()
 *   pipe   a process waits for bytes of another, in wait_in_pipe()
 *   lock   four threads take one mutex and sleep with it, in wait_for_lock() and wait_in_nap()
 *   disk   a thread writes a file through to its disk and sleeps, in wait_for_disk() and
 *          wait_in_nap()
 *   share  two threads spin on one CPU, in work()
 *
 * Prints where the code of each function lies, as `function NAME start end`; and for each thread,
 * when its time is over, `thread NAME pid tid from_ns to_ns wait_ns cpu_ns delay_ns voluntary
 * involuntary`: two moments of CLOCK_BOOTTIME, how long its waits took between them by the clock,
 * less its CPU time in them, and what the kernel has counted for it since it began: CPU time, time
 * ready without a CPU (schedstat), switches of both kinds. Then all stand still until the program
 * is killed, or with
 * --exit end.
 */
#include "workload.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OWN_SECTION(name) __attribute__((noinline, section(#name)))
#define CODE_OF(name)                                                                              \
    extern const char __start_code_##name[], __stop_code_##name[];                                 \
    static void tell_##name(void)                                                                  \
    {                                                                                              \
        printf("function " #name " %#llx %#llx\n",                                                 \
               (unsigned long long)(uintptr_t)__start_code_##name,                                 \
               (unsigned long long)(uintptr_t)__stop_code_##name);                                 \
    }
/* No tail call. */
#define STAY() __asm__ volatile("" ::: "memory")

#define NAP_NS     20000000
#define WORK_LOOPS 2000000
#define FILE_BYTES 65536
#define THREADS    4

struct own {
    const char *name;
    uint64_t from_ns;
    uint64_t wait_ns;
};

static uint64_t deadline_ns;
static bool exits;
static int file_fd = -1;
static int pipe_fds[2];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static uint64_t now_ns(void)
{
    return workload_clock_ns(CLOCK_BOOTTIME);
}

/* The time that passes and is not the thread's own. */
static uint64_t idle_ns(void)
{
    return now_ns() - workload_cpu_ns();
}

CODE_OF(work)
static OWN_SECTION(code_work) void work(uint64_t loops)
{
    (void)workload_spin(loops);
    STAY();
}

CODE_OF(wait_in_nap)
static OWN_SECTION(code_wait_in_nap) void wait_in_nap(struct own *own)
{
    const struct timespec nap = {.tv_nsec = NAP_NS};
    uint64_t from_ns = idle_ns();
    (void)nanosleep(&nap, NULL);
    own->wait_ns += idle_ns() - from_ns;
    STAY();
}

CODE_OF(wait_in_pipe)
static OWN_SECTION(code_wait_in_pipe) bool wait_in_pipe(struct own *own, int fd)
{
    char byte;
    uint64_t from_ns = idle_ns();
    ssize_t size = read(fd, &byte, 1);
    own->wait_ns += idle_ns() - from_ns;
    STAY();
    return size == 1;
}

CODE_OF(wait_for_lock)
static OWN_SECTION(code_wait_for_lock) void wait_for_lock(struct own *own)
{
    uint64_t from_ns = idle_ns();
    (void)pthread_mutex_lock(&mutex);
    own->wait_ns += idle_ns() - from_ns;
    STAY();
}

CODE_OF(wait_for_disk)
static OWN_SECTION(code_wait_for_disk) void wait_for_disk(struct own *own)
{
    uint64_t from_ns = idle_ns();
    (void)fdatasync(file_fd);
    own->wait_ns += idle_ns() - from_ns;
    STAY();
}

/* What the kernel has counted of this thread. */
static uint64_t delay_ns(void)
{
    char path[64];
    unsigned long long run = 0;
    unsigned long long delay = 0;
    (void)snprintf(path, sizeof path, "/proc/self/task/%ld/schedstat", syscall(SYS_gettid));
    FILE *file = fopen(path, "re");
    if (file == NULL || fscanf(file, "%llu %llu", &run, &delay) != 2) {
        exit(1);
    }
    (void)fclose(file);
    return delay;
}

static void begin(struct own *own, const char *name)
{
    *own = (struct own){.name = name, .from_ns = now_ns()};
}

static void end(const struct own *own)
{
    struct rusage usage;
    uint64_t to_ns = now_ns();
    (void)getrusage(RUSAGE_THREAD, &usage);
    uint64_t delayed_ns = delay_ns();
    printf("thread %s %ld %ld %llu %llu %llu %llu %llu %ld %ld\n", own->name, (long)getpid(),
           syscall(SYS_gettid), (unsigned long long)own->from_ns, (unsigned long long)to_ns,
           (unsigned long long)own->wait_ns, (unsigned long long)workload_cpu_ns(),
           (unsigned long long)delayed_ns, usage.ru_nvcsw, usage.ru_nivcsw);
    (void)fflush(stdout);
    while (!exits) {
        (void)pause();
    }
}

static void *nap(void *name)
{
    struct own own;
    begin(&own, name);
    while (!workload_time_is_up(deadline_ns)) {
        wait_in_nap(&own);
        work(WORK_LOOPS);
    }
    end(&own);
    return NULL;
}

static void *lock(void *name)
{
    struct own own;
    begin(&own, name);
    while (!workload_time_is_up(deadline_ns)) {
        wait_for_lock(&own);
        wait_in_nap(&own);
        (void)pthread_mutex_unlock(&mutex);
        work(WORK_LOOPS / 10);
    }
    end(&own);
    return NULL;
}

static void *sync_file(void *name)
{
    static char bytes[FILE_BYTES];
    struct own own;
    begin(&own, name);
    for (uint64_t i = 0; !workload_time_is_up(deadline_ns); i++) {
        (void)memset(bytes, (int)i, sizeof bytes);
        if (pwrite(file_fd, bytes, sizeof bytes, 0) != sizeof bytes) {
            exit(1);
        }
        wait_for_disk(&own);
        /* A wait for a disk is many short ones, and each costs the kernel some time that is in no
         * thread's CPU time. */
        for (size_t nap = 0; nap < 5; nap++) {
            wait_in_nap(&own);
        }
    }
    end(&own);
    return NULL;
}

static void *spin(void *name)
{
    struct own own;
    begin(&own, name);
    while (!workload_time_is_up(deadline_ns)) {
        work(WORK_LOOPS);
    }
    end(&own);
    return NULL;
}

static void run_threads(void *(*body)(void *), const char *const *names, size_t count)
{
    pthread_t threads[THREADS];
    for (size_t i = 0; i < count; i++) {
        if (pthread_create(&threads[i], NULL, body, (void *)(uintptr_t)names[i]) != 0) {
            exit(1);
        }
    }
    for (size_t i = 0; i < count; i++) {
        (void)pthread_join(threads[i], NULL);
    }
}

static void *fill_pipe(void *name)
{
    struct own own;
    begin(&own, name);
    while (!workload_time_is_up(deadline_ns)) {
        wait_in_nap(&own);
        (void)!write(pipe_fds[1], "x", 1);
    }
    (void)close(pipe_fds[1]);
    end(&own);
    return NULL;
}

/* The child waits for what a thread of its parent sends after each nap. */
static void run_pipe(const char *const *names)
{
    struct own own;
    if (pipe(pipe_fds) != 0) {
        exit(1);
    }
    (void)fflush(stdout);
    if (fork() == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)close(pipe_fds[1]);
        begin(&own, "reader");
        while (wait_in_pipe(&own, pipe_fds[0])) {
            work(WORK_LOOPS / 10);
        }
        end(&own);
        _exit(0);
    }
    run_threads(fill_pipe, names, 1);
}

static void share_one_cpu(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)sched_getcpu(), &set);
    (void)sched_setaffinity(0, sizeof set, &set);
}

int main(int argc, char **argv)
{
    static const char *const names[THREADS] = {"first", "second", "third", "fourth"};
    exits = argc > 3 && strcmp(argv[argc - 1], "--exit") == 0;
    argc -= exits;
    double seconds = argc >= 3 ? strtod(argv[2], NULL) : 0;
    if (seconds <= 0) {
        (void)fprintf(stderr, "usage: %s KIND SECONDS [FILE] [--exit]\n", argv[0]);
        return 2;
    }
    tell_work();
    tell_wait_in_nap();
    tell_wait_in_pipe();
    tell_wait_for_lock();
    tell_wait_for_disk();
    deadline_ns = workload_deadline_ns(seconds);
    if (strcmp(argv[1], "nap") == 0) {
        run_threads(nap, names, 1);
    } else if (strcmp(argv[1], "pipe") == 0) {
        run_pipe(names);
    } else if (strcmp(argv[1], "lock") == 0) {
        run_threads(lock, names, THREADS);
    } else if (strcmp(argv[1], "disk") == 0 && argc == 4) {
        file_fd = open(argv[3], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        run_threads(sync_file, names, 1);
    } else if (strcmp(argv[1], "share") == 0) {
        share_one_cpu();
        run_threads(spin, names, 2);
    } else {
        return 2;
    }
    return 0;
}
