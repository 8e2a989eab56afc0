/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>

/*
 * The word that a mistyped one most likely stands for: the closest, with at most two single-byte
 * insertions, deletions and exchanges and something in common, else the first of which it is a
 * part, or that is a part of it. NULL where none is like it. All borrowed.
 */
const char *suggest_word(const char *typed, const char *const *words, size_t count);
