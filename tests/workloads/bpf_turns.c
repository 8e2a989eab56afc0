/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Kernel code that comes and goes: `bpf_turns MS FILE` loads a program of the kernel's (BPF), says
 * "ready", waits until FILE is there, runs it for so many milliseconds, unloads it, and does the
 * same with eight others, one after another, whose names are `turn_1` to `turn_8`; the first is
 * `turn_0`.
 *
 * A profiler must see: below the caller `call_N` the program `turn_N`, and no other. Ends with
 * status 77 and a sentence where the kernel takes no such program, or does not compile it.
 */
#include "workload.h"

#include <errno.h>
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TURNS        9
#define LOOPS        20000 /* what the verifier follows one by one */
#define REPEATS      100
#define PACKET_BYTES 64

static int bpf(enum bpf_cmd command, union bpf_attr *attr)
{
    return (int)syscall(SYS_bpf, command, attr, sizeof *attr);
}

static uint64_t word(const void *pointer)
{
    return (uint64_t)(uintptr_t)pointer;
}

/* r0 = 0; r1 = LOOPS + turn; do { r0 += r1; r1 -= 1; } while (r1 != 0); r0 = 0 */
static int load(unsigned turn)
{
    const struct bpf_insn code[] = {
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0},
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_1, .imm = (int)(LOOPS + turn)},
        {.code = BPF_ALU64 | BPF_ADD | BPF_X, .dst_reg = BPF_REG_0, .src_reg = BPF_REG_1},
        {.code = BPF_ALU64 | BPF_SUB | BPF_K, .dst_reg = BPF_REG_1, .imm = 1},
        {.code = BPF_JMP | BPF_JNE | BPF_K, .dst_reg = BPF_REG_1, .off = -3, .imm = 0},
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0},
        {.code = BPF_JMP | BPF_EXIT},
    };
    union bpf_attr attr = {
        .prog_type = BPF_PROG_TYPE_SOCKET_FILTER,
        .insn_cnt = sizeof code / sizeof *code,
        .insns = word(code),
        .license = word("GPL"),
    };
    (void)snprintf(attr.prog_name, sizeof attr.prog_name, "turn_%u", turn);
    return bpf(BPF_PROG_LOAD, &attr);
}

static bool is_compiled(int fd)
{
    struct bpf_prog_info info = {0};
    union bpf_attr attr = {
        .info = {.bpf_fd = (uint32_t)fd, .info_len = sizeof info, .info = word(&info)}};
    return bpf(BPF_OBJ_GET_INFO_BY_FD, &attr) == 0 && info.jited_prog_len > 0;
}

static WORKLOAD_NOINLINE void run(int fd, uint64_t end_ns)
{
    static const uint8_t packet[PACKET_BYTES];
    while (workload_clock_ns(CLOCK_MONOTONIC) < end_ns) {
        union bpf_attr attr = {.test = {.prog_fd = (uint32_t)fd,
                                        .repeat = REPEATS,
                                        .data_size_in = sizeof packet,
                                        .data_in = word(packet)}};
        if (bpf(BPF_PROG_TEST_RUN, &attr) != 0) {
            perror("BPF_PROG_TEST_RUN");
            exit(1);
        }
    }
}

#define CALL(number)                                                                               \
    static WORKLOAD_NOINLINE void call_##number(int fd, uint64_t end_ns)                           \
    {                                                                                              \
        run(fd, end_ns);                                                                           \
        __asm__ volatile("");                                                                      \
    }
CALL(0)
CALL(1)
CALL(2)
CALL(3)
CALL(4)
CALL(5)
CALL(6)
CALL(7)
CALL(8)

int main(int argc, char **argv)
{
    static void (*const calls[TURNS])(int, uint64_t) = {call_0, call_1, call_2, call_3, call_4,
                                                        call_5, call_6, call_7, call_8};
    uint64_t ms = argc < 2 ? 300 : strtoull(argv[1], NULL, 10);
    int fd = load(0);
    if (fd < 0 || !is_compiled(fd)) {
        printf("the kernel %s\n", fd < 0 ? strerror(errno) : "does not compile programs");
        return 77;
    }
    printf("ready\n");
    (void)fflush(stdout);
    while (argc > 2 && access(argv[2], F_OK) != 0) {
        (void)usleep(10000);
    }
    for (unsigned turn = 0; turn < TURNS; turn++) {
        fd = turn == 0 ? fd : load(turn);
        if (fd < 0) {
            perror("BPF_PROG_LOAD");
            return 1;
        }
        calls[turn](fd, workload_clock_ns(CLOCK_MONOTONIC) + ms * 1000000);
        (void)close(fd);
    }
    return 0;
}
