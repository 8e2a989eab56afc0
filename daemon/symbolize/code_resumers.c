/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Finds where libgcc's unwinder leaves for a handler. It makes two calls before. The first one
 * overwrites the saved registers of its own frame, the return address among them, with those of the
 * handler's frame. The second one does nothing; it is for debuggers. Then the unwinder writes the
 * handler's address to the new stack, and sets the stack pointer. From the first call on its caller
 * cannot be found.
 *
 * If a compiler has inlined one of the two calls, the stretch begins one call earlier: more stacks
 * end there than necessary, and none is wrong.
 */
#include "code_resumers.h"

#include "arch_x86_64.h"
#include "code_decoder.h"

#include <stdbool.h>

/* Whether an instruction sets the stack pointer to what was computed. */
static bool sets_stack(const struct code_effect *effect)
{
    return effect->action == CODE_COPY && effect->to == ARCH_DWARF_SP && effect->offset == 0 &&
           effect->from != ARCH_DWARF_SP && effect->from != ARCH_DWARF_BP;
}

/* The bytes of a return, or of a pop and a jump that are one, at the beginning of `code`; or 0. */
static size_t return_bytes(const uint8_t *code, size_t bytes, uint64_t address)
{
    if (bytes == 0) {
        return 0;
    }
    struct code_effect first = code_decode(code, bytes, address);
    if (first.flow == CODE_RETURN) {
        return first.bytes;
    }
    if (first.action != CODE_POP || first.bytes >= bytes) {
        return 0;
    }
    struct code_effect second =
        code_decode(code + first.bytes, bytes - first.bytes, address + first.bytes);
    return second.flow == CODE_INDIRECT ? (size_t)first.bytes + second.bytes : 0;
}

int code_resumers_add(const uint8_t *code, size_t bytes, uint64_t start,
                      struct cfi_builder *builder)
{
    static const struct cfi_rule rule = {.kind = CFI_END};
    uint64_t last_call = start;
    uint64_t call_before = start;
    int r = 0;
    for (size_t at = 0; r == 0 && at < bytes;) {
        uint64_t address = start + at;
        struct code_effect effect = code_decode(code + at, bytes - at, address);
        at += effect.bytes;
        if (effect.flow == CODE_CALL) {
            call_before = last_call;
            last_call = address;
        }
        size_t leaves = sets_stack(&effect) ? return_bytes(code + at, bytes - at, start + at) : 0;
        if (leaves > 0) {
            r = cfi_builder_add(builder, call_before, start + at + leaves, &rule);
        }
    }
    return r;
}
