/* SPDX-License-Identifier: Apache-2.0 */

/*
 * malloc(), calloc(), realloc(), reallocarray(), free(), mmap() and munmap() of the objects that
 * are linked with --wrap: blocks of LARGE_BYTES and more stay mapped from one execution to the
 * next.
 *
 * AddressSanitizer maps such a block anew each time, with its shadow, which took nine tenths of an
 * execution's time. A free block here is poisoned like any other, the bytes behind a used one
 * always are, and those of calloc() and mmap() are zero.
 * Unlike AddressSanitizer's own, a free block is reused at once by its next owner. One thread alone
 * may use it. With libFuzzer only: the replay allocates as all programs do.
 */
#include <errno.h>
#include <sanitizer/asan_interface.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LARGE_BYTES     ((size_t)64 << 10)
#define LARGE_BYTES_MAX ((size_t)64 << 20)
#define REDZONE_BYTES   ((size_t)64 << 10)
#define CLEARED_BYTES   ((size_t)256 << 10) /* a larger one gets new pages instead */
#define KEPT_BYTES      ((size_t)2 << 20)   /* a larger one that is free gives its pages back */
#define FILL_BYTES      4096                /* what malloc() fills, as AddressSanitizer does */
#define FILL            0xbe
#define BLOCKS_MAX      64

struct block {
    uint8_t *bytes;
    size_t mapped_bytes; /* without the redzone */
    bool used;
    bool is_zero; /* all of it; nothing was written since it was mapped */
};

/* The linker's names for what is wrapped. */
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void __real_free(void *bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
void *__wrap_reallocarray(void *old, size_t count, size_t bytes);
void __wrap_free(void *bytes);
void *__real_mmap(void *where, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *where, size_t bytes, int protection, int flags, int fd, off_t offset);
int __real_munmap(void *map, size_t bytes);
int __wrap_munmap(void *map, size_t bytes);

static struct block blocks[BLOCKS_MAX];

static struct block *find_block(const void *bytes)
{
    for (size_t i = 0; bytes != NULL && i < BLOCKS_MAX && blocks[i].bytes != NULL; i++) {
        if (blocks[i].bytes == bytes) {
            return &blocks[i];
        }
    }
    return NULL;
}

/* A free block of that size, or a new one; NULL: there is none. */
static struct block *find_free(size_t mapped_bytes)
{
    size_t i = 0;
    while (i < BLOCKS_MAX && blocks[i].bytes != NULL) {
        if (!blocks[i].used && blocks[i].mapped_bytes == mapped_bytes) {
            return &blocks[i];
        }
        i++;
    }
    if (i == BLOCKS_MAX) {
        return NULL;
    }
    void *bytes = __real_mmap(NULL, mapped_bytes + REDZONE_BYTES, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (bytes == MAP_FAILED) {
        return NULL;
    }
    blocks[i] = (struct block){.bytes = bytes, .mapped_bytes = mapped_bytes, .is_zero = true};
    __asan_poison_memory_region(bytes, mapped_bytes + REDZONE_BYTES);
    return &blocks[i];
}

static void drop_pages(struct block *block)
{
    if (madvise(block->bytes, block->mapped_bytes, MADV_DONTNEED) < 0) {
        abort();
    }
    block->is_zero = true;
}

static void clear_block(struct block *block, size_t bytes)
{
    if (!block->is_zero && bytes > CLEARED_BYTES) {
        drop_pages(block);
    } else if (!block->is_zero) {
        memset(block->bytes, 0, bytes);
    }
}

/* NULL when it is not large, or no place is left. */
static void *take_block(size_t bytes, bool wants_zeros)
{
    if (bytes < LARGE_BYTES || bytes > LARGE_BYTES_MAX) {
        return NULL;
    }
    size_t mapped_bytes = (bytes + REDZONE_BYTES - 1) / REDZONE_BYTES * REDZONE_BYTES;
    struct block *block = find_free(mapped_bytes);
    if (block == NULL) {
        return NULL;
    }
    block->used = true;
    __asan_unpoison_memory_region(block->bytes, bytes);
    if (wants_zeros) {
        clear_block(block, bytes);
    } else {
        memset(block->bytes, FILL, FILL_BYTES);
    }
    block->is_zero = false;
    return block->bytes;
}

void *__wrap_malloc(size_t bytes)
{
    void *taken = take_block(bytes, false);
    return taken != NULL ? taken : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    void *taken =
        bytes > 0 && count > LARGE_BYTES_MAX / bytes ? NULL : take_block(count * bytes, true);
    return taken != NULL ? taken : __real_calloc(count, bytes);
}

void __wrap_free(void *bytes)
{
    struct block *block = find_block(bytes);
    if (block == NULL) {
        __real_free(bytes);
        return;
    }
    if (!block->used) {
        abort(); /* freed twice */
    }
    block->used = false;
    __asan_poison_memory_region(block->bytes, block->mapped_bytes);
    if (block->mapped_bytes > KEPT_BYTES) {
        drop_pages(block);
    }
}

/* Every map of these objects is private, anonymous and may be written. */
void *__wrap_mmap(void *where, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    void *taken = where == NULL && fd < 0 ? take_block(bytes, true) : NULL;
    return taken != NULL ? taken : __real_mmap(where, bytes, protection, flags, fd, offset);
}

int __wrap_munmap(void *map, size_t bytes)
{
    if (find_block(map) == NULL) {
        return __real_munmap(map, bytes);
    }
    __wrap_free(map);
    return 0;
}

/* A block that grows moves to another one, and what AddressSanitizer has stays with it. */
void *__wrap_realloc(void *old, size_t bytes)
{
    const struct block *block = find_block(old);
    if (old != NULL && block == NULL) {
        return __real_realloc(old, bytes);
    }
    void *grown = __wrap_malloc(bytes);
    if (block != NULL && grown != NULL) {
        size_t kept_bytes = block->mapped_bytes < bytes ? block->mapped_bytes : bytes;
        __asan_unpoison_memory_region(block->bytes, kept_bytes);
        memcpy(grown, block->bytes, kept_bytes);
        __wrap_free(block->bytes);
    }
    return grown;
}

void *__wrap_reallocarray(void *old, size_t count, size_t bytes)
{
    size_t all_bytes = 0;
    if (__builtin_mul_overflow(count, bytes, &all_bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return __wrap_realloc(old, all_bytes);
}
