/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cfi_table.h"

#include <stddef.h>
#include <stdint.h>

/*
 * A function that goes on in another frame than its caller's, as C++'s unwinder does when it has
 * found a handler, writes what that frame needs over what its own has saved. Its call-frame
 * information does not say so. Adds rows of CFI_END where nothing tells its caller any more, for a
 * function whose `code` of `bytes` (borrowed) begins at `start`. One that does not end so gets
 * none. Returns as cfi_builder_add().
 */
int code_resumers_add(const uint8_t *code, size_t bytes, uint64_t start,
                      struct cfi_builder *builder);
