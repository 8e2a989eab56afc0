/* SPDX-License-Identifier: Apache-2.0 */

/*
 * lzma_stream_decoder() of the objects that are linked with --wrap: the decoder's dictionaries come
 * from large_blocks.c. liblzma itself is not linked with --wrap, and each dictionary would be
 * mapped anew for its input.
 */
#include <lzma.h>
#include <stdlib.h>

/* The linker's names for what is wrapped. */
lzma_ret __real_lzma_stream_decoder(lzma_stream *stream, uint64_t memory_limit, uint32_t flags);
lzma_ret __wrap_lzma_stream_decoder(lzma_stream *stream, uint64_t memory_limit, uint32_t flags);

static void *allocate(void *opaque, size_t count, size_t bytes)
{
    (void)opaque;
    return __builtin_mul_overflow(count, bytes, &bytes) ? NULL : malloc(bytes);
}

static void release(void *opaque, void *bytes)
{
    (void)opaque;
    free(bytes);
}

lzma_ret __wrap_lzma_stream_decoder(lzma_stream *stream, uint64_t memory_limit, uint32_t flags)
{
    static const lzma_allocator allocator = {.alloc = allocate, .free = release};
    stream->allocator = &allocator;
    return __real_lzma_stream_decoder(stream, memory_limit, flags);
}
