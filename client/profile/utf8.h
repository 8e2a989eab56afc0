/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Texts in a recording should be UTF-8, but a recording may come from anybody. Pure.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The length of the valid UTF-8 character at `text`, 1 to 4; 0 when there is none (`size_bytes` 0
 * included). `*ret_character` is set where it is not NULL. */
size_t utf8_character(const char *text, size_t size_bytes, uint32_t *ret_character);

bool utf8_is_valid(const char *text, size_t size_bytes);
