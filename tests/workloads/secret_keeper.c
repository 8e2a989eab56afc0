/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Spins with a 32-byte secret on its stack, in many copies above the frame that spins, so that each
 * sample's copy of the stack has it: `secret_keeper SECONDS`. It rests for three quarters of the
 * time, with the secret where it was. The secret is 32 bytes that follow from a formula: no file
 * holds it in one piece.
 */
#include "workload.h"

#define SECRET_BYTES 32
#define COPIES       64
#define REST         3

static uint8_t secret_byte(size_t i)
{
    return (uint8_t)(7 * i * i + 59 * i + 195);
}

static WORKLOAD_NOINLINE uint64_t keep(uint64_t deadline_ns)
{
    uint8_t secrets[COPIES][SECRET_BYTES];
    uint64_t sum = 0;
    for (size_t i = 0; i < sizeof secrets; i++) {
        secrets[i / SECRET_BYTES][i % SECRET_BYTES] = secret_byte(i % SECRET_BYTES);
    }
    __asm__ volatile("" : : "r"(secrets) : "memory");
    while (!workload_time_is_up(deadline_ns)) {
        uint64_t began_ns = workload_cpu_ns();
        sum += workload_spin(1000000);
        workload_rest(REST, workload_cpu_ns() - began_ns);
    }
    __asm__ volatile("" : : "r"(secrets) : "memory");
    return sum;
}

int main(int argc, char **argv)
{
    double seconds = argc == 2 ? strtod(argv[1], NULL) : 1;
    (void)!keep(workload_deadline_ns(seconds));
    return 0;
}
