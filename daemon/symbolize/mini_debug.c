/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Decompresses the "mini debug info" of distributions that strip their programs: .gnu_debugdata, an
 * ELF file under xz. The result is as foreign as the section; it becomes a file in memory, so that
 * it is read as any other file. The sizes in the section cannot be trusted, and a few bytes of xz
 * can become very many. So the output and the decompressor's memory are bounded while it runs.
 */
#include "mini_debug.h"

#include "cleanup.h"

#include <lzma.h>
#include <sys/mman.h>

#define SECTION     ".gnu_debugdata"
#define CHUNK_BYTES ((size_t)16384)
/* The one kind of new file that the worker's filter lets through. */
#define MEMORY_FLAGS (MFD_CLOEXEC | MFD_ALLOW_SEALING)

struct unpacking {
    const struct elf_file *file;
    uint64_t offset; /* of what has not been read yet */
    uint64_t left;
    int fd; /* borrowed */
    uint64_t written_bytes;
    lzma_stream stream;
    uint8_t input[CHUNK_BYTES];
    uint8_t output[CHUNK_BYTES];
};

static int write_all(int fd, const uint8_t *bytes, size_t size_bytes)
{
    while (size_bytes > 0) {
        ssize_t done = write(fd, bytes, size_bytes);
        if (done < 0) {
            return -errno;
        }
        bytes += done;
        size_bytes -= (size_t)done;
    }
    return 0;
}

static int put_output(struct unpacking *unpacking)
{
    size_t bytes = sizeof unpacking->output - unpacking->stream.avail_out;
    if (bytes > MINI_DEBUG_BYTES_MAX - unpacking->written_bytes) {
        return -EBADMSG;
    }
    unpacking->written_bytes += bytes;
    unpacking->stream.next_out = unpacking->output;
    unpacking->stream.avail_out = sizeof unpacking->output;
    return write_all(unpacking->fd, unpacking->output, bytes);
}

static void take_input(struct unpacking *unpacking)
{
    size_t wanted = unpacking->left < CHUNK_BYTES ? (size_t)unpacking->left : CHUNK_BYTES;
    size_t got = elf_file_read(unpacking->file, unpacking->offset, unpacking->input, wanted);
    unpacking->offset += got;
    unpacking->left = got < wanted ? 0 : unpacking->left - got;
    unpacking->stream.next_in = unpacking->input;
    unpacking->stream.avail_in = got;
}

/* Without further input the decoder soon has no progress to make, and says so. */
static int unpack(struct unpacking *unpacking)
{
    lzma_ret state = LZMA_OK;
    int r = 0;
    unpacking->stream.next_out = unpacking->output;
    unpacking->stream.avail_out = sizeof unpacking->output;
    while (state == LZMA_OK && r == 0) {
        if (unpacking->stream.avail_in == 0 && unpacking->left > 0) {
            take_input(unpacking);
        }
        state = lzma_code(&unpacking->stream, LZMA_RUN);
        if (unpacking->stream.avail_out == 0 || state == LZMA_STREAM_END) {
            r = put_output(unpacking);
        }
    }
    return r == 0 && state != LZMA_STREAM_END ? -EBADMSG : r;
}

int mini_debug_open(const struct elf_file *file, int *ret_fd)
{
    GElf_Shdr section;
    if (!elf_file_section(file, SECTION, &section) || section.sh_type == SHT_NOBITS) {
        return -ENOENT;
    }
    if (!elf_file_has(file, section.sh_offset, section.sh_size)) {
        return -EBADMSG;
    }
    cleanup_(closep) int fd = memfd_create("debugdata", MEMORY_FLAGS);
    if (fd < 0) {
        return -errno;
    }
    struct unpacking unpacking = {
        .file = file,
        .offset = section.sh_offset,
        .left = section.sh_size,
        .fd = fd,
        .stream = LZMA_STREAM_INIT,
    };
    if (lzma_stream_decoder(&unpacking.stream, MINI_DEBUG_MEMORY_MAX, 0) != LZMA_OK) {
        return -ENOMEM;
    }
    int r = unpack(&unpacking);
    lzma_end(&unpacking.stream);
    if (r == 0) {
        *ret_fd = take_fd(fd);
    }
    return r;
}
