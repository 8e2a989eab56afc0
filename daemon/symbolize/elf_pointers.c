/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Finds the addresses that a file has in its data: pointers to functions, and tables of jumps. The
 * file is foreign, so a pointer may lead anywhere. What is read of a file is bounded: a section
 * that is larger than what is left of that is left out, and so are relocations in the packed form
 * (SHT_RELR).
 */
#include "elf_pointers.h"

#include "arch_x86_64.h"
#include "extremes.h"

#include <errno.h>

#define BYTES_MAX ((uint64_t)64 << 20) /* of relocations and data */
#define WORDS     ((size_t)8192)       /* that are read at once */

struct pointers {
    const struct elf_file *file;
    elf_pointer_fn on_pointer;
    void *userdata;
    uint64_t first, end; /* the values that are wanted */
    uint64_t left_bytes; /* that may still be searched */
    bool is_cut;         /* something was left out */
};

static int call(const struct pointers *pointers, uint64_t place, uint64_t value)
{
    return value >= pointers->first && value < pointers->end
               ? pointers->on_pointer(place, value, pointers->userdata)
               : 0;
}

static int call_for_relocations(const struct pointers *pointers, Elf_Data *relocations)
{
    GElf_Rela relocation;
    int r = 0;
    for (int i = 0; r == 0 && i < INT32_MAX; i++) {
        if (gelf_getrela(relocations, i, &relocation) == NULL) {
            break;
        }
        if (GELF_R_TYPE(relocation.r_info) == ARCH_RELOC_RELATIVE) {
            r = call(pointers, relocation.r_offset, (uint64_t)relocation.r_addend);
        }
    }
    return r;
}

/* The first word from `at` on, of `count` in all, whose value is wanted, or `count`. */
static size_t skip_others(const struct pointers *pointers, const uint64_t *words, size_t at,
                          size_t count)
{
    const uint64_t first = pointers->first;
    const uint64_t range = pointers->end - first;
    while (at < count && words[at] - first >= range) {
        at++;
    }
    return at;
}

static int call_for_words(struct pointers *pointers, const GElf_Shdr *section)
{
    uint64_t words[WORDS];
    if (!elf_file_has(pointers->file, section->sh_offset, section->sh_size) ||
        section->sh_addr % sizeof *words != 0) {
        return 0;
    }
    int r = 0;
    for (uint64_t at = 0; r == 0 && at < section->sh_size; at += sizeof words) {
        uint64_t rest = section->sh_size - at;
        size_t got = elf_file_read(pointers->file, section->sh_offset + at, words,
                                   rest < sizeof words ? rest : sizeof words);
        for (size_t i = 0; r == 0 && i < got / sizeof *words; i++) {
            i = skip_others(pointers, words, i, got / sizeof *words);
            if (i < got / sizeof *words) {
                r = pointers->on_pointer(section->sh_addr + at + i * sizeof *words, words[i],
                                         pointers->userdata);
            }
        }
    }
    return r;
}

static int read_pointers(struct pointers *pointers, bool with_words)
{
    Elf_Scn *section = NULL;
    int r = 0;
    while (r == 0 && (section = elf_nextscn(pointers->file->elf, section)) != NULL) {
        GElf_Shdr header = {0};
        bool is_relocations = gelf_getshdr(section, &header) != NULL && header.sh_type == SHT_RELA;
        bool is_data = with_words && header.sh_type == SHT_PROGBITS &&
                       (header.sh_flags & (SHF_ALLOC | SHF_EXECINSTR)) == SHF_ALLOC;
        bool is_wanted = is_relocations || is_data;
        if (header.sh_type == SHT_RELR || (is_wanted && header.sh_size > pointers->left_bytes)) {
            pointers->is_cut = true;
            continue;
        }
        if (!is_wanted) {
            continue;
        }
        pointers->left_bytes -= header.sh_size;
        if (is_relocations) {
            Elf_Data *relocations = elf_file_data(pointers->file, section, &header);
            bool is_read = relocations != NULL && relocations->d_type == ELF_T_RELA;
            r = is_read ? call_for_relocations(pointers, relocations) : 0;
        } else {
            r = call_for_words(pointers, &header);
        }
    }
    return r;
}

int elf_pointers_relocated(const struct elf_file *file, elf_pointer_fn on_pointer, void *userdata)
{
    struct pointers pointers = {file, on_pointer, userdata, .end = UINT64_MAX,
                                .left_bytes = BYTES_MAX};
    return read_pointers(&pointers, false);
}

int elf_pointers_to_code(const struct elf_file *file, elf_pointer_fn on_pointer, void *userdata)
{
    struct pointers pointers = {file, on_pointer, userdata, .first = UINT64_MAX,
                                .left_bytes = BYTES_MAX};
    for (size_t i = 0; i < file->segment_count; i++) {
        const struct symbol_segment *segment = &file->segments[i];
        pointers.first = min_u64(pointers.first, segment->vaddr);
        pointers.end = max_u64(pointers.end, segment->vaddr + segment->size_bytes);
    }
    pointers.first = min_u64(pointers.first, pointers.end);
    int r = read_pointers(&pointers, elf_file_is_fixed(file));
    return r == 0 && pointers.is_cut ? -E2BIG : r;
}
