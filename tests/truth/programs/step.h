/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Built with TRUTH_STEP, a program traps behind each of its own instructions from truth_step() on,
 * and spends its time in the handler: a sample there has every instruction alike as the interrupted
 * one, prologues, epilogues and linkage tables included. Else truth_step() does nothing.
 */
#include "truth.h"

#ifdef TRUTH_STEP
#include <signal.h>

#define STEP_SPIN 4000

#ifdef __cplusplus
extern "C"
#endif
    TRUTH_FUNCTION void
    on_step(int number);
TRUTH_FUNCTION void on_step(int number)
{
    (void)number;
    (void)truth_spin(STEP_SPIN);
}

static inline void truth_step_prepare(void)
{
    struct sigaction action = {};
    action.sa_handler = on_step;
    (void)sigaction(SIGTRAP, &action, NULL);
}

__attribute__((always_inline)) static inline void truth_step(void)
{
#ifdef __i386__
    __asm__ volatile("pushf\n\torl $0x100, (%%esp)\n\tpopf" ::: "cc", "memory");
#else
    /* Below the red zone of the function that this stands in. */
    __asm__ volatile(
        "sub $128, %%rsp\n\tpushf\n\torl $0x100, (%%rsp)\n\tpopf\n\tlea 128(%%rsp), %%rsp" ::
            : "cc", "memory");
#endif
}
#define TRUTH_COUNT(spinning) 1
#else
static inline void truth_step_prepare(void)
{
}
static inline void truth_step(void)
{
}
#define TRUTH_COUNT(spinning) (spinning)
#endif
