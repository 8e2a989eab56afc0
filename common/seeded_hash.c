/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The key is drawn from the kernel before main() begins, and never changes: no hash has to ask
 * whether there is one. A process that is forked without an exec has its parent's.
 */
#include "seeded_hash.h"

#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>

uint64_t seeded_hash_key[2];

/* Early in a boot there may be nothing to draw from: then the 16 bytes that each process was given
 * at its start have to do. */
__attribute__((constructor)) static void draw_key(void)
{
    const void *given = (const void *)getauxval(AT_RANDOM);
    ssize_t drawn_bytes = getrandom(seeded_hash_key, sizeof seeded_hash_key, GRND_NONBLOCK);
    if (drawn_bytes != (ssize_t)sizeof seeded_hash_key && given != NULL) {
        memcpy(seeded_hash_key, given, sizeof seeded_hash_key);
    }
}

struct state {
    uint64_t v[4];
};

static uint64_t rotate(uint64_t word, unsigned bits)
{
    return word << bits | word >> (64 - bits);
}

static void mix_round(struct state *s)
{
    s->v[0] += s->v[1];
    s->v[2] += s->v[3];
    s->v[1] = rotate(s->v[1], 13) ^ s->v[0];
    s->v[3] = rotate(s->v[3], 16) ^ s->v[2];
    s->v[0] = rotate(s->v[0], 32);
    s->v[2] += s->v[1];
    s->v[0] += s->v[3];
    s->v[1] = rotate(s->v[1], 17) ^ s->v[2];
    s->v[3] = rotate(s->v[3], 21) ^ s->v[0];
    s->v[2] = rotate(s->v[2], 32);
}

static void take_word(struct state *s, uint64_t word)
{
    s->v[3] ^= word;
    mix_round(s);
    s->v[0] ^= word;
}

uint64_t seeded_hash(const void *bytes, size_t size_bytes)
{
    const uint64_t *k = seeded_hash_key;
    const uint8_t *at = bytes;
    struct state s = {{k[0] ^ UINT64_C(0x736f6d6570736575), k[1] ^ UINT64_C(0x646f72616e646f6d),
                       k[0] ^ UINT64_C(0x6c7967656e657261), k[1] ^ UINT64_C(0x7465646279746573)}};
    uint64_t last = (uint64_t)size_bytes << 56;
    uint64_t word = 0;
    for (; size_bytes >= sizeof word; size_bytes -= sizeof word, at += sizeof word) {
        memcpy(&word, at, sizeof word);
        take_word(&s, word);
    }
    for (size_t i = 0; i < size_bytes; i++) {
        last |= (uint64_t)at[i] << (8 * i);
    }
    take_word(&s, last);
    s.v[2] ^= 0xff;
    for (int i = 0; i < 3; i++) {
        mix_round(&s);
    }
    return s.v[0] ^ s.v[1] ^ s.v[2] ^ s.v[3];
}

/* The two halves of a product as one word, in which each bit depends on all of both factors. */
static uint64_t fold_product(uint64_t a, uint64_t b)
{
    __uint128_t product = (__uint128_t)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t seeded_hash_of_file(const void *bytes, size_t size_bytes)
{
    const uint64_t *k = seeded_hash_key;
    const uint8_t *at = bytes;
    uint64_t hash = k[0] ^ fold_product(size_bytes ^ k[1], UINT64_C(0x9e3779b97f4a7c15));
    uint64_t other = k[1];
    uint64_t words[4];
    for (; size_bytes >= sizeof words; size_bytes -= sizeof words, at += sizeof words) {
        memcpy(words, at, sizeof words);
        hash = fold_product(words[0] ^ hash, words[1] ^ k[1]);
        other = fold_product(words[2] ^ other, words[3] ^ k[0]);
    }
    for (; size_bytes >= sizeof words[0]; size_bytes -= sizeof words[0], at += sizeof words[0]) {
        memcpy(words, at, sizeof words[0]);
        hash = fold_product(words[0] ^ hash, UINT64_C(0xa0761d6478bd642f) ^ k[1]);
    }
    if (size_bytes > 0) {
        words[0] = 0;
        memcpy(words, at, size_bytes);
        hash = fold_product(words[0] ^ hash, UINT64_C(0xe7037ed1a0b428db) ^ k[1]);
    }
    return fold_product(hash ^ k[0], other ^ UINT64_C(0xd6e8feb86659fd93));
}
