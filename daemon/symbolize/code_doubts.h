/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cfi_table.h"

/*
 * Rows of functions that nothing in their own code shows to be called, only a symbol. They hold
 * unless other code of the file jumps there with another stack; all of it has to be read before
 * they are settled.
 */
struct code_doubts;

struct code_doubts *code_doubts_new(void);
struct code_doubts *code_doubts_free(struct code_doubts *doubts);

/* Whether it can keep another row. */
bool code_doubts_has_room(const struct code_doubts *doubts);
bool code_doubts_has_rows(const struct code_doubts *doubts);

/* Keeps a rule (copied) for [start, end), of the function that begins at `function`. Returns 0 or
 * -ENOMEM. */
int code_doubts_add(struct code_doubts *doubts, uint64_t start, uint64_t end,
                    const struct cfi_rule *rule, uint64_t function);

/* A jump leads to an address, where the stack is not as at a call. Returns 0 or -ENOMEM. */
int code_doubts_jump(struct code_doubts *doubts, uint64_t target);

/* A jump may lead anywhere with such a stack: no symbol shows anything any more. */
void code_doubts_jump_anywhere(struct code_doubts *doubts);

/* Adds the rows that hold, and for the others such that end the stack. Returns as
 * cfi_builder_add(). */
int code_doubts_settle(struct code_doubts *doubts, struct cfi_builder *builder);
