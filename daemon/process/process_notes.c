/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An array with an element for each place of the table. Beside each note is the number of the
 * process that it is of; no two processes have the same number, so an old note is known as such.
 */
#include "process_notes.h"

#include <stdlib.h>
#include <string.h>

struct process_notes {
    size_t note_bytes;
    uint64_t *numbers;
    uint8_t *notes;
};

struct process_notes *process_notes_new(size_t note_bytes)
{
    struct process_notes *notes = calloc(1, sizeof *notes);
    if (notes == NULL) {
        return NULL;
    }
    notes->note_bytes = note_bytes;
    notes->numbers = calloc(PROCESS_TABLE_PROCESSES_MAX, sizeof *notes->numbers);
    notes->notes = calloc(PROCESS_TABLE_PROCESSES_MAX, note_bytes);
    return notes->numbers == NULL || notes->notes == NULL ? process_notes_free(notes) : notes;
}

struct process_notes *process_notes_free(struct process_notes *notes)
{
    if (notes != NULL) {
        free(notes->numbers);
        free(notes->notes);
        free(notes);
    }
    return NULL;
}

void *process_notes_of(struct process_notes *notes, const struct process *process)
{
    uint8_t *note = notes->notes + process->place * notes->note_bytes;
    if (notes->numbers[process->place] != process->number) {
        notes->numbers[process->place] = process->number;
        memset(note, 0, notes->note_bytes);
    }
    return note;
}
