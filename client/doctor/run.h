/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Runs a program that is found by PATH, without input, for `limit_ms` at the most,
 * and has the begin of what it prints in `into`. Returns its exit status, or -errno: -ENOENT where
 * there is no such program, -ETIMEDOUT, -ECHILD when a signal ended it.
 */
#define RUN_LIMIT_MS 3000
int ask_program(const char *const *arguments, uint64_t limit_ms, char *into, size_t capacity_bytes);
