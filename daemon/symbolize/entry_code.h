/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The longest entry that is known is that of glibc's dynamic linker for 32 bits, with 76 bytes. */
#define ENTRY_CODE_BYTES_MAX ((size_t)96)

struct entry_code {
    size_t size_bytes; /* 0: none of the code, which is a function with a caller */
    bool begins_stack; /* it does with the frame pointer what no function does that has a caller */
};

/*
 * How much of `code`, at `address`, belongs to an entry that begins there, of which at most
 * ENTRY_CODE_BYTES_MAX are looked at. The caller ends `code` where something else begins.
 */
struct entry_code entry_code_follow(const uint8_t *code, size_t bytes, uint64_t address,
                                    bool is_32bit);
