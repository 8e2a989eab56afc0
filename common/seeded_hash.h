/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Hashes under a key that is random in each process: a user that chooses the hashed bytes (names,
 * paths, addresses, pids, inodes) cannot know which of them share a bucket. Every table whose key
 * a user chooses takes its place from here. The values mean nothing in another process.
 */

/* SipHash-1-3 of `bytes` (borrowed). */
uint64_t seeded_hash(const void *bytes, size_t size_bytes);

/*
 * A faster one, of two words. For lookups that each frame of a sample makes, and for small keys. A
 * user that can measure single lookups may learn the key, so a table of chains whose length only
 * the hash bounds takes seeded_hash().
 */
uint64_t seeded_hash_pair(uint64_t a, uint64_t b);
