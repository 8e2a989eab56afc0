/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The parts of unwind_oracle: samples with copied stacks, taken of live processes, which are then
 * unwound by ours and by libdw's unwinder from the same bytes.
 */

#include "unwind.h"

#include <sys/types.h>

struct oracle_sample {
    pid_t tid;
    bool kernel_mode; /* the tick found it in the kernel: the registers are of its entry */
    uint64_t registers[ARCH_REGISTERS_COUNT]; /* by DWARF number */
    uint64_t ip;
    uint8_t *stack; /* owned, with the chain */
    size_t stack_bytes;
    bool stack_cut;
    uint64_t *chain;
    size_t chain_count;
    bool chain_cut;
};

struct oracle_process {
    const char *label; /* borrowed */
    pid_t pid;
    struct oracle_sample *samples; /* owned, as what they own; oracle_process_done() */
    size_t sample_count;
    size_t sample_capacity;
    size_t without_registers_count; /* samples that had none, or of a 32-bit program */
};

struct oracle_config {
    uint64_t period_ns;
    uint64_t duration_ns;
    uint32_t stack_copy_bytes;
    size_t stitch_bytes; /* 0, or the copy that oracle_stitch() is to try */
    size_t samples_max;  /* of each process; the duration may end before */
};

/* Samples the whole machine and keeps all samples of the processes. Exits where it cannot: with 77
 * where the kernel refuses. */
void oracle_record(const struct oracle_config *config, struct oracle_process *processes,
                   size_t process_count);
void oracle_process_done(struct oracle_process *process);

struct oracle_stack {
    uint64_t frames[UNWIND_DEPTH_MAX];
    uint64_t places[UNWIND_DEPTH_MAX];
    size_t count;
};

/* A process as unwind_stack() has to see it: executable ranges, and tables of their files. */
struct oracle_ours;
struct oracle_ours *oracle_ours_open(pid_t pid);
void oracle_ours_unwind(struct oracle_ours *ours, const struct oracle_sample *sample,
                        struct oracle_stack *ret, struct unwind_result *ret_result);
bool oracle_ours_has_code(struct oracle_ours *ours, uint64_t pc);
struct oracle_ours *oracle_ours_free(struct oracle_ours *ours);

/* Prints how many stacks that a copy of so many bytes cuts could be completed from others. */
void oracle_stitch(struct oracle_ours *ours, const struct oracle_process *process,
                   size_t copy_bytes);

/* The same process as libdw sees it. */
struct oracle_libdw;
struct oracle_libdw *oracle_libdw_open(pid_t pid);
/* `*ret_missed`: libdw needed what was not copied, and what it would have guessed is left out. */
void oracle_libdw_unwind(struct oracle_libdw *libdw, const struct oracle_sample *sample,
                         struct oracle_stack *ret, bool *ret_missed, const char **ret_error);
/* Writes "module!function" of an address into `text`. */
void oracle_libdw_name(struct oracle_libdw *libdw, uint64_t pc, char *text, size_t text_bytes);
struct oracle_libdw *oracle_libdw_free(struct oracle_libdw *libdw);

/* Not enough memory is the end of a test. */
void *oracle_alloc(void *old, size_t bytes);
