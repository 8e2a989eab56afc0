/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Functions at the bottom of a stack, in modules whose call-frame information does not say so, or
 * says what is not true of them. Without their names an unwinder finds the end of a stack only by
 * running into what lies below it. A program's entry needs no name: the kernel jumps there. The
 * dynamic linker's own has no call frames in glibc, and no symbol once it is stripped; every
 * process begins with it.
 *
 * Names are foreign, too. A module that gives one of these to another function of its own ends
 * stacks early, at its own frames, which it could have said in call-frame information as well.
 */
#include "cfi_roots.h"

#include "segments.h"

#include <errno.h>
#include <string.h>

/* Of a function whose symbol has no size: its first call is the last thing it does. */
#define SIZELESS_BYTES 32

/* Of the code at the entry, as far as nothing else claims it: glibc's is 61 bytes. */
#define ENTRY_BYTES 64

struct root {
    const char *name;
    bool is_certain;     /* call-frame information of it is wrong */
    bool is_returned_to; /* stacks are made to return to its first byte: a call would end there */
};

/* Go's linker describes all of its functions as if each were called. runtime.systemstack_switch is
 * not among these: the stack goes on, on the other side. */
static const struct root roots[] = {
    {"_start", false, false},                  /* the kernel jumps to it */
    {"__start_context", true, true},           /* where what makecontext() was given returns to */
    {"runtime.rt0_go", true, false},           /* entered by jumps only, from the program's entry */
    {"runtime.rt0_go.abi0", true, false},      /* the same, by its name from Go 1.17 on */
    {"runtime.goexit", true, false},           /* every goroutine's first frame returns into it */
    {"runtime.goexit.abi0", true, false},      /* the same */
    {"runtime.mstart", true, false},           /* begins every system stack; its caller is gone */
    {"runtime.mstart.abi0", true, false},      /* the same */
    {"runtime.mcall", true, false},            /* goes over to the system stack, for good */
    {"runtime.systemstack", true, false},      /* calls on the system stack what it was given on */
    {"runtime.systemstack.abi0", true, false}, /* another, which no rule leads back to */
    {"runtime.morestack", true, false},        /* copies the stack from the system stack */
    {"runtime.morestack.abi0", true, false},   /* the same */
    {"runtime.asmcgocall.abi0", true, false},  /* as systemstack, for C; without the suffix it is
                                                  a wrapper, which is called like any other */
    {"runtime.sigreturn", true, true},         /* handlers return to it, on a stack of their own */
    {"runtime.sigreturn.abi0", true, true},    /* the same, */
    {"runtime.sigreturn__sigaction", true, true},      /* and by its newer name */
    {"runtime.sigreturn__sigaction.abi0", true, true}, /* the same */
};

struct search {
    const struct elf_file *file;
    struct cfi_builder *builder;
    bool only_certain;
};

static const struct root *find_root(const char *name)
{
    for (size_t i = 0; i < sizeof roots / sizeof roots[0]; i++) {
        if (strcmp(name, roots[i].name) == 0) {
            return &roots[i];
        }
    }
    return NULL;
}

/* What is certain is so of functions only, and for as long as they are. */
static bool is_wanted(const struct search *search, const GElf_Sym *symbol, const struct root *root)
{
    unsigned char type = GELF_ST_TYPE(symbol->st_info);
    return search->only_certain ? root->is_certain && type == STT_FUNC && symbol->st_size > 0
                                : type == STT_FUNC || type == STT_NOTYPE;
}

/* A root of `size_bytes` at `start`, and `early_bytes` before it, as far as its segment goes. */
static int add_root(const struct elf_file *file, struct cfi_builder *builder, uint64_t start,
                    uint64_t size_bytes, uint64_t early_bytes)
{
    static const struct cfi_rule rule = {.kind = CFI_ROOT};
    const struct symbol_segment *segment =
        segments_find(file->segments, file->segment_count, start);
    if (segment == NULL) {
        return 0;
    }
    uint64_t before = start - segment->vaddr;
    uint64_t room = segment->size_bytes - before;
    return cfi_builder_add(builder, start - (early_bytes < before ? early_bytes : before),
                           start + (size_bytes < room ? size_bytes : room), &rule);
}

static int on_symbol(const GElf_Sym *symbol, const char *name, void *userdata)
{
    const struct search *search = userdata;
    const struct root *root = symbol->st_shndx == SHN_UNDEF ? NULL : find_root(name);
    if (root == NULL || !is_wanted(search, symbol, root)) {
        return 0;
    }
    /* The byte before it is padding; where it is another function's it stays so. */
    bool early = root->is_returned_to && !search->only_certain;
    return add_root(search->file, search->builder, symbol->st_value,
                    symbol->st_size == 0 ? SIZELESS_BYTES : symbol->st_size, early);
}

static int add_roots(const struct elf_file *file, bool only_certain, struct cfi_builder *builder)
{
    struct search search = {file, builder, only_certain};
    int r = elf_file_symbols(file, on_symbol, &search);
    return r == -EBADMSG ? 0 : r;
}

int cfi_roots_add_certain(const struct elf_file *file, struct cfi_builder *builder)
{
    return add_roots(file, true, builder);
}

int cfi_roots_add(const struct elf_file *file, struct cfi_builder *builder)
{
    return add_roots(file, false, builder);
}

int cfi_roots_add_entry(const struct elf_file *file, struct cfi_builder *builder)
{
    GElf_Ehdr header;
    if (gelf_getehdr(file->elf, &header) == NULL || header.e_entry == 0) {
        return 0;
    }
    return add_root(file, builder, header.e_entry, ENTRY_BYTES, 0);
}
