/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A flat table of unwind rows: for every address of one module, the rule that leads from a frame to
 * its caller. Two processes can share it: the worker builds it; the daemon checks every offset once
 * and then only looks rows up. Addresses are the module's own (ELF) addresses. The layout is
 * private to one build of the program and is never stored. Registers have x86-64's DWARF numbers,
 * also for 32-bit code (arch_x86_64.h).
 */

#include "arch_x86_64.h"
#include "symbol_table.h"

#define CFI_TABLE_BYTES_MAX ((size_t)64 << 20)

/* A stretch of code without rows is small up to this. */
#define CFI_SMALL_BYTES 1024
/* Functions are aligned to so many bytes, mostly. */
#define CFI_ALIGN_BYTES 16

/* The registers that `kept` of a rule can have: all but rbx, rbp and rsp. */
#define CFI_KEPT_REGISTERS UINT32_C(0xff37)

enum cfi_kind {
    CFI_NONE,        /* the module has no call-frame information for this address */
    CFI_UNSUPPORTED, /* it has some that no other kind can express */
    CFI_ROOT,        /* no caller: the return address is undefined, or the function is known to be
                        the outermost of its kind of stack */
    CFI_OFFSET,      /* CFA = register + cfa_offset */
    CFI_DEREF,       /* CFA = *(register + cfa_offset) + cfa_addend */
    CFI_DEREF_INDEX, /* CFA = *(register + 8 * cfa_index + cfa_offset) + cfa_addend: OpenSSL's
                        multiplications save their caller's rsp behind their operands */
    CFI_PLT,    /* CFA = register + cfa_offset, and a word more where (rip & 15) >= cfa_addend */
    CFI_SWITCH, /* the function switches to another stack and calls there, without changing rbp:
                   before and after, CFI_OFFSET holds if ra_saved is CFI_AT_CFA */
    CFI_FORK,   /* behind the call that makes a thread: CFI_OFFSET, and CFI_ROOT where rax is 0 */
    CFI_END,    /* the caller cannot be found, not even by the frame pointer: the stack ends */
};

/* Where the caller's value of a register is. */
enum cfi_saved {
    CFI_SAME,   /* in the register itself */
    CFI_AT_CFA, /* *(CFA + offset) */
    CFI_AT_SP,  /* *(rsp + offset), as in signal frames */
    CFI_AT_BP,  /* *(rbp + offset), as in functions that align their stack themselves */
    CFI_LOST,   /* nowhere */
};

struct cfi_rule {
    uint8_t kind;         /* enum cfi_kind */
    uint8_t cfa_register; /* DWARF number, below ARCH_REGISTERS_COUNT */
    uint8_t signal_frame; /* 1: the caller was interrupted, not calling */
    uint8_t ra_saved;     /* enum cfi_saved, of the return address: CFI_AT_CFA or CFI_AT_SP */
    uint8_t bp_saved;     /* of rbp and rbx, on which CFAs can rest in frames that are not leaves */
    uint8_t bx_saved;
    uint8_t cfa_index; /* a register as cfa_register */
    uint8_t keeps_fp;  /* 1: where this code calls, rbp points to its frame, though the CFA does not
                          rest on it: saved rbp and return address end at the CFA */
    int32_t cfa_offset;
    int32_t cfa_addend;
    int32_t ra_offset;
    int32_t bp_offset;
    int32_t bx_offset;
    uint32_t kept; /* a bit for each other register whose value is the caller's already */
};

/* True when an unwinder can follow the row of this rule, or end at it. Code whose rows do not cover
 * it is what code_rows.h makes rows for. */
static inline bool cfi_rule_covers(const struct cfi_rule *rule)
{
    bool is_below_stack =
        rule->kind == CFI_DEREF && rule->cfa_register == ARCH_DWARF_SP && rule->cfa_offset < 0;
    return rule->kind != CFI_NONE && rule->kind != CFI_UNSUPPORTED && !is_below_stack;
}

/* True for a rule by which rbp points to the frame, as in code with frame pointers. */
static inline bool cfi_rule_is_framed(const struct cfi_rule *rule)
{
    return rule->kind == CFI_OFFSET && rule->cfa_register == ARCH_DWARF_BP &&
           rule->cfa_offset == ARCH_FRAME_CFA_OFFSET;
}

/* True for a stretch between rows that is taken for the padding between two functions, without a
 * look at its bytes. */
static inline bool cfi_is_padding(uint64_t start, uint64_t end)
{
    return end - start < CFI_ALIGN_BYTES && end % CFI_ALIGN_BYTES == 0;
}

struct cfi_stats {
    uint64_t row_count;
    uint64_t rule_count;
    uint64_t covered_bytes;     /* of code with rows that an unwinder can follow, or end at */
    uint64_t end_bytes;         /* of these, with CFI_END */
    uint64_t unsupported_bytes; /* of code with CFI_UNSUPPORTED */
};

/* Views into the serialised bytes, whose layout is in cfi_format.h. */
struct cfi_page;
struct cfi_row;
struct cfi_table {
    uint64_t base; /* the address of the first page, a multiple of its size */
    const struct cfi_page *pages;
    size_t page_count;
    const struct cfi_row *rows;
    size_t row_count;
    const struct cfi_rule *rules; /* rules[0] is CFI_NONE */
    size_t rule_count;
    const struct symbol_segment *segments;
    size_t segment_count;
    const uint8_t *build_id;
    size_t build_id_bytes;
    bool is_32bit;    /* the module's code has 32 bits, and so have words of its stacks */
    bool lacks_small; /* some small stretches have rows only in the table of all rows */
    struct cfi_stats stats;
};

