/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Programs that have call-frame information, without it: the rows that the instructions alone give
 * are compared with what the compiler has said, instruction by instruction. Padding between
 * functions, which is never executed, is left out, and nothing else. The compiler's word is not
 * always right: assembly of the C and the cryptographic library pushes registers without a word of
 * it, and in those two files one in a thousand may differ. In the others none may. Rows of the
 * latter often say that rbp or rbx is kept where it was pushed: only CFAs are compared there.
 */
#include "built_tables.h"
#include "code_decoder.h"
#include "code_rows.h"
#include "eh_frame.h"
#include "elf_file.h"

#include <inttypes.h>

#define LIBRARIES    "/usr/lib/x86_64-linux-gnu/"
#define SHOWN_MAX    5
#define PER_THOUSAND 1000

struct subject {
    const char *path;
    size_t wrong_per_thousand_max;
    bool tells_kept; /* its rows know where rbp and rbx are */
    size_t
        known_percent_min; /* of the instructions: without it, nothing known would be right, too */
};

struct tally {
    size_t instructions;
    size_t unknown;
    size_t alike;
    size_t in_other_words; /* by another register or word: the same only if both are right */
    size_t wrong;
};

static struct made_cfi read_said(const struct elf_file *file)
{
    struct cfi_builder *said = cfi_builder_new();
    assert_int_equal(eh_frame_add(file, said), 0);
    return finish_cfi(said);
}

static struct made_cfi read_found(const struct elf_file *file)
{
    struct cfi_builder *found = cfi_builder_new();
    for (size_t i = 0; i < file->segment_count; i++) {
        assert_int_equal(cfi_builder_segment(found, &file->segments[i]), 0);
    }
    assert_int_equal(code_rows_add(file, CODE_ROWS_ALL, found), 0);
    return finish_cfi(found);
}

static bool is_kept_alike(uint8_t a, int32_t a_offset, uint8_t b, int32_t b_offset)
{
    /* What is saved and not changed yet is in two places; and to know it nowhere is no error. */
    bool both = (a == CFI_SAME && b == CFI_AT_CFA) || (a == CFI_AT_CFA && b == CFI_SAME);
    return b == CFI_LOST || both || (a == b && (a != CFI_AT_CFA || a_offset == b_offset)) ||
           b == CFI_AT_SP || b == CFI_AT_BP;
}

static void compare(const struct subject *subject, uint64_t at, const struct cfi_rule *said,
                    const struct cfi_rule *found, struct tally *tally)
{
    tally->instructions++;
    if (found->kind == CFI_NONE || found->kind == CFI_END) {
        tally->unknown++;
        return;
    }
    bool is_other_word = said->kind == CFI_DEREF && said->cfa_offset != found->cfa_offset;
    if (said->kind != found->kind || said->cfa_register != found->cfa_register || is_other_word) {
        tally->in_other_words++;
        return;
    }
    if (said->cfa_offset == found->cfa_offset && said->cfa_addend == found->cfa_addend &&
        (!subject->tells_kept ||
         (is_kept_alike(said->bp_saved, said->bp_offset, found->bp_saved, found->bp_offset) &&
          is_kept_alike(said->bx_saved, said->bx_offset, found->bx_saved, found->bx_offset)))) {
        tally->alike++;
        return;
    }
    if (tally->wrong++ < SHOWN_MAX) {
        print_message("%s at %#" PRIx64 ": said r%u%+d, found r%u%+d\n", subject->path, at,
                      said->cfa_register, said->cfa_offset, found->cfa_register, found->cfa_offset);
    }
}

static void compare_segment(const struct subject *subject, const struct elf_file *file,
                            const struct symbol_segment *segment, const struct made_cfi *said,
                            const struct made_cfi *found, struct tally *tally)
{
    cleanup_(freep) uint8_t *code = malloc(segment->size_bytes);
    size_t bytes = elf_file_read(file, segment->offset, code, segment->size_bytes);
    for (size_t at = 0; at < bytes;) {
        uint64_t address = segment->vaddr + at;
        struct cfi_span span = cfi_table_span(&said->table, address);
        while (span.end < segment->vaddr + bytes &&
               cfi_table_span(&said->table, span.end).carried) {
            span.end = cfi_table_span(&said->table, span.end).end;
        }
        uint64_t callee = 0;
        size_t size = code_skip(code + at, bytes - at, address, &callee);
        size_t row_left = span.end - address < bytes - at ? span.end - address : bytes - at;
        size = size < row_left ? size : row_left;
        bool is_said = span.rule->kind == CFI_OFFSET || span.rule->kind == CFI_DEREF;
        if (!is_said) {
            size = row_left;
        } else if (!code_is_padding(code + at, size)) {
            compare(subject, address, span.rule, cfi_table_find(&found->table, address), tally);
        }
        at += size;
    }
}

static void check(const struct subject *subject)
{
    struct elf_file file;
    struct tally tally = {0};
    cleanup_(closep) int fd = open(subject->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        print_message("%s: not here\n", subject->path);
        return;
    }
    assert_int_equal(elf_file_init(&file, fd), 0);
    cleanup_(free_cfi) struct made_cfi said = read_said(&file);
    cleanup_(free_cfi) struct made_cfi found = read_found(&file);
    for (size_t i = 0; i < said.table.segment_count; i++) {
        compare_segment(subject, &file, &said.table.segments[i], &said, &found, &tally);
    }
    print_message("%s: %zu instructions: %zu alike, %zu in other words, %zu unknown, %zu wrong\n",
                  subject->path, tally.instructions, tally.alike, tally.in_other_words,
                  tally.unknown, tally.wrong);
    assert_true(tally.wrong * PER_THOUSAND <= tally.alike * subject->wrong_per_thousand_max);
    assert_true(tally.alike * 100 >= tally.instructions * subject->known_percent_min);
    elf_file_done(&file);
}

TEST(agrees_with_what_compilers_say)
{
    static const struct subject subjects[] = {
        {"/usr/bin/bash", 0, true, 80},       {LIBRARIES "ld-linux-x86-64.so.2", 0, true, 70},
        {LIBRARIES "libm.so.6", 0, true, 90}, {LIBRARIES "libelf.so.1", 0, true, 80},
        {LIBRARIES "libc.so.6", 1, true, 85}, {LIBRARIES "libcrypto.so.3", 1, false, 80},
    };
    for (size_t i = 0; i < COUNT_OF(subjects); i++) {
        check(&subjects[i]);
    }
}
