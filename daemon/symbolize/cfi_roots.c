/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Finds by their names functions at which stacks begin, or at which one stack continues on another,
 * where call-frame information does not say so or is wrong. Without these names an unwinder would
 * run past the end of such a stack. A program's entry needs no name: the kernel jumps there. The
 * entry of glibc's dynamic linker, with which every process begins, has no call frames, and no
 * symbol once it is stripped. The code of an entry of unknown size is followed to its end
 * (cfi_entry.c), and code that returns is none.
 *
 * Names are foreign, too. A module that gives such a name to another of its functions ends stacks
 * early at its own frames, which its call-frame information could do as well.
 */
#include "cfi_roots.h"

#include "cfi_entry.h"
#include "elf_go.h"
#include "segments.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A file has one `_start` or none, in either table of symbols. */
#define SIZELESS_COUNT_MAX 4

/* There are as many names, with two or three tables of symbols. */
#define FOUND_COUNT_MAX 128

/* What the names of Go's assembly end in, and room for any name that is known. */
#define ASSEMBLY_SUFFIX ".abi0"
#define NAME_BYTES_MAX  64

/* What is known of a function by its name. */
enum role {
    ROLE_ROOT,         /* never called; what call-frame information says of it comes first */
    ROLE_CERTAIN_ROOT, /* never called, and call-frame information of it is wrong */
    ROLE_RETURN,       /* the same; stacks are made to return to its first byte: a call would end
                          there */
    ROLE_SWITCH,       /* it calls on another stack than it was called on */
};

struct known {
    const char *name;
    enum role role;
};

static const struct known any_names[] = {
    {"_start", ROLE_ROOT},            /* the kernel jumps to it */
    {"_dl_start_user", ROLE_ROOT},    /* the same code's second half in a dynamic linker */
    {"__start_context", ROLE_RETURN}, /* where what makecontext() was given returns to */
};

/*
 * These mean something in files of Go only, any other may use such a name otherwise. Go's linker
 * describes all of its functions as if each were called, and stayed on its stack. Names have the
 * suffix from Go 1.17 on. mcall and morestack are roots, though they come from a goroutine: what
 * they call may let that go on elsewhere, or move its stack, and what rbp led to is then no stack
 * of this thread's. runtime.systemstack_switch is not among these: there the stack goes on, on the
 * other side.
 */
static const struct known go_names[] = {
    {"runtime.rt0_go", ROLE_CERTAIN_ROOT},      /* entered by jumps only, from the entry */
    {"runtime.rt0_go.abi0", ROLE_CERTAIN_ROOT}, /* the same */
    {"runtime.goexit", ROLE_CERTAIN_ROOT},      /* every goroutine's first frame returns into it */
    {"runtime.goexit.abi0", ROLE_CERTAIN_ROOT}, /* the same */
    {"runtime.mstart", ROLE_CERTAIN_ROOT},      /* begins every system stack; its caller is gone */
    {"runtime.mstart.abi0", ROLE_CERTAIN_ROOT}, /* the same */
    {"runtime.mcall", ROLE_CERTAIN_ROOT},       /* goes over to the system stack, for good */
    {"runtime.morestack", ROLE_CERTAIN_ROOT},   /* copies the stack from the system stack */
    {"runtime.morestack.abi0", ROLE_CERTAIN_ROOT}, /* the same */
    {"runtime.sigreturn", ROLE_RETURN},            /* handlers return to it, on their own stack */
    {"runtime.sigreturn.abi0", ROLE_RETURN},       /* the same, */
    {"runtime.sigreturn__sigaction", ROLE_RETURN}, /* and by its newer name */
    {"runtime.sigreturn__sigaction.abi0", ROLE_RETURN},
    {"runtime.systemstack", ROLE_SWITCH},      /* calls on the system stack what it was given */
    {"runtime.systemstack.abi0", ROLE_SWITCH}, /* the same */
    {"runtime.asmcgocall.abi0", ROLE_SWITCH},  /* calls C there; without the suffix it is a wrapper,
                                                  which is called like any other */
    {"runtime.nanotime1", ROLE_SWITCH},        /* calls the vDSO there, */
    {"runtime.nanotime1.abi0", ROLE_SWITCH},   /* as all of these */
    {"runtime.walltime1", ROLE_SWITCH},
    {"runtime.walltime1.abi0", ROLE_SWITCH},
    {"time.now", ROLE_SWITCH},
    {"runtime.vgetrandom1", ROLE_SWITCH},
};

