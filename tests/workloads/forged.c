/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A library that claims to be libc: it is linked with libc's own build-id, and one symbol of it,
 * forged_name, covers every file address at which libc has code. Open it with
 * `LIBRARY=.../libforged.so dlopener`.
 *
 * A profiler must see: late_spin in this library, and, in every other process, libc's own names. If
 * forged_name ever names a frame of another file, tables are shared by what a file says of itself.
 */
#include "workload.h"

/* 4 MiB; libc's code ends below 2 MiB. check.workloads compares the two. */
__asm__(".pushsection .text.forged,\"ax\",@progbits\n"
        ".globl forged_name\n"
        ".type forged_name, @function\n"
        "forged_name:\n"
        ".skip 0x400000, 0xcc\n"
        ".size forged_name, .-forged_name\n"
        ".popsection\n");

void late_spin(uint64_t deadline_ns);

WORKLOAD_NOINLINE void late_spin(uint64_t deadline_ns)
{
    while (!workload_time_is_up(deadline_ns)) {
        (void)workload_spin(100000);
    }
}
