/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cfi_table.h"
#include "code_effect.h"
#include "code_starts.h"

#define CODE_REGION_BYTES_MAX ((size_t)256 << 10)

/* One instruction, and what else is known of its place. */
struct code_site {
    struct code_effect effect;
    uint32_t at;       /* from the region's start */
    uint32_t function; /* where the last function begins up to here, from there, or 0 */
    uint8_t start;     /* enum code_start */
    bool is_pointed;   /* data has its address */
    bool is_last;      /* its function ends behind it, by its size */
    bool goes_on;      /* what stands behind it is of the same function, for certain */
    bool is_target;    /* a direct jump leads to it */
    bool is_ahead;  /* one before it does: what holds there does not rest on what stands between */
    bool is_taken;  /* its address is put into a register, and it is no function: any jump may
                        lead to it */
    uint32_t table; /* 1 + the number of the table through which it jumps, or 0 */
    bool is_split;  /* the same for an address within it: other instructions are there */
    const struct cfi_rule *row; /* the file's own, CFI_NONE where it says nothing; borrowed */
};

/* Whether the file itself says something of it. */
static inline bool code_site_has_row(const struct code_site *site)
{
    return site->row->kind != CFI_NONE;
}

/* To decode an instruction costs as much as to look at it so often. */
#define CODE_DECODE_VISITS 8

/* Whether all offsets of a row can be followed. */
static inline bool code_row_is_near(const struct cfi_rule *row)
{
    return code_is_near(row->cfa_offset) && code_is_near(row->cfa_addend) &&
           code_is_near(row->bp_offset) && code_is_near(row->bx_offset);
}

/* Where an indirect jump leads, by a table of the file. */
struct code_table {
    size_t first; /* among the region's targets */
    size_t count;
};

/* Whether a row of the file says where the caller's frame is, as of a function that was called. */
static inline bool code_row_is_call(const struct cfi_rule *row)
{
    return row->signal_frame == 0 && row->ra_saved == CFI_AT_CFA &&
           row->ra_offset == -CODE_WORD_BYTES && code_row_is_near(row) &&
           (row->kind == CFI_OFFSET || row->kind == CFI_DEREF);
}

/* The direct jumps to an instruction, as a list: each has the one before it to the same place. */
struct code_jump_list {
    uint32_t last;   /* 1 + the number of the last of them, or 0 */
    uint32_t before; /* of a jump: the same for the one before it */
};

/* A stretch of code as a row of instructions. */
struct code_region {
    uint64_t *left_visits; /* how many instructions may still be looked at; borrowed */
    uint64_t start;
    size_t bytes;
    struct code_site *sites;
    size_t site_count;
    bool has_syscall; /* one of them is one */
    uint32_t
        *numbers;   /* for each byte: 1 + the number of the instruction that begins there, or 0 */
    uint8_t *marks; /* one for each site, of the look that is under way */
    struct code_jump_list *jumps; /* the same, and one more */
    struct code_table *tables;
    size_t table_count;
    uint64_t *targets; /* of all tables, each an address of code */
    size_t target_count;
};

/* Counts a round over the region. False: no more may be looked at. */
static inline bool code_region_visit(const struct code_region *region, uint64_t times)
{
    uint64_t visits = times * region->site_count;
    bool is_allowed = visits <= *region->left_visits;
    *region->left_visits -= is_allowed ? visits : *region->left_visits;
    return is_allowed;
}

/*
 * Decodes `bytes` (at most CODE_REGION_BYTES_MAX) of `code` one after the other, afresh where the
 * file says that one begins: at a row or a function. `table` and `starts` are borrowed for as long
 * as the region is used. Returns 0 or -ENOMEM; `*ret` needs code_region_done() after success.
 */
int code_region_init(struct code_region *ret, const uint8_t *code, size_t bytes, uint64_t start,
                     const struct cfi_table *table, const struct code_starts *starts);
void code_region_done(struct code_region *region);

/* The instruction that begins at an address, or NULL. */
static inline const struct code_site *code_region_find(const struct code_region *region,
                                                       uint64_t address)
{
    uint64_t at = address - region->start;
    if (at >= region->bytes || region->numbers[at] == 0) {
        return NULL;
    }
    return &region->sites[region->numbers[at] - 1];
}

/* The table through which an instruction jumps; one without entries where none is known. */
static inline struct code_table code_region_table(const struct code_region *region,
                                                  const struct code_site *site)
{
    return site->table == 0 ? (struct code_table){0, 0} : region->tables[site->table - 1];
}

/* The first instruction of its function, or of the region. */
static inline const struct code_site *code_region_function(const struct code_region *region,
                                                           const struct code_site *site)
{
    return &region->sites[region->numbers[site->function] - 1];
}

static inline size_t code_region_number(const struct code_region *region,
                                        const struct code_site *site)
{
    return (size_t)(site - region->sites);
}

/* What stands behind an instruction without a gap, or NULL. */
static inline const struct code_site *code_region_next(const struct code_region *region,
                                                       const struct code_site *site)
{
    return code_region_number(region, site) + 1 < region->site_count ? site + 1 : NULL;
}

/*
 * Whether flow goes on to what stands behind an instruction. Behind a call that is certain within a
 * function whose end is known, where no jump from before leads there: else the callee might not
 * return, and what stands there be another's, or another way's.
 */
enum code_fall {
    CODE_FALL_NONE,
    CODE_FALL_DOUBTFUL,
    CODE_FALL_CERTAIN,
};
enum code_fall code_region_fall(const struct code_site *site, const struct code_site *next);
