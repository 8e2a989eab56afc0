/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The key is drawn from the kernel once, by the first hash of the process, and never changes.
 */
#include "seeded_hash.h"

#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>

static struct {
    pthread_once_t once;
    uint64_t words[2];
} key = {.once = PTHREAD_ONCE_INIT};

/* Early in a boot there may be nothing to draw from: then the 16 bytes that each process was given
 * at its start have to do. */
static void draw_key(void)
{
    const void *given = (const void *)getauxval(AT_RANDOM);
    if (getrandom(key.words, sizeof key.words, GRND_NONBLOCK) != (ssize_t)sizeof key.words &&
        given != NULL) {
        memcpy(key.words, given, sizeof key.words);
    }
}

static const uint64_t *get_key(void)
{
    (void)pthread_once(&key.once, draw_key);
    return key.words;
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
    const uint64_t *k = get_key();
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

static uint64_t fold(uint64_t a, uint64_t b)
{
    __uint128_t product = (__uint128_t)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t seeded_hash_pair(uint64_t a, uint64_t b)
{
    const uint64_t *k = get_key();
    uint64_t first = fold(a ^ k[0], UINT64_C(0x9e3779b97f4a7c15));
    return fold(first ^ k[1], b ^ k[0] ^ UINT64_C(0xd6e8feb86659fd93));
}
