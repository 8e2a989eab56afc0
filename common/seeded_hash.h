/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * A hash of `bytes` (borrowed) that is another one in each process: whoever chooses the bytes
 * (names of threads, paths, a file) does not know which of them meet in one bucket.
 */
uint64_t seeded_hash(const void *bytes, size_t size_bytes);
