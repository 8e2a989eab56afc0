/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Keeps rows until all code of a file was read. A compiler calls its functions, or jumps to them
 * when their frame is gone, but for the parts that it moves away from the rest (`.cold`): these
 * have symbols like functions. An author of assembly may jump to a function in any state, also
 * through a table, and that function may pass its stack on. Code with call frames, which is not
 * looked at, may do so by pointers. A row holds if no jump that is known leads to its function, and
 * if none may lead anywhere and no pointer leads there, or a call does. What is kept is bounded.
 */
#include "code_doubts.h"

#include "array.h"

#include <stdlib.h>
#include <string.h>

#define ROWS_MAX      ((size_t)1 << 17)
#define ADDRESSES_MAX ((size_t)1 << 19) /* of each kind */

struct doubt {
    uint64_t start, end;
    uint64_t function;
    struct cfi_rule rule;
};

/* A function, and where it goes on. */
struct pass {
    uint64_t function; /* first: they are sorted by it */
    uint64_t target;
};

struct addresses {
    uint64_t *all;
    size_t count;
    size_t capacity;
};

struct code_doubts {
    struct doubt *rows;
    size_t row_count;
    size_t row_capacity;
    struct addresses functions; /* of the rows, in their order, each once */
    struct addresses calls;     /* where they lead, as the next */
    struct addresses jumps;
    struct addresses pointers;
    struct pass *passes;
    size_t pass_count;
    size_t pass_capacity;
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
        free(doubts->functions.all);
        free(doubts->calls.all);
        free(doubts->jumps.all);
        free(doubts->pointers.all);
        free(doubts->passes);
        free(doubts);
    }
    return NULL;
}

static int add_address(struct addresses *addresses, uint64_t address)
{
    void *all = addresses->all;
    int r = array_grow(&all, &addresses->capacity, addresses->count + 1, sizeof *addresses->all);
    addresses->all = all;
    if (r == 0) {
        addresses->all[addresses->count++] = address;
    }
    return r;
}

/* Whether one of them lies from `start` on and before `end`; they are sorted. */
static bool has_within(const struct addresses *addresses, uint64_t start, uint64_t end)
{
    size_t low = 0;
    size_t high = addresses->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (addresses->all[middle] < start) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < addresses->count && addresses->all[low] < end;
}

bool code_doubts_has_room(const struct code_doubts *doubts)
{
    return doubts->row_count < ROWS_MAX;
}

bool code_doubts_has_rows(const struct code_doubts *doubts)
{
    return doubts->row_count > 0;
}

bool code_doubts_asks_for_pointers(const struct code_doubts *doubts)
{
    return doubts->row_count > 0 && !doubts->is_anywhere;
}

bool code_doubts_range(const struct code_doubts *doubts, uint64_t *ret_first, uint64_t *ret_last)
{
    if (doubts->row_count == 0) {
        return false;
    }
    *ret_first = doubts->rows[0].function;
    *ret_last = doubts->rows[doubts->row_count - 1].function;
    return true;
}

bool code_doubts_has_function(const struct code_doubts *doubts, uint64_t function)
{
    return has_within(&doubts->functions, function, function + 1);
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
    int r =
        last != NULL && last->function == function ? 0 : add_address(&doubts->functions, function);
    if (r < 0) {
        return r;
    }
    void *rows = doubts->rows;
    r = array_grow(&rows, &doubts->row_capacity, doubts->row_count + 1, sizeof *doubts->rows);
    doubts->rows = rows;
    if (r == 0) {
        doubts->rows[doubts->row_count++] = (struct doubt){start, end, function, *rule};
    }
    return r;
}

int code_doubts_call(struct code_doubts *doubts, uint64_t target)
{
    return doubts->calls.count < ADDRESSES_MAX ? add_address(&doubts->calls, target) : 0;
}

int code_doubts_jump(struct code_doubts *doubts, uint64_t target)
{
    if (target == CODE_DOUBTS_ANYWHERE || doubts->jumps.count == ADDRESSES_MAX) {
        doubts->is_anywhere = true;
        return 0;
    }
    return add_address(&doubts->jumps, target);
}

