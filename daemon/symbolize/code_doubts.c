/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Keeps rows until all code of a file was read. A compiler calls its functions, or jumps to them
 * when their frame is gone, but for the parts that it moves away from the rest (`.cold`): these
 * have symbols like functions. An author of assembly may jump to a function in any state, also
 * through a table. The number of kept rows is bounded.
 */
#include "code_doubts.h"

#include "array.h"

#include <stdlib.h>
#include <string.h>

#define ROWS_MAX  ((size_t)1 << 17)
#define JUMPS_MAX ((size_t)1 << 20)

struct doubt {
    uint64_t start, end;
    uint64_t function;
    struct cfi_rule rule;
};

struct code_doubts {
    struct doubt *rows;
    size_t row_count;
    size_t row_capacity;
    uint64_t *jumps; /* where they lead */
    size_t jump_count;
    size_t jump_capacity;
    bool is_anywhere;
};

struct code_doubts *code_doubts_new(void)
{
    return calloc(1, sizeof(struct code_doubts));
}

struct code_doubts *code_doubts_free(struct code_doubts *doubts)
{
    if (doubts != NULL) {
        free(doubts->rows);
        free(doubts->jumps);
        free(doubts);
    }
    return NULL;
}

bool code_doubts_has_room(const struct code_doubts *doubts)
{
    return doubts->row_count < ROWS_MAX;
}

bool code_doubts_has_rows(const struct code_doubts *doubts)
{
    return doubts->row_count > 0;
}

int code_doubts_add(struct code_doubts *doubts, uint64_t start, uint64_t end,
                    const struct cfi_rule *rule, uint64_t function)
{
    struct doubt *last = doubts->row_count == 0 ? NULL : &doubts->rows[doubts->row_count - 1];
    if (last != NULL && last->end == start && last->function == function &&
        memcmp(&last->rule, rule, sizeof *rule) == 0) {
        last->end = end;
        return 0;
    }
    void *rows = doubts->rows;
    int r = array_grow(&rows, &doubts->row_capacity, doubts->row_count + 1, sizeof *doubts->rows);
    doubts->rows = rows;
    if (r == 0) {
        doubts->rows[doubts->row_count++] = (struct doubt){start, end, function, *rule};
    }
    return r;
}

int code_doubts_jump(struct code_doubts *doubts, uint64_t target)
{
    if (doubts->jump_count == JUMPS_MAX) {
        doubts->is_anywhere = true;
        return 0;
    }
    void *jumps = doubts->jumps;
    int r =
        array_grow(&jumps, &doubts->jump_capacity, doubts->jump_count + 1, sizeof *doubts->jumps);
    doubts->jumps = jumps;
    if (r == 0) {
        doubts->jumps[doubts->jump_count++] = target;
    }
    return r;
}

void code_doubts_jump_anywhere(struct code_doubts *doubts)
{
    doubts->is_anywhere = true;
}

static bool is_lower(const void *left, const void *right, const void *userdata)
{
    (void)userdata;
    return *(const uint64_t *)left < *(const uint64_t *)right;
}

/* Whether a jump leads to an address; they are sorted. */
static bool is_jumped_to(const struct code_doubts *doubts, uint64_t address)
{
    size_t low = 0;
    size_t high = doubts->jump_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (doubts->jumps[middle] < address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < doubts->jump_count && doubts->jumps[low] == address;
}

int code_doubts_settle(struct code_doubts *doubts, struct cfi_builder *builder)
{
    static const struct cfi_rule unproved = {.kind = CFI_END};
    int r = array_sort(doubts->jumps, doubts->jump_count, sizeof *doubts->jumps, is_lower, NULL);
    for (size_t i = 0; r == 0 && i < doubts->row_count; i++) {
        const struct doubt *row = &doubts->rows[i];
        bool holds = !doubts->is_anywhere && !is_jumped_to(doubts, row->function);
        r = cfi_builder_add(builder, row->start, row->end, holds ? &row->rule : &unproved);
    }
    return r;
}
