/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a shell may put in the place of the word at the cursor. */

#include "options.h"

#include <stddef.h>
#include <stdio.h>

/* Prints what may stand for the last of a verb's `words`, as options_complete_instead() has it. */
void complete_print(FILE *file, const struct command_line *line, size_t count, char **words);
