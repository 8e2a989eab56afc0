/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Code that the kernel was given, or got rid of, while it was watched: BPF programs, trampolines.
 * Where it was, from when until when, and its name. Fed by the kernel's records in the order of
 * their time. Bounded: what is gone makes room, the oldest first. Pure; belongs to one thread.
 *
 * A name is the kernel's, and a part of it a user's: its bytes may be any.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KERNEL_CODE_MAX        2048
#define KERNEL_CODE_NAME_BYTES 256 /* with its NUL; longer ones are cut */

struct kernel_function {
    uint64_t start;
    uint32_t size_bytes;
    uint64_t from_ns; /* 0: it was there before, and is gone */
    uint64_t to_ns;   /* UINT64_MAX while it is there */
    char name[KERNEL_CODE_NAME_BYTES];
    uint32_t shown_log; /* trace_kernel.c's own: the log that says that it came, */
    uint32_t ended_log; /* and the one that says that it went */
    bool is_wanted;     /* something was sampled in it */
};

struct kernel_code;

/* Returned; NULL when there is no memory. */
struct kernel_code *kernel_code_new(void);
struct kernel_code *kernel_code_free(struct kernel_code *code);

/* A function came, or went. False: there is no room for it. */
bool kernel_code_come(struct kernel_code *code, const struct kernel_function *function);
bool kernel_code_go(struct kernel_code *code, const struct kernel_function *function,
                    uint64_t time_ns);

/* Changes whenever a function comes or goes. */
uint32_t kernel_code_epoch(const struct kernel_code *code);

/*
 * The function that had `address` last at `time_ns`, be it gone by then; NULL: none is known.
 * Borrowed until the next change. `*ret_is_known`: whether there is one at some time.
 */
struct kernel_function *kernel_code_find(struct kernel_code *code, uint64_t address,
                                         uint64_t time_ns, bool *ret_is_known);

/* All of them, one by one: NULL after the last. */
struct kernel_function *kernel_code_at(struct kernel_code *code, size_t index);
