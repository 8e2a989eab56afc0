/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cfi_table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Finds the registers that a function does not change up to its return. Some assembly keeps its old
 * stack pointer in a register that callees may change by the ABI, and calls only functions of its
 * own, which do not change it: OpenSSL's AES-GCM uses rax so. Its callers' CFA rests on that
 * register.
 */

/* Limits of a function; a larger one keeps no registers. */
#define KEPT_BYTES_MAX        ((size_t)16384)
#define KEPT_INSTRUCTIONS_MAX ((size_t)2048)

struct kept_registers;

struct kept_registers *kept_registers_new(void);
struct kept_registers *kept_registers_free(struct kept_registers *kept);

/* The function at `callee` is called where the CFA rests on register `number`. A bounded number of
 * such calls is kept, the first ones. */
void kept_registers_want(struct kept_registers *kept, uint64_t callee, unsigned int number);

/* To be called after the last kept_registers_want(). Returns 0 or -ENOMEM. */
int kept_registers_sort_callees(struct kept_registers *kept);

/* The wanted functions, each once, by a number from 0 on; false: there are no more. */
bool kept_registers_find_callee(const struct kept_registers *kept, size_t number,
                                uint64_t *ret_callee);

/*
 * Follows the control flow of the function `number`, whose `code` of `bytes` (borrowed) begins at
 * its address, and notes which of the wanted registers no instruction changes. If the function
 * calls, or goes on beyond these bytes or KEPT_BYTES_MAX, no register is kept. Returns the number
 * of instructions that were decoded.
 */
size_t kept_registers_follow(struct kept_registers *kept, size_t number, const uint8_t *code,
                             size_t bytes);

/* To be called after the last kept_registers_follow(). Returns 0 or -ENOMEM. */
int kept_registers_sort(struct kept_registers *kept);

/* The registers that no instruction from this one to the function's return changes; a bit for each.
 */
uint32_t kept_registers_find(const struct kept_registers *kept, uint64_t address);

/* Adds the rows of `table` for these instructions once more, with their kept registers. Returns as
 * cfi_builder_add(). */
int kept_registers_add_rows(const struct kept_registers *kept, const struct cfi_table *table,
                            struct cfi_builder *builder);