/* One of these functions in a file. */
struct found {
    uint64_t start;
    uint64_t size_bytes; /* 0: its symbol has none */
    enum role role;
    bool is_label; /* its symbol is of no type */
};

struct cfi_roots {
    const struct elf_file *file;
    bool is_go;
    struct found found[FOUND_COUNT_MAX];
    size_t found_count;
};

/* Most names of a program differ from all of these in their first two characters. */
static bool begin_alike(const char *a, const char *b)
{
    return a[0] == b[0] && a[0] != '\0' && a[1] == b[1];
}

static const struct known *find_among(const struct known *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (begin_alike(name, names[i].name) && strcmp(name, names[i].name) == 0) {
            return &names[i];
        }
    }
    return NULL;
}

static const struct known *find_known(const struct cfi_roots *roots, const char *name)
{
    const struct known *known = find_among(any_names, sizeof any_names / sizeof *any_names, name);
    return known != NULL || !roots->is_go
               ? known
               : find_among(go_names, sizeof go_names / sizeof *go_names, name);
}

static const struct cfi_rule root_rule = {.kind = CFI_ROOT};
static const struct cfi_rule switch_rule = {.kind = CFI_SWITCH, .ra_saved = CFI_LOST};

/* A rule for `size_bytes` at `start`, and `early_bytes` before it, as far as its segment goes. */
static int add_rule(const struct elf_file *file, struct cfi_builder *builder, uint64_t start,
                    uint64_t size_bytes, uint64_t early_bytes, const struct cfi_rule *rule)
{
    const struct symbol_segment *segment =
        segments_find(file->segments, file->segment_count, start);
    if (segment == NULL) {
        return 0;
    }
    uint64_t before = start - segment->vaddr;
    uint64_t room = segment->size_bytes - before;
    return cfi_builder_add(builder, start - (early_bytes < before ? early_bytes : before),
                           start + (size_bytes < room ? size_bytes : room), rule);
}

static int add_known(const struct cfi_roots *roots, const struct found *found, uint64_t size_bytes,
                     bool only_certain, struct cfi_builder *builder)
{
    if (found->role == ROLE_SWITCH && only_certain) {
        cfi_builder_switch(builder, found->start, found->start + size_bytes);
        return 0;
    }
    /* The byte before it is padding; where it is another function's it stays so. */
    bool early = found->role == ROLE_RETURN && !only_certain;
    return add_rule(roots->file, builder, found->start, size_bytes, early,
                    found->role == ROLE_SWITCH ? &switch_rule : &root_rule);
}

static void note_found(struct cfi_roots *roots, const struct found *found)
{
    if (roots->found_count < FOUND_COUNT_MAX) {
        roots->found[roots->found_count++] = *found;
    }
}

static int on_symbol(const GElf_Sym *symbol, const char *name, void *userdata)
{
    struct cfi_roots *roots = userdata;
    unsigned char type = GELF_ST_TYPE(symbol->st_info);
    bool is_code = symbol->st_shndx != SHN_UNDEF && (type == STT_FUNC || type == STT_NOTYPE);
    const struct known *known = is_code ? find_known(roots, name) : NULL;
    if (known != NULL) {
        note_found(roots, &(struct found){.start = symbol->st_value,
                                          .size_bytes = symbol->st_size,
                                          .role = known->role,
                                          .is_label = type == STT_NOTYPE});
    }
    return 0;
}

