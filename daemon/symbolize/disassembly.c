/* SPDX-License-Identifier: Apache-2.0 */

/*
 * disassembly_read() reads a stretch of a file's code and has Zydis write each instruction. The
 * texts are Zydis' own: no name of the file is in them.
 */
#include "disassembly.h"

#include "cleanup.h"
#include "elf_file.h"

#include <Zydis/Zydis.h>

#include <errno.h>
#include <stdio.h>

static void print_line(const ZydisDecoder *decoder, const ZydisFormatter *formatter,
                       const uint8_t *code, size_t size_bytes, struct disassembly_line *line,
                       size_t *ret_bytes)
{
    ZydisDecodedInstruction instruction;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    *ret_bytes = 1;
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(decoder, code, size_bytes, &instruction, operands)) ||
        !ZYAN_SUCCESS(ZydisFormatterFormatInstruction(formatter, &instruction, operands,
                                                      instruction.operand_count_visible, line->text,
                                                      sizeof line->text, line->address, NULL))) {
        (void)snprintf(line->text, sizeof line->text, "(bad)");
        return;
    }
    *ret_bytes = instruction.length;
}

/* Numbers as other programs write them: without zeros in front, digits in lower case. */
static bool init_formatter(ZydisFormatter *formatter)
{
    static const struct {
        ZydisFormatterProperty property;
        ZyanUPointer value;
    } properties[] = {
        {ZYDIS_FORMATTER_PROP_ADDR_PADDING_ABSOLUTE, ZYDIS_PADDING_DISABLED},
        {ZYDIS_FORMATTER_PROP_ADDR_PADDING_RELATIVE, ZYDIS_PADDING_DISABLED},
        {ZYDIS_FORMATTER_PROP_DISP_PADDING, ZYDIS_PADDING_DISABLED},
        {ZYDIS_FORMATTER_PROP_IMM_PADDING, ZYDIS_PADDING_DISABLED},
        {ZYDIS_FORMATTER_PROP_HEX_UPPERCASE, ZYAN_FALSE},
    };
    bool is_done = ZYAN_SUCCESS(ZydisFormatterInit(formatter, ZYDIS_FORMATTER_STYLE_ATT));
    for (size_t i = 0; i < sizeof properties / sizeof properties[0]; i++) {
        is_done = is_done && ZYAN_SUCCESS(ZydisFormatterSetProperty(
                                 formatter, properties[i].property, properties[i].value));
    }
    return is_done;
}

static int disassemble(const struct elf_file *file, uint64_t start, uint64_t end,
                       struct disassembly_line *ret, size_t *ret_count)
{
    bool is_32bit = elf_file_machine(file) == ELF_MACHINE_X86_32BIT;
    ZydisDecoder decoder;
    ZydisFormatter formatter;
    cleanup_(freep) uint8_t *code = malloc(end - start + 1);
    if (code == NULL) {
        return -ENOMEM;
    }
    if (!ZYAN_SUCCESS(ZydisDecoderInit(
            &decoder, is_32bit ? ZYDIS_MACHINE_MODE_LEGACY_32 : ZYDIS_MACHINE_MODE_LONG_64,
            is_32bit ? ZYDIS_STACK_WIDTH_32 : ZYDIS_STACK_WIDTH_64)) ||
        !init_formatter(&formatter)) {
        return -EBADMSG;
    }
    size_t size_bytes = elf_file_read_mapped(file, start, code, end - start);
    size_t count = 0;
    for (size_t at = 0, bytes = 0; at < size_bytes; at += bytes) {
        ret[count] = (struct disassembly_line){.address = start + at};
        print_line(&decoder, &formatter, code + at, size_bytes - at, &ret[count], &bytes);
        count++;
    }
    *ret_count = count;
    return 0;
}

int disassembly_read(int fd, uint64_t start, uint64_t end, struct disassembly_line *ret,
                     size_t *ret_count)
{
    struct elf_file file;
    int r = elf_file_init(&file, fd);
    if (r < 0) {
        return r;
    }
    r = elf_file_machine(&file) == ELF_MACHINE_OTHER
            ? -EBADMSG
            : disassemble(&file, start, end, ret, ret_count);
    elf_file_done(&file);
    return r;
}
