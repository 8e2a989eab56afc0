/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Preloaded into the daemon, a library whose allocations fail at random. Whoever tests maps the
 * file $FAILING_MEMORY and says in it how many of a million fail from now on, and by which seed;
 * what has failed is counted there. Of memory that the C library maps for itself (malloc()'s, a
 * thread's stack) nothing fails here; the functions that ask for it do.
 *
 * Beneath a sanitizer it comes first all the same: verify_asan_link_order=0.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct plan {
    _Atomic uint64_t per_million;
    _Atomic uint64_t seed;
    _Atomic uint64_t spares_main; /* 1: the main thread's do not fail */
    _Atomic uint64_t asked_count;
    _Atomic uint64_t failed_count;
};

static struct plan *plan; /* NULL: nothing fails */
static _Thread_local bool spared;

static uint64_t mix(uint64_t value)
{
    value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
    return value ^ (value >> 31);
}

static bool fails(void)
{
    uint64_t per_million = plan == NULL ? 0 : atomic_load(&plan->per_million);
    if (per_million == 0 || spared ||
        (atomic_load(&plan->spares_main) != 0 && gettid() == getpid())) {
        return false;
    }
    uint64_t number = atomic_fetch_add(&plan->asked_count, 1);
    if (mix(mix(atomic_load(&plan->seed)) + number) % 1000000 >= per_million) {
        return false;
    }
    (void)atomic_fetch_add(&plan->failed_count, 1);
    errno = ENOMEM;
    return true;
}

/* The next library's function of that name; found anew each time until it has been. */
#define FIND_NEXT(name)                                                                            \
    static __typeof__(&(name)) next;                                                               \
    if (next == NULL) {                                                                            \
        next = (__typeof__(next))dlsym(RTLD_NEXT, #name);                                          \
    }

void *malloc(size_t bytes)
{
    if (fails()) {
        return NULL;
    }
    FIND_NEXT(malloc);
    return next(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    if (fails()) {
        return NULL;
    }
    FIND_NEXT(calloc);
    return next(count, bytes);
}

void *realloc(void *old, size_t bytes)
{
    if (fails()) {
        return NULL;
    }
    FIND_NEXT(realloc);
    return next(old, bytes);
}

int posix_memalign(void **ret, size_t alignment, size_t bytes)
{
    if (fails()) {
        return ENOMEM;
    }
    FIND_NEXT(posix_memalign);
    return next(ret, alignment, bytes);
}

void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    if (fails()) {
        return MAP_FAILED;
    }
    FIND_NEXT(mmap);
    return next(at, bytes, protection, flags, fd, offset);
}

void *mmap64(void *at, size_t bytes, int protection, int flags, int fd, off64_t offset)
{
    if (fails()) {
        return MAP_FAILED;
    }
    FIND_NEXT(mmap64);
    return next(at, bytes, protection, flags, fd, offset);
}

int pthread_create(pthread_t *ret, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *userdata)
{
    if (fails()) {
        return EAGAIN;
    }
    FIND_NEXT(pthread_create);
    return next(ret, attributes, run, userdata);
}

/* A thread's stack, which sanitizers ask for when it begins: they end the program without. */
int pthread_getattr_np(pthread_t thread, pthread_attr_t *ret)
{
    FIND_NEXT(pthread_getattr_np);
    spared = true;
    int r = next(thread, ret);
    spared = false;
    return r;
}

__attribute__((constructor)) static void find_plan(void)
{
    const char *path = getenv("FAILING_MEMORY");
    int fd = path == NULL ? -1 : open(path, O_RDWR | O_CLOEXEC);
    void *map = mmap(NULL, sizeof *plan, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    plan = map == MAP_FAILED ? NULL : map;
    if (fd >= 0) {
        (void)close(fd);
    }
}
