/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cfi_table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Which registers a function leaves alone up to its return, beside those that rows tell of. A CFA
 * rests on such a register where assembly keeps its old stack pointer in one that the ABI gives to
 * callees, and calls only functions that it knows not to use it: OpenSSL's AES-GCM does with rax.
 */

/* A function that has more than that keeps nothing. */
#define KEPT_BYTES_MAX        ((size_t)16384)
#define KEPT_INSTRUCTIONS_MAX ((size_t)2048)

struct kept_registers;

struct kept_registers *kept_registers_new(void);
struct kept_registers *kept_registers_free(struct kept_registers *kept);

/* A call of the function at `callee` stands where the CFA rests on this register. Of such calls a
 * bounded number is known, the first ones. */
void kept_registers_want(struct kept_registers *kept, uint64_t callee, unsigned int number);

/* To be called when all of them are known. Returns 0 or -ENOMEM. */
int kept_registers_sort_callees(struct kept_registers *kept);

/* These functions, each once, by a number from 0 on; false: there are no more. */
bool kept_registers_find_callee(const struct kept_registers *kept, size_t number,
                                uint64_t *ret_callee);

/*
 * Follows the flow of that function, whose `code` of `bytes` (borrowed; more than
 * KEPT_BYTES_MAX are not looked at) begins at its address, and notes which of the wanted
 * registers none of its instructions changes. Where it calls, or goes on beyond these bytes, none
 * is kept. Returns how many instructions were looked at.
 */
size_t kept_registers_follow(struct kept_registers *kept, size_t number, const uint8_t *code,
                             size_t bytes);

/* To be called after the last function was followed, and before any address is asked for. Returns 0
 * or -ENOMEM. */
int kept_registers_sort(struct kept_registers *kept);

/* Which registers hold at the instruction at this address what they hold when its function returns;
 * a bit for each. */
uint32_t kept_registers_find(const struct kept_registers *kept, uint64_t address);

/* Adds the rows that `table` has for those instructions, with what is kept. Returns as
 * cfi_builder_add(). */
int kept_registers_add_rows(const struct kept_registers *kept, const struct cfi_table *table,
                            struct cfi_builder *builder);
