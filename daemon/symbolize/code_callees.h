/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "elf_file.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Functions without call frames that come back with another stack pointer than they were called
 * with: that take arguments off the stack, or leave words there. What stands behind a call of one
 * cannot be followed.
 */
struct code_callees;

struct code_callees *code_callees_new(void);
struct code_callees *code_callees_free(struct code_callees *callees);

/* Code calls an address directly. Returns 0 or -ENOMEM. */
int code_callees_add(struct code_callees *callees, uint64_t address);

/* After the last was added, and before any is asked for: follows each of them. `*left_visits`, as
 * code_region_visit() counts them, becomes less. Returns 0 or -ENOMEM. */
int code_callees_read(struct code_callees *callees, const struct elf_file *file,
                      uint64_t *left_visits);

/* Whether a call of an address may come back so; of one that was added, or has call frames. */
bool code_callees_is_odd(const struct code_callees *callees, uint64_t address);
