/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Runs with a stack pointer that is odd and just below the end of the address space, which the
 * kernel lets everybody do: `odd_pointer SECONDS`, ended by SIGALRM. What a profiler has the kernel
 * copy of that stack has an odd size (perf_ring.c).
 */
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define ADDRESS_SPACE_END UINT64_C(0x7ffffffff000)

int main(int argc, char **argv)
{
    (void)alarm(argc == 2 ? (unsigned)strtoul(argv[1], NULL, 10) : 1);
    uint64_t pointer = ADDRESS_SPACE_END - 501;
    __asm__ volatile("movq %0, %%rsp\n"
                     "1: jmp 1b"
                     :
                     : "r"(pointer)
                     : "memory");
    return 0;
}
