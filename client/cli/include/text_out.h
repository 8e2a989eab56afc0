/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Every text that profctl did not write itself goes through here on its way to a terminal, or to a
 * file that is shown on one: names in a recording, a config, a file's name, what the daemon
 * answers. Control characters (utf8_is_control()) and bytes that are not UTF-8 are printed as '?'.
 * JSON goes through json_out.h, which escapes the same characters.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

void text_print(FILE *file, const char *text);
void text_print_bytes(FILE *file, const char *text, size_t text_bytes);

/* Prints a label in 20 columns and the text behind it, on an indented line. */
void text_print_member(FILE *file, const char *label, const char *text);

/* Prints the text as a shell takes it: in quotes where it needs them. */
void text_print_argument(FILE *file, const char *text);

/* Prints the text and pads it with spaces to `width` columns. A character takes one, two as those
 * of Chinese, or none as an accent that is put over another. */
void text_print_padded(FILE *file, const char *text, size_t width);

/*
 * The same in exactly `width` columns: of a longer text the middle is left out, and "..." stands
 * for it. `is_padded` false: there are no spaces behind it, and it may be shorter.
 */
void text_print_fitted(FILE *file, const char *text, size_t width, bool is_padded);

/* How many columns the text takes. */
size_t text_width(const char *text);

/* How many bytes those of its first characters have that fit into `columns`. */
size_t text_bytes_of(const char *text, size_t columns);

/*
 * What a sampling period means, for a person: ", one every 0.250213 ms of a CPU (3996.6 Hz)"; ""
 * for 0. `into` has room for TEXT_RATE_BYTES; returns it.
 */
#define TEXT_RATE_BYTES ((size_t)80)
const char *text_rate(uint64_t period_ns, char *into);

/* A number of samples for a person: "1 sample", "2 samples". `into` has room for TEXT_COUNT_BYTES;
 * returns it. */
#define TEXT_COUNT_BYTES ((size_t)32)
const char *text_samples(uint64_t count, char *into);

/*
 * An amount of a unit for a person: "30,000 faults", "1 fault"; of "ns" a time: "12.300 s". Returns
 * `into`, to which a unit that is too long is cut.
 */
const char *text_amount(uint64_t amount, const char *unit, char *into, size_t capacity);

/* An amount of bytes for a person: "12.3 MiB". `into` has room for 32 bytes; returns it. */
const char *text_size(uint64_t size_bytes, char *into);
