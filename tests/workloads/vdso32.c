/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Asks for the time through its 32-bit [vdso], without end: a 32-bit program without libraries. The
 * auxiliary vector, behind the environment, has the address of the vdso's image.
 */
#include <elf.h>
#include <stdint.h>

#define CLOCK 1 /* CLOCK_MONOTONIC */

typedef int (*clock_gettime_fn)(int clock, int32_t time[2]);

static int same(const char *a, const char *b)
{
    while (*a != '\0' && *a == *b) {
        a++;
        b++;
    }
    return *a == *b;
}

/* The image's symbol, or 0. The strings of .dynstr follow the symbols of .dynsym. */
static uintptr_t find_symbol(uintptr_t image, const char *name)
{
    const Elf32_Ehdr *header = (const Elf32_Ehdr *)image;
    const Elf32_Phdr *segments = (const Elf32_Phdr *)(image + header->e_phoff);
    const Elf32_Sym *symbols = 0;
    const char *strings = 0;
    for (int i = 0; i < header->e_phnum; i++) {
        const Elf32_Dyn *entry = (const Elf32_Dyn *)(image + segments[i].p_offset);
        for (; segments[i].p_type == PT_DYNAMIC && entry->d_tag != DT_NULL; entry++) {
            symbols = entry->d_tag == DT_SYMTAB ? (const Elf32_Sym *)(image + entry->d_un.d_ptr)
                                                : symbols;
            strings =
                entry->d_tag == DT_STRTAB ? (const char *)(image + entry->d_un.d_ptr) : strings;
        }
    }
    for (; symbols != 0 && (const char *)(symbols + 1) <= strings; symbols++) {
        if (same(strings + symbols->st_name, name)) {
            return image + symbols->st_value;
        }
    }
    return 0;
}

__attribute__((noreturn, used)) static void start(const uintptr_t *stack)
{
    const uintptr_t *word = stack + 1 + stack[0] + 1;
    while (*word++ != 0) {
    }
    const Elf32_auxv_t *entry = (const Elf32_auxv_t *)word;
    while (entry->a_type != AT_SYSINFO_EHDR && entry->a_type != AT_NULL) {
        entry++;
    }
    clock_gettime_fn ask = (clock_gettime_fn)find_symbol(entry->a_un.a_val, "__vdso_clock_gettime");
    for (int32_t time[2];;) {
        (void)ask(CLOCK, time);
    }
}

__attribute__((naked, noreturn)) void _start(void)
{
    __asm__("mov %esp, %eax\n"
            "and $-16, %esp\n"
            "sub $12, %esp\n"
            "push %eax\n"
            "call start\n");
}
