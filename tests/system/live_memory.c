/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Counts, preloaded into the daemon, the bytes that it holds: what malloc() and its relatives gave
 * out, and what mmap() mapped for the program. The count is in the file $LIVE_MEMORY.PID, one
 * uint64_t, at every moment. Unlike the memory that the kernel charges, it does not depend on what
 * an allocator keeps or gives back: two equal states of a program have equal counts.
 *
 * Not counted: memory that the C library maps for itself (arenas, the stacks of threads). A part
 * that is unmapped must have been mapped; a fixed mapping over another one counts twice.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* glibc's own allocator: found without dlsym(), which allocates. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *bytes);

static _Atomic uint64_t unshown; /* until there is a file */
static _Atomic uint64_t *live = &unshown;

static void *count(void *taken)
{
    (void)atomic_fetch_add(live, taken == NULL ? 0 : malloc_usable_size(taken));
    return taken;
}

void *malloc(size_t bytes)
{
    return count(__libc_malloc(bytes));
}

void *calloc(size_t number, size_t bytes)
{
    return count(__libc_calloc(number, bytes));
}

void *realloc(void *old, size_t bytes)
{
    size_t old_bytes = old == NULL ? 0 : malloc_usable_size(old);
    void *taken = __libc_realloc(old, bytes);
    if (taken != NULL || bytes == 0) {
        (void)atomic_fetch_sub(live, old_bytes);
    }
    return count(taken);
}

void *memalign(size_t alignment, size_t bytes)
{
    return count(__libc_memalign(alignment, bytes));
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return count(__libc_memalign(alignment, bytes));
}

int posix_memalign(void **ret, size_t alignment, size_t bytes)
{
    void *taken = count(__libc_memalign(alignment, bytes));
    if (taken != NULL) {
        *ret = taken;
    }
    return taken == NULL ? 12 /* ENOMEM */ : 0;
}

void free(void *bytes)
{
    (void)atomic_fetch_sub(live, bytes == NULL ? 0 : malloc_usable_size(bytes));
    __libc_free(bytes);
}

static uint64_t whole_pages(size_t bytes)
{
    const uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    return (bytes + page_bytes - 1) / page_bytes * page_bytes;
}

void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    static __typeof__(&mmap) next;
    if (next == NULL) {
        next = (__typeof__(next))dlsym(RTLD_NEXT, "mmap");
    }
    void *map = next(at, bytes, protection, flags, fd, offset);
    (void)atomic_fetch_add(live, map == MAP_FAILED ? 0 : whole_pages(bytes));
    return map;
}

void *mmap64(void *at, size_t bytes, int protection, int flags, int fd, off64_t offset)
{
    return mmap(at, bytes, protection, flags, fd, offset);
}

int munmap(void *at, size_t bytes)
{
    static __typeof__(&munmap) next;
    if (next == NULL) {
        next = (__typeof__(next))dlsym(RTLD_NEXT, "munmap");
    }
    int r = next(at, bytes);
    (void)atomic_fetch_sub(live, r == 0 ? whole_pages(bytes) : 0);
    return r;
}

__attribute__((constructor)) static void show(void)
{
    const char *prefix = getenv("LIVE_MEMORY");
    char path[4096];
    if (prefix == NULL) {
        return;
    }
    (void)snprintf(path, sizeof path, "%s.%d", prefix, (int)getpid());
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void *map = MAP_FAILED;
    if (fd >= 0 && ftruncate(fd, sizeof unshown) == 0) {
        map = mmap(NULL, sizeof unshown, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    if (map != MAP_FAILED) {
        live = map;
        (void)atomic_fetch_add(live, atomic_load(&unshown));
    }
    if (fd >= 0) {
        (void)close(fd);
    }
}
