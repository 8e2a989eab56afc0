/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A loop through the linkage table of a program into a library, and through the library's own.
 * TRUTH_RESOLVE: each call is resolved anew, by the dynamic linker, as the first one of a lazily
 * bound program is.
 */
#include "step.h"

#include <elf.h>
#include <link.h>

uint64_t lib_tiny(uint64_t a);
uint64_t lib_outer(uint64_t a);

#ifdef TRUTH_RESOLVE
extern Elf64_Dyn _DYNAMIC[];
static uint64_t *slots[8];
static uint64_t unresolved[8];
static size_t slot_count;

/* The entries of the linkage table as they are before the first call. */
static void find_slots(void)
{
    const Elf64_Rela *relocation = NULL;
    size_t bytes = 0;
    for (const Elf64_Dyn *at = _DYNAMIC; at->d_tag != DT_NULL; at++) {
        if (at->d_tag == DT_JMPREL) {
            relocation = (const Elf64_Rela *)at->d_un.d_ptr;
        } else if (at->d_tag == DT_PLTRELSZ) {
            bytes = at->d_un.d_val;
        }
    }
    slot_count = bytes / sizeof *relocation;
    slot_count = slot_count > 8 ? 8 : slot_count;
    for (size_t i = 0; i < slot_count; i++) {
        slots[i] = (uint64_t *)relocation[i].r_offset;
        unresolved[i] = *slots[i];
    }
}
#endif

static volatile uint64_t sink;

TRUTH_FUNCTION void loop(uint64_t turns);
TRUTH_FUNCTION void loop(uint64_t turns)
{
    for (uint64_t i = 0; i < turns; i++) {
#ifdef TRUTH_RESOLVE
        for (size_t j = 0; j < slot_count; j++) {
            *slots[j] = unresolved[j];
        }
#endif
        sink = lib_tiny(i);
        sink = lib_outer(i);
    }
}

int main(void)
{
#ifdef TRUTH_RESOLVE
    find_slots();
#endif
    truth_step_prepare();
    truth_begin();
    truth_step();
    for (;;) {
        loop(TRUTH_COUNT(10000) + 1);
        TRUTH_STAY();
    }
}
