/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Recognises thunks by their bytes.
 *
 * In position-independent 32-bit code a thunk loads its return address into a
 * register and returns, so that its caller learns its own address. The thunk of the C library's
 * start files, which every program has, and others written in assembly have no call frames, and
 * their callers no frame pointer. So the thunk's four bytes are searched for in all code. Wherever
 * these bytes are executed, the return address is on top of the stack.
 */
#include "code_thunks.h"

#include "arch_x86_64.h"
#include "cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define THUNK_BYTES  ((size_t)4)
#define WINDOW_BYTES ((size_t)1 << 20)

/* mov (%esp), REGISTER; ret */
static bool is_thunk(const uint8_t *bytes)
{
    const uint8_t of_register = 0x38; /* the bits of the second byte that name the register */
    return bytes[0] == 0x8b && (bytes[1] & ~of_register) == 0x04 && bytes[2] == 0x24 &&
           bytes[3] == 0xc3;
}

static int add_window(const uint8_t *window, size_t bytes, uint64_t vaddr,
                      struct cfi_builder *builder)
{
    static const struct cfi_rule rule = {
        .kind = CFI_OFFSET,
        .cfa_register = ARCH_DWARF_SP,
        .cfa_offset = ARCH_WORD_BYTES_32BIT,
        .ra_saved = CFI_AT_CFA,
        .ra_offset = -ARCH_WORD_BYTES_32BIT,
    };
    int r = 0;
    for (size_t i = 0; r == 0 && i + THUNK_BYTES <= bytes; i++) {
        if (is_thunk(window + i)) {
            r = cfi_builder_add(builder, vaddr + i, vaddr + i + THUNK_BYTES, &rule);
        }
    }
    return r;
}

int code_thunks_add(const struct elf_file *file, struct cfi_builder *builder)
{
    uint64_t left_bytes = CODE_THUNKS_BYTES_MAX;
    cleanup_(freep) uint8_t *window = malloc(WINDOW_BYTES);
    int r = window == NULL ? -ENOMEM : 0;
    for (size_t i = 0; i < file->segment_count; i++) {
        const struct symbol_segment *segment = &file->segments[i];
        uint64_t at = 0;
        /* Windows share so many bytes that no thunk is cut. */
        while (r == 0 && segment->size_bytes - at >= THUNK_BYTES && left_bytes > 0) {
            uint64_t wanted = segment->size_bytes - at;
            wanted = wanted < WINDOW_BYTES ? wanted : WINDOW_BYTES;
            size_t bytes = elf_file_read(file, segment->offset + at, window, wanted);
            if (bytes < THUNK_BYTES) {
                break;
            }
            r = add_window(window, bytes, segment->vaddr + at, builder);
            at += bytes - (THUNK_BYTES - 1);
            left_bytes -= bytes < left_bytes ? bytes : left_bytes;
        }
    }
    return r;
}

bool code_thunks_is_return(const uint8_t *code, size_t bytes)
{
    /* lea 8(%rsp), %rsp; ret */
    static const uint8_t end[CODE_THUNKS_RETURN_BYTES] = {0x48, 0x8d, 0x64, 0x24, 0x08, 0xc3};
    return bytes >= sizeof end && memcmp(code, end, sizeof end) == 0;
}
