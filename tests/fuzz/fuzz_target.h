/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* What a replay reads of a file at the most. */
#define FUZZ_INPUT_BYTES_MAX ((size_t)1 << 20)

/* Every fuzz target defines it; it returns 0, and aborts when its property does not hold. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
