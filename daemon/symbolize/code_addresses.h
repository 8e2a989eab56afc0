/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cfi_table.h"
#include "code_doubts.h"

/* Where code is looked at in parts, they share so many bytes. */
#define CODE_ADDRESSES_SHARED_BYTES ((size_t)8192)

/*
 * Notes in `doubts` of which functions code with call frames at `start` has the address while it
 * may jump there with a frame. `is_fixed`: numbers in the code may be addresses. To be called when
 * all rows were added to `doubts`. Returns 0 or -ENOMEM.
 */
int code_addresses_note(const uint8_t *code, size_t bytes, uint64_t start, bool is_fixed,
                        const struct cfi_table *table, struct code_doubts *doubts);
