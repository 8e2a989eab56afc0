/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Sentences for the user that created a session: where the session differs from what the config
 * says, and why. Each is about one member of the config.
 */

#include <stddef.h>

#define SESSION_NOTES_MAX      4
#define SESSION_NOTE_BYTES_MAX 256

struct session_note {
    const char *member; /* borrowed for the life of the notes */
    char text[SESSION_NOTE_BYTES_MAX];
};

struct session_notes {
    struct session_note notes[SESSION_NOTES_MAX];
    size_t count;
};

/* Adds a sentence, cut at SESSION_NOTE_BYTES_MAX - 1. There must be room for it; `member`
 * (borrowed) outlives the notes. */
void session_notes_add(struct session_notes *notes, const char *member, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A JSON array of strings "MEMBER: TEXT". Returned: free(). NULL when there is no memory. */
char *session_notes_print(const struct session_notes *notes);
