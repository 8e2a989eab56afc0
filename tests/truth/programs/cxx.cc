/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Exceptions in flight: a throw through frames with destructors, and the unwinder of the language.
 */
#include "step.h"

namespace {
volatile uint64_t sink;
}

struct guard {
    ~guard();
};

TRUTH_FUNCTION guard::~guard()
{
    sink = truth_spin(TRUTH_COUNT(2000));
}

extern "C" {
TRUTH_FUNCTION void thrower(uint64_t depth)
{
    guard held;
    if (depth == 0) {
        throw depth;
    }
    thrower(depth - 1);
    TRUTH_STAY();
}

TRUTH_FUNCTION void catcher()
{
    try {
        thrower(3);
    } catch (const uint64_t &value) {
        sink = truth_spin(TRUTH_COUNT(20000) + value);
    }
    TRUTH_STAY();
}
}

int main()
{
    truth_step_prepare();
    truth_begin();
    truth_step();
    for (;;) {
        catcher();
        TRUTH_STAY();
    }
}
