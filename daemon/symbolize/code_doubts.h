/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cfi_table.h"

/*
 * Rows of functions that nothing in their own code shows to be called, only a symbol, or what was
 * decoded as a call. They hold unless other code of the file jumps there with another stack; all of
 * it has to be read before they are settled.
 */
struct code_doubts;

struct code_doubts *code_doubts_new(void);
struct code_doubts *code_doubts_free(struct code_doubts *doubts);

/* Whether it can keep another row. */
bool code_doubts_has_room(const struct code_doubts *doubts);
bool code_doubts_has_rows(const struct code_doubts *doubts);

/* Keeps a rule (copied) for [start, end), of the function that begins at `function`. This and the
 * next four return 0 or -ENOMEM. */
int code_doubts_add(struct code_doubts *doubts, uint64_t start, uint64_t end,
                    const struct cfi_rule *rule, uint64_t function);

/* A call that is executed leads to an address. */
int code_doubts_call(struct code_doubts *doubts, uint64_t target);

/* As a target: a jump may lead anywhere. */
#define CODE_DOUBTS_ANYWHERE UINT64_MAX

/* A jump leads to an address, where the stack is not as at a call. */
int code_doubts_jump(struct code_doubts *doubts, uint64_t target);

/* Whether rows are kept of a function that begins at an address; all were added, in order. */
bool code_doubts_has_function(const struct code_doubts *doubts, uint64_t function);
/* What code_doubts_has_function() is false outside of; false: there are no rows. */
bool code_doubts_range(const struct code_doubts *doubts, uint64_t *ret_first, uint64_t *ret_last);

/* Whether it matters which functions code has the address of: where a jump may lead anywhere, only
 * a call proves a row. */
bool code_doubts_asks_for_pointers(const struct code_doubts *doubts);

/* Data or code has the address of a function: a jump through it may lead there. */
int code_doubts_point(struct code_doubts *doubts, uint64_t function);

/* The function at an address goes on at another with the stack that it was entered with. */
int code_doubts_pass(struct code_doubts *doubts, uint64_t function, uint64_t target);

/* Adds the rows that hold, and for the others such that end the stack. Returns as
 * cfi_builder_add(). */
int code_doubts_settle(struct code_doubts *doubts, struct cfi_builder *builder);
