/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is read without Zydis is what Zydis says: each opcode of one and of two bytes, with each
 * prefix that is known, most operands, and numbers that an effect depends on.
 */
#include "code_decoder.h"
#include "code_form.h"

#include "unit_test.h"

#define ADDRESS    UINT64_C(0x401000)
#define BYTES_MAX  24
#define TAIL_BYTES 10

/* What stands behind the opcode and its operands: distances and numbers. */
static const uint8_t tails[][TAIL_BYTES] = {
    {8},
    {0xf0, 0xff, 0xff, 0xff, 0x10},
    {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
    {15, 0, 0, 0, 15},              /* rt_sigreturn */
    {0xb3, 1, 0, 0, 0xb3, 1},       /* clone3 */
    {0, 0, 0, 0x7f, 0, 0, 0, 0x7f}, /* not near */
};

static size_t known_count;

static bool is_same(const struct code_effect *a, const struct code_effect *b)
{
    return a->bytes == b->bytes && a->flow == b->flow && a->action == b->action && a->to == b->to &&
           a->from == b->from && a->offset == b->offset && a->changes == b->changes &&
           a->store_bytes == b->store_bytes && a->sight == b->sight && a->target == b->target;
}

static void check(const uint8_t *code, size_t bytes)
{
    struct code_form form;
    struct code_effect effect;
    uint64_t callee = 0;
    uint64_t other_callee = 0;
    if (!code_form_read(code, bytes, &form)) {
        return;
    }
    size_t skipped = code_skip(code, bytes, ADDRESS, &callee);
    bool is_right =
        code_skip_any(code, bytes, ADDRESS, &other_callee) == skipped && callee == other_callee;
    if (code_form_effect(&form, ADDRESS, &effect)) {
        struct code_effect other = code_decode_any(code, bytes, ADDRESS);
        is_right = is_right && is_same(&effect, &other);
        known_count++;
    }
    if (!is_right) {
        fail_msg("%02x %02x %02x %02x %02x %02x", code[0], code[1], code[2], code[3], code[4],
                 code[5]);
    }
}

/* One opcode and its ModRM byte behind some prefixes, with all tails; cut off behind each byte. */
static void check_operands(const uint8_t *prefixes, size_t prefix_bytes, uint8_t opcode,
                           unsigned int modrm)
{
    static const uint8_t sibs[] = {0x24, 0x8c, 0x25, 0xe5};
    uint8_t code[BYTES_MAX];
    bool has_sib = modrm < 0xc0 && (modrm & 7) == 4;
    for (size_t i = 0; i < (has_sib ? sizeof sibs : 1); i++) {
        for (size_t tail = 0; tail < COUNT_OF(tails); tail++) {
            size_t at = prefix_bytes;
            memcpy(code, prefixes, prefix_bytes);
            code[at++] = opcode;
            code[at++] = (uint8_t)modrm;
            code[at] = sibs[i];
            at += has_sib;
            memcpy(code + at, tails[tail], TAIL_BYTES);
            check(code, at + TAIL_BYTES);
        }
    }
}

static bool is_wanted(unsigned int modrm)
{
    unsigned int rm = modrm & 7;
    return rm == 0 || rm == 4 || rm == 5;
}

static void check_opcodes(uint8_t prefix, uint8_t rex, bool is_second)
{
    uint8_t prefixes[3];
    size_t bytes = 0;
    prefixes[0] = prefix;
    bytes += prefix != 0;
    prefixes[bytes] = rex;
    bytes += rex != 0;
    prefixes[bytes] = 0x0f;
    bytes += is_second;
    for (unsigned int opcode = 0; opcode < 256; opcode++) {
        for (unsigned int modrm = 0; modrm < 256; modrm++) {
            if (is_wanted(modrm)) {
                check_operands(prefixes, bytes, (uint8_t)opcode, modrm);
            }
        }
    }
}

TEST(reads_what_zydis_reads)
{
    static const uint8_t prefixes[] = {0, 0x66, 0xf2, 0xf3};
    static const uint8_t rexes[] = {0, 0x40, 0x41, 0x48, 0x4e};
    for (size_t i = 0; i < sizeof prefixes; i++) {
        for (size_t j = 0; j < sizeof rexes; j++) {
            check_opcodes(prefixes[i], rexes[j], false);
            check_opcodes(prefixes[i], rexes[j], true);
        }
    }
    assert_true(known_count > 500000);
}

TEST(reads_nothing_behind_the_end)
{
    static const uint8_t codes[][BYTES_MAX] = {
        {0x48, 0x8b, 0x84, 0x24, 1, 2, 3, 4},             /* mov */
        {0x66, 0x81, 0x3c, 0x25, 1, 2, 3, 4, 5, 6},       /* cmpw */
        {0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8},             /* movabs */
        {0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 1},       /* nop */
        {0xf3, 0x0f, 0x1e, 0xfa},                         /* endbr64 */
        {0x0f, 0x84, 1, 2, 3, 4},                         /* je */
        {0xf2, 0x44, 0x0f, 0x11, 0x44, 0x24, 0x08, 0x90}, /* movsd */
    };
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        for (size_t bytes = 0; bytes <= BYTES_MAX; bytes++) {
            uint8_t *code = malloc(bytes > 0 ? bytes : 1);
            assert_non_null(code);
            memcpy(code, codes[i], bytes);
            check(code, bytes);
            free(code);
        }
    }
}
