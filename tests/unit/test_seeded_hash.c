/* SPDX-License-Identifier: Apache-2.0 */

/*
 * That keys which a user chooses do not meet: structured ones, and those that met under the hashes
 * that such tables had before they were seeded. And that another process has another hash.
 */
#include "seeded_hash.h"
#include "unit_test.h"

#include <sys/wait.h>
#include <unistd.h>

#define SAY_HASHES "--say-hashes"

#define KEYS   ((size_t)65536)
#define PLACES ((size_t)65536)

/*
 * With as many keys as places the fullest place of a random function holds 9 or so. More than 20
 * have a chance of less than 65536 / 20! < 1e-13, whatever the seed.
 */
#define FULLEST_MAX 20

typedef uint64_t (*key_fn)(size_t index);

/* The three hashes, of one word. */
static uint64_t hash_whole(uint64_t word)
{
    return seeded_hash(&word, sizeof word);
}

static uint64_t hash_of_file(uint64_t word)
{
    return seeded_hash_of_file(&word, sizeof word);
}

static uint64_t hash_pair(uint64_t word)
{
    return seeded_hash_pair(word, 7);
}

static size_t count_fullest(key_fn key, uint64_t (*hash_word)(uint64_t), unsigned shift)
{
    uint32_t *counts = calloc(PLACES, sizeof *counts);
    size_t fullest = 0;
    assert_non_null(counts);
    for (size_t i = 0; i < KEYS; i++) {
        size_t count = ++counts[(hash_word(key(i)) >> shift) % PLACES];
        fullest = count > fullest ? count : fullest;
    }
    free(counts);
    return fullest;
}

static uint64_t next(size_t index)
{
    return index;
}

static uint64_t page(size_t index)
{
    return (uint64_t)index << 12;
}

static uint64_t high(size_t index)
{
    return (uint64_t)index << 48;
}

/* They had the same upper bits when multiplied by 0x9E3779B97F4A7C15: small multiples of its
 * inverse. */
static uint64_t times_inverse(size_t index)
{
    return (uint64_t)index * UINT64_C(0xF1DE83E19937733D);
}

TEST(spreads_what_a_user_chooses)
{
    static const key_fn keys[] = {next, page, high, times_inverse};
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        for (unsigned shift = 0; shift <= 48; shift += 16) {
            assert_true(count_fullest(keys[i], hash_whole, shift) <= FULLEST_MAX);
            assert_true(count_fullest(keys[i], hash_of_file, shift) <= FULLEST_MAX);
            assert_true(count_fullest(keys[i], hash_pair, shift) <= FULLEST_MAX);
        }
    }
}

static uint64_t fnv(const char *text)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (; *text != '\0'; text++) {
        hash = (hash ^ (uint8_t)*text) * UINT64_C(1099511628211);
    }
    return hash ^ hash >> 32;
}

TEST(spreads_names_that_met_under_fnv)
{
    uint32_t counts[256] = {0};
    char text[16];
    size_t found = 0;
    for (unsigned i = 0; found < 256; i++) {
        (void)snprintf(text, sizeof text, "n%x", i);
        if ((fnv(text) & 255) == 0) {
            found++;
            assert_true(++counts[seeded_hash(text, strlen(text)) % 256] <= FULLEST_MAX);
        }
    }
}

static void check_takes_all(uint64_t (*hash)(const void *bytes, size_t size_bytes))
{
    static const uint8_t zeros[32];
    uint64_t seen[33];
    for (size_t bytes = 0; bytes <= sizeof zeros; bytes++) {
        seen[bytes] = hash(zeros, bytes);
        for (size_t i = 0; i < bytes; i++) {
            assert_true(seen[i] != seen[bytes]);
            uint8_t other[sizeof zeros] = {0};
            other[i] = 1;
            assert_true(hash(other, bytes) != seen[bytes]);
        }
        assert_true(hash(zeros, bytes) == seen[bytes]);
    }
}

TEST(takes_every_byte_and_the_length)
{
    check_takes_all(seeded_hash);
    check_takes_all(seeded_hash_of_file);
    assert_true(seeded_hash_pair(1, 2) != seeded_hash_pair(2, 1));
    assert_true(seeded_hash_pair(1, 2) == seeded_hash_pair(1, 2));
}

/* By an implementation that gives the published vectors of SipHash-2-4. */
TEST(is_siphash_1_3)
{
    static const uint8_t bytes[15] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
    const uint64_t key[] = {seeded_hash_key[0], seeded_hash_key[1]};
    seeded_hash_key[0] = UINT64_C(0x0706050403020100);
    seeded_hash_key[1] = UINT64_C(0x0f0e0d0c0b0a0908);
    assert_int_equal(seeded_hash(bytes, sizeof bytes), UINT64_C(0xd320d86d2a519956));
    assert_int_equal(seeded_hash(bytes, 0), UINT64_C(0xabac0158050fc4dc));
    memcpy(seeded_hash_key, key, sizeof key);
}

struct hashes {
    uint64_t whole, of_file, pair;
};

static struct hashes say_hashes(void)
{
    return (struct hashes){seeded_hash("a", 1), seeded_hash_of_file("a", 1),
                           seeded_hash_pair(1, 2)};
}

/* Another execution of this program has a key of its own. */
TEST(differs_in_another_process)
{
    int ends[2];
    struct hashes all[3] = {say_hashes()};
    assert_int_equal(pipe(ends), 0);
    for (size_t i = 1; i < 3; i++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            (void)dup2(ends[1], STDOUT_FILENO);
            (void)execl("/proc/self/exe", "hashes", SAY_HASHES, NULL);
            _exit(1);
        }
        int status = 0;
        assert_true(waitpid(child, &status, 0) == child && status == 0);
        assert_int_equal(read(ends[0], &all[i], sizeof all[i]), sizeof all[i]);
        for (size_t j = 0; j < i; j++) {
            assert_true(all[i].whole != all[j].whole && all[i].of_file != all[j].of_file &&
                        all[i].pair != all[j].pair);
        }
    }
    (void)close(ends[0]);
    (void)close(ends[1]);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], SAY_HASHES) == 0) {
        const struct hashes hashes = say_hashes();
        return write(STDOUT_FILENO, &hashes, sizeof hashes) == (ssize_t)sizeof hashes ? 0 : 1;
    }
    return unit_test_run();
}
