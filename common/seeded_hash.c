/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Words are folded in by a multiplication whose halves meet. The seed is of the 16 random bytes
 * that the kernel gives every process; it is the same for the whole life of the process.
 */
#include "seeded_hash.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>

static uint64_t mix(uint64_t a, uint64_t b)
{
    __uint128_t product = (__uint128_t)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* The seed is kept, since the kernel's list is searched from its front every time. */
static uint64_t process_seed(void)
{
    static _Atomic uint64_t kept; /* 0: not yet */
    uint64_t seed = atomic_load_explicit(&kept, memory_order_relaxed);
    const void *random = seed == 0 ? (const void *)getauxval(AT_RANDOM) : NULL;
    if (random != NULL) {
        memcpy(&seed, random, sizeof seed);
        atomic_store_explicit(&kept, seed, memory_order_relaxed);
    }
    return seed;
}

uint64_t seeded_hash(const void *bytes, size_t size_bytes)
{
    const uint8_t *at = bytes;
    uint64_t seed = process_seed();
    uint64_t hash = seed ^ mix(size_bytes ^ UINT64_C(0x9e3779b97f4a7c15), seed | 1);
    uint64_t word = 0;
    for (; size_bytes >= sizeof word; size_bytes -= sizeof word, at += sizeof word) {
        memcpy(&word, at, sizeof word);
        hash = mix(hash ^ word, UINT64_C(0xa0761d6478bd642f)) + seed;
    }
    word = 0;
    memcpy(&word, at, size_bytes);
    return mix(hash ^ word, UINT64_C(0xe7037ed1a0b428db));
}