/* Go's own names have no suffix; but what sets the stack pointer is the assembly, no wrapper. */
static int on_go_function(const struct go_function *function, void *userdata)
{
    struct cfi_roots *roots = userdata;
    const struct known *known = find_known(roots, function->name);
    if (known == NULL && function->writes_sp) {
        char name[NAME_BYTES_MAX];
        int bytes = snprintf(name, sizeof name, "%s" ASSEMBLY_SUFFIX, function->name);
        known = bytes > 0 && (size_t)bytes < sizeof name ? find_known(roots, name) : NULL;
    }
    if (known != NULL && function->end > function->start) {
        note_found(roots, &(struct found){.start = function->start,
                                          .size_bytes = function->end - function->start,
                                          .role = known->role});
    }
    return 0;
}

int cfi_roots_find(const struct elf_file *file, struct cfi_roots **ret)
{
    struct cfi_roots *roots = calloc(1, sizeof *roots);
    if (roots == NULL) {
        return -ENOMEM;
    }
    roots->file = file;
    roots->is_go = elf_go_is_linked(file);
    int r = elf_file_symbols(file, on_symbol, roots);
    if (r == 0 || r == -EBADMSG) {
        r = elf_go_functions(file, on_go_function, roots);
    }
    if (r < 0) {
        free(roots);
        return r;
    }
    *ret = roots;
    return 0;
}

struct cfi_roots *cfi_roots_free(struct cfi_roots *roots)
{
    free(roots);
    return NULL;
}

/* What is certain is so of functions only, and for as long as they are. */
int cfi_roots_add_certain(const struct cfi_roots *roots, struct cfi_builder *builder)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < roots->found_count; i++) {
        const struct found *found = &roots->found[i];
        if (found->role != ROLE_ROOT && !found->is_label && found->size_bytes > 0) {
            r = add_known(roots, found, found->size_bytes, true, builder);
        }
    }
    return r;
}

/* Adds one whose symbol has no size: it ends where its code does, or something else begins. Go's
 * linker gives all functions a size. */
static int add_sizeless(const struct cfi_roots *roots, const struct found *found,
                        struct cfi_builder *builder)
{
    struct entry_code code = cfi_entry_measure(roots->file, builder, found->start);
    return code.size_bytes > 0 ? add_known(roots, found, code.size_bytes, false, builder) : 0;
}

int cfi_roots_add(const struct cfi_roots *roots, struct cfi_builder *builder)
{
    size_t sizeless_count = 0;
    int r = 0;
    for (size_t i = 0; r == 0 && i < roots->found_count; i++) {
        const struct found *found = &roots->found[i];
        r = found->size_bytes > 0 ? add_known(roots, found, found->size_bytes, false, builder) : 0;
    }
    /* When all else is known. */
    for (size_t i = 0; r == 0 && i < roots->found_count; i++) {
        const struct found *found = &roots->found[i];
        bool is_wanted = found->size_bytes == 0 && found->role != ROLE_SWITCH;
        if (is_wanted && sizeless_count < SIZELESS_COUNT_MAX) {
            sizeless_count++;
            r = add_sizeless(roots, found, builder);
        }
    }
    return r;
}

/* Whether the kernel or a dynamic linker begins a program at the file's entry. Of other files that
 * have one it may be: a dynamic linker, a static program at any address, a library of an old
 * linker, which has it where its code begins. */
static bool is_program(const struct elf_file *file, const GElf_Ehdr *header)
{
    size_t count = 0;
    GElf_Phdr part;
    bool has_linker = false;
    if (elf_getphdrnum(file->elf, &count) == 0) {
        for (size_t i = 0; i < count && !has_linker; i++) {
            has_linker = gelf_getphdr(file->elf, (int)i, &part) != NULL && part.p_type == PT_INTERP;
        }
    }
    return header->e_type == ET_EXEC || has_linker;
}

int cfi_roots_add_entry(const struct elf_file *file, struct cfi_builder *builder)
{
    GElf_Ehdr header;
    if (gelf_getehdr(file->elf, &header) == NULL || header.e_entry == 0) {
        return 0;
    }
    struct entry_code code = cfi_entry_measure(file, builder, header.e_entry);
    if (!code.begins_stack && !is_program(file, &header)) {
        return 0;
    }
    return add_rule(file, builder, header.e_entry, code.size_bytes, 0, &root_rule);
}
