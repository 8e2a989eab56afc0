/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Hashes under a key that is random in each process: a user that chooses the hashed bytes (names,
 * paths, addresses, pids, inodes) cannot know which of them share a bucket. Every table whose key
 * a user chooses takes its place from here. The values mean nothing in another process.
 */

/* The key of this process, which never changes once main() has begun. For seeded_hash_pair(). */
extern uint64_t seeded_hash_key[2];

/* SipHash-1-3 of `bytes` (borrowed). */
uint64_t seeded_hash(const void *bytes, size_t size_bytes);

/*
 * A fourth of its work, for a program that reads a file: what the file's author chose is there
 * before the key is, and the author cannot measure a lookup to learn about it.
 */
uint64_t seeded_hash_of_file(const void *bytes, size_t size_bytes);

/*
 * A faster one, of two words. For lookups that each frame of a sample makes, and for small keys. A
 * user that can measure single lookups may learn the key, so a table of chains whose length only
 * the hash bounds takes seeded_hash().
 */
static inline uint64_t seeded_hash_pair(uint64_t a, uint64_t b)
{
    __uint128_t first = (__uint128_t)(a ^ seeded_hash_key[0]) * UINT64_C(0x9e3779b97f4a7c15);
    uint64_t folded = (uint64_t)first ^ (uint64_t)(first >> 64);
    __uint128_t second = (__uint128_t)(folded ^ seeded_hash_key[1]) *
                         (b ^ seeded_hash_key[0] ^ UINT64_C(0xd6e8feb86659fd93));
    return (uint64_t)second ^ (uint64_t)(second >> 64);
}
