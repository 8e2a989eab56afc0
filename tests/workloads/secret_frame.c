/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Spins with a secret where a frame pointer would lead, for ever: `secret_frame`. rbp points at
 * data, as it may in any code without frame pointers, and the word that a walk of frame pointers
 * takes for the return address is one of 256 secrets, which begin at every alignment: secret i at
 * byte 8 * i + i % 8 of a buffer. Half of the turns are spent in a function that has a frame of its
 * own, so that the secret is behind a genuine return address.
 *
 * Byte i of the buffer is 0x80 + (x >> 16) % 0x70, with x = 1664525 * x + 1013904223 for each, from
 * x = 1. So no word of it, of 4 bytes or 8, is an address of a program. No file holds any of it.
 * Without a C library, so that it is built for 32 bits wherever there is a compiler.
 */
#include <stddef.h>
#include <stdint.h>

#define WORD_BYTES   8 /* between one secret and the next, whatever a frame's words are */
#define SECRET_COUNT 256
#define SECRET_BYTES ((SECRET_COUNT + 1) * WORD_BYTES) /* the last one begins at the 7th byte */
#define TURN_COUNT   4000000

#ifdef __x86_64__
#define BP "%rbp"
#define SP "%rsp"
#define A  "%rdi"
#define N  "%rsi"
#define BY_REGISTERS
#else
#define BP           "%ebp"
#define SP           "%esp"
#define A            "%eax"
#define N            "%edx"
#define BY_REGISTERS __attribute__((regparm(2)))
#endif

/* Both spin `count` times with rbp at `data`, the second in a callee. */
BY_REGISTERS void spin_at_data(const uint8_t *data, size_t count);
BY_REGISTERS void call_at_data(const uint8_t *data, size_t count);

__asm__(".text\n"
        "spin_at_data:\n"
        "push " BP "\n"
        "mov " A ", " BP "\n"
        "1: dec " N "\n"
        "jnz 1b\n"
        "pop " BP "\n"
        "ret\n"
        "spin_in_frame:\n"
        "push " BP "\n"
        "mov " SP ", " BP "\n"
        "1: dec " N "\n"
        "jnz 1b\n"
        "pop " BP "\n"
        "ret\n"
        "call_at_data:\n"
        "push " BP "\n"
        "mov " A ", " BP "\n"
        "call spin_in_frame\n"
        "pop " BP "\n"
        "ret\n");

void _start(void)
{
    static uint8_t memory[sizeof(void *) + SECRET_BYTES]; /* the first word leads nowhere */
    uint8_t *secret = memory + sizeof(void *);
    uint32_t x = 1;
    for (size_t i = 0; i < SECRET_BYTES; i++) {
        x = UINT32_C(1664525) * x + UINT32_C(1013904223);
        secret[i] = (uint8_t)(0x80 + (x >> 16) % 0x70);
    }
    for (size_t turn = 0;; turn = (turn + 1) % SECRET_COUNT) {
        const uint8_t *data = memory + turn * WORD_BYTES + turn % WORD_BYTES;
        spin_at_data(data, TURN_COUNT);
        call_at_data(data, TURN_COUNT);
    }
}
