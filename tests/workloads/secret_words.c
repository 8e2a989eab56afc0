/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Spins with a secret where a frame pointer would lead, for a moment, and executes a program with
 * the rights of its caller: `secret_words [PROGRAM [ARGUMENT...]]`. rbp points into an array on the
 * stack, and the word behind is a secret: six letters and two zeros, which is as high as an address
 * of a program can be. The array has 256 of them; four are used in a run, by the time.
 *
 * Letter i is 'a' + (x >> 16) % 26, with x = 1664525 * x + 1013904223 for each, from x = 1. No file
 * holds any of it.
 */
#include <stdint.h>
#include <unistd.h>
#include <x86intrin.h>

#define SECRET_COUNT 256
#define LETTERS      6
#define TURN_COUNT   20000000

void spin_at(const uint64_t *words, uint64_t count);
__asm__(".text\n"
        "spin_at:\n"
        "push %rbp\n"
        "mov %rdi, %rbp\n"
        "1: dec %rsi\n"
        "jnz 1b\n"
        "pop %rbp\n"
        "ret\n");

int main(int argc, char **argv)
{
    uint64_t words[SECRET_COUNT + 1] = {0};
    uint32_t x = 1;
    for (int i = 1; i <= SECRET_COUNT; i++) {
        for (int letter = 0; letter < LETTERS; letter++) {
            x = 1664525 * x + 1013904223;
            words[i] |= (uint64_t)('a' + (x >> 16) % 26) << (8 * letter);
        }
    }
    for (unsigned turn = 0; turn < 4; turn++) {
        spin_at(&words[(__rdtsc() >> 4) % SECRET_COUNT], TURN_COUNT);
    }
    if (argc == 1) {
        return 0;
    }
    if (setuid(getuid()) == 0) {
        (void)execv(argv[1], &argv[1]);
    }
    return 1;
}
