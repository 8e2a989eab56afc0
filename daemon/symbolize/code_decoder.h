/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "code_effect.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decodes the instruction at the beginning of `code`, whose address is `address`. Bytes that are no
 * instruction are one of a byte, CODE_END. */
struct code_effect code_decode(const uint8_t *code, size_t bytes, uint64_t address);

/* The same, by Zydis alone, which knows all instructions and takes ten times as long. */
struct code_effect code_decode_any(const uint8_t *code, size_t bytes, uint64_t address);

/* Whether it is all of what fills the room between functions. */
bool code_is_padding(const uint8_t *code, size_t bytes);

/* The bytes of the instruction at the beginning of `code`, and what it calls directly, or 0: for a
 * first look, which is faster. */
size_t code_skip(const uint8_t *code, size_t bytes, uint64_t address, uint64_t *ret_callee);

/* The same, by Zydis alone. */
size_t code_skip_any(const uint8_t *code, size_t bytes, uint64_t address, uint64_t *ret_callee);
