/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Code of entries, as assemblers made it, and what looks like one: how much belongs to the entry.
 * All of it lies at ADDRESS, a multiple of 16.
 */
#include "entry_code.h"

#include "cfi_words.h"
#include "unit_test.h"

#define ADDRESS        UINT64_C(0x401000)
#define CODE_BYTES_MAX 128

#define CLEAR     0x31, 0xed             /* xor %ebp, %ebp */
#define ALIGN     0x48, 0x83, 0xe4, 0xf0 /* and $-16, %rsp */
#define CALL_FAR  0xe8, 0, 0, 0x10, 0
#define PUSH_FP   0x55
#define RETURN    0xc3
#define TRAP      0x0f, 0x0b
#define HALT      0xf4
#define NOP       0x90
#define JUMP_AWAY 0x41, 0xff, 0xe4 /* jmp *%r12 */

struct entry_case {
    const char *what;
    uint8_t code[CODE_BYTES_MAX];
    size_t code_bytes;
    size_t size_bytes;
    bool begins_stack;
};

static void check(const struct entry_case *cases, size_t count, bool is_32bit)
{
    for (size_t i = 0; i < count; i++) {
        const struct entry_case *at = &cases[i];
        /* A copy of the size that is said, so that a sanitizer sees what is read behind it. */
        uint8_t *code = malloc(at->code_bytes > 0 ? at->code_bytes : 1);
        assert_non_null(code);
        memcpy(code, at->code, at->code_bytes);
        struct entry_code found = entry_code_follow(code, at->code_bytes, ADDRESS, is_32bit);
        free(code);
        if (found.size_bytes != at->size_bytes ||
            (found.size_bytes > 0 && found.begins_stack != at->begins_stack)) {
            fail_msg("%s: %zu bytes, %d, not %zu, %d", at->what, found.size_bytes,
                     found.begins_stack, at->size_bytes, at->begins_stack);
        }
    }
}

TEST(ends_an_entry_where_flow_does_not_go_on)
{
    static const struct entry_case cases[] = {
        {"glibc's program",
         BYTES(CLEAR, 0x49, 0x89, 0xd1, 0x5e, 0x48, 0x89, 0xe2, ALIGN, 0x50, 0x54, 0x45, 0x31, 0xc0,
               0x31, 0xc9, 0x48, 0x8d, 0x3d, 0xb5, 0xff, 0xff, 0xff, 0xff, 0x15, 0x47, 0x2f, 0, 0,
               HALT, NOP, RETURN),
         34, true},
        {"glibc's dynamic linker, with two calls",
         BYTES(0x48, 0x89, 0xe7, 0xe8, 0xf8, 0x0b, 0, 0, 0x49, 0x89, 0xc4, 0x48, 0x8b, 0x14, 0x24,
               0x48, 0x89, 0xd6, 0x49, 0x89, 0xe5, ALIGN, 0x48, 0x8b, 0x3d, 0x90, 0x84, 0x01, 0,
               0x49, 0x8d, 0x4c, 0xd5, 0x10, 0x49, 0x8d, 0x55, 0x08, CLEAR, 0xe8, 0xf0, 0x9e, 0xfe,
               0xff, 0x48, 0x8d, 0x15, 0x29, 0x9b, 0xfe, 0xff, 0x4c, 0x89, 0xec, JUMP_AWAY, 0x0f,
               0x1f, 0, 0x53, RETURN),
         61, true},
        {"Go's, which jumps", BYTES(0xe9, 0xfb, 0xe2, 0xff, 0xff, 0xcc, 0xcc), 5, false},
        {"ud2, and a leaf right behind",
         BYTES(CLEAR, ALIGN, CALL_FAR, TRAP, 0x48, 0xff, 0xcf, RETURN), 13, true},
        {"int3", BYTES(CALL_FAR, 0xcc, 0x48, 0xff, 0xcf, RETURN), 6, false},
        {"a conditional jump over the end", BYTES(0x74, 0x02, TRAP, CALL_FAR, HALT, RETURN), 10,
         false},
        {"no instruction", BYTES(CALL_FAR, 0x06, 0x06, 0x06, 0x06, RETURN), 5, false},
        {"nothing", {0}, 0, 0, false},
    };
    check(cases, COUNT_OF(cases), false);
}

TEST(ends_an_entry_before_another_function)
{
    static const struct entry_case cases[] = {
        {"musl's, which calls what stands behind the padding",
         BYTES(0x48, CLEAR, 0x48, 0x89, 0xe7, 0x48, 0x8d, 0x35, 0x97, 0xef, 0xbf, 0xff, ALIGN, 0xe8,
               0x0a, 0, 0, 0, 0x0f, 0x1f, 0x44, 0, 0, 0x0f, 0x1f, 0x44, 0, 0, 0x8b, 0x37, RETURN),
         22, true},
        {"what it calls is right behind", BYTES(CALL_FAR, 0xe8, 1, 0, 0, 0, NOP, 0x31, 0xc0, HALT),
         11, false},
        {"what it jumps to is right behind", BYTES(CLEAR, 0x74, 4, 0xeb, 1, NOP, HALT, NOP), 7,
         true},
        {"another one behind the padding",
         BYTES(CLEAR, CALL_FAR, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0, 0xcc, 0x31, 0xc0, JUMP_AWAY), 7,
         true},
        {"zeros are padding, too",
         BYTES(CLEAR, CALL_FAR, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x31, 0xc0, JUMP_AWAY), 7, true},
        {"what may be cut off is not known", BYTES(CLEAR, CALL_FAR, 0, 0), 9, true},
        {"what is not is more of it",
         BYTES(CLEAR, CALL_FAR, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0, 0x50, 0x31, 0xc0, JUMP_AWAY), 21,
         true},
        {"a call of what is behind it brings an address",
         BYTES(0xe8, 0, 0, 0, 0, 0x5b, CALL_FAR, HALT), 12, false},
        {"another one, which returns", BYTES(CLEAR, CALL_FAR, CALL_FAR, 0x31, 0xc0, RETURN), 12,
         true},
    };
    check(cases, COUNT_OF(cases), false);
}

