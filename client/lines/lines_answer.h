/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The child's answers, made and checked. A hostile file may have taken the child over, so all of an
 * answer is checked before use. Pure.
 */

#include "demangle.h"
#include "disassembly.h"
#include "function_ranges.h"
#include "inlines.h"
#include "lines_dwarf.h"
#include "lines_wire.h"

#include <stdbool.h>

/* An answer to LINES_READ has no more than this. */
#define LINES_ANSWER_BYTES_MAX ((size_t)256 << 20)

/* Whether an answer to LINES_OPEN is well formed. */
bool lines_about_is_sound(const struct lines_about *about);

/* Whether an answer to LINES_FUNCTIONS is one for these addresses: each range holds its address, or
 * is 0 and 0. */
bool lines_ranges_are_sound(const uint64_t *vaddrs, const struct function_range *ranges,
                            size_t count);

/* Whether an answer to LINES_CODE is one for that range: its addresses rise and lie in it, and each
 * text ends. */
bool lines_code_is_sound(uint64_t start, uint64_t end, const struct disassembly_line *lines,
                         size_t count);

/*
 * How many bytes follow the header of an answer for so many addresses. Returns 0, or -EBADMSG: they
 * are too many, or not for these addresses, or the child could not read the file.
 */
int lines_answer_size(const struct lines_answer_header *header, size_t address_count,
                      size_t *ret_bytes);

/*
 * Adds an answer's frames to the table, their names as `demangler` makes them, and their texts to
 * `texts`. `body` (borrowed, 8-byte aligned) has as many bytes as lines_answer_size() says. Sets
 * the chain of each address. Returns 0; -EBADMSG: the answer contradicts itself; -ENOMEM. After an
 * error no chain holds.
 */
int lines_answer_take(const struct lines_answer_header *header, const void *body,
                      struct demangler *demangler, struct intern *texts, struct inlines *table,
                      struct inline_chain *ret_chains);

/*
 * Makes an answer, header and all, of what lines_dwarf_read() found. Returned: free(). Returns 0;
 * -EBADMSG: it would be too large; -ENOMEM.
 */
int lines_answer_make(const struct lines_address *addresses, size_t address_count,
                      const struct intern *texts, const struct inlines *table, void **ret,
                      size_t *ret_bytes);
