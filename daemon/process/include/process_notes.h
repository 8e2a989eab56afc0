/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a module outside of this room remembers of each process of a table: a note of the module's
 * own, found by the process's place. A process that is new in its place has a note of zeros. Memory
 * is taken as places are used. Pure.
 */

#include "process_table.h"

#include <stddef.h>

struct process_notes;

/* Returned; NULL when there is no memory. */
struct process_notes *process_notes_new(size_t note_bytes);
struct process_notes *process_notes_free(struct process_notes *notes);

/* The note (borrowed), until the process is freed. */
void *process_notes_of(struct process_notes *notes, const struct process *process);
