/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "profile.h"

#include <stdio.h>

/*
 * Prints folded stacks, which flame graph programs read: a line a different stack, sorted,
 *     COMM;outermost;...;innermost COUNT
 * Kernel frames end in "_[k]", inlined ones in "_[i]"; of a profile with lines, frames have
 * ":FILE:LINE" behind their name. A stack that does not reach its root begins with "[truncated]".
 * Returns 0, or -ENOMEM; errors of the file are its owner's to ask for.
 */
int folded_print(FILE *file, const struct profile *profile);