TEST(knows_a_function_by_its_return)
{
    static const struct entry_case cases[] = {
        {"a leaf", BYTES(0x31, 0xc0, RETURN, HALT), 0, false},
        {"with a frame", BYTES(0x53, CALL_FAR, 0x5b, RETURN), 0, false},
        {"with a cleared register that it saves", BYTES(PUSH_FP, CLEAR, CALL_FAR, 0x5d, RETURN), 0,
         false},
        {"that is saved by a move",
         BYTES(0x48, 0x89, 0x6c, 0x24, 0xf8, CLEAR, CALL_FAR, 0x5d, RETURN), 0, false},
        {"with a number in that register", BYTES(0xbd, 5, 0, 0, 0, CALL_FAR, RETURN), 0, false},
        {"but not with 0 in it", BYTES(0xbd, 0, 0, 0, 0, CALL_FAR, RETURN), 10, true},
        {"with a cleared register, and no call", BYTES(CLEAR, 0x31, 0xc0, RETURN), 0, true},
        {"with a register that is cleared behind the call", BYTES(CALL_FAR, CLEAR, RETURN), 0,
         true},
        {"with a frame pointer that is not saved", BYTES(0x48, 0x89, 0xe5, CALL_FAR, RETURN), 0,
         true},
        {"that takes arguments off", BYTES(CALL_FAR, 0xc2, 8, 0), 0, false},
        {"deregister_tm_clones(), which jumps before it returns",
         BYTES(0x48, 0x8d, 0x3d, 0xc9, 0x25, 0, 0, 0x48, 0x8d, 0x05, 0xc2, 0x25, 0, 0, 0x48, 0x39,
               0xf8, 0x74, 0x15, 0x48, 0x8b, 0x05, 0x2e, 0x14, 0, 0, 0x48, 0x85, 0xc0, 0x74, 0x09,
               0xff, 0xe0, 0x0f, 0x1f, 0x80, 0, 0, 0, 0, RETURN),
         0, false},
    };
    check(cases, COUNT_OF(cases), false);
}

TEST(knows_code_of_32_bits)
{
    static const struct entry_case cases[] = {
        {"glibc's program, with a thunk behind it",
         BYTES(CLEAR, 0x5e, 0x89, 0xe1, 0x83, 0xe4, 0xf0, 0x50, 0x54, 0x52, 0xe8, 0x18, 0, 0, 0,
               0x81, 0xc3, 0x2c, 0x2f, 0, 0, 0x6a, 0, 0x6a, 0, 0x51, 0x56, 0xff, 0xb3, 0x1c, 0, 0,
               0, 0xe8, 0x69, 0xff, 0xff, 0xff, HALT, 0x8b, 0x1c, 0x24, RETURN),
         40, true},
        {"glibc's dynamic linker",
         BYTES(0x89, 0xe0, 0x83, 0xec, 0x0c, 0x50, 0xe8, 0xc5, 0x0b, 0, 0, 0x83, 0xc4, 0x10, 0x89,
               0xc7, 0xe8, 0xdb, 0xff, 0xff, 0xff, 0x81, 0xc3, 0x1f, 0x8a, 0x01, 0, 0x8b, 0x14,
               0x24, 0x8b, 0x83, 0x2c, 0, 0, 0, 0x8d, 0x74, 0x94, 0x08, 0x8d, 0x4c, 0x24, 0x04,
               0x89, 0xe5, 0x83, 0xe4, 0xf0, 0x83, 0xec, 0x0c, PUSH_FP, 0x56, 0x51, 0x52, 0x50,
               CLEAR, 0xe8, 0x20, 0x96, 0xfe, 0xff, 0x8d, 0x93, 0x3c, 0x08, 0xfd, 0xff, 0x8b, 0x64,
               0x24, 0x10, 0xff, 0xe7, 0x8d, 0x74, 0x26, 0, RETURN),
         76, true},
        {"all registers are saved, by what 64 bits do not have",
         BYTES(0x60, CLEAR, CALL_FAR, HALT, RETURN), 9, false},
        {"a function", BYTES(0x48, 0x31, 0xc0, RETURN), 0, false},
    };
    check(cases, COUNT_OF(cases), true);
}

TEST(looks_no_further_than_its_bound)
{
    uint8_t code[ENTRY_CODE_BYTES_MAX + 16];
    memset(code, NOP, sizeof code);
    code[ENTRY_CODE_BYTES_MAX] = RETURN;
    assert_int_equal(entry_code_follow(code, sizeof code, ADDRESS, false).size_bytes,
                     ENTRY_CODE_BYTES_MAX);
    code[ENTRY_CODE_BYTES_MAX - 1] = RETURN;
    assert_int_equal(entry_code_follow(code, sizeof code, ADDRESS, false).size_bytes, 0);
    /* The last instruction reaches over it. */
    code[ENTRY_CODE_BYTES_MAX - 1] = 0x31;
    assert_int_equal(entry_code_follow(code, sizeof code, ADDRESS, false).size_bytes,
                     ENTRY_CODE_BYTES_MAX - 1);
}
