/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/*
 * For how long a session was sampled: the longest time of a CPU, as the books (a text, or NULL)
 * have it. `otherwise_ns` where they do not say, as where the ticks are not listed by CPU.
 */
uint64_t recording_length_ns(const char *books_json, uint64_t otherwise_ns);