int code_doubts_point(struct code_doubts *doubts, uint64_t function)
{
    const struct addresses *pointers = &doubts->pointers;
    if (pointers->count > 0 && pointers->all[pointers->count - 1] == function) {
        return 0;
    }
    if (pointers->count == ADDRESSES_MAX) {
        doubts->is_anywhere = true;
        return 0;
    }
    return add_address(&doubts->pointers, function);
}

int code_doubts_pass(struct code_doubts *doubts, uint64_t function, uint64_t target)
{
    if (doubts->pass_count == ADDRESSES_MAX) {
        doubts->is_anywhere = true;
        return 0;
    }
    void *passes = doubts->passes;
    int r =
        array_grow(&passes, &doubts->pass_capacity, doubts->pass_count + 1, sizeof *doubts->passes);
    doubts->passes = passes;
    if (r == 0) {
        doubts->passes[doubts->pass_count++] = (struct pass){function, target};
    }
    return r;
}

static int sort(struct addresses *addresses)
{
    size_t count = 0;
    int r =
        array_sort_by_number(addresses->all, addresses->count, sizeof *addresses->all, NULL, NULL);
    for (size_t i = 0; r == 0 && i < addresses->count; i++) {
        if (count == 0 || addresses->all[count - 1] != addresses->all[i]) {
            addresses->all[count++] = addresses->all[i];
        }
    }
    addresses->count = r == 0 ? count : addresses->count;
    return r;
}

/* The first that the function at an address passes its stack to, or its place among all. */
static size_t first_pass(const struct code_doubts *doubts, uint64_t function)
{
    size_t low = 0;
    size_t high = doubts->pass_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (doubts->passes[middle].function < function) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* What is jumped to passes its stack on. Each pass is followed once: it is gone then. */
static int follow_passes(struct code_doubts *doubts)
{
    int r = array_sort_by_number(doubts->passes, doubts->pass_count, sizeof *doubts->passes, NULL,
                                 NULL);
    for (size_t i = 0; r == 0 && i < doubts->jumps.count; i++) {
        uint64_t function = doubts->jumps.all[i];
        size_t at = first_pass(doubts, function);
        for (; r == 0 && at < doubts->pass_count && doubts->passes[at].function == function; at++) {
            uint64_t target = doubts->passes[at].target;
            doubts->passes[at].target = function;
            r = target != function ? code_doubts_jump(doubts, target) : 0;
        }
    }
    return r;
}

/* Behind the last of the rows of one function, which were added in their order. */
static size_t rows_end(const struct code_doubts *doubts, size_t first)
{
    size_t at = first + 1;
    while (at < doubts->row_count && doubts->rows[at].function == doubts->rows[first].function) {
        at++;
    }
    return at;
}

/* Whether the rows of a function hold, of which these are the first and the last. */
static bool does_hold(const struct code_doubts *doubts, const struct doubt *first,
                      const struct doubt *last)
{
    uint64_t function = first->function;
    bool is_called = has_within(&doubts->calls, function, function + 1);
    bool is_pointed = has_within(&doubts->pointers, function, function + 1);
    return ((!doubts->is_anywhere && !is_pointed) || is_called) &&
           !has_within(&doubts->jumps, function, last->end);
}

int code_doubts_settle(struct code_doubts *doubts, struct cfi_builder *builder)
{
    static const struct cfi_rule unproved = {.kind = CFI_END};
    int r = sort(&doubts->calls);
    if (r == 0) {
        r = sort(&doubts->jumps);
    }
    if (r == 0) {
        r = sort(&doubts->pointers);
    }
    if (r == 0) {
        r = follow_passes(doubts);
    }
    if (r == 0) {
        r = sort(&doubts->jumps);
    }
    for (size_t i = 0; r == 0 && i < doubts->row_count;) {
        size_t behind = rows_end(doubts, i);
        bool holds = does_hold(doubts, &doubts->rows[i], &doubts->rows[behind - 1]);
        for (; r == 0 && i < behind; i++) {
            const struct doubt *row = &doubts->rows[i];
            if (holds || !cfi_rule_is_framed(&row->rule)) {
                r = cfi_builder_add(builder, row->start, row->end, holds ? &row->rule : &unproved);
            }
        }
    }
    return r;
}
