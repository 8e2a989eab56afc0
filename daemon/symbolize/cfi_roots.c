/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Functions at the bottom of a stack, in modules whose call-frame information does not say so: Go's
 * linker writes no .eh_frame at all, and start files of small C libraries have none. Without their
 * names an unwinder finds the end of a stack only by running into what lies below it.
 */
#include "cfi_roots.h"

#include "segments.h"

#include <errno.h>
#include <string.h>

/* Of a function whose symbol has no size: its first call is the last thing it does. */
#define SIZELESS_BYTES 32

/* runtime.systemstack_switch is not among them: the stack goes on, on the other side. */
static const char *const roots[] = {
    "_start",              /* the kernel jumps to it */
    "runtime.rt0_go",      /* entered by jumps only, from the program's entry */
    "runtime.rt0_go.abi0", /* the same, by its name from Go 1.17 on */
    "runtime.goexit",      /* every goroutine's first frame is made to return to it */
    "runtime.goexit.abi0", /* the same */
    "runtime.mstart",      /* begins every system stack; what called it has been left for good */
    "runtime.mstart.abi0", /* the same */
    "runtime.mcall",       /* goes over to the system stack and never comes back */
};

struct search {
    const struct elf_file *file;
    struct cfi_builder *builder;
};

static bool is_root(const char *name)
{
    for (size_t i = 0; i < sizeof roots / sizeof roots[0]; i++) {
        if (strcmp(name, roots[i]) == 0) {
            return true;
        }
    }
    return false;
}

static int on_symbol(const GElf_Sym *symbol, const char *name, void *userdata)
{
    static const struct cfi_rule root = {.kind = CFI_ROOT};
    const struct search *search = userdata;
    bool can_be_code =
        GELF_ST_TYPE(symbol->st_info) == STT_FUNC || GELF_ST_TYPE(symbol->st_info) == STT_NOTYPE;
    if (!can_be_code || symbol->st_shndx == SHN_UNDEF || !is_root(name)) {
        return 0;
    }
    const struct symbol_segment *segment =
        segments_find(search->file->segments, search->file->segment_count, symbol->st_value);
    if (segment == NULL) {
        return 0;
    }
    uint64_t room = segment->size_bytes - (symbol->st_value - segment->vaddr);
    uint64_t bytes = symbol->st_size == 0 ? SIZELESS_BYTES : symbol->st_size;
    return cfi_builder_add(search->builder, symbol->st_value,
                           symbol->st_value + (bytes < room ? bytes : room), &root);
}

int cfi_roots_add(const struct elf_file *file, struct cfi_builder *builder)
{
    struct search search = {file, builder};
    int r = elf_file_symbols(file, on_symbol, &search);
    return r == -EBADMSG ? 0 : r;
}
