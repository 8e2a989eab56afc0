/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How to go from a frame to its caller, for every address of one module: the rows of its .eh_frame
 * as a flat table that two processes can share. The worker builds it, the daemon checks every
 * offset once and then only looks things up. Addresses are the module's own (ELF) addresses. The
 * layout is private to one build of the program; it is never stored. Registers have the numbers of
 * x86-64's DWARF, of 32-bit code as well (arch_x86_64.h).
 */

#include "symbol_table.h"

#define CFI_TABLE_BYTES_MAX ((size_t)64 << 20)

/* Those of which a rule can say that the code keeps them: all but rbx, rbp and rsp. */
#define CFI_KEPT_REGISTERS UINT32_C(0xff37)

enum cfi_kind {
    CFI_NONE,        /* the module says nothing of this address */
    CFI_UNSUPPORTED, /* it says something that no rule of ours can */
    CFI_ROOT,        /* never called: the return address is undefined, or the function is known
                        to be the outermost of its kind of stack */
    CFI_OFFSET,      /* CFA = register + cfa_offset */
    CFI_DEREF,       /* CFA = *(register + cfa_offset) + cfa_addend */
    CFI_DEREF_INDEX, /* CFA = *(register + 8 * cfa_index + cfa_offset) + cfa_addend: OpenSSL's
                        multiplications put their caller's rsp behind what they work on */
    CFI_PLT,    /* CFA = register + cfa_offset, and a word more where (rip & 15) >= cfa_addend */
    CFI_SWITCH, /* the function goes over to another stack and calls there, with rbp as it was:
                   CFI_OFFSET holds before and after, if ra_saved is CFI_AT_CFA, else nothing */
    CFI_FORK,   /* behind the call that makes a thread: CFI_OFFSET, and CFI_ROOT where rax is 0 */
    CFI_END,    /* nothing tells the caller here, not even the frame pointer: the stack ends */
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
    uint32_t kept; /* a bit for each other register that holds what it will hold in the caller */
};

struct cfi_stats {
    uint64_t row_count;
    uint64_t rule_count;
    uint64_t covered_bytes;     /* of code, by rows that an unwinder can follow, or end at */
    uint64_t unsupported_bytes; /* by rows that are CFI_UNSUPPORTED */
};

/* Views into the serialised bytes; cfi_format.h says how they lie there. */
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
    bool is_32bit; /* the module's code, and so the words of its stacks */
    struct cfi_stats stats;
};

/*
 * Makes `ret` a view of serialised bytes (borrowed, 8-byte aligned), after checking all of them.
 * Returns 0, or -EBADMSG.
 */
int cfi_table_open(const void *bytes, size_t size_bytes, struct cfi_table *ret);

/* The rule for `vaddr`: never NULL, CFI_NONE where the table has none. */
const struct cfi_rule *cfi_table_find(const struct cfi_table *table, uint64_t vaddr);

/* A stretch of addresses that one row speaks of; rules[0] where there is none. */
struct cfi_span {
    uint64_t start, end;
    const struct cfi_rule *rule;
    bool carried; /* it goes on with what the row before it says: a page begins there, no more */
};
struct cfi_span cfi_table_span(const struct cfi_table *table, uint64_t vaddr);

/* The module's address of a file offset, if an executable segment has it. */
bool cfi_table_vaddr(const struct cfi_table *table, uint64_t file_offset, uint64_t *ret_vaddr);

/*
 * Collects rows and serialises them. Ranges may come in any order; where two overlap, the one that
 * came first stays. All return 0, -ENOMEM, or -E2BIG past CFI_TABLE_BYTES_MAX or another limit of
 * the table.
 */
struct cfi_builder;
struct cfi_builder *cfi_builder_new(void);
struct cfi_builder *cfi_builder_free(struct cfi_builder *builder);
/* As symbol_builder_segment() and symbol_builder_build_id(). */
int cfi_builder_segment(struct cfi_builder *builder, const struct symbol_segment *segment);
int cfi_builder_build_id(struct cfi_builder *builder, const uint8_t *build_id, size_t bytes);
/* The module's code is of 32 bits; without this call it is of 64. */
void cfi_builder_32bit(struct cfi_builder *builder);
/* The rule (copied) for [start, end); an empty range is left out. */
int cfi_builder_add(struct cfi_builder *builder, uint64_t start, uint64_t end,
                    const struct cfi_rule *rule);
/* Whether a range that was added holds the address. Looks at all of them. */
bool cfi_builder_has(const struct cfi_builder *builder, uint64_t address);
/*
 * What is added from here on and begins in [start, end) is of a function that goes over to another
 * stack: it becomes CFI_SWITCH. Of such functions a bounded number is known, the first ones.
 */
void cfi_builder_switch(struct cfi_builder *builder, uint64_t start, uint64_t end);
/*
 * [start, end) is a function that may go on in another frame than its caller's (code_resumers.h). A
 * bounded number of them is known, the first ones.
 */
void cfi_builder_resumer(struct cfi_builder *builder, uint64_t start, uint64_t end);
/* Those that are known, by a number from 0 on; false: there are no more. */
bool cfi_builder_find_resumer(const struct cfi_builder *builder, size_t number, uint64_t *ret_start,
                              uint64_t *ret_end);
/* What is added from here on comes before all that was added so far. To be called once at most. */
void cfi_builder_prefer(struct cfi_builder *builder);
/* Returned bytes: release with free(). More may be added after it, and all be finished again. */
int cfi_builder_finish(struct cfi_builder *builder, void **ret_bytes, size_t *ret_size_bytes);
