/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A small block is malloc()'s, a large one is a mapping of its own, which begins where a huge page
 * does. realloc() would move a mapping to an address that is as good as any, and the kernel can
 * move a huge page only to where one may begin: it would part it. So the place is taken first.
 */
#include "huge_pages.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LARGE_BYTES ((size_t)8 << 20)
#define PAGE_BYTES  ((size_t)2 << 20) /* of a huge one */
#define ITEMS_MIN   ((size_t)32)

static size_t mapped_bytes(size_t bytes)
{
    return (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

/* A mapping that begins with a huge page. */
static void *map(size_t bytes)
{
    size_t reserved_bytes = mapped_bytes(bytes) + PAGE_BYTES;
    uint8_t *reserved =
        mmap(NULL, reserved_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (reserved == MAP_FAILED) {
        return NULL;
    }
    size_t before_bytes = PAGE_BYTES - (uintptr_t)reserved % PAGE_BYTES; /* at least one */
    uint8_t *block = reserved + before_bytes;
    (void)munmap(reserved, before_bytes);
    if (before_bytes < PAGE_BYTES) {
        (void)munmap(block + mapped_bytes(bytes), PAGE_BYTES - before_bytes);
    }
    (void)madvise(block, mapped_bytes(bytes), MADV_HUGEPAGE);
    return block;
}

void *huge_pages_new(size_t bytes)
{
    return bytes < LARGE_BYTES ? calloc(1, bytes) : map(bytes);
}

void huge_pages_free(void *block, size_t bytes)
{
    if (bytes < LARGE_BYTES) {
        free(block);
    } else if (block != NULL) {
        (void)munmap(block, mapped_bytes(bytes));
    }
}

/* Moves a mapping to a larger place. */
static void *move(void *block, size_t old_bytes, size_t bytes)
{
    void *place = map(bytes);
    if (place == NULL) {
        return NULL;
    }
    void *moved = mremap(block, mapped_bytes(old_bytes), mapped_bytes(bytes),
                         MREMAP_MAYMOVE | MREMAP_FIXED, place);
    if (moved == MAP_FAILED) {
        (void)munmap(place, mapped_bytes(bytes));
        return NULL;
    }
    return moved;
}

/* Makes a block larger; NULL when there is no memory, and it stays. */
static void *enlarge(void *block, size_t old_bytes, size_t bytes)
{
    if (bytes < LARGE_BYTES) {
        return realloc(block, bytes);
    }
    if (old_bytes >= LARGE_BYTES) {
        return move(block, old_bytes, bytes);
    }
    void *mapped = map(bytes);
    if (mapped != NULL && old_bytes > 0) {
        memcpy(mapped, block, old_bytes);
        free(block);
    }
    return mapped;
}

void *huge_pages_grow_array(void *array, size_t item_bytes, size_t *capacity, size_t count)
{
    size_t wanted = *capacity * 2 < ITEMS_MIN ? ITEMS_MIN : *capacity * 2;
    wanted = wanted < count ? count : wanted;
    void *grown = wanted > SIZE_MAX / 4 / item_bytes
                      ? NULL
                      : enlarge(array, *capacity * item_bytes, wanted * item_bytes);
    if (grown != NULL) {
        *capacity = wanted;
    }
    return grown;
}