/*
 * Makes `ret` a view of serialised bytes (borrowed, 8-byte aligned), after checking all of them.
 * Returns 0, or -EBADMSG.
 */
int cfi_table_open(const void *bytes, size_t size_bytes, struct cfi_table *ret);

/* The rule for `vaddr`: never NULL, CFI_NONE where the table has none. */
const struct cfi_rule *cfi_table_find(const struct cfi_table *table, uint64_t vaddr);

/* The addresses that one row covers; its rule is rules[0] where there is no row. */
struct cfi_span {
    uint64_t start, end;
    const struct cfi_rule *rule;
    bool carried; /* the row before it has the same rule: only a page begins here */
    const struct cfi_row
        *row; /* cfi_table.c's own; NULL before the first page, and behind the last */
};
struct cfi_span cfi_table_span(const struct cfi_table *table, uint64_t vaddr);
/* The span that begins where another of the same table ends, faster than by its address. Behind the
 * last one there is none: it is given again. */
struct cfi_span cfi_table_span_behind(const struct cfi_table *table, const struct cfi_span *span);

/* Rows one behind the other, of which all are covered, or none is, by the first bit of what `kinds`
 * has for the number of their rule. */
struct cfi_stretch {
    uint64_t start, end;
    uint8_t first;             /* what `kinds` has for its first row, */
    uint8_t any;               /* and for one of all at least: a bit */
    uint64_t page;             /* cfi_table.c's own */
    const struct cfi_row *row; /* the same: the row behind it */
};
/* The one from `vaddr` on, and what lies behind one; up to UINT64_MAX there is always one. */
struct cfi_stretch cfi_table_stretch(const struct cfi_table *table, uint64_t vaddr,
                                     const uint8_t *kinds);
struct cfi_stretch cfi_table_stretch_behind(const struct cfi_table *table,
                                            const struct cfi_stretch *stretch,
                                            const uint8_t *kinds);

/* True when an address without a row (CFI_NONE) has none in the table of all rows either: it lies
 * in a small stretch between rows, and the instructions of those were followed. */
bool cfi_table_is_settled(const struct cfi_table *table, uint64_t vaddr);

/* The module's address of a file offset, if an executable segment has it. */
bool cfi_table_vaddr(const struct cfi_table *table, uint64_t file_offset, uint64_t *ret_vaddr);

/*
 * Collects rows and serialises them. Ranges may be added in any order. Where two overlap, the one
 * that was added first stays. All return 0, -ENOMEM, or -E2BIG past CFI_TABLE_BYTES_MAX or another
 * limit of the table.
 */
struct cfi_builder;
struct cfi_builder *cfi_builder_new(void);
struct cfi_builder *cfi_builder_free(struct cfi_builder *builder);
/* As symbol_builder_segment() and symbol_builder_build_id(). */
int cfi_builder_segment(struct cfi_builder *builder, const struct symbol_segment *segment);
int cfi_builder_build_id(struct cfi_builder *builder, const uint8_t *build_id, size_t bytes);
/* The module's code has 32 bits; without this call it has 64. */
void cfi_builder_32bit(struct cfi_builder *builder);
/* The instructions of some small stretches without rows were not followed. */
void cfi_builder_lacks_small(struct cfi_builder *builder);
/* The rule (copied) for [start, end); an empty range is left out. */
int cfi_builder_add(struct cfi_builder *builder, uint64_t start, uint64_t end,
                    const struct cfi_rule *rule);
/* The first address from `address` on that a range holds which was added; UINT64_MAX: there is
 * none. Searches all of them. */
uint64_t cfi_builder_next(const struct cfi_builder *builder, uint64_t address);
/*
 * [start, end) is a function that switches to another stack: ranges that are added later and begin
 * in it become CFI_SWITCH. A bounded number of such functions is kept, the first ones.
 */
void cfi_builder_switch(struct cfi_builder *builder, uint64_t start, uint64_t end);
/*
 * [start, end) is a function that may continue in another frame than its caller's
 * (code_resumers.h), or a thunk through which functions return (code_thunks.h). A bounded number of
 * them is kept, the first ones.
 */
void cfi_builder_resumer(struct cfi_builder *builder, uint64_t start, uint64_t end);
/* These functions, by a number from 0 on; false: there are no more. */
bool cfi_builder_find_resumer(const struct cfi_builder *builder, size_t number, uint64_t *ret_start,
                              uint64_t *ret_end);
/*
 * Makes a table (borrowed from the builder, until the next call) of all ranges so far. Those that
 * are added later win over it.
 */
int cfi_builder_settle(struct cfi_builder *builder, const struct cfi_table **ret);
/*
 * Takes back what was added since cfi_builder_settle(), also after cfi_builder_finish(), and gives
 * its memory back. Returns the table of what is left, borrowed as above, or NULL when that was not
 * called.
 */
const struct cfi_table *cfi_builder_rewind(struct cfi_builder *builder);
/* How much memory it holds behind cfi_builder_rewind(). */
size_t cfi_builder_bytes(const struct cfi_builder *builder);
/* Makes the table (returned: free()) of all ranges, and uses them up. */
int cfi_builder_finish(struct cfi_builder *builder, void **ret_bytes, size_t *ret_size_bytes);
